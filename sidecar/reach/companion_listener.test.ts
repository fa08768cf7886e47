import { chmodSync, mkdirSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { connect, createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { Result } from '../../shared/model/result.ts';
import { FakeContainerEngine } from '../testing/fake_container_engine.ts';
import { listenByCompanion } from './companion_listener.ts';

const SESSION = `ses_${'1'.repeat(26)}`;
const NAME = `svc-companion-${'1'.repeat(26)}`;

let directory: string;
let engine: FakeContainerEngine;
let server: Server;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'svc-companion-'));
  engine = new FakeContainerEngine();
  server = createServer((socket) => socket.end('here'));
});
afterEach(() => {
  server.close();
  rmSync(directory, { recursive: true, force: true });
});

function listenOnce(readyMs = 60_000): Promise<Result<void, unknown>> {
  const own = { engine, sessionId: SESSION, containerId: 'c1', homeLabel: 'home', user: '1000:1000', readyMs };
  return listenByCompanion([{ server, port: 7421 }], { ...own, directory });
}

const socket = (): string => join(directory, 'companion', '7421.sock');

function readGreeting(): Promise<string> {
  return new Promise((resolve, reject) => {
    connect(socket())
      .once('data', (data) => resolve(data.toString()))
      .once('error', reject);
  });
}

it('serves at a socket that only this user may connect to, in a folder that only this user may enter', async () => {
  mkdirSync(join(directory, 'companion'));
  chmodSync(join(directory, 'companion'), 0o777);
  expect(await listenOnce()).toEqual({ ok: true, value: undefined });
  expect(await readGreeting()).toBe('here');
  expect(statSync(socket()).mode & 0o777).toBe(0o600);
  expect(statSync(join(directory, 'companion')).mode & 0o777).toBe(0o700);
});

it("starts one companion with the session's labels, by which it is found after a crash", async () => {
  await listenOnce();
  expect(engine.containers).toEqual([{ id: NAME, name: NAME, running: true, session: SESSION, home: 'home' }]);
  expect([...engine.images]).toEqual(['svc-companion:empty']);
});

it('keeps a companion that runs, and replaces one that has ended', async () => {
  await listenOnce();
  server.close();
  server = createServer((each) => each.end('again'));
  expect(await listenOnce()).toEqual({ ok: true, value: undefined });
  expect([engine.created.length, await readGreeting()]).toEqual([1, 'again']);
  server.close();
  server = createServer((each) => each.end('anew'));
  engine.containers = engine.containers.map((one) => ({ ...one, running: false }));
  expect(await listenOnce()).toEqual({ ok: true, value: undefined });
  expect([engine.created.length, engine.removed, await readGreeting()]).toEqual([2, [NAME], 'anew']);
});

it('opens nothing if the companion cannot reach it, and says what else there is', async () => {
  engine.isCutOff = true;
  const refused = await listenOnce(1);
  expect(refused).toMatchObject({
    ok: false,
    error: { reason: 'listener_failed', message: expect.stringMatching(/cannot reach the sidecar.*svc run --sandbox/) },
  });
  expect([engine.containers, server.listening]).toEqual([[], false]);
});

it('opens nothing if the engine refuses', async () => {
  engine.down = true;
  expect(await listenOnce()).toMatchObject({ ok: false, error: { reason: 'listener_failed' } });
  expect(server.listening).toBe(false);
});
