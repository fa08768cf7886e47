'use strict';
// Carries many connections over one pair of streams (docs/decisions/0182), and the program of a companion container that does so from
// loopback ports. The sidecar has the same code at the other end. CommonJS without types: an image's Node gets it as a text.
//
// A frame is nine bytes, and for DATA the bytes that it counts: kind (1), connection (4), value (4). The companion opens connections,
// the sidecar accepts them. Each side may have sent WINDOW bytes of a connection that the other has not passed on yet.
const { createServer, Socket } = require('node:net');

const READY = 0; // The value is MAGIC: the ports listen.
const OPEN = 1; // The value is the port that was connected to.
const DATA = 2; // The value is the number of bytes that follow.
const END = 3; // No more bytes come from this side.
const RESET = 4; // The connection is gone.
const CREDIT = 5; // The value is the number of bytes that were passed on.

const MAGIC = 0x73766331;
const HEADER_BYTES = 9;
const WINDOW = 128 * 1024;
const MAX_DATA = 32 * 1024;
// Of frames that the other side does not read. Data wait for it; the other frames of all connections are far less.
const MAX_BACKLOG = 1024 * 1024;
// As many as a session may have open at the proxy by default. What is opened beyond that is closed.
const MAX_CONNECTIONS = 512;

class Multiplex {
  #input;
  #output;
  #accept;
  #onReady;
  #onOver;
  #connections = new Map();
  // Those with something to send, each once and in turn, so that no connection keeps another one waiting.
  #queue = [];
  #lastId = 0;
  #isReady = false;
  #isOver = false;
  #isCorked = false;
  #header = Buffer.alloc(HEADER_BYTES);
  #headerBytes = 0;
  #dataId = 0;
  #dataBytes = 0;

  /** `accept` returns the socket for a port, or null; without it no connection is accepted. `onOver` is called once, with the reason. */
  constructor({ input, output, accept = null, onReady = () => undefined, onOver }) {
    this.#input = input;
    this.#output = output;
    this.#accept = accept;
    this.#onReady = onReady;
    this.#onOver = onOver;
    input.on('data', (chunk) => this.#take(chunk));
    for (const name of ['end', 'close']) input.on(name, () => this.end('the stream ended'));
    output.on('close', () => this.end('the stream ended'));
    output.on('drain', () => this.#flush());
    for (const stream of [input, output]) stream.on('error', (error) => this.end(error.message));
  }

  /** Says that the ports listen. */
  sayReady() {
    this.#isReady = true;
    this.#send(READY, 0, MAGIC);
  }

  /** Carries a connection that came to a port. */
  carry(socket, port) {
    if (this.#isOver || this.#connections.size >= MAX_CONNECTIONS) {
      socket.destroy();
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
    for (const { socket } of this.#connections.values()) socket.destroy();
    this.#input.destroy();
    this.#output.destroy();
    this.#onOver(why);
  }

  #add(id, socket) {
    const one = { id, socket, credit: WINDOW, owed: 0, passed: 0, chunk: null, isQueued: false };
    Object.assign(one, { hasEnded: false, endSent: false, endSeen: false, wasReset: false });
    this.#connections.set(id, one);
    socket.on('data', (chunk) => {
      one.chunk = chunk;
      socket.pause();
      this.#enqueue(one);
    });
    socket.on('end', () => {
      one.hasEnded = true;
      this.#enqueue(one);
    });
    socket.on('error', () => undefined);
    socket.on('close', () => {
      this.#connections.delete(id);
      if (!one.wasReset && !(one.endSent && one.endSeen)) this.#send(RESET, id, 0);
    });
  }

  #enqueue(one) {
    if (!one.isQueued) this.#queue.push(one);
    one.isQueued = true;
    this.#flush();
  }

  #flush() {
    while (this.#queue.length > 0 && !this.#output.writableNeedDrain && !this.#isOver) {
      const one = this.#queue.shift();
      one.isQueued = false;
      if (this.#connections.has(one.id)) this.#sendOf(one);
    }
  }

  /** One frame of a connection. Its socket is read again when the bytes that were read are sent. */
  #sendOf(one) {
    if (one.chunk === null) {
      if (!one.hasEnded || one.endSent) return;
      one.endSent = true;
      this.#send(END, one.id, 0);
      return;
    }
    const size = Math.min(one.chunk.length, one.credit, MAX_DATA);
    if (size === 0) return;
    one.credit -= size;
    this.#send(DATA, one.id, size, one.chunk.subarray(0, size));
    one.chunk = size < one.chunk.length ? one.chunk.subarray(size) : null;
    if (one.chunk === null) one.socket.resume();
    else this.#enqueueAgain(one);
  }

  /** Without a flush: the caller is in its loop. */
  #enqueueAgain(one) {
    one.isQueued = true;
    this.#queue.push(one);
  }

  #send(kind, id, value, data = null) {
    if (this.#isOver) return;
    const header = Buffer.allocUnsafe(HEADER_BYTES);
    header.writeUInt8(kind, 0);
    header.writeUInt32BE(id, 1);
    header.writeUInt32BE(value, 5);
    this.#cork();
    this.#output.write(header);
    if (data !== null) this.#output.write(data);
    if (this.#output.writableLength > MAX_BACKLOG) this.end('the other side does not read');
  }

  /** The frames of one turn are one write. */
  #cork() {
    if (this.#isCorked) return;
    this.#isCorked = true;
    this.#output.cork();
    process.nextTick(() => {
      this.#isCorked = false;
      this.#output.uncork();
    });
  }

  #take(chunk) {
    let at = 0;
    while (at < chunk.length && !this.#isOver) {
      if (this.#dataBytes > 0) {
        const part = chunk.subarray(at, at + this.#dataBytes);
        at += part.length;
        this.#dataBytes -= part.length;
        this.#deliver(part);
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
    if (kind === OPEN) return this.#open(id, value);
    if (id === 0 || id > this.#lastId) return this.end('it names a connection that never was');
    if (kind === DATA) return this.#beginData(id, value);
    const one = this.#connections.get(id);
    if (kind === CREDIT) return one && this.#takeCredit(one, value);
    if (kind === END) return one && this.#takeEnd(one);
    if (kind !== RESET) return this.end('it has a frame of no known kind');
    if (one === undefined) return undefined;
    one.wasReset = true;
    return one.socket.destroy();
  }

  #takeReady(id, value) {
    if (this.#accept === null || this.#isReady || id !== 0 || value !== MAGIC) {
      this.end('it does not begin as it should');
    } else {
      this.#isReady = true;
      this.#onReady();
    }
  }

  #open(id, port) {
    if (this.#accept === null || id <= this.#lastId) return this.end('it opens a connection that it may not open');
    this.#lastId = id;
    if (this.#connections.size >= MAX_CONNECTIONS) return this.#send(RESET, id, 0);
    const socket = this.#accept(port);
    return socket === null ? this.end('it names a port that is not carried') : this.#add(id, socket);
  }

  #beginData(id, bytes) {
    if (bytes === 0 || bytes > MAX_DATA) return this.end('it has a frame of a wrong length');
    this.#dataId = id;
    this.#dataBytes = bytes;
    const one = this.#connections.get(id);
    if (one === undefined) return undefined;
    one.owed += bytes;
    return one.endSeen || one.owed > WINDOW ? this.end('it sends more than it may') : undefined;
  }

  #deliver(part) {
    const one = this.#connections.get(this.#dataId);
    if (one === undefined || one.socket.destroyed) return;
    one.socket.write(part, (error) => {
      if (!error) this.#notePassed(one, part.length);
    });
  }

  #notePassed(one, bytes) {
    one.passed += bytes;
    if (one.passed < WINDOW / 2 || !this.#connections.has(one.id)) return;
    one.owed -= one.passed;
    this.#send(CREDIT, one.id, one.passed);
    one.passed = 0;
  }

  #takeCredit(one, bytes) {
    one.credit += bytes;
    if (one.credit > WINDOW) this.end('it allows more than was sent');
    else if (one.chunk !== null) this.#enqueue(one);
  }

  #takeEnd(one) {
    if (one.endSeen) return this.end('it ends a connection twice');
    one.endSeen = true;
    return one.socket.end();
  }
}

function listenAt(port, onConnection) {
  const server = createServer({ allowHalfOpen: true, noDelay: true }, onConnection);
  return new Promise((resolve, reject) => {
    server.on('error', reject);
    server.listen(port, '127.0.0.1', resolve);
  });
}

/** The companion: carries connections from loopback ports over its standard streams, and ends with them. */
async function carryPorts(ports) {
  const input = new Socket({ fd: 0, writable: false });
  const output = new Socket({ fd: 1, readable: false });
  const multiplex = new Multiplex({ input, output, onOver: () => process.exit(0) });
  process.on('SIGTERM', () => process.exit(0));
  for (const port of ports) await listenAt(port, (socket) => multiplex.carry(socket, port));
  multiplex.sayReady();
}

function runCompanion(ports) {
  carryPorts(ports.map(Number)).catch((error) => {
    process.stderr.write(`svc companion: ${error.message}\n`);
    process.exit(1);
  });
}

module.exports = { Multiplex, runCompanion };
