/** Folds case, Unicode composition and white space for searching. */
export function fold(text: string): string {
  const folded = text.normalize('NFKC').toLowerCase();
  return UNEVEN_SPACE.test(folded) ? folded.replaceAll(/\s+/gu, ' ') : folded;
}

const UNEVEN_SPACE = /[^\S ]|\s\s/u;

/** Words that say nothing about a server. */
const NOISE: ReadonlySet<string> = new Set(
  'mcp server servers official the a an of for and or with to in on by'.split(' '),
);
/** Further words of a query are not looked for one by one. */
const MAX_WORDS = 8;
/** A title is the publisher's free text: a long one does not name more products. */
const MAX_TITLE = 100;

/** What is searched for. */
export interface SearchText {
  /** The whole text, folded. */
  readonly literal: string;
  /** Its words of letters and digits, without those that say nothing unless there are no others. */
  readonly words: readonly string[];
  /** Its words with other characters, such as `c++` or `@acme/weather`: they are looked for as they are. */
  readonly marks: readonly string[];
}

export function readSearchText(text: string): SearchText {
  const literal = fold(text);
  const parts = literal.split(' ').filter((part) => part !== '');
  const plain = parts.filter((part) => isPlain(part)).flatMap((part) => splitWords(part));
  const telling = plain.filter((word) => !NOISE.has(word));
  return {
    literal,
    words: [...new Set(telling.length > 0 ? telling : plain)].slice(0, MAX_WORDS),
    marks: parts.filter((part) => !isPlain(part)).slice(0, MAX_WORDS),
  };
}

/** Whether a part of a query consists of words. */
function isPlain(part: string): boolean {
  return /^[\p{L}\p{N}_-]+$/u.test(part) && /[\p{L}\p{N}]/u.test(part);
}

/**
 * The words of a server's own name and of its title, in a form in which one search answers a question: ` word` starts a
 * word, ` word ` is a whole one, `<words>` is all that the name or the title says, and `<words` is its start.
 */
export function nameText(name: string, title: string): string {
  const own = name.slice(name.lastIndexOf('/') + 1);
  return title === '' ? labelText(own) : `${labelText(own)}${labelText(title.slice(0, MAX_TITLE))}`;
}

/** The words in a text that {@link nameText} made. */
export function wordsOfNameText(near: string): readonly string[] {
  return near.split(/[ <>]+/).filter((word) => word !== '');
}

function labelText(label: string): string {
  const words = splitWords(fold(label));
  const telling = words.filter((word) => !NOISE.has(word));
  // `ChromeDevTools` is also `chrome dev tools`, and `file-system` is also `filesystem`.
  const parted = HUMP.test(label) ? splitWords(fold(label.replaceAll(HUMPS, '$1 $2'))) : [];
  const joined = telling.length > 1 ? [telling.join('')] : [];
  return `<${telling.join(' ')}> ${[...words, ...parted, ...joined].join(' ')} `;
}

const HUMP = /[a-z0-9][A-Z]/;
const HUMPS = /([a-z0-9])([A-Z])/g;
const ASCII = /^\p{ASCII}*$/u;

function splitWords(folded: string): string[] {
  // Most texts are ASCII, for which the general pattern is slow.
  return folded.split(ASCII.test(folded) ? /[^a-z0-9]+/ : /[^\p{L}\p{N}]+/u).filter((word) => word !== '');
}
