import type { ScrubPatterns } from '../../shared/inject/scrub/patterns.ts';
import { replyFormatOf } from '../../shared/inject/scrub/reply_format.ts';
import { StreamScrubber } from '../../shared/inject/scrub/stream_scrubber.ts';
import { encodeChunk, encodeLastChunk } from '../../shared/net/http/http1_framing.ts';
import type { ReplyHead } from '../../shared/net/http/http1_head.ts';
import { fieldValues, formatReplyHead, headerField } from '../../shared/net/http/http1_head.ts';
import type { Connection } from '../../machine/connection/connection.ts';
import type { Replied } from '../exchange/outcome.ts';
import { keepsCookies } from '../exchange/outcome.ts';
import type { ByteMeter } from '../exchange/request_counts.ts';
import { sanitiseTrailers } from '../exchange/sanitise_head.ts';
import { scrubHeadBytes, scrubHead, scrubTrailers } from '../exchange/scrub_head.ts';
import { contentDecoders, decodeBody } from './content_decoder.ts';
import { ReplyBody } from './reply_body.ts';

/** Where a masked reply is written: an HTTP/1.1 connection or a stream of HTTP/2. */
export interface ReplySink {
  /** `raw`: the bytes of the head; null if it was rewritten. `isWhole`: no body follows. */
  writeHead(head: ReplyHead, raw: Buffer | null, isWhole: boolean): void;
  /** False: wait for {@link waitForDrain} before more. */
  writeBody(pieces: readonly Uint8Array[]): boolean;
  /** `trailers`: header lines, each with its CRLF. `unindexed`: see {@link Connection.unindexedTrailers}. */
  end(trailers: string, unindexed: readonly string[]): void;
  waitForDrain(): Promise<void>;
}

/**
 * Relays a credentialed reply over HTTP/1.1. A mask is as long as the text it replaces, so an uncompressed body keeps its
 * framing. A compressed body is sent decoded, in chunks. False if the connection has to close to end the body, because
 * HTTP/1.0 has no chunks.
 */
export async function relayScrubbed(
  client: Connection,
  outcome: Replied,
  patterns: ScrubPatterns,
  onMasked: () => void,
): Promise<boolean> {
  const { framing, head } = outcome.reply;
  const isDecoded = framing.kind !== 'none' && contentDecoders(head) !== null;
  const chunked = isDecoded ? outcome.version === '1.1' : framing.kind === 'chunked';
  await relayMasked(new ConnectionSink(client, chunked), outcome, patterns, onMasked);
  return !isDecoded || chunked;
}

/** Relays a credentialed reply with the credential masked in head, body and trailers (design section 5, invariant 4). */
export async function relayMasked(
  sink: ReplySink,
  outcome: Replied,
  patterns: ScrubPatterns,
  onMasked: () => void,
): Promise<void> {
  const { reply } = outcome;
  const decoders = reply.framing.kind === 'none' ? null : contentDecoders(reply.head);
  const format = replyFormatOf(fieldValues(reply.head.fields, 'content-type')[0] ?? '');
  const out = new ScrubbedOut(sink, new StreamScrubber(patterns, format), outcome.meter ?? null);
  const raw = scrubHeadBytes(reply.head, reply.raw, patterns);
  const head = raw === reply.raw ? reply.head : scrubHead(reply.head, patterns);
  if (decoders === null) sink.writeHead(head, raw, reply.framing.kind === 'none');
  else sink.writeHead(withoutFraming(head), null, false);
  const body = new ReplyBody(reply.upstream, reply.framing, true);
  let trailersMasked = false;
  try {
    if (decoders === null) await copy(body, out);
    else for await (const piece of decodeBody(body, decoders)) await out.write([piece]);
    const trailers = sanitiseTrailers(body.trailers, keepsCookies(outcome.facts));
    const scrubbed = scrubTrailers(trailers, patterns);
    trailersMasked = scrubbed !== trailers;
    out.end(scrubbed, reply.upstream.unindexedTrailers);
  } catch (error) {
    out.breakOff();
    throw error;
  } finally {
    if (out.takeMasked() || raw !== reply.raw || trailersMasked) onMasked();
  }
}

async function copy(body: ReplyBody, sink: ScrubbedOut): Promise<void> {
  for (;;) {
    const piece = body.take() ?? (await body.nextPiece());
    if (piece === 'done') return;
    const roomy = sink.write(piece.data);
    if (roomy !== true) await roomy;
  }
}

function withoutFraming(head: ReplyHead): ReplyHead {
  return { ...head, fields: head.fields.filter((field) => !REFRAMED.has(field.name)) };
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
/** Searches the payload on its way to the sink. */
class ScrubbedOut {
  readonly #sink: ReplySink;
  readonly #scrubber: StreamScrubber;
  readonly #meter: ByteMeter | null;

  constructor(sink: ReplySink, scrubber: StreamScrubber, meter: ByteMeter | null) {
    this.#sink = sink;
    this.#scrubber = scrubber;
    this.#meter = meter;
  }

  /** True if there is room for more; otherwise a promise that resolves when there is. */
  write(data: readonly Uint8Array[]): true | Promise<void> {
    let roomy = true;
    for (const piece of data) roomy = this.#write(this.#scrubber.push(piece)) && roomy;
    return roomy || this.#sink.waitForDrain();
  }

  /** Writes the held-back bytes of a truncated body, without its end. */
  breakOff(): void {
    this.#write(this.#scrubber.flush());
  }

  end(trailers: string, unindexed: readonly string[]): void {
    this.#write(this.#scrubber.flush());
    this.#sink.end(trailers, unindexed);
  }

  /** What is held back is not counted yet: the count is of what the client was given. */
  #write(pieces: readonly Uint8Array[]): boolean {
    this.#meter?.addAll(pieces);
    return this.#sink.writeBody(pieces);
  }

  takeMasked(): boolean {
    return this.#scrubber.takeMasked();
  }
}

/** Writes to an HTTP/1.1 connection, in chunks if the reply is chunked. */
class ConnectionSink implements ReplySink {
  readonly #client: Connection;
  readonly #chunked: boolean;

  constructor(client: Connection, chunked: boolean) {
    this.#client = client;
    this.#chunked = chunked;
  }

  writeHead(head: ReplyHead, raw: Buffer | null): void {
    this.#client.writeInTurn(raw ?? formatReplyHead(reframe(head, this.#chunked)));
  }

  writeBody(pieces: readonly Uint8Array[]): boolean {
    let roomy = true;
    for (const part of this.#chunked ? encodeChunk(pieces) : pieces) roomy = this.#client.writeInTurn(part);
    return roomy;
  }

  end(trailers: string): void {
    if (this.#chunked) this.#client.writeInTurn(encodeLastChunk(trailers));
  }

  waitForDrain(): Promise<void> {
    return this.#client.waitForDrain();
  }
}

/** The head of a decoded body: chunked, or until the connection closes. */
function reframe(head: ReplyHead, chunked: boolean): ReplyHead {
  const kept = head.fields.filter((field) => chunked || !PERSISTENCE.has(field.name));
  const framing = chunked ? headerField('Transfer-Encoding', 'chunked') : headerField('Connection', 'close');
  return { ...head, fields: [...kept, framing] };
}

const PERSISTENCE = new Set(['connection', 'keep-alive']);
