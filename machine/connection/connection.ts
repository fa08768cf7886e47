import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';

/** Bytes buffered for a busy reader before the socket is paused. */
const READ_AHEAD_BYTES = 256 * 1024;
/** Memory cost of a chunk in addition to its bytes, so that a peer that sends single bytes cannot fill the memory with buffers. */
const CHUNK_COST_BYTES = 512;
/**
 * How long a peer that has finished sending may read nothing. It is most likely gone: a reset TLS connection ends without an
 * error, and later writes never leave. Before this time is up, the system is asked if the connection still exists.
 */
const STALLED_AFTER_END_MS = 60_000;
const LOOK_AFTER_STALL_MS = 500;

/**
 * An end within this time after waiting began may have arrived in one packet with the last data and the goodbye, so it counts
 * as announced.
 */
const ANNOUNCED_WITHIN_MS = 100;

/** Why a connection ended before its peer finished; `code` is the system's error code, if any. */
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
 * One side of the data plane: a pull-based byte stream, so that a slow writer pauses its reader, with one waiter at a time. It
 * works on any Duplex, so that tests need no socket.
 */
export class Connection<Stream extends Duplex = Duplex> {
  readonly stream: Stream;
  #queue: Buffer[] = [];
  #queuedCost = 0;
  #paused = false;
  #ended = false;
  /** Why the connection was lost before its peer finished. Most such ends have no reader, so the error is made for one. */
  #lost: { readonly cause: NodeJS.ErrnoException | null } | null = null;
  #waiter: Waiter | null = null;
  #drain: (() => void) | null = null;
  #stalled: NodeJS.Timeout | null = null;
  #onClosed: (() => void)[] = [];
  #onFinished: (() => void) | null = null;
  #onArrival: (() => void) | null = null;
  #gathering = false;
  #closed = false;
  readonly #receivedBytes: (() => number) | null;
  readonly #isConnected: () => boolean;
  #waited: { readonly receivedBytes: number; readonly since: number } | null = null;

  /**
   * `receivedBytes`: number of bytes received below the stream, to detect an end without a goodbye (see `expectGoodbye`).
   * `isConnected`: false if the system knows that the peer is gone; asked when the peer has ended and when it then stalls.
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

  /** True if the peer has finished sending and all its bytes were read. */
  get finished(): boolean {
    return this.closed || (this.#ended && this.#queue.length === 0);
  }

  /** Trailers that arrive beside the byte stream; a version that has them in it gives none here. */
  get trailers(): string {
    return '';
  }

  /** The names of those that the peer marked as never indexed (RFC 7541 section 6.2.3). */
  get unindexedTrailers(): readonly string[] {
    return [];
  }

  /** The code that the peer reset an HTTP/2 stream with; 0 if it did not. */
  get resetCode(): number {
    return 0;
  }

  /** Whether a peer that has finished sending is most likely about to leave. */
  protected get leavesAfterEnd(): boolean {
    return true;
  }

  /** What has already arrived: a chunk, null at the end, undefined if nothing yet. */
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
   * The next chunk, null at the end. Rejects with {@link ConnectionLost}. A connection has one reader: a new reader replaces
   * the previous one, for which the connection is lost.
   */
  nextChunk(): Promise<Buffer | null> {
    const chunk = this.take();
    if (chunk !== undefined) return Promise.resolve(chunk);
    if (this.#lost !== null) return Promise.reject(new ConnectionLost(this.#lost.cause));
    this.#settle((waiter) => waiter.reject(new ConnectionLost(null)));
    return new Promise((resolve, reject) => {
      this.#waiter = { resolve, reject };
    });
  }

  /** Puts bytes back at the front: the next `take` returns them. */
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
   * Writes one of several pieces. All pieces of an event-loop turn are sent together at its end: one socket read yields several
   * pieces, and a socket write costs more than handling them.
   */
  writeInTurn(data: Uint8Array | string): boolean {
    if (!this.#gathering && !this.closed) {
      this.#gathering = true;
      this.stream.cork();
      setImmediate(this.#sendGathered);
    }
    return this.write(data);
  }

  /** Sends what {@link writeInTurn} holds. */
  sendGathered(): void {
    if (this.#gathering) this.stream.uncork();
    this.#gathering = false;
  }

  /** Holds back small writes until {@link uncork}, so that they are sent together. */
  cork(): void {
    this.stream.cork();
  }

  uncork(): void {
    this.stream.uncork();
  }

  /** True if our side can still send: it was neither finished nor lost. */
  get canWrite(): boolean {
    return !this.closed && this.stream.writable;
  }

  /** True if the peer is not reading: wait for {@link waitForDrain} before writing more. */
  get needsDrain(): boolean {
    return this.stream.writableNeedDrain && !this.closed;
  }

  /** Resolves when the peer reads again or is gone. */
  waitForDrain(): Promise<void> {
    if (!this.needsDrain) return Promise.resolve();
    return new Promise((resolve) => {
      this.#drain = resolve;
      this.#watchForStall();
    });
  }

  /** Resolves when everything written before {@link end} was sent or the peer is gone. */
  waitForFlush(): Promise<void> {
    if (this.closed || this.stream.writableFinished) return Promise.resolve();
    return new Promise((resolve) => {
      this.stream.once('finish', resolve);
      this.onClosed(resolve);
      this.#watchForStall();
    });
  }

  /** Finishes our side; written bytes are still delivered. */
  end(): void {
    if (!this.closed) this.stream.end();
  }

  /** Drops the connection immediately. */
  destroy(): void {
    this.stream.destroy();
  }

  /** Calls back once when the connection is gone, immediately if it already is. Returns a function to cancel. */
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
   * Calls back when the peer has finished sending and all its bytes were read, immediately if that is already so. There is one
   * listener; null removes it. While there is one, the peer is expected to say goodbye.
   */
  onFinished(listener: (() => void) | null): void {
    this.#onFinished = listener;
    this.#waited = null;
    if (this.finished) this.#tellFinished();
    else if (listener !== null) this.expectGoodbye();
  }

  /**
   * Calls back once when anything arrives: a byte, or the peer's end, immediately if something has. There is one listener; null
   * removes it. For a connection that is in nobody's use, so that nothing may arrive.
   */
  onArrival(listener: (() => void) | null): void {
    this.#onArrival = listener;
    if (this.#queue.length > 0 || this.#ended || this.closed) this.#tellArrival();
  }

  /**
   * From now on, an unannounced end is a loss. A TLS peer that finishes sending sends an alert (RFC 8446 section 6.1), which
   * arrives below the stream. If the peer was killed, its kernel closes the connection without an alert. The first peer may
   * still be reading; for the second, everything must be released.
   */
  expectGoodbye(): void {
    if (this.#receivedBytes === null || this.#ended) return;
    this.#waited = { receivedBytes: this.#receivedBytes(), since: performance.now() };
  }

  /** Detaches the stream, with the bytes read ahead put back; this object is unusable afterwards. */
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
    this.#tellArrival();
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
    this.#tellArrival();
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

  /** Starts when the peer has finished sending and bytes wait for it. */
  #watchForStall(): void {
    if (!this.#ended || !this.leavesAfterEnd || this.closed) return;
    if (this.#stalled !== null || this.stream.writableLength === 0) return;
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

  #tellArrival(): void {
    const listener = this.#onArrival;
    this.#onArrival = null;
    listener?.();
  }

  #lose(cause: NodeJS.ErrnoException | null): void {
    this.#lost ??= { cause };
    const lost = this.#lost;
    this.#settle((waiter) => waiter.reject(new ConnectionLost(lost.cause)));
  }

  #settle(with_: (waiter: Waiter) => void): void {
    const waiter = this.#waiter;
    this.#waiter = null;
    if (waiter !== null) with_(waiter);
  }
}

/** A connection over a TCP socket, as a listener accepts it. */
export type SocketConnection = Connection<Socket>;
