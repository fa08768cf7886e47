/** Most kinds of hidden characters that one text is told to have. */
const MAX_KINDS = 8;

/** Characters that show nothing, or change how others are shown; line breaks and tabs aside. */
const HIDDEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/u;
const PLAIN_CONTROL = /[\t\n\r]/;
const EMOJI = /[\p{Extended_Pictographic}\p{Emoji_Modifier}\u{20e3}\u{fe0f}#*0-9]/u;
const JOINERS = new Set(['\u200c', '\u200d']);
const PRESENTATION = new Set(['\ufe0e', '\ufe0f']);
/** Scripts whose ordinary spelling has joiners in it. */
const JOINED_SCRIPT =
  /[\p{Script=Arabic}\p{Script=Devanagari}\p{Script=Bengali}\p{Script=Gurmukhi}\p{Script=Gujarati}\p{Script=Oriya}\p{Script=Tamil}\p{Script=Telugu}\p{Script=Kannada}\p{Script=Malayalam}\p{Script=Sinhala}\p{Script=Khmer}\p{Script=Mongolian}]/u;

/**
 * The characters of a text that a reader cannot see, or that show it in another order, as `U+200B`, each once and at most
 * {@link MAX_KINDS}: text for people can carry instructions to a model in them, and a name can pass for another. What
 * ordinary writing needs is none: line breaks, emoji sequences, joiners of scripts that are spelled with them.
 */
export function hiddenCharacters(text: string): readonly string[] {
  const kinds = new Set<string>();
  const characters = Array.from(text);
  for (const [index, character] of characters.entries()) {
    if (!isHidden(characters, index)) continue;
    kinds.add(codePointName(character));
    if (kinds.size >= MAX_KINDS) break;
  }
  return [...kinds];
}

/** The text with each hidden character written as `<U+200B>`, to be shown to a person. */
export function withHiddenCharactersShown(text: string): string {
  const characters = Array.from(text);
  return characters
    .map((character, index) => (isHidden(characters, index) ? `<${codePointName(character)}>` : character))
    .join('');
}

function isHidden(characters: readonly string[], index: number): boolean {
  const character = characters[index] ?? '';
  if (!HIDDEN.test(character) || PLAIN_CONTROL.test(character)) return false;
  const before = characters[index - 1] ?? '';
  const after = characters[index + 1] ?? '';
  if (PRESENTATION.has(character)) return !EMOJI.test(before);
  if (!JOINERS.has(character)) return true;
  const joinsEmoji = character === '\u200d' && EMOJI.test(before) && EMOJI.test(after);
  return !joinsEmoji && !(JOINED_SCRIPT.test(before) && JOINED_SCRIPT.test(after));
}

function codePointName(character: string): string {
  return `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`;
}
