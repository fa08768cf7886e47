import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { duplexPair, PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { listen } from '../../machine/connection/listen.ts';
import { Multiplex } from './multiplex.cjs';

const READY = 0;
const OPEN = 1;
const DATA = 2;
const END = 3;
const RESET = 4;
const CREDIT = 5;
const MAGIC = 0x73766331;
const WINDOW = 128 * 1024;
const PORT = 7421;
const LARGE = Buffer.alloc(4 * 1024 * 1024, 'abcdefghijklmnopqrstuvwxyz');

function frame(kind: number, id: number, value: number, data = ''): Buffer {
  const header = Buffer.alloc(9);
  header.writeUInt8(kind, 0);
  header.writeUInt32BE(id, 1);
  header.writeUInt32BE(value, 5);
  return Buffer.concat([header, Buffer.from(data)]);
}

let servers: Server[];
let sockets: Socket[];
beforeEach(() => {
  servers = [];
  sockets = [];
});
afterEach(() => {
  for (const socket of sockets) socket.destroy();
  for (const server of servers) server.close();
});

async function startServer(serve: (socket: Socket) => void): Promise<number> {
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.push(socket);
    serve(socket.on('error', () => undefined));
  });
  servers.push(server);
  return listen(server, 0, '127.0.0.1');
}

function dial(port: number): Socket {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  sockets.push(socket);
  return socket.on('error', () => undefined);
}

/** The sidecar's end, with a server behind it, and raw access to the other end. */
async function startAcceptor(serve: (socket: Socket) => void) {
  const port = await startServer(serve);
  const [input, output] = [new PassThrough(), new PassThrough()];
  const onOver = vi.fn<(why: string) => void>();
  const onReady = vi.fn<() => void>();
  const accept = vi.fn<(wanted: number) => Socket | null>((wanted) => (wanted === PORT ? dial(port) : null));
  const multiplex = new Multiplex({ input, output, accept, onReady, onOver });
  return { input, output, onOver, onReady, accept, multiplex };
}

/** Both ends, joined, and a port whose connections are carried to a server. */
async function startBoth(serve: (socket: Socket) => void) {
  const behind = await startServer(serve);
  const [one, two] = duplexPair();
  const overs: string[] = [];
  const sidecar = new Multiplex({
    input: one,
    output: one,
    accept: () => dial(behind),
    onOver: (why) => overs.push(why),
  });
  const companion = new Multiplex({ input: two, output: two, onOver: (why) => overs.push(why) });
  companion.sayReady();
  const port = await startServer((socket) => companion.carry(socket, PORT));
  return { port, sidecar, companion, overs };
}

async function exchange(port: number, said: string | Buffer): Promise<string> {
  const socket = dial(port);
  const answer = text(socket);
  socket.end(said);
  return answer;
}

describe('two ends', () => {
  it('carry many connections at once, in both directions and through half-closed ones', async () => {
    const { port } = await startBoth((socket) => {
      void text(socket).then((heard) => socket.end(`heard ${heard}`));
    });
    const words = Array.from({ length: 200 }, (_, number) => `word ${number}`);
    expect(await Promise.all(words.map((word) => exchange(port, word)))).toEqual(words.map((word) => `heard ${word}`));
  });

  it('carry more than what may be on the way, unchanged', async () => {
    const { port, overs } = await startBoth((socket) => socket.pipe(socket));
    const answers = await Promise.all([exchange(port, LARGE), exchange(port, LARGE)]);
    expect(answers.map((answer) => answer === LARGE.toString())).toEqual([true, true]);
    expect(overs).toEqual([]);
  });

  it('hold back only the connection that nobody reads', async () => {
    const unread: Socket[] = [];
    const { port } = await startBoth((socket) => {
      socket.once('data', (word) => {
        if (word.toString().startsWith('stay')) unread.push(socket.pause());
        else socket.end('answered');
      });
    });
    const stuck = dial(port);
    stuck.write('stay');
    await vi.waitFor(() => expect(unread).toHaveLength(1), { timeout: 60_000 });
    // More than the system keeps of the two connections.
    for (let count = 0; count < 12; count += 1) stuck.write(LARGE);
    expect(await exchange(port, 'go')).toBe('answered');
    expect(stuck.writableLength).toBeGreaterThan(0);
  });

  it('pass on that a connection was reset, in either direction', async () => {
    const behind: Socket[] = [];
    const { port } = await startBoth((socket) => void behind.push(socket));
    const [one, two] = [dial(port), dial(port)];
    await vi.waitFor(() => expect(behind).toHaveLength(2), { timeout: 60_000 });
    const closed = [once(one.resume(), 'end'), once(two.resume(), 'end')];
    behind[0]?.resetAndDestroy();
    behind[1]?.resetAndDestroy();
    await Promise.all(closed);
    const third = dial(port);
    await vi.waitFor(() => expect(behind).toHaveLength(3), { timeout: 60_000 });
    const ended = once(behind[2]?.resume() ?? third, 'end');
    third.resetAndDestroy();
    await ended;
    expect(behind[2]?.readableEnded).toBe(true);
  });

  it('close every connection when the stream is cut, and those that come later', async () => {
    const { port, sidecar, overs } = await startBoth((socket) => socket.resume());
    const socket = dial(port).resume();
    await once(socket, 'connect');
    const closed = once(socket, 'end');
    sidecar.end('cut');
    await closed;
    await vi.waitFor(() => expect(overs).toEqual(['cut', 'the stream ended']), { timeout: 60_000 });
    expect(await exchange(port, 'late')).toBe('');
  });
});

describe('the end of the sidecar', () => {
  it('takes frames however they are cut', async () => {
    const heard: string[] = [];
    const { input, onReady } = await startAcceptor((socket) => void text(socket).then((word) => heard.push(word)));
    const all = Buffer.concat([
      frame(READY, 0, MAGIC),
      frame(OPEN, 7, PORT),
      frame(DATA, 7, 5, 'hello'),
      frame(END, 7, 0),
    ]);
    for (const byte of all) input.write(Buffer.from([byte]));
    await vi.waitFor(() => expect(heard).toEqual(['hello']), { timeout: 60_000 });
    expect(onReady).toHaveBeenCalledOnce();
  });

  const ready = frame(READY, 0, MAGIC);
  const opened = Buffer.concat([ready, frame(OPEN, 1, PORT)]);
  it.each([
    ['no greeting', frame(OPEN, 1, PORT), 'it does not begin as it should'],
    ['another greeting', frame(READY, 0, 1), 'it does not begin as it should'],
    ['text', Buffer.from('node: bad option\n'), 'it does not begin as it should'],
    ['a second greeting', Buffer.concat([ready, ready]), 'it does not begin as it should'],
    ['another port', Buffer.concat([ready, frame(OPEN, 1, 22)]), 'it names a port that is not carried'],
    ['the same connection twice', Buffer.concat([opened, frame(OPEN, 1, PORT)]), /opens a connection/],
    ['an earlier connection', Buffer.concat([ready, frame(OPEN, 5, PORT), frame(OPEN, 4, PORT)]), /opens a conn/],
    ['data of none', Buffer.concat([ready, frame(DATA, 1, 1, 'x')]), 'it names a connection that never was'],
    ['credit of none', Buffer.concat([opened, frame(CREDIT, 2, 1)]), 'it names a connection that never was'],
    ['data without a length', Buffer.concat([opened, frame(DATA, 1, 0)]), 'it has a frame of a wrong length'],
    ['data that are too long', Buffer.concat([opened, frame(DATA, 1, 32 * 1024 + 1)]), /wrong length/],
    ['data after the end', Buffer.concat([opened, frame(END, 1, 0), frame(DATA, 1, 1, 'x')]), /more than it may/],
    ['two ends', Buffer.concat([opened, frame(END, 1, 0), frame(END, 1, 0)]), 'it ends a connection twice'],
    ['more credit than there may be', Buffer.concat([opened, frame(CREDIT, 1, WINDOW)]), 'it allows more than it may'],
    ['a kind that is not known', Buffer.concat([opened, frame(9, 1, 0)]), 'it has a frame of no known kind'],
  ])('ends the stream at %s', async (_what, bytes, why) => {
    const { input, output, onOver } = await startAcceptor((socket) => socket.resume());
    input.write(bytes);
    await vi.waitFor(() => expect(onOver).toHaveBeenCalledOnce(), { timeout: 60_000 });
    expect(onOver).toHaveBeenCalledWith(expect.stringMatching(why));
    expect([input.destroyed, output.destroyed]).toEqual([true, true]);
  });

  it('keeps no more of a connection than its window', async () => {
    const { input, onOver } = await startAcceptor((socket) => socket.pause());
    input.write(opened);
    const piece = 'x'.repeat(32 * 1024);
    // A dialled socket takes nothing before it is connected, so all of it is kept here.
    for (let sent = 0; sent <= WINDOW; sent += piece.length) input.write(frame(DATA, 1, piece.length, piece));
    await vi.waitFor(() => expect(onOver).toHaveBeenCalledWith('it sends more than it may'), { timeout: 60_000 });
  });

  it('opens no more than 512 connections at once', async () => {
    const { input, output, accept, onOver } = await startAcceptor((socket) => socket.resume());
    const replies: Buffer[] = [];
    output.on('data', (some: Buffer) => replies.push(some));
    input.write(ready);
    for (let id = 1; id <= 513; id += 1) input.write(frame(OPEN, id, PORT));
    await vi.waitFor(() => expect(Buffer.concat(replies).equals(frame(RESET, 513, 0))).toBe(true), {
      timeout: 60_000,
    });
    expect([accept.mock.calls.length, onOver.mock.calls.length]).toEqual([512, 0]);
  });

  it('ends a stream whose other side asks and does not read', async () => {
    const { input, onOver } = await startAcceptor((socket) => socket.resume());
    input.write(ready);
    for (let id = 1; id <= 512; id += 1) input.write(frame(OPEN, id, PORT));
    const floods = Array.from({ length: 1000 }, (_, one) => one);
    const ask = (round: number): boolean =>
      input.write(Buffer.concat(floods.map((one) => frame(OPEN, 513 + round * 1000 + one, PORT))));
    for (let round = 0; round < 150; round += 1) ask(round);
    await vi.waitFor(() => expect(onOver).toHaveBeenCalledWith('the other side does not read'), { timeout: 60_000 });
  });
});

it('accepts no connection at the end of the companion', async () => {
  const [input, output] = [new PassThrough(), new PassThrough()];
  const onOver = vi.fn<(why: string) => void>();
  const companion = new Multiplex({ input, output, onOver });
  companion.sayReady();
  input.write(frame(OPEN, 1, PORT));
  await vi.waitFor(() => expect(onOver).toHaveBeenCalledWith(expect.stringMatching('may not open')), {
    timeout: 60_000,
  });
});
