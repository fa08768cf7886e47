import { Buffer } from 'node:buffer';
import { undoEscapes } from '../shared/inject/scrub/escapes.ts';
import type { Unescaped } from '../shared/inject/scrub/escapes.ts';

const MASK = 0x2a;
const LF = 0x0a;
const CR = 0x0d;
const MOST_LEVELS = 4;
const LEAST_BYTES = 8;

/** Every spelling of a secret of ASCII characters that is the whole of it, made without the encodings of the scrubber. */
export function wholeSpellings(secret: string): readonly Buffer[] {
  const bytes = Buffer.from(secret, 'latin1');
  const hex = bytes.toString('hex');
  const spellings: Buffer[] = [bytes, Buffer.from(hex), Buffer.from(hex.toUpperCase())];
  spellings.push(Buffer.from(secret, 'utf16le'), Buffer.from(secret, 'utf16le').swap16());
  for (const offset of [0, 1, 2]) spellings.push(...alignedBase64(bytes, offset));
  for (const { bytes: unescaped } of levelsOf(bytes)) spellings.push(Buffer.from(unescaped));
  return spellings.filter(({ length }) => length >= LEAST_BYTES);
}

/** Base64 of the bytes after `offset` others: the characters that are the same whatever stands around them. */
function alignedBase64(bytes: Buffer, offset: number): Buffer[] {
  const [some = '', other = ''] = [0x00, 0xff].map((filler) =>
    Buffer.concat([Buffer.alloc(offset, filler), bytes, Buffer.alloc(1, filler)]).toString('base64url'),
  );
  const kept = Array.from(some, (character, at) => (character === other[at] ? character : ' '))
    .join('')
    .trim();
  return [Buffer.from(kept), Buffer.from(kept.replaceAll('-', '+').replaceAll('_', '/'))];
}

/** `bytes` with its escapes undone once, twice and so on. */
function levelsOf(bytes: Uint8Array): Unescaped[] {
  const levels: Unescaped[] = [];
  for (let level = undoEscapes(bytes); level !== null && levels.length < MOST_LEVELS; level = undoEscapes(level.bytes))
    levels.push(level);
  return levels;
}

/** Whether `output` is `source` with nothing changed but whole matches, each masked by as many `*`. */
export function masksWholeMatches(source: Buffer, output: Buffer, spellings: readonly Buffer[]): boolean {
  if (source.equals(output)) return true;
  if (source.length !== output.length) return false;
  for (let at = 0; at < source.length; at += 1) {
    if (source[at] === output[at]) continue;
    const [start, end] = [startOfMask(output, at), endOfMask(output, at)];
    const changed = Array.from(source.subarray(start, end), (byte, index) => byte !== output[start + index]);
    if (changed.some((isChanged, index) => isChanged && output[start + index] !== MASK)) return false;
    if (end === at || !isCovered(source.subarray(start, end), changed, spellings)) return false;
    at = end - 1;
  }
  return true;
}

/** Line breaks stay as they are, in a mask and at its ends. */
function startOfMask(output: Buffer, at: number): number {
  let start = at;
  while (start > 0 && isMasked(output[start - 1])) start -= 1;
  return start;
}

function endOfMask(output: Buffer, at: number): number {
  let end = at;
  while (end < output.length && isMasked(output[end])) end += 1;
  return end;
}

function isMasked(byte: number | undefined): boolean {
  return byte === MASK || byte === LF || byte === CR;
}

/**
 * Whether whole matches make up all of `stretch` that was `changed`. What stands beside a match can change how it reads (`&` before `#38;`), and
 * the scrubber sees a stream in pieces, so the stretch is also read from each of its places and up to each of them.
 */
function isCovered(stretch: Buffer, changed: readonly boolean[], spellings: readonly Buffer[]): boolean {
  const covered = Uint8Array.from(changed, (isChanged) => (isChanged ? 0 : 1));
  cover(covered, stretch, 0, spellings);
  for (let cut = 1; cut < stretch.length && covered.includes(0); cut += 1) {
    cover(covered, stretch.subarray(cut), cut, spellings);
    cover(covered, stretch.subarray(0, cut), 0, spellings);
  }
  return !covered.includes(0);
}

/** Marks what matches hold in `bytes`, which stand at `from`. */
function cover(covered: Uint8Array, bytes: Buffer, from: number, spellings: readonly Buffer[]): void {
  const levels = levelsOf(bytes);
  for (let depth = 0; depth <= levels.length; depth += 1) {
    const text = depth === 0 ? bytes : Buffer.from(levels[depth - 1]?.bytes ?? []);
    for (const spelling of spellings) {
      for (let place = text.indexOf(spelling); place >= 0; place = text.indexOf(spelling, place + 1)) {
        let range: readonly [number, number] = [place, place + spelling.length];
        for (const { origin } of levels.slice(0, depth).toReversed()) range = origin(...range);
        covered.fill(1, from + range[0], from + range[1]);
      }
    }
  }
}
