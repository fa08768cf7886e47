import type { ScrubPatterns } from '../../shared/inject/scrub/patterns.ts';
import { scrubText } from '../../shared/inject/scrub/scrub_text.ts';
import { StreamScrubber } from '../../shared/inject/scrub/stream_scrubber.ts';
import { chunk, lastChunk } from '../../shared/net/http1_framing.ts';
import type { HeaderField, ReplyHead } from '../../shared/net/http1_head.ts';
import { formatReplyHead, headerField } from '../../shared/net/http1_head.ts';
import type { Connection } from '../connection/connection.ts';
import type { Replied } from '../exchange/outcome.ts';
import { contentDecoder, decode } from './content_decoder.ts';
import { ReplyBody } from './reply_body.ts';

/**
 * Relays a reply on a credentialed path with the credential masked in its head, body and trailers (design section 5,
 * invariant 4). A mask is as long as what it hides, so a body that is not compressed keeps its framing; a compressed one is
 * sent decoded, in chunks.
 */
export async function relayScrubbed(client: Connection, outcome: Replied, patterns: ScrubPatterns): Promise<void> {
  const { reply } = outcome;
  const decoder = reply.framing.kind === 'none' ? null : contentDecoder(reply.head);
  const framed = decoder === null ? reply.framing.kind === 'chunked' : outcome.version === '1.1';
  const sink = new ScrubbedSink(client, patterns, framed);
  client.cork();
  client.write(formatReplyHead(scrubbedHead(reply.head, patterns, decoder === null ? null : framed)));
  const body = new ReplyBody(reply.upstream, reply.framing, true);
  if (decoder === null) {
    await copy(body, sink, client);
  } else {
    client.uncork();
    await decode(body, decoder, (piece) => sink.write([piece]));
    client.cork();
  }
  sink.end(scrubText(body.trailers, patterns));
  client.uncork();
}

async function copy(body: ReplyBody, sink: ScrubbedSink, client: Connection): Promise<void> {
  for (let ready = body.take(); ready !== 'done'; ready = body.take()) {
    const piece = ready ?? (await body.afterUncorking(client));
    if (piece === 'done') return;
    const roomy = sink.write(piece.data);
    if (roomy === true) continue;
    client.uncork();
    await roomy;
    client.cork();
  }
}

/** The head with every match masked; `reframe` (null: leave the framing) is true for chunks, false for until-close. */
function scrubbedHead(head: ReplyHead, patterns: ScrubPatterns, reframe: boolean | null): ReplyHead {
  const fields: HeaderField[] = [];
  for (const field of head.fields) {
    if (reframe !== null && REFRAMED.has(field.name)) continue;
    const line = scrubText(field.line, patterns);
    fields.push(line === field.line ? field : { ...field, line });
  }
  if (reframe === true) fields.push(headerField('Transfer-Encoding', 'chunked'));
  return { ...head, startLine: scrubText(head.startLine, patterns), fields };
}

/** What no longer holds of a body that is sent decoded. */
const REFRAMED = new Set(['content-encoding', 'content-length', 'transfer-encoding', 'content-md5', 'content-digest']);

/** Writes payload to the client, scrubbed, and in chunks when the reply is chunked. */
class ScrubbedSink {
  readonly #client: Connection;
  readonly #scrubber: StreamScrubber;
  readonly #chunked: boolean;

  constructor(client: Connection, patterns: ScrubPatterns, chunked: boolean) {
    this.#client = client;
    this.#scrubber = new StreamScrubber(patterns);
    this.#chunked = chunked;
  }

  /** True when there is room for more; otherwise resolves when there is. */
  write(data: readonly Uint8Array[]): true | Promise<void> {
    let roomy = true;
    for (const piece of data) {
      for (const clean of this.#scrubber.push(piece)) roomy = this.#send(clean);
    }
    return roomy || this.#client.drained();
  }

  end(trailers: string): void {
    for (const clean of this.#scrubber.flush()) this.#send(clean);
    if (this.#chunked) this.#client.write(lastChunk(trailers));
  }

  #send(piece: Uint8Array): boolean {
    if (!this.#chunked) return this.#client.write(piece);
    if (piece.length === 0) return true;
    let roomy = true;
    for (const part of chunk(piece)) roomy = this.#client.write(part);
    return roomy;
  }
}
