import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { Duplex, duplexPair, PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { listen } from '../../machine/connection/listen.ts';
import { Multiplex } from './multiplex.cjs';

const READY = 0;
const OPEN = 1;
const DATA = 2;
const END = 3;
const RESET = 4;
const CREDIT = 5;
const BEAT = 6;
const MAGIC = 0x73766331;
const FIRST_WINDOW = 16 * 1024;
const WINDOW = 128 * 1024;
const MIB = 1024 * 1024;
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

/** Over TCP, unlike a Unix socket, the other end sees that it was no clean end. */
function reset(socket: Duplex): void {
  if ('resetAndDestroy' in socket && typeof socket.resetAndDestroy === 'function') socket.resetAndDestroy();
  else socket.destroy();
}

/** The sidecar's end, with a server behind it, and raw access to the other end. */
async function startAcceptor(serve: (socket: Socket) => void) {
  const port = await startServer(serve);
  const [input, output] = [new PassThrough(), new PassThrough()];
  const onOver = vi.fn<(why: string) => void>();
  const onReady = vi.fn<() => void>();
  const accept = vi.fn<(wanted: number) => Socket | null>((wanted) => (wanted === PORT ? dial(port) : null));
  const beats: (() => void)[] = [];
  const stopBeats = vi.fn<() => void>();
  const every = (_ms: number, task: () => void): (() => void) => {
    beats.push(task);
    return stopBeats;
  };
  const multiplex = new Multiplex({ input, output, accept, reset, onReady, onOver, every });
  return { input, output, onOver, onReady, accept, multiplex, beat: () => beats[0]?.(), stopBeats };
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
    reset,
    onOver: (why) => overs.push(why),
  });
  const companion = new Multiplex({ input: two, output: two, reset, onOver: (why) => overs.push(why) });
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

/** How a connection ends: `end`, or the error. */
function seenBy(socket: Socket): string[] {
  const seen: string[] = [];
  socket.resume().on('end', () => seen.push('end'));
  socket.on('error', (error: NodeJS.ErrnoException) => seen.push(error.code ?? error.message));
  return seen;
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

  it('pass on that a connection was reset, in either direction, and no clean end', async () => {
    const behind: Socket[] = [];
    const { port } = await startBoth((socket) => void behind.push(socket));
    const one = dial(port);
    await vi.waitFor(() => expect(behind).toHaveLength(1), { timeout: 60_000 });
    const atOne = seenBy(one);
    behind[0]?.resetAndDestroy();
    await vi.waitFor(() => expect(atOne).toEqual(['ECONNRESET']), { timeout: 60_000 });
    const two = dial(port);
    await vi.waitFor(() => expect(behind).toHaveLength(2), { timeout: 60_000 });
    const atTwo = seenBy(behind[1] ?? two);
    two.resetAndDestroy();
    await vi.waitFor(() => expect(atTwo).toEqual(['ECONNRESET']), { timeout: 60_000 });
  });

  it('reset every connection when the stream is cut, and those that come later', async () => {
    const behind: Socket[] = [];
    const { port, sidecar, overs } = await startBoth((socket) => {
      behind.push(socket);
      socket.write('half of an answer');
    });
    const socket = dial(port);
    await once(socket, 'data');
    const seen = [seenBy(socket), seenBy(behind[0] ?? socket)];
    sidecar.end('cut');
    await vi.waitFor(() => expect(seen).toEqual([['ECONNRESET'], ['ECONNRESET']]), { timeout: 60_000 });
    await vi.waitFor(() => expect(overs).toEqual(['cut', 'the stream ended']), { timeout: 60_000 });
    const late = seenBy(dial(port));
    await vi.waitFor(() => expect(late).toEqual(['ECONNRESET']), { timeout: 60_000 });
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
    ['credit of nothing', Buffer.concat([opened, frame(CREDIT, 1, 0)]), 'it allows nothing more'],
    ['many beats at once', Buffer.concat([ready, ...Array.from({ length: 9 }, () => frame(BEAT, 0, 0))]), /many beats/],
    ['a reset connection', Buffer.concat([opened, frame(RESET, 1, 0), frame(RESET, 1, 0)]), /that it has reset/],
    ['data of a reset connection', Buffer.concat([opened, frame(RESET, 1, 0), frame(DATA, 1, 1, 'x')]), /has reset/],
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
    // A dialled socket takes nothing before it is connected, so all of it is kept here.
    input.write(
      Buffer.concat([opened, frame(DATA, 1, FIRST_WINDOW, 'x'.repeat(FIRST_WINDOW)), frame(DATA, 1, 1, 'x')]),
    );
    await vi.waitFor(() => expect(onOver).toHaveBeenCalledWith('it sends more than it may'), { timeout: 60_000 });
  });

  it('keeps the end of an answer until it may be sent, though the server has closed the connection', async () => {
    const isClosed = Promise.withResolvers<void>();
    const { input, output } = await startAcceptor((socket) => {
      socket.on('close', () => isClosed.resolve());
      void text(socket).then(() => socket.end('x'.repeat(WINDOW + 5)));
    });
    const said: Buffer[] = [];
    output.on('data', (some: Buffer) => said.push(some));
    input.write(Buffer.concat([opened, frame(END, 1, 0)]));
    await isClosed.promise;
    for (let turns = 0; turns < 20; turns += 1) await new Promise((resolve) => setImmediate(resolve));
    input.write(frame(CREDIT, 1, WINDOW));
    const end = frame(END, 1, 0);
    await vi.waitFor(() => expect(Buffer.concat(said).subarray(-end.length)).toEqual(end), { timeout: 60_000 });
    expect(Buffer.concat(said).toString('latin1').replaceAll(/[^x]/g, '')).toHaveLength(WINDOW + 5);
  });

  it('passes on what came before an end, though the connection is lost after it', async () => {
    const heard: string[] = [];
    const { input } = await startAcceptor((socket) => void text(socket).then((word) => heard.push(word)));
    input.write(Buffer.concat([opened, frame(DATA, 1, 5, 'whole'), frame(END, 1, 0), frame(RESET, 1, 0)]));
    await vi.waitFor(() => expect(heard).toEqual(['whole']), { timeout: 60_000 });
  });

  it('ends a stream that is silent for three beats, and says itself that it is there', async () => {
    const { input, output, onOver, beat, stopBeats } = await startAcceptor((socket) => socket.resume());
    const said: Buffer[] = [];
    output.on('data', (some: Buffer) => said.push(some));
    for (let beats = 0; beats < 9; beats += 1) beat();
    input.write(ready);
    await vi.waitFor(() => expect(input.readableLength).toBe(0), { timeout: 60_000 });
    for (let beats = 0; beats < 3; beats += 1) beat();
    input.write(frame(BEAT, 0, 0));
    await vi.waitFor(() => expect(Buffer.concat(said)).toHaveLength(3 * 9), { timeout: 60_000 });
    for (let beats = 0; beats < 3; beats += 1) beat();
    expect(onOver).not.toHaveBeenCalled();
    beat();
    expect(onOver).toHaveBeenCalledWith('the other side is silent');
    expect(stopBeats).toHaveBeenCalledOnce();
    expect(said[0]?.subarray(0, 9)).toEqual(frame(BEAT, 0, 0));
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

/** A stream whose connections take `taken` bytes each, and then nothing. */
function startStuck(taken: number) {
  const [input, output] = [new PassThrough(), new PassThrough()];
  const accept = (): Duplex => {
    let left = taken;
    return new Duplex({
      read: () => undefined,
      write: (chunk: Buffer, _encoding, done) => {
        left -= chunk.length;
        if (left >= 0) done();
      },
    });
  };
  const overs: string[] = [];
  const multiplex = new Multiplex({ input, output, accept, onOver: (why) => overs.push(why) });
  input.write(frame(READY, 0, MAGIC));
  return { input, output, multiplex, overs };
}

function isFunction(value: unknown): value is () => unknown {
  return typeof value === 'function';
}

describe('the memory of the end of the sidecar', () => {
  setFlagsFromString('--expose-gc');
  const collect: unknown = runInNewContext('gc');
  const held = (): number => {
    if (!isFunction(collect)) throw new Error('the collector cannot be called');
    collect();
    const { heapUsed, arrayBuffers } = process.memoryUsage();
    return heapUsed + arrayBuffers;
  };

  it('is at most twice the bytes that it keeps, in frames of one byte of many connections', async () => {
    const { input, multiplex, overs } = startStuck(0);
    const connections = 256;
    for (let id = 1; id <= connections; id += 1) input.write(frame(OPEN, id, PORT));
    const before = held();
    for (let id = 1; id <= connections; id += 1) {
      const one = frame(DATA, id, 1, 'x');
      const all = Buffer.allocUnsafeSlow(FIRST_WINDOW * one.length);
      for (let sent = 0; sent < FIRST_WINDOW; sent += 1) one.copy(all, sent * one.length);
      if (!input.write(all)) await once(input, 'drain');
    }
    // What was written, the streams' own objects, and what else this process does.
    const most = 2 * connections * FIRST_WINDOW + 8 * MIB;
    expect(held() - before).toBeLessThan(most);
    expect(overs).toEqual([]);
    multiplex.end('done');
  });

  it('is bounded for all connections together: beyond 8 MiB none may send more than its first window', async () => {
    const connections = 300;
    const { input, output, multiplex, overs } = startStuck(1);
    const said: Buffer[] = [];
    output.on('data', (some: Buffer) => said.push(some));
    for (let id = 1; id <= connections; id += 1) {
      input.write(Buffer.concat([frame(OPEN, id, PORT), frame(DATA, id, 1, 'x')]));
    }
    const granted = (): number[] => {
      const frames = Buffer.concat(said);
      return Array.from({ length: Math.floor(frames.length / 9) }, (_, at) => frames.readUInt32BE(at * 9 + 5));
    };
    const sum = (): number => granted().reduce((all, one) => all + one, connections * (FIRST_WINDOW - 1));
    await vi.waitFor(() => expect(sum()).toBeGreaterThanOrEqual(8 * MIB), { timeout: 60_000 });
    expect(sum()).toBeLessThan(8 * MIB + WINDOW);
    expect(granted()[0]).toBe(WINDOW - FIRST_WINDOW + 1);
    expect(overs).toEqual([]);
    multiplex.end('done');
  });

  it('has the room again of connections that are gone', async () => {
    const { input, output, multiplex } = startStuck(1);
    const said: Buffer[] = [];
    for (let id = 1; id <= 600; id += 1) {
      input.write(Buffer.concat([frame(OPEN, id, PORT), frame(RESET, id, 0)]));
      await new Promise((resolve) => setImmediate(resolve));
    }
    output.on('data', (some: Buffer) => said.push(some));
    input.write(Buffer.concat([frame(OPEN, 601, PORT), frame(DATA, 601, 1, 'x')]));
    await vi.waitFor(() => expect(Buffer.concat(said)).toEqual(frame(CREDIT, 601, WINDOW - FIRST_WINDOW + 1)), {
      timeout: 60_000,
    });
    multiplex.end('done');
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
