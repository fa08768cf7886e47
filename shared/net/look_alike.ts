import { codePointName, listHiddenCharacters } from '../model/shown_text.ts';
/** The scripts that are distinguished in a host name; a letter of any other script counts as `Other`. */
const SCRIPTS = [
  'Latin',
  'Cyrillic',
  'Greek',
  'Armenian',
  'Hebrew',
  'Arabic',
  'Devanagari',
  'Bengali',
  'Tamil',
  'Thai',
  'Georgian',
  'Cherokee',
  'Hangul',
  'Bopomofo',
  'Hiragana',
  'Katakana',
  'Han',
] as const;
type Script = (typeof SCRIPTS)[number] | 'Other';

const SCRIPT_PATTERNS: readonly (readonly [Script, RegExp])[] = SCRIPTS.map((script) => [
  script,
  new RegExp(`\\p{Script_Extensions=${script}}`, 'u'),
]);

/** Scripts that one language writes together; every other mix in one label is refused. */
const WRITTEN_TOGETHER: readonly ReadonlySet<Script>[] = [
  new Set<Script>(['Han', 'Hiragana', 'Katakana']),
  new Set<Script>(['Han', 'Hangul']),
  new Set<Script>(['Han', 'Bopomofo']),
];

/** Cyrillic, Greek and Armenian letters that most fonts draw like an ASCII letter, with that letter. */
const PASSES_FOR: ReadonlyMap<string, string> = new Map([
  ...pairs('\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0455\u0456\u0458', 'aeopcyxsij'),
  ...pairs('\u0501\u04bb\u051b\u051d\u04cf\u0475\u044c\u0433\u043a\u043c\u0442\u0432\u043d\u043f', 'dhqwlvbrkmtbhn'),
  ...pairs('\u03b1\u03bf\u03bd\u03c1\u03c4\u03c5\u03b9\u03ba\u03b3\u03c7\u03b7\u03c9\u03f2', 'aovptuikyxnwc'),
  ...pairs('\u0585\u057d\u0578\u0570\u0566\u0581\u0575\u056c', 'ounhqgjl'),
]);

/** Unusual Latin letters that look like ASCII ones: dotless i and j, phonetic letters. */
const ODD_LATIN = /[\u0131\u0237\u0250-\u02af\u1d00-\u1dbf\ua720-\ua7ff\uab30-\uab6f]/u;
const LETTER_OR_MARK = /[\p{L}\p{M}]/u;
const LOOSE_MARK = /\p{Script=Inherited}/u;

/**
 * What is wrong with the characters of a typed host name (NFC), naming the first bad character and its code point, as a
 * predicate; null if nothing is. Refused are invisible characters, compatibility forms (full-width and styled letters),
 * non-ASCII digits and symbols, labels that mix scripts, and labels in which every letter looks like an ASCII one (Unicode
 * Technical Standard 39, stricter than its "highly restrictive" level).
 */
export function findLookAlike(name: string): string | null {
  const lower = name.toLowerCase();
  for (const character of lower) {
    const problem = isAscii(character) ? null : characterProblem(character);
    if (problem !== null) return problem;
  }
  for (const label of lower.split('.')) {
    const problem = labelProblem(label);
    if (problem !== null) return problem;
  }
  return null;
}

function characterProblem(character: string): string | null {
  if (listHiddenCharacters(character, false).length > 0)
    return `has the invisible character ${codePointName(character)}`;
  const plain = character.normalize('NFKC');
  if (plain !== character) return `has ${formatCharacter(character)}, which is another form of "${plain}"`;
  if (!LETTER_OR_MARK.test(character)) return `has ${formatCharacter(character)}, which is no letter`;
  if (LOOSE_MARK.test(character))
    return `has the combining mark ${codePointName(character)}, which changes a letter's look`;
  return ODD_LATIN.test(character) ? `has ${formatCharacter(character)}, which passes for an ASCII letter` : null;
}

function labelProblem(label: string): string | null {
  const letters = Array.from(label).filter((character) => LETTER_OR_MARK.test(character));
  const scripts = letters.map(scriptOf);
  const distinct = new Set(scripts);
  if (distinct.size > 1 && !WRITTEN_TOGETHER.some((together) => isSubset(distinct, together))) {
    return mixProblem(letters, scripts);
  }
  const first = letters[0];
  if (first === undefined || !letters.every((letter) => PASSES_FOR.has(letter))) return null;
  const reading = Array.from(label, (character) => PASSES_FOR.get(character) ?? character).join('');
  return `has ${formatCharacter(first)} (${scriptOf(first)}) in a label that reads like "${reading}"`;
}

function mixProblem(letters: readonly string[], scripts: readonly Script[]): string {
  const main = scripts.includes('Latin') ? 'Latin' : (scripts[0] ?? 'Other');
  const stranger = letters[scripts.findIndex((script) => script !== main)] ?? '';
  const twin = PASSES_FOR.get(stranger);
  const looks = twin === undefined ? '' : `, which looks like "${twin}",`;
  return `has ${formatCharacter(stranger)} (${scriptOf(stranger)})${looks} among ${main} letters`;
}

function scriptOf(character: string): Script {
  return SCRIPT_PATTERNS.find(([, pattern]) => pattern.test(character))?.[0] ?? 'Other';
}

function formatCharacter(character: string): string {
  return `"${character}" ${codePointName(character)}`;
}

function isAscii(character: string): boolean {
  return character <= '\x7f';
}

function pairs(from: string, to: string): [string, string][] {
  return Array.from(from, (letter, index) => [letter, to[index] ?? '']);
}

function isSubset(part: ReadonlySet<Script>, whole: ReadonlySet<Script>): boolean {
  return [...part].every((script) => whole.has(script));
}
