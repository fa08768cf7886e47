import type { BodyFraming } from '../../shared/net/http/http1_framing.ts';
import { BodyReader } from '../../shared/net/http/http1_framing.ts';
import type { Connection } from '../../machine/connection/connection.ts';

/** The upstream's body violates its framing. The part already relayed cannot be taken back. */
export class BrokenReply extends Error {
  override readonly name = 'BrokenReply';
}

/** A received piece of a reply's body: the bytes on the wire, and the payload in them. */
interface BodyBytes {
  readonly raw: Buffer;
  readonly data: readonly Uint8Array[];
}

/** Reads a reply's body from its connection, exactly up to its end. Throws {@link BrokenReply} or ConnectionLost. */
export class ReplyBody {
  readonly #upstream: Connection;
  readonly #reader: BodyReader;

  constructor(upstream: Connection, framing: BodyFraming, collectTrailers = false) {
    this.#upstream = upstream;
    this.#reader = new BodyReader(framing, { collectTrailers });
  }

  /** The trailer section as received, after the body: header lines, each with its CRLF. */
  get trailers(): string {
    return this.#reader.trailers || this.#upstream.trailers;
  }

  /** The next piece if it has arrived; undefined if the reader has to wait. */
  take(): BodyBytes | 'done' | undefined {
    if (this.#reader.done) return 'done';
    const chunk = this.#upstream.take();
    return chunk === undefined ? undefined : this.#feed(chunk);
  }

  async nextPiece(): Promise<BodyBytes | 'done'> {
    return this.take() ?? this.#feed(await this.#upstream.nextChunk());
  }

  #feed(chunk: Buffer | null): BodyBytes | 'done' {
    if (chunk === null) {
      if (!this.#reader.end().ok) throw new BrokenReply('the reply body is truncated');
      return 'done';
    }
    const fed = this.#reader.feed(chunk);
    if (!fed.ok) throw new BrokenReply(fed.error.message);
    const { used, data } = fed.value;
    if (used === chunk.length) return { raw: chunk, data };
    this.#upstream.putBack(chunk.subarray(used));
    return { raw: chunk.subarray(0, used), data };
  }
}
