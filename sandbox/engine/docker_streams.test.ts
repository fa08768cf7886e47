import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { attachStreams } from './docker_streams.ts';

let folder: string;
let server: Server;
let asked: string[];
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'svc-streams-'));
  asked = [];
  server = createServer((_call, reply) => reply.writeHead(404).end('{"message":"no such container"}'));
  await new Promise<void>((resolve) => server.listen(join(folder, 'engine.sock'), resolve));
});
afterEach(() => {
  server.closeAllConnections();
  server.close();
  rmSync(folder, { recursive: true, force: true });
});

const endpoint = (): string => `unix://${join(folder, 'engine.sock')}`;

function docker(stream: number, said: string): Buffer {
  const header = Buffer.alloc(8);
  header.writeUInt8(stream, 0);
  header.writeUInt32BE(said.length, 4);
  return Buffer.concat([header, Buffer.from(said)]);
}

function takeOver(serve: (socket: Socket) => void): void {
  server.on('upgrade', ({ method, url, headers }, socket: Socket) => {
    asked.push(`${method} ${url} ${headers.upgrade}`);
    socket.write('HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n');
    serve(socket.on('error', () => undefined));
  });
}

it('gives the output without its frames, however they are cut, and keeps what is said on the other stream', async () => {
  const sent = Buffer.concat([docker(1, 'one '), docker(2, 'said'), docker(1, ''), docker(1, 'two')]);
  takeOver((socket) => {
    for (const byte of sent) socket.write(Buffer.from([byte]));
    socket.end();
  });
  const streams = await attachStreams(endpoint(), 'a/b');
  expect(streams.ok && (await text(streams.value.output))).toBe('one two');
  expect(streams.ok && streams.value.said()).toBe('said');
  expect(asked).toEqual(['POST /containers/a%2Fb/attach?stream=1&stdin=1&stdout=1&stderr=1 tcp']);
});

it('keeps only the end of what is said', async () => {
  takeOver((socket) => socket.end(docker(2, `${'x'.repeat(10_000)}the end`)));
  const streams = await attachStreams(endpoint(), 'a');
  expect(streams.ok && (await text(streams.value.output))).toBe('');
  expect(streams.ok && streams.value.said()).toBe(`${'x'.repeat(493)}the end`);
});

it('carries the input, and closes the connection with the output', async () => {
  const heard = Promise.withResolvers<string>();
  const closed = Promise.withResolvers<boolean>();
  takeOver((socket) => {
    socket.once('data', (some) => heard.resolve(some.toString()));
    socket.once('end', () => closed.resolve(true));
  });
  const streams = await attachStreams(endpoint(), 'a');
  if (streams.ok) streams.value.input.write('input');
  expect(await heard.promise).toBe('input');
  if (streams.ok) streams.value.output.destroy();
  expect(await closed.promise).toBe(true);
});

it('is refused by the engine, or has none', async () => {
  expect(await attachStreams(endpoint(), 'a')).toMatchObject({ ok: false, error: { reason: 'engine_refused' } });
  expect(await attachStreams('unix:///nonexistent.sock', 'a')).toMatchObject({
    ok: false,
    error: { reason: 'engine_unreachable' },
  });
});

it('does not wait for an answer for ever', async () => {
  const calls: Socket[] = [];
  server.on('connection', (socket) => calls.push(socket));
  server.on('upgrade', (_, socket) => socket.resume().on('end', () => socket.destroy()));
  expect(await attachStreams(endpoint(), 'a', 1)).toMatchObject({ ok: false, error: { reason: 'engine_timeout' } });
  await vi.waitFor(() => expect(calls.map(({ destroyed }) => destroyed)).toEqual([true]), { timeout: 60_000 });
});
