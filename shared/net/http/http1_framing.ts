import { err, ok } from '../../model/result.ts';
import type { Result } from '../../model/result.ts';
import { ChunkedDecoder } from './http1_chunked.ts';
import { IllegalHeadTextError, parseTrailers } from './http1_head.ts';
import type { HttpVersion, ReplyHead, RequestHead } from './http1_head.ts';
import type { Problem } from '../../model/problem.ts';

/** How the body length of a message is determined (RFC 9112 section 6.3). */
export type BodyFraming =
  | { readonly kind: 'none' }
  | { readonly kind: 'length'; readonly length: number }
  | { readonly kind: 'chunked' }
  | { readonly kind: 'until-close' };

type FramingProblemReason =
  | 'content_length_and_transfer_encoding'
  | 'invalid_content_length'
  | 'unsupported_transfer_encoding'
  | 'connect_reply_unsupported'
  | 'invalid_chunk'
  | 'truncated_body';

/** The result for one piece of input: `used` bytes belong to the body (with its chunk lines), `data` is the payload. */
interface BodyPiece {
  readonly used: number;
  /** Subarrays of the input, not copies. */
  readonly data: readonly Uint8Array[];
}

const NONE: BodyFraming = { kind: 'none' };
const CHUNKED: BodyFraming = { kind: 'chunked' };
const UNTIL_CLOSE: BodyFraming = { kind: 'until-close' };

/**
 * The framing of a request. If two parsers disagree about where a request ends, a second request can be hidden in its body.
 * Therefore refused: Content-Length with Transfer-Encoding, more than one of either, any coding but `chunked`, a coding in
 * HTTP/1.0, a length that is not plain digits without a leading zero, and a tab in either header.
 */
export function requestFraming(head: RequestHead): Result<BodyFraming, Problem<FramingProblemReason>> {
  return declaredFraming(head, NONE, REQUEST_LENGTH);
}

/**
 * The framing of a reply to `requestMethod`. Replies to HEAD, and 1xx, 204 and 304, have no body regardless of their
 * headers; bytes after them belong to no reply. A length may have leading zeros here: they are legal, and some servers send
 * them.
 */
export function replyFraming(
  head: ReplyHead,
  requestMethod: string,
): Result<BodyFraming, Problem<FramingProblemReason>> {
  const { status } = head;
  if (requestMethod === 'HEAD' || status < 200 || status === 204 || status === 304) return ok(NONE);
  if (requestMethod === 'CONNECT' && status < 300) {
    return refuse(
      'connect_reply_unsupported',
      'a reply that opens a tunnel has no framing; do not send CONNECT upstream',
    );
  }
  return declaredFraming(head, UNTIL_CLOSE, REPLY_LENGTH);
}

/** The form of a Content-Length in a request: servers agree on it. */
export const REQUEST_LENGTH = /^(?:0|[1-9][0-9]{0,15})$/;
const REPLY_LENGTH = /^0{0,32}[0-9]{1,16}$/;

function declaredFraming(
  head: RequestHead | ReplyHead,
  undeclared: BodyFraming,
  lengthForm: RegExp,
): Result<BodyFraming, Problem<FramingProblemReason>> {
  let lengths = 0;
  let codings = 0;
  let value = '';
  for (const field of head.fields) {
    if (field.name === 'content-length') lengths += 1;
    else if (field.name === 'transfer-encoding') codings += 1;
    else continue;
    // Some parsers ignore a header with a tab beside its value, and then end the message elsewhere.
    value = field.line.includes('\t') ? '' : field.value;
  }
  if (lengths + codings === 0) return ok(undeclared);
  if (lengths > 0 && codings > 0) {
    return refuse('content_length_and_transfer_encoding', 'send Content-Length or Transfer-Encoding, not both');
  }
  return lengths > 0 ? lengthFraming(lengths, value, lengthForm) : codingFraming(codings, value, head.version);
}

function lengthFraming(count: number, value: string, form: RegExp): Result<BodyFraming, Problem<FramingProblemReason>> {
  const length = form.test(value) ? Number(value) : -1;
  if (count === 1 && length >= 0 && Number.isSafeInteger(length)) return ok({ kind: 'length', length });
  return refuse('invalid_content_length', 'Content-Length must be sent once, as plain decimal digits');
}

function codingFraming(
  count: number,
  value: string,
  version: HttpVersion,
): Result<BodyFraming, Problem<FramingProblemReason>> {
  if (count === 1 && version === '1.1' && value.toLowerCase() === 'chunked') return ok(CHUNKED);
  return refuse('unsupported_transfer_encoding', 'Transfer-Encoding must be sent once, as "chunked", in HTTP/1.1');
}

function refuse(
  reason: FramingProblemReason,
  message: string,
): { readonly ok: false; readonly error: Problem<FramingProblemReason> } {
  return err({ reason, message });
}

interface BodyReaderOptions {
  /** Keep the trailer section for {@link BodyReader.trailers}; off by default, because it uses memory. */
  readonly collectTrailers?: boolean;
}

/**
 * Finds the payload and the end of a body in pieces of any size. It holds no bytes: a caller that forwards the body
 * unchanged sends the first `used` bytes of each piece. After one refusal it refuses everything.
 */
export class BodyReader {
  readonly #kind: BodyFraming['kind'];
  readonly #chunked: ChunkedDecoder | null;
  #remaining: number;
  #ended = false;

  constructor(framing: BodyFraming, options: BodyReaderOptions = {}) {
    this.#kind = framing.kind;
    this.#remaining = framing.kind === 'length' ? framing.length : 0;
    this.#chunked = framing.kind === 'chunked' ? new ChunkedDecoder(options.collectTrailers === true) : null;
  }

  /** True if the whole body was read; further bytes belong to the next message. */
  get done(): boolean {
    if (this.#chunked !== null) return this.#chunked.done;
    return this.#ended || (this.#kind !== 'until-close' && this.#remaining === 0);
  }

  /** The raw trailer section in latin1, each line with its CRLF, without the empty line; '' unless collected. */
  get trailers(): string {
    return this.#chunked === null ? '' : this.#chunked.trailers;
  }

  /** Reads the next piece. After `done` it uses no more bytes. Refuses with `invalid_chunk`. */
  feed(bytes: Uint8Array): Result<BodyPiece, Problem<FramingProblemReason>> {
    if (this.#chunked !== null) return this.#feedChunked(this.#chunked, bytes);
    const used = this.#kind === 'until-close' && !this.#ended ? bytes.length : Math.min(this.#remaining, bytes.length);
    if (this.#kind !== 'until-close') this.#remaining -= used;
    if (used === 0) return ok({ used, data: [] });
    return ok({ used, data: [used === bytes.length ? bytes : bytes.subarray(0, used)] });
  }

  /** The sender closed. Succeeds if the body is complete or ends with the connection; else refuses with `truncated_body`. */
  end(): Result<void, Problem<FramingProblemReason>> {
    if (this.#kind === 'until-close') this.#ended = true;
    const problem = this.#chunked?.problem ?? null;
    if (problem !== null) return refuse('invalid_chunk', problem);
    return this.done ? ok(undefined) : refuse('truncated_body', 'the connection closed before the end of the body');
  }

  #feedChunked(decoder: ChunkedDecoder, bytes: Uint8Array): Result<BodyPiece, Problem<FramingProblemReason>> {
    const data: Uint8Array[] = [];
    const used = decoder.feed(bytes, data);
    return decoder.problem === null ? ok({ used, data }) : refuse('invalid_chunk', decoder.problem);
  }
}

const CRLF = Uint8Array.of(0x0d, 0x0a);

function latin1Bytes(text: string): Uint8Array {
  return Uint8Array.from({ length: text.length }, (_, at) => text.charCodeAt(at));
}

/** One outgoing chunk: its size line, the pieces of its data, CRLF. Nothing for empty data, because a chunk of size 0 ends the body. */
export function encodeChunk(data: readonly Uint8Array[]): Uint8Array[] {
  const size = data.reduce((total, { length }) => total + length, 0);
  return size === 0 ? [] : [latin1Bytes(`${size.toString(16)}\r\n`), ...data, CRLF];
}

/**
 * The end of an outgoing chunked body. `trailers` is '' or header lines, each with its CRLF, as in {@link
 * BodyReader.trailers}; anything else throws {@link IllegalHeadTextError}.
 */
export function encodeLastChunk(trailers: string): Uint8Array {
  if (!parseTrailers(trailers, { maxHeaders: Infinity }).ok) {
    throw new IllegalHeadTextError('trailers must be header lines, each ended by CRLF');
  }
  return latin1Bytes(`0\r\n${trailers}\r\n`);
}
