import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { connect, createServer, type Server } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { holdPort, type HeldPort } from './held_port.ts';

const IPV4 = '127.0.0.1';
const open: HeldPort[] = [];
const children: ChildProcess[] = [];

afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
  for (const held of open.splice(0)) held.close();
});

function hold(port: number, ...addresses: readonly string[]): HeldPort {
  const held = holdPort(port, [IPV4, ...addresses]);
  open.push(held);
  return held;
}

/** A program that listens on its inherited socket and answers each connection with its process id. */
async function listener({ descriptors }: HeldPort): Promise<ChildProcess> {
  const script = `require('net').createServer((c) => c.end(String(process.pid))).listen({ fd: 3 }, () => console.log('up'))`;
  const child = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'inherit', ...descriptors] });
  children.push(child);
  if (child.stdout !== null) await once(child.stdout, 'data');
  return child;
}

function ask(port: number): { readonly connected: Promise<unknown>; readonly answer: Promise<string> } {
  const socket = connect(port, IPV4);
  let said = '';
  socket.on('data', (chunk) => (said += chunk.toString()));
  const connected = once(socket, 'connect');
  return { connected, answer: once(socket, 'close').then(() => said) };
}

describe('a held port', () => {
  test('keeps connections waiting while the program restarts', async () => {
    const held = hold(0);
    const first = await listener(held);
    expect(await ask(held.port).answer).toBe(String(first.pid));
    const exited = once(first, 'exit');
    first.kill('SIGKILL');
    await exited;
    const waiting = ask(held.port);
    await waiting.connected;
    const second = await listener(held);
    expect(await waiting.answer).toBe(String(second.pid));
  });

  test('cannot be taken by another program while its own is not running', async () => {
    const held = hold(0);
    const first = await listener(held);
    const exited = once(first, 'exit');
    first.kill('SIGKILL');
    await exited;
    const server = createServer();
    const failed = once(server, 'error');
    server.listen(held.port, IPV4);
    expect(await failed).toMatchObject([{ code: 'EADDRINUSE' }]);
  });

  test('is the same at every address', () => {
    const held = hold(0, '::1');
    expect(held.port).toBeGreaterThan(0);
    expect([1, 2]).toContain(held.descriptors.length);
    expect(() => hold(held.port, '127.0.0.2')).not.toThrow();
  });

  test('that another program listens on is refused with its code', async () => {
    const server: Server = createServer().listen(0, IPV4);
    await once(server, 'listening');
    const address = server.address();
    const port = typeof address === 'object' ? (address?.port ?? 0) : 0;
    expect(() => hold(port)).toThrow(expect.objectContaining({ code: 'EADDRINUSE' }));
    server.close();
  });

  test('is free again once it is closed', async () => {
    const held = holdPort(0, [IPV4]);
    held.close();
    const server = createServer().listen(held.port, IPV4);
    await once(server, 'listening');
    expect(server.address()).toMatchObject({ port: held.port });
    server.close();
  });
});
