/** The character classes of RFC 9110 section 5.6 and RFC 9112 that a head is made of, as bits of one table. */
export const TOKEN_TEXT = 1;
/** HTAB, SP, VCHAR and obs-text: what a field value, a reason phrase or a chunk extension may hold. */
export const FIELD_TEXT = 2;
/** VCHAR and obs-text: what a request target may hold. The URI grammar is the target parser's business. */
export const TARGET_TEXT = 4;

export const HTAB = 0x09;
export const LF = 0x0a;
export const CR = 0x0d;
export const SP = 0x20;
export const COLON = 0x3a;
export const SEMICOLON = 0x3b;

const TOKEN_PUNCTUATION = "!#$%&'*+-.^_`|~";

function classesOf(code: number): number {
  const isObsText = code >= 0x80;
  const isVisible = (code > SP && code < 0x7f) || isObsText;
  const character = String.fromCharCode(code);
  const isToken = /[0-9A-Za-z]/.test(character) || TOKEN_PUNCTUATION.includes(character);
  return (
    (isToken ? TOKEN_TEXT : 0) |
    (isVisible || code === SP || code === HTAB ? FIELD_TEXT : 0) |
    (isVisible ? TARGET_TEXT : 0)
  );
}

/** Classes by latin1 code. Anything above 0xff has no class: it would be cut to another character on the wire. */
export const CHARACTER_CLASSES: Uint8Array = Uint8Array.from({ length: 256 }, (_, code) => classesOf(code));

/** True when `code`, any UTF-16 code unit or NaN, belongs to one of `classes`. */
export function isOfClass(code: number, classes: number): boolean {
  return code <= 0xff && ((CHARACTER_CLASSES[code] as number) & classes) !== 0;
}

/** The index of the first character at or after `from` that is of none of `classes`; the text's length when there is none. */
export function endOfClass(text: string, from: number, classes: number): number {
  let at = from;
  while (at < text.length && isOfClass(text.charCodeAt(at), classes)) at += 1;
  return at;
}

/** True when every character of `text` is of one of `classes`. */
export function isAllOfClass(text: string, classes: number): boolean {
  return endOfClass(text, 0, classes) === text.length;
}
