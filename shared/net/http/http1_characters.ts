/**
 * The character classes of a head (RFC 9110 section 5.6, RFC 9112), each as a table by latin1 code, where 1 means that the
 * character belongs to the class. A code above 0xff belongs to none, because it would become another character on the wire.
 */
type CharacterClass = Uint8Array;

const HTAB = 0x09;
export const LF = 0x0a;
export const CR = 0x0d;
export const SP = 0x20;
export const COLON = 0x3a;
export const SEMICOLON = 0x3b;

const TOKEN_PUNCTUATION = "!#$%&'*+-.^_`|~";

function classOf(belongs: (code: number) => boolean): CharacterClass {
  return Uint8Array.from({ length: 256 }, (_, code) => (belongs(code) ? 1 : 0));
}

function isVisible(code: number): boolean {
  return code > SP && code !== 0x7f;
}

/** Names and methods. */
export const TOKEN_TEXT: CharacterClass = classOf((code) => {
  const character = String.fromCharCode(code);
  return /[0-9A-Za-z]/.test(character) || TOKEN_PUNCTUATION.includes(character);
});

/** HTAB, SP, VCHAR and obs-text: the characters of a field value, a reason phrase or a chunk extension. */
export const FIELD_TEXT: CharacterClass = classOf((code) => isVisible(code) || isWhitespace(code));

/** VCHAR and obs-text: the characters of a request target. The target parser checks the URI grammar. */
export const TARGET_TEXT: CharacterClass = classOf(isVisible);

/**
 * The index of the first character at or after `from` that is not of the class, or the end of the text. CR and LF
 * belong to no class.
 */
export function endOfClass(text: string, from: number, characters: CharacterClass): number {
  let at = from;
  while (characters[text.charCodeAt(at)] === 1) at += 1;
  return at;
}

/** True if `text` is empty or all its characters are of the class. */
export function isAllOfClass(text: string, characters: CharacterClass): boolean {
  for (let at = 0; at < text.length; at += 1) if (characters[text.charCodeAt(at)] !== 1) return false;
  return true;
}

/** SP or HTAB, the only whitespace in a head. */
export function isWhitespace(code: number): boolean {
  return code === SP || code === HTAB;
}

/** True if there is a CRLF at `at`. */
export function isLineEnd(text: string, at: number): boolean {
  return text.charCodeAt(at) === CR && text.charCodeAt(at + 1) === LF;
}
