import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { duplexPair } from 'node:stream';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { FakeContainerEngine } from '../testing/fake_container_engine.ts';
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

function openOnce(change: { readonly directory?: string; readonly readyMs?: number } = {}) {
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
  expect([server.listening, engine.removed]).toEqual([false, [COMPANION]]);
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
