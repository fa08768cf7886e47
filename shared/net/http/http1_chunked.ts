import { COLON, CR, FIELD_TEXT, LF, SEMICOLON, TOKEN_TEXT } from './http1_characters.ts';

/** The state of a {@link ChunkedDecoder}: what the next byte must be. */
type State =
  | 'size_start'
  | 'size'
  | 'extension'
  | 'size_lf'
  | 'data'
  | 'data_cr'
  | 'data_lf'
  | 'trailer_start'
  | 'trailer_name'
  | 'trailer_value'
  | 'trailer_lf'
  | 'end_lf'
  | 'done';

/** The longest chunk-size line with its extensions, and the longest trailer section, in bytes. */
export const MAX_SIZE_LINE_BYTES = 16 * 1024;
export const MAX_TRAILER_BYTES = 64 * 1024;
const MAX_SIZE_DIGITS = 16;

/** A recipient that merges these trailers into the head would end the message elsewhere (RFC 9110 section 6.5.1). */
const FRAMING_NAMES: ReadonlySet<string> = new Set(['content-length', 'transfer-encoding']);

function hexDigit(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  const lower = byte | 0x20;
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1;
}

/**
 * Reads a chunked body (RFC 9112 section 7.1) in pieces of any size. Strict where parsers differ, because differences allow
 * request smuggling: each line ends with CRLF, a size is bare hexadecimal digits followed only by an extension, and a
 * trailer line has the form of a header line.
 */
export class ChunkedDecoder {
  /** Why the body is refused; null if it is not. */
  problem: string | null = null;
  /** The trailer lines, each with its CRLF, if they are collected. */
  trailers = '';
  readonly #collectTrailers: boolean;
  #state: State = 'size_start';
  #remaining = 0;
  #digits = 0;
  #lineBytes = 0;
  #trailerBytes = 0;
  #trailerName = '';

  constructor(collectTrailers: boolean) {
    this.#collectTrailers = collectTrailers;
  }

  get done(): boolean {
    return this.#state === 'done';
  }

  /** Adds the payload in `bytes` to `data` as subarrays. Returns how many bytes belong to the body, up to a problem. */
  feed(bytes: Uint8Array, data: Uint8Array[]): number {
    let at = 0;
    while (at < bytes.length && this.#state !== 'done' && this.problem === null) {
      if (this.#state === 'data') {
        const end = Math.min(bytes.length, at + this.#remaining);
        data.push(bytes.subarray(at, end));
        this.#remaining -= end - at;
        if (this.#remaining === 0) this.#state = 'data_cr';
        at = end;
      } else {
        this.#step(bytes[at] ?? 0);
        at += 1;
      }
    }
    return at;
  }

  #step(byte: number): void {
    switch (this.#state) {
      case 'size_start':
      case 'size':
        return this.#sizeByte(byte);
      case 'extension':
        return this.#extensionByte(byte);
      case 'size_lf':
        return this.#expect(byte, LF, this.#remaining === 0 ? 'trailer_start' : 'data');
      case 'data_cr':
        return this.#expect(byte, CR, 'data_lf');
      case 'data_lf':
        return this.#expect(byte, LF, 'size_start');
      case 'end_lf':
        return this.#expect(byte, LF, 'done');
      case 'trailer_start':
      case 'trailer_name':
      case 'trailer_value':
      case 'trailer_lf':
        return this.#trailerByte(byte);
      case 'data':
      case 'done':
        throw new Error(`no single byte is read in state ${this.#state}`);
    }
  }

  #expect(byte: number, expected: number, next: State): void {
    if (byte === expected) this.#state = next;
    else this.problem = 'a chunk line or the data of a chunk does not end with CRLF where it must';
  }

  #sizeByte(byte: number): void {
    if (this.#state === 'size_start') {
      this.#remaining = 0;
      this.#digits = 0;
      this.#lineBytes = 0;
    }
    const digit = hexDigit(byte);
    if (digit >= 0) return this.#sizeDigit(digit);
    if (this.#state === 'size' && byte === CR) this.#state = 'size_lf';
    else if (this.#state === 'size' && byte === SEMICOLON) this.#state = 'extension';
    else this.problem = 'a chunk size must be hexadecimal digits, then CRLF or ";" and an extension';
  }

  #sizeDigit(digit: number): void {
    this.#state = 'size';
    this.#digits += 1;
    this.#remaining = this.#remaining * 16 + digit;
    if (this.#digits > MAX_SIZE_DIGITS || this.#remaining > Number.MAX_SAFE_INTEGER) {
      this.problem = 'a chunk size is too large';
    }
  }

  #extensionByte(byte: number): void {
    this.#lineBytes += 1;
    if (byte === CR) this.#state = 'size_lf';
    else if (FIELD_TEXT[byte] !== 1) this.problem = 'a chunk extension holds a control character';
    else if (this.#lineBytes > MAX_SIZE_LINE_BYTES) this.problem = 'a chunk extension is too long';
  }

  #trailerByte(byte: number): void {
    if (this.#state === 'trailer_start' && byte === CR) {
      this.#state = 'end_lf';
      return;
    }
    this.#trailerBytes += 1;
    const next = this.#nextTrailerState(byte);
    if (next === null) this.problem = 'a trailer line must read "Name: value" and end with CRLF';
    else if (this.#trailerBytes > MAX_TRAILER_BYTES) this.problem = 'the trailer section is too long';
    else this.#enterTrailerState(next, String.fromCharCode(byte));
  }

  #nextTrailerState(byte: number): State | null {
    if (this.#state === 'trailer_lf') return byte === LF ? 'trailer_start' : null;
    if (this.#state === 'trailer_value') {
      if (byte === CR) return 'trailer_lf';
      return FIELD_TEXT[byte] === 1 ? 'trailer_value' : null;
    }
    if (this.#state === 'trailer_name' && byte === COLON) return 'trailer_value';
    return TOKEN_TEXT[byte] === 1 ? 'trailer_name' : null;
  }

  #enterTrailerState(next: State, character: string): void {
    if (this.#state === 'trailer_start') this.#trailerName = '';
    if (next === 'trailer_name') this.#trailerName += character;
    else if (this.#state === 'trailer_name' && FRAMING_NAMES.has(this.#trailerName.toLowerCase())) {
      this.problem = 'a trailer may not be Content-Length or Transfer-Encoding';
    }
    this.#state = next;
    if (this.#collectTrailers) this.trailers += character;
  }
}
