import { byteTextOf, latin1Bytes, latin1Text, toWellFormed } from '../byte_text.ts';
import { undoEscapes } from './escapes.ts';

/**
 * The spellings of a secret without escapes: each row gives byte texts (one latin1 character per byte). Escapes and line
 * wraps are undone before the search (`escapes.ts`), in any mixture, so they need no row here.
 */
const DENSE: Readonly<Record<string, (text: string) => readonly string[]>> = {
  'as it is': (text) => withoutEscapes(byteTextOf(text)),
  'spaces as plus signs': (text) => [byteTextOf(text).replaceAll(' ', '+')],
  base64: (text) => base64Alignments(byteTextOf(text)),
  'base64 for URLs': (text) => base64Alignments(byteTextOf(text)).map(base64UrlOf),
};

/** The same for spellings that use two bytes for one. */
const SPARSE: typeof DENSE = {
  hex: (text) => [hexOf(byteTextOf(text)), hexOf(byteTextOf(text)).toUpperCase()],
  'UTF-16': (text) => [utf16Of(text, 0), utf16Of(text, 1)],
};

/** Every spelling of a secret that a reply is searched for, by its number of bytes per byte of the secret. */
export function encodingsOf(secret: string): Record<'dense' | 'sparse', string[]> {
  const text = toWellFormed(secret);
  const listSpellings = (rows: typeof DENSE): string[] => [
    ...new Set(Object.values(rows).flatMap((spell) => spell(text))),
  ];
  return { dense: listSpellings(DENSE), sparse: listSpellings(SPARSE) };
}

/** The bytes, and their form after a search has undone what looks like escapes and line wraps in the secret itself. */
function withoutEscapes(bytes: string): string[] {
  const forms = [bytes];
  for (let form = undoEscapes(latin1Bytes(bytes)); form !== null; form = undoEscapes(form.bytes)) {
    forms.push(latin1Text(form.bytes));
  }
  return forms;
}

/** The base64 characters that are the same for every alignment of `bytes` in groups of three, without those that also have bits of a neighbour. */
function base64Alignments(bytes: string): string[] {
  return [0, 1, 2].map((offset) => {
    const encoded = btoa('\0'.repeat(offset) + bytes);
    return encoded.slice(Math.ceil((offset * 8) / 6), Math.floor(((offset + bytes.length) * 8) / 6));
  });
}

function base64UrlOf(encoded: string): string {
  return encoded.replaceAll('+', '-').replaceAll('/', '_');
}

function hexOf(bytes: string): string {
  let hex = '';
  for (const byte of bytes) hex += byte.charCodeAt(0).toString(16).padStart(2, '0');
  return hex;
}

/** `highFirst` 1: big-endian. */
function utf16Of(text: string, highFirst: 0 | 1): string {
  let bytes = '';
  for (let index = 0; index < text.length; index += 1) {
    const unit = text.charCodeAt(index);
    const [low, high] = [String.fromCharCode(unit & 0xff), String.fromCharCode(unit >> 8)];
    bytes += highFirst === 1 ? high + low : low + high;
  }
  return bytes;
}
