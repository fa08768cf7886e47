import type { PublisherProof } from '../../shared/mcp/publisher.ts';
import type { SearchText } from './search_text.ts';
import { hasSlot, type Signatures, type SlotSet } from './signatures.ts';

/** A server's texts, in the form that a query is compared with. */
export interface SearchedServer {
  /**
   * Name, description, title and the identifiers of its packages, folded, with a line break after each; then the words of
   * its own name and its title, as `nameText` writes them.
   */
  readonly text: string;
  readonly nameLength: number;
  /** Where the title begins, less the line break before it. */
  readonly titleAt: number;
  /** Where the words of its own name begin. */
  readonly nearAt: number;
  /** Of its text and its label among the signatures. */
  readonly slot: number;
  readonly label: string | null;
  readonly proof: PublisherProof | null;
}

/**
 * How well a server matches, best first. What a publisher has proven comes before what it only says; a name before a
 * description, in which nothing counts twice; and the namespace last, because a third of them contain `github`.
 */
export const RANKS = {
  /** The whole name, or a package that names its publisher. */
  whole: 0,
  /** The publisher's proven name is one of the words, and its servers name the others. */
  publisherCom: 1,
  publisherDomain: 2,
  publisherAccount: 3,
  /** The same with others only in the description. */
  publisherDescribed: 4,
  /** All that its own name or its title says; the start; whole words; starts of words; words apart. */
  named: 5,
  start: 6,
  nameWhole: 7,
  nameWord: 8,
  nameWords: 9,
  /** The same for words that are misspelled. */
  similarPublisher: 10,
  similarNamed: 11,
  similarName: 12,
  /** Inside of a word of the name. */
  name: 13,
  /** Some words in the name, the others in the description. */
  mixedWhole: 14,
  mixed: 15,
  descriptionWord: 16,
  descriptionWords: 17,
  description: 18,
  similarMixed: 19,
  namespace: 20,
  /** Only some of the words: the publisher, all of a name, a word of it. */
  somePublisher: 21,
  someNamed: 22,
  some: 23,
  none: 24,
} as const;

const PUBLISHER_RANKS = {
  com: RANKS.publisherCom,
  domain: RANKS.publisherDomain,
  account: RANKS.publisherAccount,
} as const;

/** Ranks servers for one query. A rank depends on nothing but the query and the server. */
export class SearchRanking {
  readonly #literal: string;
  readonly #marks: readonly string[];
  readonly #words: readonly WantedWord[];
  /** For each word, the ones that were perhaps meant. */
  readonly #similar: readonly (readonly WantedWord[])[];
  readonly #phrase: WantedWord;
  readonly #joined: WantedWord;
  /** The servers that have the literal text, or one of the words, or a similar one. */
  readonly #possible: SlotSet;
  readonly #written: SlotSet;
  /** Whether the literal text is one word, without another that may have been meant. */
  readonly #isOneWord: boolean;
  readonly #found = new FoundWords();

  constructor(
    { literal, words, marks }: SearchText,
    similarTo: (word: string) => readonly string[],
    signatures: Signatures,
  ) {
    const wantedWord = (word: string) => toWantedWord(word, signatures);
    const similar = words.map((word) => similarTo(word));
    const joined = words.join('');
    this.#literal = literal;
    this.#isOneWord = words.length === 1 && words[0] === literal && similar[0]?.length === 0;
    this.#marks = marks;
    this.#words = words.map((word) => wantedWord(word));
    this.#similar = similar.map((each) => each.map((word) => wantedWord(word)));
    this.#phrase = wantedWord(words.join(' '));
    this.#joined = wantedWord(joined);
    this.#written = signatures.mayContain(literal);
    this.#possible = signatures.mayContainAny([literal, joined, ...words, ...similar.flat()]);
  }

  /** Whether the server in a slot may match: tells without looking at it. */
  mayMatch(slot: number): boolean {
    return hasSlot(this.#possible, slot);
  }

  /** A lower number is a better match; `RANKS.none`: it does not match, or is no better than `enough`. */
  rank(server: SearchedServer, enough: number): number {
    if (this.#literal === '') return RANKS.whole;
    if (enough <= RANKS.nameWhole && this.#isOneWord && !this.#mayStart(server)) return RANKS.none;
    const first = hasSlot(this.#written, server.slot) ? server.text.indexOf(this.#literal) : -1;
    const isWritten = first !== -1 && first < server.nearAt;
    const asWritten = isWritten ? literalRank(server, this.#literal, first) : RANKS.none;
    if (asWritten === RANKS.whole || this.#words.length === 0) return asWritten;
    return Math.min(asWritten, this.#wordsRank(server));
  }

  /** Whether the rank for one word can be better than that of a word in the name. */
  #mayStart(server: SearchedServer): boolean {
    const { text, nameLength, titleAt, label } = server;
    if (label === this.#literal || text.startsWith(this.#literal) || hasNear(server, this.#phrase.namedStart))
      return true;
    const own = text.lastIndexOf('/', nameLength - 1) + 1;
    return text.startsWith(this.#literal, own) || text.includes(`\n${this.#literal}\n`, titleAt);
  }

  /** How well the words match, wherever each is. */
  #wordsRank(server: SearchedServer): number {
    const found = this.#find(server);
    const isApart = this.#words.length > 1;
    const isAll = found.missing === 0 && this.#marks.every((mark) => server.text.includes(mark));
    // `file system` is also `filesystem`.
    if (isApart && (!isAll || found.similar > 0) && hasNear(server, this.#joined.started)) {
      return phraseRank(server, this.#joined);
    }
    if (!isAll) return isApart ? this.#someRank(server) : RANKS.none;
    if (found.similar > 0) return this.#similarRank(server);
    if (found.publisher > 0) return publisherRank(server, found.far);
    return found.far > 0 ? farRank(found) : phraseRank(server, this.#phrase);
  }

  #find(server: SearchedServer): FoundWords {
    const found = this.#found;
    found.clear();
    if (this.#words.length > 1 && server.label === this.#joined.word) {
      found.publisher = this.#words.length;
      return found;
    }
    for (let at = 0; at < this.#words.length; at += 1) {
      const word = this.#words[at];
      if (word === undefined || found.find(server, word)) continue;
      if (this.#similar[at]?.some((similar) => found.find(server, similar)) === true) found.similar += 1;
      else found.missing += 1;
    }
    return found;
  }

  #similarRank(server: SearchedServer): number {
    const { publisher, far } = this.#found;
    if (publisher > 0) return RANKS.similarPublisher;
    if (far > 0) return RANKS.similarMixed;
    const isNamed = this.#similar.some((each) => each.some(({ named }) => hasNear(server, named)));
    return isNamed ? RANKS.similarNamed : RANKS.similarName;
  }

  /** A server that is named after some of the words only. */
  #someRank(server: SearchedServer): number {
    const { publisher, whole } = this.#found;
    if (publisher > 0 && server.label !== null && server.label.length > 2) return RANKS.somePublisher;
    if (whole === 0) return RANKS.none;
    const telling = this.#words.filter(({ word }) => word.length > 2);
    if (telling.some(({ named }) => hasNear(server, named))) return RANKS.someNamed;
    return telling.some((each) => hasNear(server, each.whole)) ? RANKS.some : RANKS.none;
  }
}

/** A word or several of a query, in the forms in which they are found among the words of names. */
interface WantedWord {
  readonly word: string;
  readonly started: string;
  readonly whole: string;
  readonly named: string;
  readonly namedStart: string;
  /** The servers that may contain it. */
  readonly slots: SlotSet;
}

function toWantedWord(word: string, signatures: Signatures): WantedWord {
  const forms = { started: ` ${word}`, whole: ` ${word} `, named: `<${word}>`, namedStart: `<${word}` };
  return { word, ...forms, slots: signatures.mayContain(word) };
}

/** How the words of a query were found in one server. Filled again for each, because a search ranks tens of thousands. */
class FoundWords {
  missing = 0;
  publisher = 0;
  near = 0;
  /** Of the near ones, those that are whole words. */
  whole = 0;
  far = 0;
  similar = 0;

  clear(): void {
    this.missing = this.publisher = this.near = this.whole = this.far = this.similar = 0;
  }

  find(server: SearchedServer, { word, started, whole, slots }: WantedWord): boolean {
    const { label, text, nameLength, nearAt, slot } = server;
    if (label === word) this.publisher += 1;
    else if (!hasSlot(slots, slot)) return false;
    else if (hasNear(server, started)) {
      this.near += 1;
      if (hasNear(server, whole)) this.whole += 1;
    } else if (startsWord(text, word, nameLength + 1, nearAt)) this.far += 1;
    else return false;
    return true;
  }
}

function hasNear({ text, nearAt }: SearchedServer, form: string): boolean {
  return text.includes(form, nearAt);
}

function publisherRank({ proof }: SearchedServer, far: number): number {
  return far > 0 || proof === null ? RANKS.publisherDescribed : PUBLISHER_RANKS[proof];
}

function farRank({ near, whole }: FoundWords): number {
  if (near === 0) return RANKS.descriptionWords;
  return whole === near ? RANKS.mixedWhole : RANKS.mixed;
}

/** Words that follow each other in the name or the title, or are apart in them. */
function phraseRank(server: SearchedServer, { started, whole, named, namedStart }: WantedWord): number {
  if (hasNear(server, named)) return RANKS.named;
  if (hasNear(server, namedStart)) return RANKS.start;
  if (hasNear(server, whole)) return RANKS.nameWhole;
  return hasNear(server, started) ? RANKS.nameWord : RANKS.nameWords;
}

/** Where the whole text of a query occurs. */
function literalRank(server: SearchedServer, literal: string, first: number): number {
  const { text, nameLength, titleAt, nearAt } = server;
  const inName = first < nameLength ? nameRank(server, literal, first) : RANKS.none;
  if (inName < RANKS.namespace) return inName;
  const described = text.indexOf(literal, nameLength + 1);
  if (described === -1 || described >= nearAt) return inName;
  const at = text.indexOf(`\n${literal}\n`, titleAt);
  if (at !== -1 && at < nearAt) return packageRank(server, literal);
  return startsWord(text, literal, described, nearAt) ? RANKS.descriptionWord : RANKS.description;
}

function nameRank({ text, nameLength }: SearchedServer, literal: string, first: number): number {
  const tail = text.lastIndexOf('/', nameLength - 1) + 1;
  const isWhole = (from: number) => nameLength - from === literal.length && text.startsWith(literal, from);
  if (isWhole(0)) return RANKS.whole;
  if (isWhole(tail)) return RANKS.named;
  const own = text.indexOf(literal, tail);
  if (own !== -1 && own + literal.length <= nameLength) {
    if (own === tail) return RANKS.start;
    return startsWord(text, literal, own, nameLength) ? RANKS.nameWord : RANKS.name;
  }
  if (first + literal.length > nameLength) return RANKS.none;
  // A start of the whole name that reaches into its last part, or occurs in the part before.
  if (first + literal.length > tail) return first === 0 ? RANKS.start : RANKS.name;
  return RANKS.namespace;
}

/** The whole title, or the whole identifier of a package. Anybody can list a package; its own publisher's is named in it. */
function packageRank({ label }: SearchedServer, literal: string): number {
  const isOwn = label !== null && literal.split(/[^a-z0-9-]+/).includes(label);
  return isOwn && literal !== label ? RANKS.whole : RANKS.named;
}

const WORD_CHARACTER = /[\p{L}\p{N}]/u;

/** Whether the text occurs at the start of a word, between two positions. */
function startsWord(text: string, wanted: string, from: number, to: number): boolean {
  for (let at = text.indexOf(wanted, from); at !== -1 && at + wanted.length <= to; at = text.indexOf(wanted, at + 1)) {
    if (at === 0 || !isWordCharacter(text, at - 1)) return true;
  }
  return false;
}

function isWordCharacter(text: string, at: number): boolean {
  const code = text.charCodeAt(at);
  if (code < 128) return (code > 96 && code < 123) || (code > 47 && code < 58);
  return WORD_CHARACTER.test(text.charAt(at));
}
