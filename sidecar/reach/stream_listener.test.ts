import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { duplexPair } from 'node:stream';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { FakeContainerEngine } from '../testing/fake_container_engine.ts';
import type { After } from './own_connections.ts';
import { listenByStream } from './stream_listener.ts';

const SESSION = `ses_${'1'.repeat(26)}`;
const COMPANION = `svc-companion-${'1'.repeat(26)}`;
const CONTAINER = 'c'.repeat(64);
const PORT = 7421;

let directory: string;
let engine: FakeContainerEngine;
let server: Server;
let warnings: string[];
let pauses: number[];
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'svc-stream-'));
  engine = new FakeContainerEngine();
  engine.anyImage = true;
  engine.add(CONTAINER, SESSION, 'home');
  server = createServer((socket) => socket.end('here'));
  warnings = [];
  pauses = [];
});
afterEach(() => {
  server.close();
  rmSync(directory, { recursive: true, force: true });
});

function openOnce(change: { directory?: string; readyMs?: number; pause?: () => Promise<void>; after?: After } = {}) {
  return listenByStream([{ server, port: PORT }], {
    engine,
    sessionId: SESSION,
    containerId: CONTAINER,
    imageId: 'sha256:1',
    directory,
    homeLabel: 'home',
    warn: (message) => warnings.push(message),
    pause: (ms) => {
      pauses.push(ms);
      return Promise.resolve();
    },
    ...change,
  });
}

/** What a program of the container is told at the port, through the newest stream. */
function readGreeting(): Promise<string> {
  const [near, far] = duplexPair();
  engine.companions.at(-1)?.carry(far, PORT);
  return text(near);
}

it('carries connections of the container to the servers, also where the path of the sockets is long', async () => {
  const deep = join(directory, 'x'.repeat(90));
  mkdirSync(deep);
  const opened = await openOnce({ directory: deep });
  expect(opened.ok).toBe(true);
  expect(await readGreeting()).toBe('here');
  if (opened.ok) opened.value.close();
});

it('opens the stream again when it is cut, with longer and longer pauses, until the session ends', async () => {
  const opened = await openOnce();
  for (let cuts = 1; cuts <= 9; cuts += 1) {
    engine.companions.at(-1)?.end('cut');
    await vi.waitFor(() => expect(engine.companions).toHaveLength(cuts + 1), { timeout: 60_000 });
    expect(await readGreeting()).toBe('here');
  }
  expect(pauses).toEqual([100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000]);
  expect(warnings).toHaveLength(9);
  expect(warnings[0]).toBe(
    `The stream of session ${SESSION} to its container was cut (the stream ended), and is opened again.`,
  );
  // Each replaces the one before: both have the name of the session.
  expect(engine.removed).toHaveLength(9);
  if (opened.ok) opened.value.close();
  await vi.waitFor(() => expect(engine.companions).toHaveLength(10), { timeout: 60_000 });
});

it('opens none for a container that has ended', async () => {
  await openOnce();
  engine.end(CONTAINER);
  const asked = vi.spyOn(engine, 'inspect');
  engine.companions.at(-1)?.end('cut');
  await vi.waitFor(() => expect(asked).toHaveBeenCalled(), { timeout: 60_000 });
  expect([engine.companions.length, warnings]).toEqual([1, []]);
});

it('ends the stream at a frame that no companion sends, and its connections with it', async () => {
  const opened = await openOnce();
  const [near, far] = duplexPair();
  engine.companions.at(-1)?.carry(far, 22);
  expect(await text(near)).toBe('');
  await vi.waitFor(() => expect(warnings.join('\n')).toContain('it names a port that is not carried'), {
    timeout: 60_000,
  });
  if (opened.ok) opened.value.close();
});

it.each([
  [127, 'no Node 20 or newer'],
  [1, 'svc companion: listen EADDRINUSE'],
])('opens nothing if the companion ends with %s, and says why', async (exitCode, why) => {
  engine.isCutOff = true;
  engine.exitCode = exitCode;
  engine.said = 'svc companion: listen EADDRINUSE\n';
  expect(await openOnce()).toMatchObject({
    ok: false,
    error: { reason: 'listener_failed', message: expect.stringContaining(why) },
  });
  expect([server.listening, new Set(engine.removed)]).toEqual([false, new Set([COMPANION])]);
});

it('runs the companion on an image with Node if the one of the container has none', async () => {
  engine.imageWithoutNode = 'sha256:1';
  const opened = await openOnce();
  expect(opened.ok).toBe(true);
  expect(engine.created.map(({ image }) => image)).toEqual(['sha256:1', 'node:24-slim']);
  expect(engine.removed).toEqual([COMPANION]);
  expect(await readGreeting()).toBe('here');
  if (opened.ok) opened.value.close();
});

it('sees that the image has no Node, though the engine says a little later that the companion has ended', async () => {
  engine.imageWithoutNode = 'sha256:1';
  engine.lateEnds = 5;
  const opened = await openOnce();
  expect([opened.ok, pauses]).toEqual([true, [100, 100, 100, 100, 100]]);
  if (opened.ok) opened.value.close();
});

it('says how to have Node if there is no such image either', async () => {
  engine.anyImage = false;
  engine.images.add('sha256:1');
  engine.imageWithoutNode = 'sha256:1';
  const { error } = { error: null, ...(await openOnce()) };
  expect(error?.message).toMatch(
    /has no Node 20 or newer, and node:24-slim cannot be used .*no such image.*docker pull/,
  );
});

it('says each attempt that fails, with the session', async () => {
  let attempts = 0;
  const pause = (): Promise<void> => {
    attempts += 1;
    engine.isCutOff = attempts < 4;
    return Promise.resolve();
  };
  const opened = await openOnce({ pause });
  engine.exitCode = 3;
  engine.companions.at(-1)?.end('cut');
  await vi.waitFor(() => expect(engine.companions).toHaveLength(2), { timeout: 60_000 });
  const failed = `The stream of session ${SESSION} to its container could not be opened again (it ended with 3).`;
  expect(warnings.slice(1)).toEqual([failed, failed, failed]);
  if (opened.ok) opened.value.close();
});

it('leaves no companion behind that was being made when the session ended', async () => {
  const opened = await openOnce();
  const start = engine.startWithStreams.bind(engine);
  const isMade = Promise.withResolvers<void>();
  const mayGoOn = Promise.withResolvers<void>();
  vi.spyOn(engine, 'startWithStreams').mockImplementation(async (id) => {
    isMade.resolve();
    await mayGoOn.promise;
    return start(id);
  });
  engine.companions.at(-1)?.end('cut');
  await isMade.promise;
  if (opened.ok) opened.value.close();
  engine.removed.length = 0;
  mayGoOn.resolve();
  await vi.waitFor(() => expect(engine.removed).toEqual([COMPANION]), { timeout: 60_000 });
  expect(engine.containers.map(({ id }) => id)).toEqual([CONTAINER]);
});

it('makes none after the session has ended while it waited', async () => {
  const waits = Promise.withResolvers<void>();
  const mayGoOn = Promise.withResolvers<void>();
  const pause = (): Promise<void> => {
    waits.resolve();
    return mayGoOn.promise;
  };
  const opened = await openOnce({ pause });
  engine.companions.at(-1)?.end('cut');
  await waits.promise;
  if (opened.ok) opened.value.close();
  const asked = vi.spyOn(engine, 'create');
  mayGoOn.resolve();
  // Everything that follows a pause without a companion is done in a few turns.
  for (let turns = 0; turns < 20; turns += 1) await new Promise((resolve) => setImmediate(resolve));
  expect(asked).not.toHaveBeenCalled();
});

it('cuts off what its servers have accepted when the stream is cut: they see no end', async () => {
  server.removeAllListeners('connection');
  const accepted = new Promise<Socket>((resolve) => server.once('connection', resolve));
  const opened = await openOnce();
  const [near, far] = duplexPair();
  engine.companions.at(-1)?.carry(far, PORT);
  near.write('half of a request');
  const socket = await accepted;
  const seen: string[] = [];
  for (const name of ['end', 'close']) socket.on(name, () => seen.push(name));
  await once(socket, 'data');
  engine.companions.at(-1)?.end('cut');
  await vi.waitFor(() => expect(seen).toContain('close'), { timeout: 60_000 });
  expect(seen).toEqual(['close']);
  if (opened.ok) opened.value.close();
});

/** Both ends of a program's connection: what the program sees, and what the companion has accepted. A reset destroys that without an end. */
function openAtAgent() {
  const [near, far] = duplexPair({ readableHighWaterMark: 16 });
  engine.companions.at(-1)?.carry(far, PORT);
  return { near, far };
}

async function startServing(serve: (socket: Socket) => void, after?: After): Promise<Socket[]> {
  const accepted: Socket[] = [];
  server = createServer({ allowHalfOpen: true }, (socket) => {
    accepted.push(socket);
    serve(socket.on('error', () => undefined).resume());
  });
  expect((await openOnce(after === undefined ? {} : { after })).ok).toBe(true);
  return accepted;
}

it('resets a connection that its server destroys in the middle of an answer, after what came before', async () => {
  await startServing((socket) => void socket.write('half of an answer', () => socket.destroy()));
  const { near, far } = openAtAgent();
  const heard: string[] = [];
  near.on('data', (some: Buffer) => heard.push(some.toString()));
  await vi.waitFor(() => expect(far.destroyed).toBe(true), { timeout: 60_000 });
  expect([heard.join(''), far.writableEnded]).toEqual(['half of an answer', false]);
});

it('resets one that its server destroys at once, and keeps no other waiting', async () => {
  const accepted = await startServing((socket) => {
    if (accepted.length % 2 === 1) socket.destroy();
    else socket.end('here');
  });
  const all = Array.from({ length: 20 }, () => openAtAgent());
  for (const { near } of all) near.resume();
  const ends = (): (string | null)[] =>
    all.map(({ far }) => (far.writableEnded ? 'end' : far.destroyed ? 'reset' : null));
  await vi.waitFor(() => expect(ends()).not.toContain(null), { timeout: 60_000 });
  expect(ends()).toEqual(all.map((_one, at) => (at % 2 === 1 ? 'end' : 'reset')));
});

it('keeps the order of connections that are reset before they are accepted', async () => {
  const accepted = await startServing((socket) => socket.write('here'));
  const lost = Array.from({ length: 20 }, () => openAtAgent());
  for (const { far } of lost) far.destroy();
  const { near, far } = openAtAgent();
  await once(near, 'data');
  expect(accepted).toHaveLength(21);
  accepted.at(-1)?.destroy();
  await vi.waitFor(() => expect(far.destroyed).toBe(true), { timeout: 60_000 });
});

it('keeps nothing of a connection that its server has ended and closed, though the agent does not end it', async () => {
  const accepted = await startServing((socket) => socket.end('whole'));
  const { near, far } = openAtAgent();
  expect(await text(near)).toBe('whole');
  await vi.waitFor(() => expect(accepted[0]?.writableFinished).toBe(true), { timeout: 60_000 });
  expect(far.destroyed).toBe(false);
  accepted[0]?.destroy();
  await vi.waitFor(() => expect(far.destroyed).toBe(true), { timeout: 60_000 });
});

it('passes on the rest of an answer whose connection is closed, for a minute', async () => {
  const timers: { ms: number; task: () => void }[] = [];
  const after: After = (ms, task) => {
    timers.push({ ms, task });
    return () => undefined;
  };
  const accepted = await startServing((socket) => socket.end('x'.repeat(150_000), () => socket.destroy()), after);
  const { far } = openAtAgent();
  await vi.waitFor(() => expect(accepted[0]?.closed).toBe(true), { timeout: 60_000 });
  expect([timers.map(({ ms }) => ms), far.destroyed]).toEqual([[60_000], false]);
  timers[0]?.task();
  await vi.waitFor(() => expect(far.destroyed).toBe(true), { timeout: 60_000 });
  expect(far.writableEnded).toBe(false);
});

it('opens nothing if the engine refuses, or the companion says nothing', async () => {
  engine.down = true;
  expect(await openOnce()).toMatchObject({ ok: false, error: { message: expect.stringContaining('engine is down') } });
  engine.down = false;
  engine.isSilent = true;
  expect(await openOnce({ readyMs: 1 })).toMatchObject({
    ok: false,
    error: { message: expect.stringContaining('it does not answer') },
  });
  expect(server.listening).toBe(false);
});
