import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { freePort } from '../../e2e/support/free_port.ts';

const PROGRAM = fileURLToPath(new URL('companion.cjs', import.meta.url));

let folder: string;
let children: ChildProcess[];
let servers: Server[];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'svc-companion-'));
  children = [];
  servers = [];
});
afterEach(() => {
  for (const child of children) child.kill('SIGKILL');
  for (const server of servers) server.close();
  rmSync(folder, { recursive: true, force: true });
});

function listenAt(name: string, serve: (socket: Socket) => void): Server {
  const server = createServer({ allowHalfOpen: true }, (socket) => serve(socket.on('error', () => undefined)));
  servers.push(server);
  return server.listen(join(folder, name));
}

/** Starts it without any environment, as in its container, and waits until it says that it listens. */
async function startCompanion(...ports: readonly number[]): Promise<ChildProcess> {
  const ready = listenAt('ready.sock', (socket) => socket.end());
  const child = spawn(process.execPath, [PROGRAM, folder, ...ports.map(String)], { env: {}, stdio: 'ignore' });
  children.push(child);
  await once(ready, 'connection');
  return child;
}

async function exchange(port: number, text: string): Promise<string> {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  let said = '';
  socket.setEncoding('utf8').on('data', (some: string) => (said += some));
  socket.on('error', () => undefined);
  socket.end(text);
  await once(socket, 'close');
  return said;
}

it('carries each port to its own socket, in both directions and through half-closed connections', async () => {
  const [one, two] = [await freePort(), await freePort()];
  for (const port of [one, two]) {
    listenAt(`${port}.sock`, (socket) => {
      let heard = '';
      socket.setEncoding('utf8').on('data', (some: string) => (heard += some));
      socket.on('end', () => socket.end(`${port} heard ${heard}`));
    });
  }
  await startCompanion(one, two);
  expect(await exchange(one, 'hello')).toBe(`${one} heard hello`);
  expect(await exchange(two, 'hello')).toBe(`${two} heard hello`);
});

it('serves on when the sidecar comes back, and meanwhile resets each connection', async () => {
  const port = await freePort();
  const before = listenAt(`${port}.sock`, (socket) => socket.end('before'));
  await startCompanion(port);
  expect(await exchange(port, '')).toBe('before');
  await new Promise((resolve) => before.close(resolve));
  await expect(exchange(port, '')).rejects.toThrow('ECONNRESET');
  listenAt(`${port}.sock`, (socket) => socket.end('after'));
  expect(await exchange(port, '')).toBe('after');
});

it('ends at SIGTERM, which the first process of a container would ignore', async () => {
  const child = await startCompanion(await freePort());
  const ended = once(child, 'exit');
  child.kill('SIGTERM');
  expect(await ended).toEqual([0, null]);
});
