/** Our own parser's reading of a byte stream, in the form of the llhttp oracle, and the allowed differences. */
import { Buffer } from 'node:buffer';
import { BodyReader, replyFraming, requestFraming } from '../../shared/net/http/http1_framing.ts';
import {
  connectionTokens,
  findHeadEnd,
  parseReplyHead,
  parseRequestHead,
  parseTrailers,
  skipEmptyLine,
} from '../../shared/net/http/http1_head.ts';
import type { BodyFraming } from '../../shared/net/http/http1_framing.ts';
import type { HeaderField, RequestHead } from '../../shared/net/http/http1_head.ts';
import type { ReadMessage, Reading } from './llhttp_oracle.ts';

const LIMITS = { maxHeaders: 2000 };

interface ReadBody {
  readonly body: string;
  readonly trailers: ReadMessage['trailers'];
  /** The end of the body in the input; null if the input ends before it. */
  readonly end: number | null;
  readonly refusal: string | null;
}

function fieldPairs(fields: readonly HeaderField[]): [string, string][] {
  return fields.map((field) => [field.line.slice(0, field.name.length), field.value]);
}

function readBody(input: Uint8Array, from: number, framing: BodyFraming): ReadBody {
  const reader = new BodyReader(framing, { collectTrailers: true });
  const piece = reader.feed(input.subarray(from));
  if (!piece.ok) return { body: '', trailers: [], end: null, refusal: piece.error.reason };
  const body = Buffer.concat(piece.value.data).toString('latin1');
  const isWhole = reader.done || reader.end().ok;
  if (!isWhole) return { body, trailers: [], end: null, refusal: null };
  const trailers = parseTrailers(reader.trailers, LIMITS);
  if (!trailers.ok) throw new Error('the body reader passed trailers that the head reader refuses');
  return { body, trailers: fieldPairs(trailers.value), end: from + piece.value.used, refusal: null };
}

function isPersistent(head: RequestHead): boolean {
  const tokens = connectionTokens(head.fields);
  return head.version === '1.1' ? !tokens.has('close') : tokens.has('keep-alive') && !tokens.has('close');
}

/** Every request that our parser reads from `input`, up to the first one that closes the connection. */
export function ourRequests(input: Uint8Array): Reading {
  const messages: ReadMessage[] = [];
  const stop = (end: Reading['end'], reason = ''): Reading => ({ messages, end, reason });
  let at = 0;
  for (;;) {
    at = skipEmptyLine(input, at);
    if (at === input.length) return stop('complete');
    const headEnd = findHeadEnd(input, at);
    if (headEnd === -1) return stop('truncated');
    const head = parseRequestHead(Buffer.from(input.subarray(at, headEnd)).toString('latin1'), LIMITS);
    if (!head.ok) return stop('refused', head.error.reason);
    const framing = requestFraming(head.value);
    if (!framing.ok) return stop('refused', framing.error.reason);
    const { body, trailers, end, refusal } = readBody(input, headEnd, framing.value);
    if (refusal !== null) return stop('refused', refusal);
    if (end === null) return stop('truncated');
    const { method, target, version, fields } = head.value;
    messages.push({ start: `${method} ${target} ${version}`, fields: fieldPairs(fields), body, trailers });
    if (!isPersistent(head.value)) return stop('complete');
    at = end;
  }
}

function noReply(end: Reading['end'], reason: string): Reading {
  return { messages: [], end, reason };
}

/** The final reply that our parser reads from `input` as the answer to `method`; skips interim replies before it. */
export function ourReply(input: Uint8Array, method: string): Reading {
  for (let at = 0; ;) {
    const headEnd = findHeadEnd(input, at);
    if (headEnd === -1) return noReply('truncated', '');
    const head = parseReplyHead(Buffer.from(input.subarray(at, headEnd)).toString('latin1'), LIMITS);
    if (!head.ok) return noReply('refused', head.error.reason);
    const framing = replyFraming(head.value, method);
    if (!framing.ok) return noReply('refused', framing.error.reason);
    const { body, trailers, end, refusal } = readBody(input, headEnd, framing.value);
    if (refusal !== null) return noReply('refused', refusal);
    if (end === null) return noReply('truncated', '');
    const { version, status, reason, fields } = head.value;
    const start = `${version} ${status} ${reason}`;
    if (status >= 200)
      return { messages: [{ start, fields: fieldPairs(fields), body, trailers }], end: 'complete', reason: '' };
    at = end;
  }
}

interface Leniency {
  /** llhttp's error codes. */
  readonly codes: readonly string[];
  /** The messages that it applies to. */
  readonly applies: (message: ReadMessage) => boolean;
  readonly why: string;
}

const isBodiless = (message: ReadMessage): boolean => /^1\.[01] (?:204|304) /.test(message.start);
const isChunked = (message: ReadMessage): boolean =>
  message.fields.some(([name]) => name.toLowerCase() === 'transfer-encoding');

/** Everything that llhttp refuses and we accept, with the reason. Any other input that only we accept is a disagreement. */
const MORE_LENIENT: readonly Leniency[] = [
  {
    codes: ['HPE_INVALID_METHOD'],
    applies: () => true,
    why: 'any token is a method (RFC 9110 section 9.1); llhttp knows a fixed list',
  },
  {
    codes: ['HPE_INVALID_URL'],
    applies: () => true,
    why: 'the target is opaque here: its grammar belongs to the target parser, and passthrough is exact',
  },
  {
    codes: ['HPE_STRICT'],
    applies: isChunked,
    why: 'a chunk extension is opaque text up to its CRLF; llhttp also reads its grammar',
  },
  {
    codes: ['HPE_CLOSED_CONNECTION'],
    applies: () => true,
    why: 'llhttp heeds Connection in a trailer section; a trailer is never merged into the head (RFC 9110 section 6.5.1)',
  },
  {
    codes: ['HPE_UNEXPECTED_CONTENT_LENGTH', 'HPE_INVALID_CONTENT_LENGTH', 'HPE_INVALID_TRANSFER_ENCODING'],
    applies: isBodiless,
    why: 'a 204 or 304 has no body regardless of its headers (RFC 9112 section 6.3)',
  },
];

function isListed(message: ReadMessage | undefined, code: string): boolean {
  return message !== undefined && MORE_LENIENT.some((one) => one.codes.includes(code) && one.applies(message));
}

/**
 * How two readings of one input disagree; null if they do not. Both must read the same messages. If one stops early, we may
 * be the stricter one, or llhttp may be for a listed reason.
 */
export function findDisagreement(ours: Reading, llhttp: Reading): string | null {
  const shared = Math.min(ours.messages.length, llhttp.messages.length);
  for (let at = 0; at < shared; at += 1) {
    const [mine, theirs] = [JSON.stringify(ours.messages[at]), JSON.stringify(llhttp.messages[at])];
    if (mine !== theirs) return `message ${at + 1} was read as ${mine}, by llhttp as ${theirs}`;
  }
  if (ours.messages.length > shared && !isListed(ours.messages[shared], llhttp.reason)) {
    return `only we accept message ${shared + 1}; llhttp: ${llhttp.end} ${llhttp.reason}`;
  }
  if (llhttp.messages.length > shared && ours.end !== 'refused') {
    return `only llhttp reads message ${shared + 1}; ours: ${ours.end} ${ours.reason}`;
  }
  return null;
}
