import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';

/** Bytes held for a reader that is busy elsewhere, before the socket is told to stop reading. */
const READ_AHEAD_BYTES = 256 * 1024;
/** What holding a chunk costs besides its bytes: a peer that sends single bytes may not fill the memory with their buffers. */
const CHUNK_COST_BYTES = 512;
/**
 * How long a peer that has finished sending may take none of what it is sent. It is most likely gone: a TLS connection
 * that was reset ends without an error, and what is written after that never leaves. Before that time is up the system is
 * asked whether there still is a connection.
 */
const STALLED_AFTER_END_MS = 60_000;
const LOOK_AFTER_STALL_MS = 500;

/**
 * An end so soon after its peer began to be waited for may have come in one packet with what was read last, goodbye and
 * all: it is taken for one that was announced.
 */
const ANNOUNCED_WITHIN_MS = 100;

/** Why a connection ended before its peer finished; `code` is the system's own, where there was one. */
export class ConnectionLost extends Error {
  readonly code: string;

  constructor(cause: NodeJS.ErrnoException | null) {
    super('the connection was lost', cause === null ? {} : { cause });
    this.name = 'ConnectionLost';
    this.code = cause?.code ?? 'ECONNRESET';
  }
}

interface Waiter {
  resolve(chunk: Buffer | null): void;
  reject(error: ConnectionLost): void;
}

/**
 * One side of the data plane: a byte stream that is pulled, so that a slow writer stops its reader, with one waiter at a
 * time. It works on any Duplex, so that the lines above it run in tests without a socket.
 */
export class Connection<Stream extends Duplex = Duplex> {
  readonly stream: Stream;
  #queue: Buffer[] = [];
  #queuedCost = 0;
  #paused = false;
  #ended = false;
  #lost: ConnectionLost | null = null;
  #waiter: Waiter | null = null;
  #drain: (() => void) | null = null;
  #stalled: NodeJS.Timeout | null = null;
  #onClosed: (() => void)[] = [];
  #onFinished: (() => void) | null = null;
  #gathering = false;
  #closed = false;
  readonly #receivedBytes: (() => number) | null;
  readonly #isConnected: () => boolean;
  #waited: { readonly receivedBytes: number; readonly since: number } | null = null;

  /**
   * `receivedBytes`: all that came in below the stream, so that an end without a goodbye shows (see `expectGoodbye`).
   * `isConnected`: false when the system knows that the peer is gone; it is asked when one has ended, and when that one
   * stalls.
   */
  constructor(stream: Stream, receivedBytes: (() => number) | null = null, isConnected = (): boolean => true) {
    this.stream = stream;
    this.#receivedBytes = receivedBytes;
    this.#isConnected = isConnected;
    stream.on('data', this.#onData);
    stream.on('end', this.#onEnd);
    stream.on('error', this.#onError);
    stream.on('close', this.#onClose);
    stream.on('drain', this.#onDrain);
    stream.on('finish', this.#onDrain);
    if (stream.closed) this.#onClose();
  }

  /** True once nothing more can be written or read. */
  get closed(): boolean {
    return this.#closed || this.#lost !== null;
  }

  /** True when the peer has finished sending and everything it sent was taken. */
  get finished(): boolean {
    return this.closed || (this.#ended && this.#queue.length === 0);
  }

  /** What has already arrived: a chunk, null at the end, undefined when nothing is there yet. */
  take(): Buffer | null | undefined {
    const chunk = this.#queue.shift();
    if (chunk !== undefined) {
      this.#queuedCost -= chunk.length + CHUNK_COST_BYTES;
      if (this.#paused && this.#queuedCost < READ_AHEAD_BYTES / 2) this.#resume();
      if (this.#ended) this.#tellFinished();
      return chunk;
    }
    return this.#ended ? null : undefined;
  }

  /**
   * The next chunk, null at the end. Rejects with {@link ConnectionLost}. A connection has one reader: the next one that
   * waits takes its place, and for the one before it the connection is lost.
   */
  nextChunk(): Promise<Buffer | null> {
    const chunk = this.take();
    if (chunk !== undefined) return Promise.resolve(chunk);
    if (this.#lost !== null) return Promise.reject(this.#lost);
    this.#settle((waiter) => waiter.reject(new ConnectionLost(null)));
    return new Promise((resolve, reject) => {
      this.#waiter = { resolve, reject };
    });
  }

  /** Puts bytes back in front: the next `take` gives them again. */
  putBack(chunk: Buffer): void {
    if (chunk.length === 0) return;
    if (this.#queue.length === 0) this.#queue.push(chunk);
    else this.#queue.unshift(chunk);
    this.#queuedCost += chunk.length + CHUNK_COST_BYTES;
  }

  /** Writes bytes, or latin1 text. False: wait for {@link waitForDrain} before more. */
  write(data: Uint8Array | string): boolean {
    if (this.closed) return true;
    return typeof data === 'string' ? this.stream.write(data, 'latin1') : this.stream.write(data);
  }

  /**
   * Writes a piece of something that comes in pieces: it leaves at the end of this turn of the event loop, together with
   * every other that came in it. One read of a socket gives several pieces, and a write to a socket costs more than they do.
   */
  writeInTurn(data: Uint8Array | string): boolean {
    if (!this.#gathering && !this.closed) {
      this.#gathering = true;
      this.stream.cork();
      setImmediate(this.#sendGathered);
    }
    return this.write(data);
  }

  /** What {@link writeInTurn} holds leaves now. */
  sendGathered(): void {
    if (this.#gathering) this.stream.uncork();
    this.#gathering = false;
  }

  /** Holds back small writes until {@link uncork}, so that they leave together. */
  cork(): void {
    this.stream.cork();
  }

  uncork(): void {
    this.stream.uncork();
  }

  /** True when the peer takes no more for now: wait for {@link waitForDrain} before more. */
  get needsDrain(): boolean {
    return this.stream.writableNeedDrain && !this.closed;
  }

  /** Resolves when the peer has room again, or is gone. */
  waitForDrain(): Promise<void> {
    if (!this.needsDrain) return Promise.resolve();
    return new Promise((resolve) => {
      this.#drain = resolve;
      this.#watchForStall();
    });
  }

  /** Resolves when everything that was written before {@link end} has left, or the peer is gone. */
  waitForFlush(): Promise<void> {
    if (this.closed || this.stream.writableFinished) return Promise.resolve();
    return new Promise((resolve) => {
      this.stream.once('finish', resolve);
      this.onClosed(resolve);
      this.#watchForStall();
    });
  }

  /** Finishes our side; what was written is still delivered. */
  end(): void {
    if (!this.closed) this.stream.end();
  }

  /** Drops the connection at once. */
  destroy(): void {
    this.stream.destroy();
  }

  /** Calls back once when the connection is gone; at once when it already is. Returns the way to cancel it. */
  onClosed(listener: () => void): () => void {
    if (this.closed) {
      listener();
      return () => undefined;
    }
    this.#onClosed.push(listener);
    return () => {
      this.#onClosed = this.#onClosed.filter((one) => one !== listener);
    };
  }

  /**
   * Calls back once the peer has finished sending and everything it sent was taken; at once when that is so already. There
   * is one listener; null takes it away. While there is one, the peer is expected to say goodbye.
   */
  onFinished(listener: (() => void) | null): void {
    this.#onFinished = listener;
    this.#waited = null;
    if (this.finished) this.#tellFinished();
    else if (listener !== null) this.expectGoodbye();
  }

  /**
   * From now on an end that nothing announces is a loss. A TLS peer that finishes sending says so in an alert (RFC 8446
   * section 6.1), which arrives below the stream; the kernel of one that was killed ends its connection without. The first
   * may still be reading, for the second everything has to be released.
   */
  expectGoodbye(): void {
    if (this.#receivedBytes === null || this.#ended) return;
    this.#waited = { receivedBytes: this.#receivedBytes(), since: performance.now() };
  }

  /** Gives the stream away with what was read ahead put back into it; this object is dead afterwards. */
  release(): Stream {
    const { stream } = this;
    stream.pause();
    stream.off('data', this.#onData);
    stream.off('end', this.#onEnd);
    stream.off('error', this.#onError);
    stream.off('close', this.#onClose);
    stream.off('drain', this.#onDrain);
    stream.off('finish', this.#onDrain);
    if (this.#queue.length > 0) stream.unshift(Buffer.concat(this.#queue));
    this.#queue = [];
    this.#queuedCost = 0;
    return stream;
  }

  #resume(): void {
    this.#paused = false;
    this.stream.resume();
  }

  readonly #onData = (chunk: Buffer): void => {
    const waiter = this.#waiter;
    if (waiter !== null) {
      this.#waiter = null;
      waiter.resolve(chunk);
      return;
    }
    this.#queue.push(chunk);
    this.#queuedCost += chunk.length + CHUNK_COST_BYTES;
    if (this.#queuedCost >= READ_AHEAD_BYTES && !this.#paused) {
      this.#paused = true;
      this.stream.pause();
    }
  };

  readonly #onEnd = (): void => {
    if (this.#endsUnannounced() || !this.#isConnected()) {
      this.stream.destroy();
      return;
    }
    this.#ended = true;
    this.#watchForStall();
    this.#settle((waiter) => waiter.resolve(null));
    this.#tellFinished();
  };

  readonly #onError = (error: NodeJS.ErrnoException): void => {
    this.#lose(error);
  };

  readonly #onClose = (): void => {
    if (this.#closed) return;
    this.#closed = true;
    if (!this.#ended) this.#lose(null);
    this.#onDrain();
    const listeners = this.#onClosed;
    this.#onClosed = [];
    for (const listener of listeners) listener();
  };

  readonly #onDrain = (): void => {
    if (this.#stalled !== null) clearTimeout(this.#stalled);
    this.#stalled = null;
    const drain = this.#drain;
    this.#drain = null;
    drain?.();
  };

  readonly #sendGathered = (): void => this.sendGathered();

  #endsUnannounced(): boolean {
    const waited = this.#waited;
    if (waited === null || this.#receivedBytes === null) return false;
    return this.#receivedBytes() === waited.receivedBytes && performance.now() - waited.since > ANNOUNCED_WITHIN_MS;
  }

  /** Begins when both hold: the peer has finished sending, and bytes wait for it. */
  #watchForStall(): void {
    if (!this.#ended || this.closed || this.#stalled !== null || this.stream.writableLength === 0) return;
    this.#stalled = setTimeout(() => {
      if (!this.#isConnected()) this.stream.destroy();
      else this.#stalled = setTimeout(() => this.stream.destroy(), STALLED_AFTER_END_MS - LOOK_AFTER_STALL_MS);
    }, LOOK_AFTER_STALL_MS);
  }

  #tellFinished(): void {
    if (!this.finished) return;
    const listener = this.#onFinished;
    this.#onFinished = null;
    listener?.();
  }

  #lose(cause: NodeJS.ErrnoException | null): void {
    this.#lost ??= new ConnectionLost(cause);
    const lost = this.#lost;
    this.#settle((waiter) => waiter.reject(lost));
  }

  #settle(with_: (waiter: Waiter) => void): void {
    const waiter = this.#waiter;
    this.#waiter = null;
    if (waiter !== null) with_(waiter);
  }
}

/** A connection whose stream is a TCP socket: what the listener accepts. */
export type SocketConnection = Connection<Socket>;
