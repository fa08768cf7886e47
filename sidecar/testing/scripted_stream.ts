import type { ServerHttp2Stream } from 'node:http2';
import { Duplex } from 'node:stream';

/**
 * A stream in memory whose peer is the test: it delivers what the test sends, keeps what it receives, and accepts bytes only
 * while the test reads.
 */
export class ScriptedStream extends Duplex {
  readonly got: Buffer[] = [];
  /** Bytes requested from an endless sender. */
  sentBytes = 0;
  #reading: boolean;
  #endless: Buffer | null = null;
  #blocked: (() => void) | null = null;

  constructor(options: { readonly reading?: boolean; readonly allowHalfOpen?: boolean } = {}) {
    super({ allowHalfOpen: options.allowHalfOpen ?? true });
    this.#reading = options.reading ?? true;
  }

  get text(): string {
    return Buffer.concat(this.got).toString('latin1');
  }

  /** The peer sends this; null: it has finished sending. */
  send(data: string | Buffer | null): void {
    this.push(typeof data === 'string' ? Buffer.from(data, 'latin1') : data);
  }

  /** From now on the peer sends this repeatedly, as long as it is read. */
  sendForEver(piece: Buffer): void {
    this.#endless = piece;
    this.#sendMore();
  }

  /** The peer reads from now on. */
  startReading(): void {
    this.#reading = true;
    const blocked = this.#blocked;
    this.#blocked = null;
    blocked?.();
  }

  override _read(): void {
    this.#sendMore();
  }

  #sendMore(): void {
    if (this.#endless === null) return;
    this.sentBytes += this.#endless.length;
    this.push(this.#endless);
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.got.push(chunk);
    if (this.#reading) setImmediate(done);
    else this.#blocked = done;
  }

  override _final(done: () => void): void {
    done();
  }
}

/** The client's side of a stream of HTTP/2 in memory: heads and trailers are kept as text, each as one write. */
export class ScriptedHttp2Stream extends ScriptedStream {
  readonly endAfterHeaders = true;
  readonly state = { localClose: 1 };
  rstCode = 0;

  /** As the type that it stands for. */
  get asHttp2(): ServerHttp2Stream {
    if (!isUsedAsHttp2(this)) throw new Error('a test has the stream before it ends');
    return this;
  }

  respond(fields: readonly string[]): void {
    this.got.push(Buffer.from(JSON.stringify(fields)));
  }

  sendTrailers(fields: object): void {
    this.got.push(Buffer.from(JSON.stringify(fields)));
  }

  close(code: number): void {
    this.rstCode = code;
    this.got.push(Buffer.from(`reset ${code}`));
    this.destroy();
  }
}

function isUsedAsHttp2(stream: object): stream is ServerHttp2Stream {
  return 'respond' in stream;
}

/** Runs everything that only waits for its turn. */
export async function turns(count = 200): Promise<void> {
  for (let turn = 0; turn < count; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}
