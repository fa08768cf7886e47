import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { type Duplex, duplexPair, type Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { freePort } from '../../e2e/support/free_port.ts';
import { err, ok } from '../../shared/model/result.ts';
import type { ContainerSpec, RuntimeFailure } from '../engine/container_runtime.ts';
import { Multiplex } from './multiplex.cjs';
import { startStreamCompanion, type StreamEngine, whyNoCompanion } from './stream_companion.ts';

const SESSION = `ses_${'1'.repeat(26)}`;
const NAME = `svc-companion-${'1'.repeat(26)}`;
const CONTAINER = 'c'.repeat(64);
const REFUSED: RuntimeFailure = { reason: 'engine_refused', message: 'the name is in use', fixes: [] };

let calls: string[];
let children: ChildProcess[];
let folder: string;
beforeEach(() => {
  calls = [];
  children = [];
  folder = mkdtempSync(join(tmpdir(), 'svc-stream-companion-'));
});
afterEach(() => {
  for (const child of children) child.kill('SIGKILL');
  rmSync(folder, { recursive: true, force: true });
});

function fakeEngine(specs: ContainerSpec[], refusals = 0): StreamEngine {
  let left = refusals;
  return {
    create: (spec) => {
      calls.push('create');
      specs.push(spec);
      left -= 1;
      return Promise.resolve(left >= 0 ? err(REFUSED) : ok('id'));
    },
    remove: (id) => {
      calls.push(`remove ${id}`);
      return Promise.resolve(ok(undefined));
    },
    startWithStreams: (id) => {
      calls.push(`start ${id}`);
      const [one] = duplexPair();
      return Promise.resolve(ok({ input: one, output: one, said: () => '' }));
    },
  };
}

async function specFor(...ports: readonly number[]): Promise<ContainerSpec> {
  const specs: ContainerSpec[] = [];
  const companion = { sessionId: SESSION, labels: { a: 'b' }, containerId: CONTAINER, imageId: 'sha256:1', ports };
  expect((await startStreamCompanion(fakeEngine(specs), companion)).ok).toBe(true);
  const [spec] = specs;
  if (spec === undefined) throw new Error('nothing was created');
  return spec;
}

/** The program of the companion, run as its container runs it. */
async function runProgram(path: string, ...ports: readonly number[]): Promise<ChildProcess> {
  const { entrypoint, command, env } = await specFor(...ports);
  const child = spawn(entrypoint ?? '', [...command], { env: { ...env, PATH: path }, stdio: 'pipe' });
  children.push(child);
  return child;
}

function streamOf(child: ChildProcess, name: 'stdout' | 'stderr'): Readable {
  const stream = child[name];
  if (stream === null) throw new Error(`its ${name} is no pipe`);
  return stream;
}

it('has the network of the one container and no right, and nothing of this machine is in it', async () => {
  expect(await specFor(7421)).toMatchObject({
    image: 'sha256:1',
    name: NAME,
    labels: { a: 'b' },
    network: { container: CONTAINER },
    user: '65534:65534',
    mounts: [],
    env: { NODE_OPTIONS: '' },
    hardening: { capabilities: [] },
    confinement: { tmpfs: [] },
    keepsNoLog: true,
    stdin: true,
    tty: false,
  });
});

it('replaces one of an earlier stream', async () => {
  const companion = { sessionId: SESSION, labels: {}, containerId: CONTAINER, imageId: 'i', ports: [1] };
  expect((await startStreamCompanion(fakeEngine([], 1), companion)).ok).toBe(true);
  expect(calls).toEqual(['create', `remove ${NAME}`, 'create', 'start id']);
  calls = [];
  expect(await startStreamCompanion(fakeEngine([], 2), companion)).toEqual(err(REFUSED));
});

it('carries connections of its ports over its streams, and ends with its input', async () => {
  const [one, two] = [await freePort(), await freePort()];
  const child = await runProgram(dirname(process.execPath), one, two);
  const { stdin: output } = child;
  if (output === null) throw new Error('its input is no pipe');
  const input = streamOf(child, 'stdout');
  const accepted: number[] = [];
  const ready = Promise.withResolvers<void>();
  const echo = (port: number): Duplex => {
    accepted.push(port);
    const [near, far] = duplexPair();
    void text(near).then((heard) => near.end(`${port} heard ${heard}`));
    return far;
  };
  const multiplex = new Multiplex({ input, output, accept: echo, onReady: ready.resolve, onOver: () => undefined });
  await ready.promise;
  for (const port of [one, two]) {
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    socket.end('hello');
    expect(await text(socket)).toBe(`${port} heard hello`);
  }
  expect(accepted).toEqual([one, two]);
  const cut = connect({ port: one, host: '127.0.0.1' });
  const seen = Promise.withResolvers<string>();
  cut.on('end', () => seen.resolve('a clean end'));
  cut.on('error', (error: NodeJS.ErrnoException) => seen.resolve(error.code ?? ''));
  await vi.waitFor(() => expect(accepted).toHaveLength(3), { timeout: 60_000 });
  const ended = once(child, 'exit');
  multiplex.end('done');
  expect(await seen.promise).toBe('ECONNRESET');
  expect(await ended).toEqual([0, null]);
});

it('says why it does not listen', async () => {
  const port = await freePort();
  const first = await runProgram(dirname(process.execPath), port);
  await once(streamOf(first, 'stdout'), 'data');
  const second = await runProgram(dirname(process.execPath), port);
  const [said, [code]] = await Promise.all([text(streamOf(second, 'stderr')), once(second, 'exit')]);
  expect(whyNoCompanion(Number(code), said)).toMatch(/^svc companion: .*EADDRINUSE.*; no program of the image may use/);
});

// Bun calls itself 0 here.
it.each(['18', '0', 'nonsense', null])('asks for a newer Node where the one of the image is %s', async (version) => {
  if (version !== null) {
    writeFileSync(join(folder, 'node'), `#!/bin/sh\necho ${version}\n`);
    chmodSync(join(folder, 'node'), 0o755);
  }
  const child = await runProgram(folder, await freePort());
  const [code] = await once(child, 'exit');
  expect(whyNoCompanion(Number(code), '')).toBe('its image has no Node 20 or newer');
});

it('names its exit status where it said nothing, and shows no control character of what it said', () => {
  expect(whyNoCompanion(3, ' \n')).toBe('it ended with 3');
  expect(whyNoCompanion(3, 'a\u001b[2Jb\nc')).toBe('a\\x1b[2Jb\\x0ac');
});
