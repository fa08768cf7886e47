import { err, ok } from '../../model/result.ts';
import type { Result } from '../../model/result.ts';
import {
  COLON,
  CR,
  FIELD_TEXT,
  LF,
  SP,
  TARGET_TEXT,
  TOKEN_TEXT,
  endOfClass,
  isAllOfClass,
  isLineEnd,
  isWhitespace,
} from './http1_characters.ts';
import {
  endProblem,
  fieldProblem,
  incompleteHead,
  startLineError,
  tooManyHeaders,
  type HeadProblemReason,
} from './http1_head_problems.ts';
import { hashNameCharacter, lowerCaseName } from './http1_field_names.ts';
import type { Problem } from '../../model/problem.ts';

export type { HeadProblemReason } from './http1_head_problems.ts';

/**
 * A strict parser and an exact writer of HTTP/1.1 heads (RFC 9112 sections 2 to 5), over latin1 text.
 *
 * Every legal head survives a round trip byte for byte: the case and order of names, duplicates, the whitespace around a
 * value, obs-text, any method token. A head that two parsers could read as two different messages is refused.
 */
export interface HeaderField {
  /** In lower case. */
  readonly name: string;
  /** The header line as received or as it will be sent, latin1, without its CRLF. */
  readonly line: string;
  /** Without the whitespace around it, latin1. */
  readonly value: string;
}

export type HttpVersion = '1.0' | '1.1' | '2';

export interface RequestHead {
  readonly method: string;
  readonly target: string;
  readonly version: HttpVersion;
  readonly fields: readonly HeaderField[];
  /** HTTP/2: the names of the pseudo-header fields, in the client's order. */
  readonly pseudo?: readonly string[];
  /** HTTP/2: the fields that no hop may put into a compression table, by name. */
  readonly neverIndexed?: readonly string[];
}

export interface ReplyHead {
  readonly version: HttpVersion;
  readonly status: number;
  readonly reason: string;
  /** The status line as received or as it will be sent, without its CRLF. */
  readonly startLine: string;
  readonly fields: readonly HeaderField[];
  /** See {@link RequestHead.neverIndexed}. */
  readonly neverIndexed?: readonly string[];
}

interface HeadLimits {
  readonly maxHeaders: number;
}

/** Thrown if our own code would write a character that breaks a head: a bug, never a refusal. */
export class IllegalHeadTextError extends Error {
  override readonly name = 'IllegalHeadTextError';
  readonly code = 'illegal_head_text';
}

/**
 * The index just after the first CRLF CRLF whose first byte is at or after `from`; -1 if there is none yet. To continue with
 * more bytes, start three bytes before the old end.
 */
export function findHeadEnd(bytes: Uint8Array, from: number): number {
  // `last` is a possible position of the fourth byte of CRLF CRLF: most bytes are neither CR nor LF, so most steps skip
  // four.
  for (let last = from + 3; last < bytes.length;) {
    const byte = bytes[last];
    if (byte === LF) {
      if (bytes[last - 1] === CR && bytes[last - 2] === LF && bytes[last - 3] === CR) return last + 1;
      last += 2;
    } else {
      last += byte === CR ? 1 : 4;
    }
  }
  return -1;
}

/** `from`, or the index after one empty line there, which a server ignores before a request line (RFC 9112 section 2.2). */
export function skipEmptyLine(bytes: Uint8Array, from: number): number {
  return bytes[from] === CR && bytes[from + 1] === LF ? from + 2 : from;
}

/** Parses one whole request head. `text` is latin1 and ends with the CRLF CRLF that {@link findHeadEnd} found. */
export function parseRequestHead(text: string, limits: HeadLimits): Result<RequestHead, Problem<HeadProblemReason>> {
  if (!text.endsWith(HEAD_END)) return err(incompleteHead());
  const methodEnd = endOfClass(text, 0, TOKEN_TEXT);
  const targetEnd = endOfClass(text, methodEnd + 1, TARGET_TEXT);
  const hasParts = methodEnd > 0 && text.charCodeAt(methodEnd) === SP && targetEnd > methodEnd + 1;
  const version = hasParts && text.charCodeAt(targetEnd) === SP ? versionAt(text, targetEnd + 1) : null;
  const lineEnd = targetEnd + 1 + VERSION_LENGTH;
  if (version === null || !isLineEnd(text, lineEnd)) return err(startLineError(text, 'invalid_request_line'));
  const scanner = new FieldScanner(text, lineEnd + 2, limits.maxHeaders);
  const fields = scanner.readAll();
  if (scanner.error !== null) return err(scanner.error);
  return ok({ method: text.slice(0, methodEnd), target: text.slice(methodEnd + 1, targetEnd), version, fields });
}

/**
 * Parses one whole reply head. `text` is latin1 and ends with CRLF CRLF. A status line without a reason phrase may also lack
 * the space before it, as many servers send it.
 */
export function parseReplyHead(text: string, limits: HeadLimits): Result<ReplyHead, Problem<HeadProblemReason>> {
  if (!text.endsWith(HEAD_END)) return err(incompleteHead());
  const version = versionAt(text, 0);
  const status = version !== null && text.charCodeAt(VERSION_LENGTH) === SP ? statusAt(text, VERSION_LENGTH + 1) : 0;
  const statusEnd = VERSION_LENGTH + 4;
  const hasReason = text.charCodeAt(statusEnd) === SP;
  const lineEnd = hasReason ? endOfClass(text, statusEnd + 1, FIELD_TEXT) : statusEnd;
  if (version === null || status === 0 || !isLineEnd(text, lineEnd)) {
    return err(startLineError(text, 'invalid_status_line'));
  }
  const scanner = new FieldScanner(text, lineEnd + 2, limits.maxHeaders);
  const fields = scanner.readAll();
  if (scanner.error !== null) return err(scanner.error);
  const reason = hasReason ? text.slice(statusEnd + 1, lineEnd) : '';
  return ok({ version, status, reason, startLine: text.slice(0, lineEnd), fields });
}

/** Parses a trailer section as header fields: header lines, each with its CRLF, without the empty line. */
export function parseTrailers(
  text: string,
  limits: HeadLimits,
): Result<readonly HeaderField[], Problem<HeadProblemReason>> {
  const scanner = new FieldScanner(`${text}\r\n`, 0, limits.maxHeaders);
  if (text !== '' && !text.endsWith('\r\n')) return err(incompleteHead());
  const fields = scanner.readAll();
  return scanner.error === null ? ok(fields) : err(scanner.error);
}

/** Our own header, with its name as it will be sent. Throws {@link IllegalHeadTextError} on an illegal character. */
export function headerField(name: string, value: string): HeaderField {
  if (name === '' || !isAllOfClass(name, TOKEN_TEXT)) {
    throw new IllegalHeadTextError('a header name must be one or more token characters');
  }
  if (!isAllOfClass(value, FIELD_TEXT)) {
    throw new IllegalHeadTextError(`the value of ${name} must be latin1 text without control characters`);
  }
  return { name: name.toLowerCase(), line: `${name}: ${value}`, value: trimWhitespace(value, 0, value.length) };
}

/**
 * The head as latin1 text with its final CRLF CRLF; each field is written as its `line`. Throws {@link IllegalHeadTextError}
 * if the method or the target could break the request line.
 */
export function formatRequestHead(head: RequestHead): string {
  const { method, target } = head;
  if (method === '' || !isAllOfClass(method, TOKEN_TEXT)) {
    throw new IllegalHeadTextError('a method must be one or more token characters');
  }
  if (target === '' || !isAllOfClass(target, TARGET_TEXT)) {
    throw new IllegalHeadTextError('a request target must be latin1 text without spaces and control characters');
  }
  return `${method} ${target} HTTP/${head.version}\r\n${formatFields(head.fields)}`;
}

/** The head as latin1 text with its final CRLF CRLF, from `startLine` and each field's `line`. */
export function formatReplyHead(head: ReplyHead): string {
  if (!isAllOfClass(head.startLine, FIELD_TEXT)) {
    throw new IllegalHeadTextError('a status line must be latin1 text without control characters');
  }
  return `${head.startLine}\r\n${formatFields(head.fields)}`;
}

/** Every value of the header `lowerName`, in order. */
export function fieldValues(fields: readonly HeaderField[], lowerName: string): string[] {
  const values: string[] = [];
  for (const field of fields) if (field.name === lowerName) values.push(field.value);
  return values;
}

/** The lower-case options of all Connection headers (RFC 9110 section 7.6.1): headers that a proxy must not forward. */
export function connectionTokens(fields: readonly HeaderField[]): ReadonlySet<string> {
  const tokens = new Set<string>();
  for (const field of fields) {
    if (field.name !== 'connection') continue;
    for (const part of field.value.split(',')) {
      const token = trimWhitespace(part, 0, part.length).toLowerCase();
      if (token !== '') tokens.add(token);
    }
  }
  return tokens;
}

const HEAD_END = '\r\n\r\n';
const VERSION_LENGTH = 'HTTP/1.1'.length;

function versionAt(text: string, at: number): HttpVersion | null {
  if (text.startsWith('HTTP/1.1', at)) return '1.1';
  return text.startsWith('HTTP/1.0', at) ? '1.0' : null;
}

/** The three digits at `at` as a status from 100 to 999, or 0. */
function statusAt(text: string, at: number): number {
  let status = 0;
  for (let digitAt = at; digitAt < at + 3; digitAt += 1) {
    const digit = text.charCodeAt(digitAt) - 0x30;
    if (!(digit >= 0 && digit <= 9)) return 0;
    status = status * 10 + digit;
  }
  return status >= 100 ? status : 0;
}

/** The part of the text without SP and HTAB around it. */
export function trimWhitespace(text: string, start: number, end: number): string {
  let from = start;
  let to = end;
  while (from < to && isWhitespace(text.charCodeAt(from))) from += 1;
  while (to > from && isWhitespace(text.charCodeAt(to - 1))) to -= 1;
  return text.slice(from, to);
}

function formatFields(fields: readonly HeaderField[]): string {
  let text = '';
  for (const field of fields) text += field.line + '\r\n';
  return text + '\r\n';
}

/** Parses header lines up to the empty line that ends the text. After `readAll`, `error` says why it stopped early. */
class FieldScanner {
  error: Problem<HeadProblemReason> | null = null;
  readonly #text: string;
  readonly #maxHeaders: number;
  #at: number;

  constructor(text: string, at: number, maxHeaders: number) {
    this.#text = text;
    this.#at = at;
    this.#maxHeaders = maxHeaders;
  }

  readAll(): HeaderField[] {
    const fields: HeaderField[] = [];
    while (this.#text.charCodeAt(this.#at) !== CR) {
      const field = this.#readField();
      if (field === null) {
        this.error = fieldProblem(this.#text, this.#at, fields.length + 1);
        return fields;
      }
      if (fields.length === this.#maxHeaders) {
        this.error = tooManyHeaders(this.#maxHeaders);
        return fields;
      }
      fields.push(field);
    }
    if (this.#at + 2 !== this.#text.length) this.error = endProblem(this.#text, this.#at);
    return fields;
  }

  /** Parses the header line here and moves past it; null, without moving, if it is illegal. */
  #readField(): HeaderField | null {
    const text = this.#text;
    const start = this.#at;
    let at = start;
    let hash = 0;
    let code = text.charCodeAt(at);
    while (TOKEN_TEXT[code] === 1) {
      hash = hashNameCharacter(hash, code);
      at += 1;
      code = text.charCodeAt(at);
    }
    if (code !== COLON || at === start) return null;
    const lineEnd = endOfClass(text, at + 1, FIELD_TEXT);
    if (!isLineEnd(text, lineEnd)) return null;
    this.#at = lineEnd + 2;
    return {
      name: lowerCaseName(text, start, at, hash),
      line: text.slice(start, lineEnd),
      value: trimWhitespace(text, at + 1, lineEnd),
    };
  }
}
