'use strict';
// Carries many connections over one pair of streams (docs/decisions/0182), and the program of a companion container that does so from
// loopback ports. The sidecar has the same code at the other end. CommonJS without types: an image's Node gets it as a text.
//
// A frame is nine bytes, and for DATA the bytes that it counts: kind (1), connection (4), value (4). The companion opens connections,
// the sidecar accepts them.
//
// What a side keeps for the other is bounded, whatever that one sends: of all connections MAX_CONNECTIONS first windows, ROOMY and
// one window, each at most twice, and of each socket one chunk that was read ahead.
const { connect, createServer, Socket } = require('node:net');

const READY = 0; // The value is MAGIC: the ports listen.
const OPEN = 1; // The value is the port that was connected to.
const DATA = 2; // The value is the number of bytes that follow.
const END = 3; // No more bytes come from this side.
const RESET = 4; // The connection was lost.
const CREDIT = 5; // The value is the number of bytes that may be sent in addition.
const BEAT = 6; // This side is there.

const MAGIC = 0x73766331;
const HEADER_BYTES = 9;
const MAX_DATA = 32 * 1024;
// What each side may send of a connection at first, and at most, before the other has passed it on.
const FIRST_WINDOW = 16 * 1024;
const WINDOW = 128 * 1024;
// While one side may send more than this of all connections, none is allowed more than its first window.
const ROOMY = 8 * 1024 * 1024;
// Of frames that the other side has not read. Data wait at the first; the other frames of all connections are far fewer than the second.
const ENOUGH_BACKLOG = 256 * 1024;
const MAX_BACKLOG = 1024 * 1024;
// As many as a session may have open at the proxy by default. What is opened beyond that is closed.
const MAX_CONNECTIONS = 512;
// A side that says nothing for so many beats is gone.
const BEAT_MS = 10_000;
const MAX_SILENT_BEATS = 3;
// From one beat of ours to the next. Those that came while this process stood still are read at once.
const MAX_BEATS = 8;

const NOTHING = Buffer.alloc(0);

function everyMs(ms, task) {
  const timer = setInterval(() => task(), ms).unref();
  return () => clearInterval(timer);
}

/**
 * Writes copies, and one write at a time. So it keeps at most twice the bytes, in however small parts they come, and nothing of the
 * chunks that they were parts of.
 */
class Writer {
  #stream;
  #onWritten;
  #kept = NOTHING;
  #keptBytes = 0;
  #writtenBytes = 0;
  #isScheduled = false;
  #isEnding = false;

  constructor(stream, onWritten) {
    this.#stream = stream;
    this.#onWritten = onWritten;
  }

  /** What the stream has not taken yet. */
  get bytes() {
    return this.#keptBytes + this.#writtenBytes;
  }

  add(part) {
    const bytes = this.#keptBytes + part.length;
    if (bytes > this.#kept.length) {
      const larger = Buffer.allocUnsafeSlow(this.#keptBytes === 0 ? bytes : 2 * bytes);
      this.#kept.copy(larger, 0, 0, this.#keptBytes);
      this.#kept = larger;
    }
    part.copy(this.#kept, this.#keptBytes);
    this.#keptBytes = bytes;
    this.#schedule();
  }

  /** Ends the stream after what was added. */
  end() {
    this.#isEnding = true;
    this.#schedule();
  }

  /** What is added in one turn is one write. */
  #schedule() {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    process.nextTick(() => {
      this.#isScheduled = false;
      this.#write();
    });
  }

  #write() {
    if (this.#writtenBytes > 0 || this.#stream.destroyed) return;
    if (this.#keptBytes === 0) {
      if (this.#isEnding) this.#stream.end();
      return;
    }
    const bytes = this.#keptBytes;
    const written = this.#kept.subarray(0, bytes);
    this.#kept = NOTHING;
    this.#keptBytes = 0;
    this.#writtenBytes = bytes;
    this.#stream.write(written, (error) => {
      if (error) return;
      this.#writtenBytes = 0;
      this.#onWritten(bytes);
      this.#write();
    });
  }
}

class Multiplex {
  #input;
  #output;
  #frames;
  #accept;
  #isWhole;
  #reset;
  #onReady;
  #onOver;
  #stopBeats;
  #connections = new Map();
  // Those that may have something to send, in turn, so that no connection keeps another one waiting.
  #queue = new Set();
  #lastId = 0;
  #isReady = false;
  #isOver = false;
  #silentBeats = 0;
  #takenBeats = 0;
  // What the other side may still send of all connections, and what it has sent that is not passed on.
  #promised = 0;
  #sent = Buffer.alloc(HEADER_BYTES);
  #header = Buffer.alloc(HEADER_BYTES);
  #headerBytes = 0;
  #dataId = 0;
  #dataBytes = 0;

  /**
   * `accept` returns the socket for a port, or null; without it no connection is accepted. `isWhole` says whether a
   * socket that has ended has sent everything; if not, the connection was lost. `reset` closes a socket so that its other end sees that
   * something is missing. `onOver` is called once, with the reason.
   */
  constructor({
    input,
    output,
    accept = null,
    isWhole = () => true,
    reset = (socket) => socket.destroy(),
    onReady = () => undefined,
    onOver,
    every = everyMs,
  }) {
    this.#input = input;
    this.#output = output;
    this.#frames = new Writer(output, () => this.#flush());
    this.#accept = accept;
    this.#isWhole = isWhole;
    this.#reset = reset;
    this.#onReady = onReady;
    this.#onOver = onOver;
    input.on('data', (chunk) => this.#take(chunk));
    for (const name of ['end', 'close']) input.on(name, () => this.end('the stream ended'));
    output.on('close', () => this.end('the stream ended'));
    for (const stream of [input, output]) stream.on('error', (error) => this.end(error.message));
    this.#stopBeats = every(BEAT_MS, () => this.#beat());
  }

  /** Says that the ports listen. */
  sayReady() {
    this.#isReady = true;
    this.#send(READY, 0, MAGIC);
  }

  /** Carries a connection that came to a port. */
  carry(socket, port) {
    if (this.#isOver || this.#connections.size >= MAX_CONNECTIONS) {
      this.#reset(socket);
      return;
    }
    this.#lastId += 1;
    this.#send(OPEN, this.#lastId, port);
    this.#add(this.#lastId, socket);
  }

  /** Closes every connection and both streams. */
  end(why) {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#stopBeats();
    for (const one of this.#connections.values()) this.#cut(one);
    this.#input.destroy();
    this.#output.destroy();
    this.#onOver(why);
  }

  /** The other end of a socket sees a clean end only if everything has come. */
  #cut({ socket }) {
    if (socket.writableFinished) socket.destroy();
    else this.#reset(socket);
  }

  #beat() {
    if (!this.#isReady) return;
    this.#silentBeats += 1;
    this.#takenBeats = 0;
    if (this.#silentBeats > MAX_SILENT_BEATS) this.end('the other side is silent');
    else this.#send(BEAT, 0, 0);
  }

  #add(id, socket) {
    // What may be sent, what may come, and that with what came and is not passed on.
    const one = { id, socket, credit: FIRST_WINDOW, allowed: FIRST_WINDOW, promised: FIRST_WINDOW };
    Object.assign(one, { endSent: false, endSeen: false, wasReset: false });
    one.writer = new Writer(socket, (bytes) => this.#notePassed(one, bytes));
    this.#promised += FIRST_WINDOW;
    this.#connections.set(id, one);
    socket.on('readable', () => this.#enqueue(one));
    // Everything that was read before it is sent by then.
    socket.on('end', () => {
      if (!this.#isWhole(socket)) {
        socket.destroy();
        return;
      }
      one.endSent = true;
      this.#send(END, id, 0);
    });
    socket.on('error', () => undefined);
    socket.on('close', () => {
      this.#connections.delete(id);
      this.#queue.delete(one);
      this.#promised -= one.promised;
      if (!one.wasReset && !(one.endSent && one.endSeen)) this.#send(RESET, id, 0);
    });
  }

  #enqueue(one) {
    this.#queue.add(one);
    this.#flush();
  }

  #flush() {
    for (const one of this.#queue) {
      if (this.#isOver || this.#frames.bytes >= ENOUGH_BACKLOG) return;
      this.#queue.delete(one);
      this.#sendOf(one);
      if (one.socket.readableLength > 0 && one.credit > 0) this.#queue.add(one);
    }
  }

  /** One frame of a connection. Its socket is read again when the bytes that were read are sent. */
  #sendOf(one) {
    const { socket } = one;
    const size = Math.min(socket.readableLength, one.credit, MAX_DATA);
    if (size > 0) {
      one.credit -= size;
      this.#send(DATA, one.id, size, socket.read(size));
    }
    // Otherwise its end is not told.
    if (socket.readableLength === 0) socket.read(0);
  }

  #send(kind, id, value, data = NOTHING) {
    if (this.#isOver) return;
    this.#sent.writeUInt8(kind, 0);
    this.#sent.writeUInt32BE(id, 1);
    this.#sent.writeUInt32BE(value, 5);
    this.#frames.add(this.#sent);
    if (data.length > 0) this.#frames.add(data);
    if (this.#frames.bytes > MAX_BACKLOG) this.end('the other side does not read');
  }

  #take(chunk) {
    this.#silentBeats = 0;
    let at = 0;
    while (at < chunk.length && !this.#isOver) {
      if (this.#dataBytes > 0) {
        const part = chunk.subarray(at, at + this.#dataBytes);
        at += part.length;
        this.#dataBytes -= part.length;
        this.#connections.get(this.#dataId)?.writer.add(part);
      } else {
        const copied = chunk.copy(this.#header, this.#headerBytes, at, at + HEADER_BYTES - this.#headerBytes);
        at += copied;
        this.#headerBytes += copied;
        if (this.#headerBytes < HEADER_BYTES) return;
        this.#headerBytes = 0;
        this.#obey(this.#header.readUInt8(0), this.#header.readUInt32BE(1), this.#header.readUInt32BE(5));
      }
    }
  }

  /** A connection that is gone here may still be spoken of; one that never was may not. */
  #obey(kind, id, value) {
    if (kind === READY) return this.#takeReady(id, value);
    if (!this.#isReady) return this.end('it does not begin as it should');
    if (kind === BEAT) return this.#takeBeat();
    if (kind === OPEN) return this.#open(id, value);
    if (id === 0 || id > this.#lastId) return this.end('it names a connection that never was');
    const one = this.#connections.get(id);
    if (one?.wasReset) return this.end('it speaks of a connection that it has reset');
    if (kind === DATA) return this.#beginData(one, id, value);
    if (kind === CREDIT) return one && this.#takeCredit(one, value);
    if (kind === END) return one && this.#takeEnd(one);
    if (kind === RESET) return one && this.#takeReset(one);
    return this.end('it has a frame of no known kind');
  }

  #takeReady(id, value) {
    if (this.#accept === null || this.#isReady || id !== 0 || value !== MAGIC) {
      this.end('it does not begin as it should');
    } else {
      this.#isReady = true;
      this.#onReady();
    }
  }

  #takeBeat() {
    this.#takenBeats += 1;
    if (this.#takenBeats > MAX_BEATS) this.end('it has too many beats');
  }

  #open(id, port) {
    if (this.#accept === null || id <= this.#lastId) return this.end('it opens a connection that it may not open');
    this.#lastId = id;
    if (this.#connections.size >= MAX_CONNECTIONS) return this.#send(RESET, id, 0);
    const socket = this.#accept(port);
    return socket === null ? this.end('it names a port that is not carried') : this.#add(id, socket);
  }

  #beginData(one, id, bytes) {
    if (bytes === 0 || bytes > MAX_DATA) return this.end('it has a frame of a wrong length');
    this.#dataId = id;
    this.#dataBytes = bytes;
    if (one === undefined) return undefined;
    one.allowed -= bytes;
    return one.endSeen || one.allowed < 0 ? this.end('it sends more than it may') : undefined;
  }

  #notePassed(one, bytes) {
    if (!this.#connections.has(one.id)) return;
    this.#promise(one, -bytes);
    const wanted = this.#promised < ROOMY ? WINDOW : FIRST_WINDOW;
    const more = wanted - one.promised;
    if (more < wanted / 2) return;
    this.#promise(one, more);
    one.allowed += more;
    this.#send(CREDIT, one.id, more);
  }

  #promise(one, bytes) {
    one.promised += bytes;
    this.#promised += bytes;
  }

  #takeCredit(one, bytes) {
    if (bytes === 0) return this.end('it allows nothing more');
    one.credit += bytes;
    return one.credit > WINDOW ? this.end('it allows more than it may') : this.#enqueue(one);
  }

  #takeEnd(one) {
    if (one.endSeen) return this.end('it ends a connection twice');
    one.endSeen = true;
    return one.writer.end();
  }

  /** What came before a clean end is still passed on. */
  #takeReset(one) {
    const { socket } = one;
    one.wasReset = true;
    if (!one.endSeen || socket.writableFinished) this.#cut(one);
    else socket.on('finish', () => socket.destroy());
  }
}

// A socket is read again only when its last chunk is sent: of many small chunks each would cost far more than its bytes.
const ONE_CHUNK = { allowHalfOpen: true, highWaterMark: 1 };

/** A connection to a Unix socket that may be carried. */
function dial(path) {
  return connect({ path, ...ONE_CHUNK });
}

function listenAt(port, onConnection) {
  const server = createServer({ ...ONE_CHUNK, noDelay: true }, onConnection);
  return new Promise((resolve, reject) => {
    server.on('error', reject);
    server.listen(port, '127.0.0.1', resolve);
  });
}

function resetSocket(socket) {
  socket.resetAndDestroy();
}

/** The companion: carries connections from loopback ports over its standard streams, and ends with them. */
async function carryPorts(ports) {
  const input = new Socket({ fd: 0, writable: false });
  const output = new Socket({ fd: 1, readable: false });
  const multiplex = new Multiplex({ input, output, reset: resetSocket, onOver: () => process.exit(0) });
  process.on('SIGTERM', () => multiplex.end('stopped'));
  for (const port of ports) await listenAt(port, (socket) => multiplex.carry(socket, port));
  multiplex.sayReady();
}

function runCompanion(ports) {
  carryPorts(ports.map(Number)).catch((error) => {
    process.stderr.write(`svc companion: ${error.message}\n`);
    process.exit(1);
  });
}

module.exports = { Multiplex, dial, runCompanion };
