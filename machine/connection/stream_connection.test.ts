import { once } from 'node:events';
import { performServerHandshake, type ServerHttp2Stream } from 'node:http2';
import { connect, createServer, type Socket } from 'node:net';
import { afterEach, expect, test } from 'vitest';

import { listen } from './listen.ts';
import { StreamConnection } from './stream_connection.ts';

const sockets: Socket[] = [];
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy();
});

const START = '505249202a20485454502f322e300d0a0d0a534d0d0a0d0a000000040000000000';
/** POST https://a/ on stream 1, with names and values of the static table. */
const HEAD = '000006010400000001838784410161';
/** SETTINGS with an initial window of 0. */
const NO_WINDOW = '000006040000000000000400000000';
const TRAILERS = '0000050105000000010001780161';
const DATA = '00000100000000000162';
const LAST_DATA = '00000100010000000162';

/** All of a message is there before its session reads, as when it arrives with the end of a handshake. */
async function receive(hex: string): Promise<StreamConnection<ServerHttp2Stream>> {
  const server = createServer({ pauseOnConnect: true });
  const port = await listen(server, 0, '127.0.0.1');
  const client = connect(port, '127.0.0.1');
  client.on('error', () => undefined);
  const [socket]: Socket[] = await once(server, 'connection');
  if (socket === undefined) throw new Error('there is a connection');
  sockets.push(client, socket);
  client.write(Buffer.from(START + hex, 'hex'));
  while (socket.readableLength < hex.length / 2) {
    socket.read(0);
    await new Promise((resolve) => setImmediate(resolve));
  }
  const session = performServerHandshake(socket);
  session.on('error', () => undefined);
  const received = new Promise<StreamConnection<ServerHttp2Stream>>((resolve) =>
    session.on('stream', (stream: ServerHttp2Stream) => resolve(new StreamConnection(stream, 2))),
  );
  server.close();
  return received;
}

async function readAll(stream: StreamConnection): Promise<string> {
  let text = '';
  for (;;) {
    const chunk = stream.take() ?? (await stream.nextChunk());
    if (chunk === null) return text;
    text += chunk.toString();
  }
}

test.each([
  ['its last data', HEAD + LAST_DATA, 'b'],
  ['trailers alone', HEAD + TRAILERS, ''],
  ['data and trailers', HEAD + DATA + TRAILERS, 'b'],
])('a message is whole if it ended before it was looked at, with %s', async (_what, hex, body) => {
  const stream = await receive(hex);
  expect(await readAll(stream)).toBe(body);
  expect(stream.isWhole).toBe(true);
});

test.each([
  ['data', HEAD + DATA],
  ['its last data', HEAD + LAST_DATA],
])('a message that was reset before it was looked at is never whole, after %s', async (_what, hex) => {
  const stream = await receive(`${hex}00000403000000000100000008`);
  await expect(readAll(stream)).rejects.toThrow('lost');
  expect(stream.isWhole).toBe(false);
});

test.each([
  ['is open', false],
  ['was finished', true],
])(
  'a stream is closed that its peer ended, and reset without an error before it was read; our side %s',
  async (_what, isEnded) => {
    const stream = await receive(`${NO_WINDOW}${HEAD}`);
    const closed = new Promise<void>((resolve) => stream.onClosed(resolve));
    stream.stream.respond({ ':status': 200 });
    stream.write('of which the peer takes nothing');
    if (isEnded) stream.end();
    stream.stream.pause();
    sockets[0]?.write(Buffer.from(`${LAST_DATA}00000403000000000100000000`, 'hex'));
    await expect.poll(() => stream.stream.closed).toBe(true);
    stream.stream.resume();
    expect(await readAll(stream)).toBe('b');
    await closed;
    expect(stream.isWhole).toBe(true);
  },
);
