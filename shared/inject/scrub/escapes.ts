/** Bytes with one level of escapes undone, and their origin. */
export interface Unescaped {
  readonly bytes: Uint8Array;
  /** The range in the escaped bytes for the range `start` to `end` here, with whole escapes. */
  readonly origin: (start: number, end: number) => readonly [start: number, end: number];
}

/**
 * Undoes one level of the escapes that text formats use: `\n` `\"` `\/` `\x41` `\u0041` `\u{41}` `\U00000041` (JSON,
 * JavaScript, Python, C), `%41` and `%u0041` (URLs), `&amp;` `&#65;` `&#x41;` (HTML); and removes a line break, with the
 * blanks after it, between base64 characters. Any mixture is undone, so the result does not depend on which characters a
 * writer escapes. Null if there is nothing to undo. Its time depends on the bytes alone.
 */
export function undoEscapes(bytes: Uint8Array): Unescaped | null {
  const starts = new NextStarts(bytes);
  let writer: Writer | null = null;
  for (let at = starts.findNext(0); at < bytes.length;) {
    const escape = readEscape(bytes, at);
    if (escape !== null) {
      writer ??= new Writer(bytes);
      writer.put(at, escape);
    }
    at = starts.findNext(at + (escape?.length ?? 1));
  }
  return writer === null ? null : writer.finish();
}

/** The positions where an escape may begin, in order. Most text has few, and the platform's native search skips the rest. */
class NextStarts {
  readonly #bytes: Uint8Array;
  /** The next position of each start character. */
  readonly #next: number[];

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    this.#next = STARTS.map((start) => indexFrom(bytes, start, 0));
  }

  /** The first one at `from` or later; the length of the bytes if there is none. `from` never decreases. */
  findNext(from: number): number {
    let first = this.#bytes.length;
    for (let index = 0; index < STARTS.length; index += 1) {
      let place = this.#next[index] ?? 0;
      if (place < from) {
        place = indexFrom(this.#bytes, STARTS[index] ?? 0, from);
        this.#next[index] = place;
      }
      if (place < first) first = place;
    }
    return first;
  }
}

function indexFrom(bytes: Uint8Array, byte: number, from: number): number {
  const place = bytes.indexOf(byte, from);
  return place < 0 ? bytes.length : place;
}

/** An escape sequence of `length` bytes, and the bytes it encodes. */
interface Escape {
  readonly length: number;
  readonly decoded: readonly number[];
}

const [TAB, LF, CR, SPACE, HASH, PERCENT, AMPERSAND, SEMICOLON, BACKSLASH] = [
  0x09, 0x0a, 0x0d, 0x20, 0x23, 0x25, 0x26, 0x3b, 0x5c,
] as const;

const STARTS = [BACKSLASH, PERCENT, AMPERSAND, LF, CR];
const BASE64 = tableOf(codesOf('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_'));

function tableOf(bytes: readonly number[]): Uint8Array {
  const table = new Uint8Array(256);
  for (const byte of bytes) table[byte] = 1;
  return table;
}

function codesOf(text: string): number[] {
  return Array.from(text, (character) => character.charCodeAt(0));
}

function readEscape(bytes: Uint8Array, at: number): Escape | null {
  const first = bytes[at];
  if (first === BACKSLASH) return readBackslash(bytes, at);
  if (first === PERCENT) return readPercent(bytes, at);
  return first === AMPERSAND ? readReference(bytes, at) : readLineWrap(bytes, at);
}

/** The meaning of a letter after a backslash; punctuation means itself. */
const BACKSLASHED: ReadonlyMap<number, number> = new Map([
  ...codesOf('"\'/\\`').map((sign): [number, number] => [sign, sign]),
  [0x62, 0x08],
  [0x66, 0x0c],
  [0x6e, LF],
  [0x72, CR],
  [0x74, TAB],
]);

function readBackslash(bytes: Uint8Array, at: number): Escape | null {
  const kind = bytes[at + 1] ?? 0;
  const stands = BACKSLASHED.get(kind);
  if (stands !== undefined) return { length: 2, decoded: [stands] };
  if (kind === 0x78) return readByteEscape(bytes, at, 2);
  if (kind === 0x55) return readUnitEscape(bytes, at, 2, 8);
  if (kind !== 0x75) return null;
  return bytes[at + 2] === 0x7b ? readBracedEscape(bytes, at) : readUnitEscape(bytes, at, 2, 4);
}

function readPercent(bytes: Uint8Array, at: number): Escape | null {
  return (bytes[at + 1] ?? 0) === 0x75 ? readUnitEscape(bytes, at, 2, 4) : readByteEscape(bytes, at, 1);
}

/** Two hex digits after `prefix` bytes: one raw byte. */
function readByteEscape(bytes: Uint8Array, at: number, prefix: number): Escape | null {
  const value = hexValue(bytes, at + prefix, 2);
  return value < 0 ? null : { length: prefix + 2, decoded: [value] };
}

/** A UTF-16 unit or a code point in `digits` hex digits. A surrogate pair is one character in two escapes. */
function readUnitEscape(bytes: Uint8Array, at: number, prefix: number, digits: number): Escape | null {
  const value = hexValue(bytes, at + prefix, digits);
  if (value < 0 || value > LAST_CODE_POINT) return null;
  const length = prefix + digits;
  const isPair = value >= 0xd800 && value < 0xdc00 && bytes[at + length] === bytes[at];
  const low = isPair && bytes[at + length + 1] === bytes[at + 1] ? hexValue(bytes, at + length + prefix, digits) : -1;
  if (low < 0xdc00 || low > 0xdfff) return { length, decoded: utf8Of(value) };
  return { length: 2 * length, decoded: utf8Of(0x10000 + ((value - 0xd800) << 10) + (low - 0xdc00)) };
}

/** `\u{1F600}`: a code point in one to six hex digits. */
function readBracedEscape(bytes: Uint8Array, at: number): Escape | null {
  const digits = digitCount(bytes, at + 3, HEX_VALUES, 6);
  const value = hexValue(bytes, at + 3, digits);
  if (digits === 0 || bytes[at + 3 + digits] !== 0x7d || value > LAST_CODE_POINT) return null;
  return { length: digits + 4, decoded: utf8Of(value) };
}

const LAST_CODE_POINT = 0x10ffff;
const MOST_REFERENCE_DIGITS = 7;

/** A numeric or named character reference (HTML 5, section 13.5), ended by its semicolon. */
function readReference(bytes: Uint8Array, at: number): Escape | null {
  if (bytes[at + 1] !== HASH) return readNamedReference(bytes, at);
  const isHex = ((bytes[at + 2] ?? 0) | 0x20) === 0x78;
  const from = at + (isHex ? 3 : 2);
  const digits = digitCount(bytes, from, isHex ? HEX_VALUES : DECIMAL_VALUES, MOST_REFERENCE_DIGITS);
  if (digits === 0 || bytes[from + digits] !== SEMICOLON) return null;
  let value = 0;
  for (let index = from; index < from + digits; index += 1) {
    value = value * (isHex ? 16 : 10) + (HEX_VALUES[bytes[index] ?? 0] ?? 0);
  }
  return value > LAST_CODE_POINT ? null : { length: from + digits + 1 - at, decoded: utf8Of(value) };
}

/** HTML's names for ASCII punctuation: each character, then its names. */
const NAMES_OF_SIGNS = [
  '& amp AMP',
  '< lt LT',
  '> gt GT',
  '" quot QUOT',
  "' apos",
  '/ sol',
  '\\ bsol',
  '+ plus',
  '= equals',
  '_ lowbar',
  '. period',
  ': colon',
  '; semi',
  ', comma',
  '! excl',
  '# num',
  '$ dollar',
  '% percnt',
  '( lpar',
  ') rpar',
  '* ast midast',
  '? quest',
  '@ commat',
  '[ lsqb lbrack',
  '] rsqb rbrack',
  '^ Hat',
  '` grave',
  '{ lcub lbrace',
  '| verbar vert',
  '} rcub rbrace',
];
const NAMED: ReadonlyMap<string, string> = new Map(
  NAMES_OF_SIGNS.flatMap((row) => {
    const [sign = '', ...names] = row.split(' ');
    return names.map((name): [string, string] => [name, sign]);
  }),
);
const LONGEST_NAME = 7;

function readNamedReference(bytes: Uint8Array, at: number): Escape | null {
  let name = '';
  for (let index = at + 1; index <= at + 1 + LONGEST_NAME; index += 1) {
    const byte = bytes[index] ?? 0;
    if (byte !== SEMICOLON) name += String.fromCharCode(byte);
    else {
      const sign = NAMED.get(name);
      return sign === undefined ? null : { length: name.length + 2, decoded: [sign.charCodeAt(0)] };
    }
  }
  return null;
}

/** A line break within base64, as mail, PEM and YAML wrap it, with the blanks that indent the next line. */
function readLineWrap(bytes: Uint8Array, at: number): Escape | null {
  if (at === 0 || BASE64[bytes[at - 1] ?? 0] === 0) return null;
  let end = at + 1;
  while (end < bytes.length && end - at <= MOST_INDENT && isBlank(bytes[end] ?? 0)) end += 1;
  return end < bytes.length && BASE64[bytes[end] ?? 0] === 1 ? { length: end - at, decoded: [] } : null;
}

const MOST_INDENT = 64;

function isBlank(byte: number): boolean {
  return byte === SPACE || byte === TAB || byte === LF || byte === CR;
}

const HEX_VALUES = Int8Array.from({ length: 256 }, (_, byte) => '0123456789abcdef'.indexOf(lowerCaseOf(byte)));
const DECIMAL_VALUES = HEX_VALUES.map((value) => (value > 9 ? -1 : value));

function lowerCaseOf(byte: number): string {
  return String.fromCharCode(byte).toLowerCase();
}

function digitCount(bytes: Uint8Array, from: number, values: Int8Array, most: number): number {
  let count = 0;
  while (count < most && from + count < bytes.length && (values[bytes[from + count] ?? 0] ?? -1) >= 0) count += 1;
  return count;
}

/** The value of `digits` hex digits; -1 if they are missing. */
function hexValue(bytes: Uint8Array, from: number, digits: number): number {
  if (from + digits > bytes.length) return -1;
  let value = 0;
  for (let index = from; index < from + digits; index += 1) {
    const digit = HEX_VALUES[bytes[index] ?? 0] ?? -1;
    if (digit < 0) return -1;
    value = value * 16 + digit;
  }
  return value;
}

/** UTF-8 of a code point; a lone surrogate becomes three bytes, which no text contains. */
function utf8Of(point: number): readonly number[] {
  if (point < 0x80) return [point];
  const last = 0x80 | (point & 0x3f);
  if (point < 0x800) return [0xc0 | (point >> 6), last];
  const third = 0x80 | ((point >> 6) & 0x3f);
  if (point < 0x10000) return [0xe0 | (point >> 12), third, last];
  return [0xf0 | (point >> 18), 0x80 | ((point >> 12) & 0x3f), third, last];
}

/** Collects the text between escapes and the decoded escapes. An escape is never shorter than what it encodes. */
class Writer {
  readonly #source: Uint8Array;
  readonly #bytes: Uint8Array;
  /** For each run: where it begins here, where it begins in the source, and where that part of the source ends. */
  readonly #runs: number[] = [];
  #length = 0;
  #copied = 0;

  constructor(source: Uint8Array) {
    this.#source = source;
    this.#bytes = new Uint8Array(source.length);
  }

  put(at: number, { length, decoded: stands }: Escape): void {
    this.#copyTo(at);
    this.#runs.push(this.#length, at, at + length);
    for (const byte of stands) {
      this.#bytes[this.#length] = byte;
      this.#length += 1;
    }
    this.#copied = at + length;
  }

  finish(): Unescaped {
    this.#copyTo(this.#source.length);
    const runs = this.#runs;
    const bytes = this.#bytes.subarray(0, this.#length);
    return { bytes, origin: (start, end) => [originOf(runs, start)[0], originOf(runs, end - 1)[1]] };
  }

  #copyTo(end: number): void {
    if (end === this.#copied) return;
    this.#runs.push(this.#length, this.#copied, -1);
    if (end - this.#copied > SHORT_RUN) this.#bytes.set(this.#source.subarray(this.#copied, end), this.#length);
    else copyBytes(this.#source, this.#copied, end, this.#bytes, this.#length);
    this.#length += end - this.#copied;
    this.#copied = end;
  }
}

/** Up to this length a loop is faster than a call. */
const SHORT_RUN = 64;

function copyBytes(source: Uint8Array, from: number, end: number, target: Uint8Array, to: number): void {
  for (let index = from; index < end; index += 1) target[to + index - from] = source[index] ?? 0;
}

/** The origin of the byte at `index`: the escape that encodes it, or the byte itself. */
function originOf(runs: readonly number[], index: number): readonly [start: number, end: number] {
  let low = 0;
  for (let high = runs.length / 3; high - low > 1;) {
    const middle = (low + high) >> 1;
    if ((runs[middle * 3] ?? 0) <= index) low = middle;
    else high = middle;
  }
  const [begin = 0, source = 0, end = -1] = runs.slice(low * 3, low * 3 + 3);
  return end >= 0 ? [source, end] : [source + index - begin, source + index - begin + 1];
}
