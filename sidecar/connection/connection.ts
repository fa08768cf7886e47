import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';

/** Bytes held for a reader that is busy elsewhere, before the socket is told to stop reading. */
const READ_AHEAD_BYTES = 256 * 1024;

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
  #queuedBytes = 0;
  #paused = false;
  #ended = false;
  #lost: ConnectionLost | null = null;
  #waiter: Waiter | null = null;
  #drain: (() => void) | null = null;
  #onClosed: (() => void)[] = [];
  #onFinished: (() => void)[] = [];
  #closed = false;

  constructor(stream: Stream) {
    this.stream = stream;
    stream.on('data', this.#onData);
    stream.on('end', this.#onEnd);
    stream.on('error', this.#onError);
    stream.on('close', this.#onClose);
    stream.on('drain', this.#onDrain);
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
      this.#queuedBytes -= chunk.length;
      if (this.#paused && this.#queuedBytes < READ_AHEAD_BYTES / 2) this.#resume();
      if (this.#ended) this.#tellFinished();
      return chunk;
    }
    return this.#ended ? null : undefined;
  }

  /** The next chunk, null at the end. Rejects with {@link ConnectionLost}. */
  next(): Promise<Buffer | null> {
    const chunk = this.take();
    if (chunk !== undefined) return Promise.resolve(chunk);
    if (this.#lost !== null) return Promise.reject(this.#lost);
    return new Promise((resolve, reject) => {
      this.#waiter = { resolve, reject };
    });
  }

  /** Puts bytes back in front: the next `take` gives them again. */
  unread(chunk: Buffer): void {
    if (chunk.length === 0) return;
    this.#queue.unshift(chunk);
    this.#queuedBytes += chunk.length;
  }

  /** Writes bytes, or latin1 text. False: wait for {@link drained} before more. */
  write(data: Uint8Array | string): boolean {
    if (this.closed) return true;
    return typeof data === 'string' ? this.stream.write(data, 'latin1') : this.stream.write(data);
  }

  /** Holds back small writes until {@link uncork}, so that a head and the start of its body leave in one packet. */
  cork(): void {
    this.stream.cork();
  }

  uncork(): void {
    this.stream.uncork();
  }

  /** Resolves when the peer has room again, or is gone. */
  drained(): Promise<void> {
    if (this.closed || !this.stream.writableNeedDrain) return Promise.resolve();
    return new Promise((resolve) => {
      this.#drain = resolve;
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

  /** Calls back once the peer has finished sending and everything it sent was taken. Returns the way to cancel it. */
  onFinished(listener: () => void): () => void {
    if (this.finished) {
      listener();
      return () => undefined;
    }
    this.#onFinished.push(listener);
    return () => {
      this.#onFinished = this.#onFinished.filter((one) => one !== listener);
    };
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
    if (this.#queue.length > 0) stream.unshift(Buffer.concat(this.#queue));
    this.#queue = [];
    this.#queuedBytes = 0;
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
    this.#queuedBytes += chunk.length;
    if (this.#queuedBytes >= READ_AHEAD_BYTES && !this.#paused) {
      this.#paused = true;
      this.stream.pause();
    }
  };

  readonly #onEnd = (): void => {
    this.#ended = true;
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
    const drain = this.#drain;
    this.#drain = null;
    drain?.();
  };

  #tellFinished(): void {
    if (!this.finished) return;
    const listeners = this.#onFinished;
    this.#onFinished = [];
    for (const listener of listeners) listener();
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
