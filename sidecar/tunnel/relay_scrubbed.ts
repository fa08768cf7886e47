import type { ScrubPatterns } from '../../shared/inject/scrub/patterns.ts';
import { replyFormatOf } from '../../shared/inject/scrub/reply_format.ts';
import { StreamScrubber } from '../../shared/inject/scrub/stream_scrubber.ts';
import { encodeChunk, encodeLastChunk } from '../../shared/net/http1_framing.ts';
import type { ReplyHead } from '../../shared/net/http1_head.ts';
import { fieldValues, formatReplyHead, headerField } from '../../shared/net/http1_head.ts';
import type { Connection } from '../../machine/connection/connection.ts';
import type { Replied } from '../exchange/outcome.ts';
import { keepsCookies } from '../exchange/outcome.ts';
import { sanitiseTrailers } from '../exchange/sanitise_head.ts';
import { scrubHeadBytes, scrubHead, scrubTrailers } from '../exchange/scrub_head.ts';
import { contentDecoders, decodeBody } from './content_decoder.ts';
import { ReplyBody } from './reply_body.ts';

/**
 * Relays a credentialed reply with the credential masked in head, body and trailers (design section 5, invariant 4). A mask
 * is as long as the text it replaces, so an uncompressed body keeps its framing. A compressed body is sent decoded, in
 * chunks. False if the connection has to close to end the body, because HTTP/1.0 has no chunks.
 */
export async function relayScrubbed(
  client: Connection,
  outcome: Replied,
  patterns: ScrubPatterns,
  onMasked: () => void,
): Promise<boolean> {
  const { reply } = outcome;
  const decoders = reply.framing.kind === 'none' ? null : contentDecoders(reply.head);
  const chunked = decoders === null ? reply.framing.kind === 'chunked' : outcome.version === '1.1';
  const format = replyFormatOf(fieldValues(reply.head.fields, 'content-type')[0] ?? '');
  const scrubber = new StreamScrubber(patterns, format);
  const sink = new ScrubbedSink(client, scrubber, chunked);
  const head = scrubHeadBytes(reply.head, reply.raw, patterns);
  if (decoders === null) client.writeInTurn(head);
  else client.writeInTurn(formatReplyHead(reframe(scrubHead(reply.head, patterns), chunked)));
  const body = new ReplyBody(reply.upstream, reply.framing, true);
  let trailersMasked = false;
  try {
    if (decoders === null) await copy(body, sink);
    else for await (const piece of decodeBody(body, decoders)) await sink.write([piece]);
    const trailers = sanitiseTrailers(body.trailers, keepsCookies(outcome.facts));
    const scrubbed = scrubTrailers(trailers, patterns);
    trailersMasked = scrubbed !== trailers;
    sink.end(scrubbed);
  } catch (error) {
    sink.breakOff();
    throw error;
  } finally {
    if (scrubber.takeMasked() || head !== reply.raw || trailersMasked) onMasked();
  }
  return decoders === null || chunked;
}

async function copy(body: ReplyBody, sink: ScrubbedSink): Promise<void> {
  for (;;) {
    const piece = body.take() ?? (await body.nextPiece());
    if (piece === 'done') return;
    const roomy = sink.write(piece.data);
    if (roomy !== true) await roomy;
  }
}

/** The head of a decoded body: chunked, or until the connection closes. */
function reframe(head: ReplyHead, chunked: boolean): ReplyHead {
  const kept = head.fields.filter((field) => !REFRAMED.has(field.name) && (chunked || !PERSISTENCE.has(field.name)));
  const framing = chunked ? headerField('Transfer-Encoding', 'chunked') : headerField('Connection', 'close');
  return { ...head, fields: [...kept, framing] };
}

/** Header fields that are wrong for a decoded body. */
const REFRAMED = new Set([
  'content-encoding',
  'content-length',
  'transfer-encoding',
  'content-md5',
  'content-digest',
  'repr-digest',
  'digest',
]);
const PERSISTENCE = new Set(['connection', 'keep-alive']);

/** Writes scrubbed payload to the client, in chunks if the reply is chunked. */
class ScrubbedSink {
  readonly #client: Connection;
  readonly #scrubber: StreamScrubber;
  readonly #chunked: boolean;

  constructor(client: Connection, scrubber: StreamScrubber, chunked: boolean) {
    this.#client = client;
    this.#scrubber = scrubber;
    this.#chunked = chunked;
  }

  /** True if there is room for more; otherwise a promise that resolves when there is. */
  write(data: readonly Uint8Array[]): true | Promise<void> {
    let roomy = true;
    for (const piece of data) roomy = this.#send(this.#scrubber.push(piece)) && roomy;
    return roomy || this.#client.waitForDrain();
  }

  /** Writes the held-back bytes of a truncated body, without its end. */
  breakOff(): void {
    this.#send(this.#scrubber.flush());
  }

  end(trailers: string): void {
    this.#send(this.#scrubber.flush());
    if (this.#chunked) this.#client.writeInTurn(encodeLastChunk(trailers));
  }

  #send(pieces: readonly Uint8Array[]): boolean {
    let roomy = true;
    for (const part of this.#chunked ? encodeChunk(pieces) : pieces) roomy = this.#client.writeInTurn(part);
    return roomy;
  }
}
