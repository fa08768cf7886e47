import { constants, type Http2Stream, type IncomingHttpHeaders, sensitiveHeaders } from 'node:http2';

import { formatTrailerList, trailerFields } from '../../shared/net/http/http2_head.ts';
import { Connection } from './connection.ts';

/**
 * One side of one HTTP/2 stream. Its bytes are a message's body, which ends with the stream. A stream that was reset, or whose
 * connection was lost, is lost: node:http2 reports an end for it too.
 */
export class StreamConnection<Stream extends Http2Stream = Http2Stream> extends Connection<Stream> {
  #received = '';
  #unindexed: readonly string[] = [];
  #toSend: Record<string, string[]> = {};
  readonly #allSent = Promise.withResolvers<void>();
  readonly #resetCode: number;
  readonly #end: { readonly isSeen: boolean };

  /** `resetCode`: what {@link destroy} tells the peer of an unfinished stream. */
  constructor(stream: Stream, resetCode: number) {
    const end = watchEnd(stream);
    super(stream, null, () => end.isSeen);
    this.#resetCode = resetCode;
    this.#end = end;
    stream.on('trailers', (headers: MarkedHeaders, _flags: number, list: readonly string[]) => {
      this.#received = formatTrailerList(list);
      this.#unindexed = headers[sensitiveHeaders] ?? [];
    });
    stream.on('wantTrailers', () => this.#sendTrailers());
    this.onClosed(() => this.#allSent.resolve());
    // A stream that was reset without an error before it was read is closed by node:http2 only when all of ours was sent, which
    // it never is.
    stream.on('end', () => {
      if (stream.closed) stream.destroy();
    });
  }

  /** To be called with a head that ends our side: no trailers are asked for. */
  protected noteEnded(): void {
    this.#allSent.resolve();
  }

  /** The trailers that the peer sent after the body: header lines, each with its CRLF. */
  override get trailers(): string {
    return this.#received;
  }

  override get unindexedTrailers(): readonly string[] {
    return this.#unindexed;
  }

  override get resetCode(): number {
    return this.stream.rstCode ?? 0;
  }

  /** True once the peer's whole message has arrived. */
  get isWhole(): boolean {
    return this.#end.isSeen;
  }

  /** Resolves when everything written so far was sent, or the stream is gone. */
  async flush(): Promise<void> {
    this.sendGathered();
    if (this.closed || this.stream.closed || this.stream.writableEnded) return;
    await new Promise<void>((resolve) => {
      this.onClosed(resolve);
      this.stream.write('', () => resolve());
    });
  }

  /** A stream that was closed takes no more. */
  override write(data: Uint8Array | string): boolean {
    return this.stream.closed || this.stream.writableEnded || super.write(data);
  }

  /** Finishes our side. `unindexed`: the names of trailers that no hop may put into a compression table. */
  override end(trailers = '', unindexed: readonly string[] = []): void {
    this.#toSend = Object.assign(trailerFields(trailers), { [sensitiveHeaders]: [...unindexed] });
    super.end();
  }

  /**
   * Resolves when our last frame was sent, or the stream is gone. node:http2 tells it by no event: an early reset would go out
   * before that frame, and cut the message off.
   */
  async waitForEnd(): Promise<void> {
    while (!this.stream.closed && this.stream.state.localClose !== 1) {
      await this.#allSent.promise;
      await new Promise((resolve) => setTimeout(resolve, LOOK_AGAIN_MS));
    }
  }

  #sendTrailers(): void {
    this.#allSent.resolve();
    try {
      if (!this.stream.destroyed) this.stream.sendTrailers(this.#toSend);
    } catch {
      this.destroy();
    }
  }

  /** Resets the stream, so that what was sent never looks complete. */
  override destroy(code = this.#resetCode): void {
    if (this.stream.closed) this.stream.destroy();
    else this.stream.close(code);
  }

  /** Every request ends the client's side of its stream, so that tells nothing: a client that is gone resets it. */
  override onFinished(): void {}

  protected override get leavesAfterEnd(): boolean {
    return false;
  }
}

const LOOK_AGAIN_MS = 10;

/** Received fields by name, with the names that their sender marked as never indexed. */
export type MarkedHeaders = IncomingHttpHeaders & { readonly [sensitiveHeaders]?: readonly string[] };

/** The code that a message is cut off with. */
export const {
  NGHTTP2_CANCEL: CANCEL,
  NGHTTP2_INTERNAL_ERROR: INTERNAL_ERROR,
  NGHTTP2_NO_ERROR: NO_ERROR,
  NGHTTP2_PROTOCOL_ERROR: PROTOCOL_ERROR,
} = constants;

/** A piece that is smaller than this part of its buffer is copied, because it would keep all of the buffer. */
const KEPT_PART = 1 / 4;

/**
 * Copies small pieces together, those of one turn into one: node:http2 gives slices of what it read from its socket, so a body
 * sent byte by byte would keep many times its size.
 */
class PieceCollector {
  readonly #push: (chunk: Buffer) => boolean;
  #held: Buffer[] = [];

  constructor(push: (chunk: Buffer) => boolean) {
    this.#push = push;
  }

  /** True if the piece is held. */
  hold(piece: Buffer): boolean {
    if (piece.length >= piece.buffer.byteLength * KEPT_PART) return false;
    if (this.#held.push(piece) === 1) process.nextTick(() => this.release());
    return true;
  }

  release(): void {
    if (this.#held.length === 0) return;
    const held = this.#held;
    this.#held = [];
    const joined = Buffer.allocUnsafeSlow(held.reduce((bytes, { length }) => bytes + length, 0));
    let at = 0;
    for (const piece of held) at += piece.copy(joined, at);
    this.#push(joined);
  }
}

function hasEnded(stream: Http2Stream): boolean {
  return !stream.closed && stream.state.remoteClose === 1;
}

/**
 * Whether the peer ended the stream (END_STREAM), read from what node:http2 does: at such an end it pushes null into the open
 * stream; at a reset, or when the connection is lost, it closes the stream first. It tells of a stream later than it reads it, so
 * the end may have come before.
 */
function watchEnd(stream: Http2Stream): { readonly isSeen: boolean } {
  const end = { isSeen: stream.endAfterHeaders || hasEnded(stream) };
  const push = stream.push.bind(stream);
  const pieces = new PieceCollector(push);
  stream.push = (chunk: unknown, encoding?: BufferEncoding): boolean => {
    if (chunk === null && !stream.closed) end.isSeen = true;
    if (Buffer.isBuffer(chunk) && pieces.hold(chunk)) return stream.readableLength < stream.readableHighWaterMark;
    pieces.release();
    return push(chunk, encoding);
  };
  return end;
}
