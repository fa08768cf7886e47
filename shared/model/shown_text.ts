/**
 * Decides which characters may be shown to a person. All code that displays or accepts untrusted text uses it: terminals,
 * pages, approval summaries, tool definitions, event texts, names and descriptions.
 */

/** The most kinds of hidden characters that are reported for one text. */
const MAX_KINDS = 8;
/** The most combining marks on one letter; more would cover the lines around it. */
const MAX_MARKS = 6;

/**
 * Characters that are invisible, control a terminal, change how others are shown, or look like a space: controls (C0, C1),
 * format and direction characters, tags, fillers, surrogates, private and unassigned characters, line and paragraph
 * separators, every space but the ordinary one, and three symbols that are drawn blank.
 */
const HIDDEN = /(?! )[\p{C}\p{Z}\p{Default_Ignorable_Code_Point}\u{2800}\u{fffc}\u{1d159}]/u;
/** Text that needs no inspection. */
const PLAIN = /^[\x20-\x7e]*$/;
const STEERING = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]/u;
const PICTOGRAPH = /[\p{Extended_Pictographic}\p{Emoji_Modifier}]/u;
const KEYCAP = /[#*0-9]/;
const MARK = /[\p{Mn}\p{Me}]/u;
const WIDE_SCRIPT =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\u3000-\u303f\uff01-\uff5e]/u;
const JOINERS = new Set(['\u200c', '\u200d']);
const PRESENTATION = new Set(['\ufe0e', '\ufe0f']);
/** Scripts whose ordinary spelling uses joiners. */
const JOINED_SCRIPT =
  /[\p{Script=Arabic}\p{Script=Devanagari}\p{Script=Bengali}\p{Script=Gurmukhi}\p{Script=Gujarati}\p{Script=Oriya}\p{Script=Tamil}\p{Script=Telugu}\p{Script=Kannada}\p{Script=Malayalam}\p{Script=Sinhala}\p{Script=Khmer}\p{Script=Mongolian}]/u;

/** How to display a text. */
interface ShownForm {
  /** True if line breaks and tabs may stay. */
  readonly keepsLines: boolean;
  /** The replacement for a character that may not be shown. */
  readonly write: (character: string) => string;
}

/** `U+200B`. */
export function codePointName(character: string): string {
  return `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`;
}

/** The text with each hidden character replaced according to the form. */
export function replaceHidden(text: string, { keepsLines, write }: ShownForm): string {
  if (PLAIN.test(text)) return text;
  const characters = Array.from(text);
  return characters
    .map((character, index) => (isHidden(characters, index, keepsLines) ? write(character) : character))
    .join('');
}

/** The text with each hidden character written as `<U+200B>`; line breaks and tabs stay. */
export function showHidden(text: string): string {
  return replaceHidden(text, { keepsLines: true, write: markOf });
}

/**
 * The text as one line: line breaks and tabs become spaces, and each hidden character is written as `<U+200B>`. A text
 * longer than `mostCharacters` is truncated and states how many characters are missing.
 */
export function toShownLine(text: string, mostCharacters: number): string {
  const line = text.replaceAll(/\r\n|[\n\t]/g, ' ');
  return cutShownText(replaceHidden(line, { keepsLines: false, write: markOf }), mostCharacters);
}

/** At most so many characters; the last ones state how many are missing. */
export function cutShownText(text: string, mostCharacters: number): string {
  if (text.length <= mostCharacters) return text;
  const room = mostCharacters - ` … ${text.length} more characters`.length;
  const kept = withoutHalf(text.slice(0, Math.max(0, room)));
  return `${kept} … ${text.length - kept.length} more characters`.slice(0, mostCharacters);
}

/** JSON with the hidden characters of its texts escaped: the same value, but safe for a terminal. */
export function toShownJson(json: string): string {
  return replaceHidden(json, { keepsLines: true, write: jsonEscape });
}

/**
 * The characters of a text that are invisible or reorder others, as `U+200B`, each once and at most {@link MAX_KINDS}: a
 * text for people can hide instructions to a model, and a name can imitate another. Characters of ordinary writing do not
 * count: line breaks, emoji sequences, and joiners in scripts that use them.
 */
export function listHiddenCharacters(text: string, keepsLines = true): readonly string[] {
  const kinds = new Set<string>();
  const characters = Array.from(text);
  for (const [index, character] of characters.entries()) {
    if (!isHidden(characters, index, keepsLines)) continue;
    kinds.add(codePointName(character));
    if (kinds.size >= MAX_KINDS) break;
  }
  return [...kinds];
}

/**
 * The first character, as `U+202E`, that forbids storing a text, because it breaks a line, controls a terminal, or reverses
 * the text direction. Null if there is none. Other hidden characters may be stored, and are escaped for display.
 */
export function findSteering(text: string, keepsLines: boolean): string | null {
  const found = STEERING.exec(keepsLines ? text.replaceAll(/[\t\n\u2028\u2029]/g, ' ') : text);
  return found === null ? null : codePointName(found[0]);
}

function isHidden(characters: readonly string[], index: number, keepsLines: boolean): boolean {
  const character = characters[index] ?? '';
  if (MARK.test(character) && !PRESENTATION.has(character)) return isHiddenMark(characters, index);
  if (!HIDDEN.test(character)) return false;
  const before = characters[index - 1] ?? '';
  const after = characters[index + 1] ?? '';
  if (character === '\n' || character === '\t') return !keepsLines;
  // Alone it moves a terminal's cursor to the start of the line, to overwrite it.
  if (character === '\r') return !(keepsLines && after === '\n');
  if (character === '\u3000') return !(WIDE_SCRIPT.test(before) || WIDE_SCRIPT.test(after));
  // One after each symbol: more of them can encode invisible data.
  if (PRESENTATION.has(character)) return !(PICTOGRAPH.test(before) || (KEYCAP.test(before) && after === '\u20e3'));
  if (!JOINERS.has(character)) return true;
  const joined = PRESENTATION.has(before) ? (characters[index - 2] ?? '') : before;
  if (character === '\u200d' && PICTOGRAPH.test(joined) && PICTOGRAPH.test(after)) return false;
  return !(JOINED_SCRIPT.test(before) && JOINED_SCRIPT.test(after));
}

/** A mark that is hidden by itself, or one too many. */
function isHiddenMark(characters: readonly string[], index: number): boolean {
  if (HIDDEN.test(characters[index] ?? '')) return true;
  const marks = characters.slice(Math.max(0, index - MAX_MARKS), index);
  return marks.length === MAX_MARKS && marks.every((character) => MARK.test(character));
}

function markOf(character: string): string {
  return `<${codePointName(character)}>`;
}

function jsonEscape(character: string): string {
  return Array.from({ length: character.length }, (_unused, index) => {
    return `\\u${character.charCodeAt(index).toString(16).padStart(4, '0')}`;
  }).join('');
}

/** Without half of a truncated character. */
function withoutHalf(text: string): string {
  return /\p{Cs}$/u.test(text) ? text.slice(0, -1) : text;
}

/** Untrusted text made safe for a terminal or a tab-separated line: hidden characters are escaped. */
export function toPrintable(text: string): string {
  return replaceHidden(text, { keepsLines: false, write: escapeHidden });
}

/** A hidden character as its code, as in a JavaScript string. */
export function escapeHidden(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  if (code < 256) return `\\x${code.toString(16).padStart(2, '0')}`;
  return code > 0xffff ? `\\u{${code.toString(16)}}` : `\\u${code.toString(16).padStart(4, '0')}`;
}
