import { err, ok, type Result } from '../model/result.ts';
import { type ScimProblem, scimProblem } from './scim_problem.ts';
import { localName } from './schemas.ts';

const OPERATORS = ['eq', 'ne', 'co', 'sw', 'ew', 'gt', 'ge', 'lt', 'le'] as const;
export type Operator = (typeof OPERATORS)[number];
export type FilterValue = string | number | boolean | null;

/** An attribute and a sub-attribute, both lower-case and without a schema's name. */
export interface AttributeName {
  readonly attribute: string;
  readonly sub: string | null;
}

/** A filter (RFC 7644 section 3.4.2.2). */
export type Filter =
  | {
      readonly kind: 'compare';
      readonly name: AttributeName;
      readonly operator: Operator;
      readonly value: FilterValue;
    }
  | { readonly kind: 'present'; readonly name: AttributeName }
  | { readonly kind: 'and'; readonly left: Filter; readonly right: Filter }
  | { readonly kind: 'or'; readonly left: Filter; readonly right: Filter }
  | { readonly kind: 'not'; readonly of: Filter }
  /** True if one element of a multi-valued attribute fits; the names inside are of sub-attributes. */
  | { readonly kind: 'element'; readonly attribute: string; readonly of: Filter };

/** The target of a PATCH operation (RFC 7644 section 3.5.2). */
export interface PatchPath extends AttributeName {
  readonly filter: Filter | null;
}

const MAX_CHARACTERS = 2_000;
/** Each is looked at for each of an enterprise's users, and for each of their addresses. */
const MAX_TERMS = 10;
const MAX_DEPTH = 10;

interface Token {
  readonly kind: 'word' | 'value' | 'mark';
  readonly text: string;
  readonly value?: FilterValue;
}

/** Thrown inside this file alone, and returned as a problem. */
class Unreadable extends Error {}

/** Reads a filter. Every name is allowed: an attribute that no resource has fits nothing. */
export function parseFilter(text: string): Result<Filter, ScimProblem> {
  return read(text, 'invalidFilter', (reader) => reader.filter());
}

/** How many comparisons a filter has. */
export function countConditions(filter: Filter): number {
  if (filter.kind === 'and' || filter.kind === 'or') {
    return countConditions(filter.left) + countConditions(filter.right);
  }
  return filter.kind === 'not' || filter.kind === 'element' ? countConditions(filter.of) : 1;
}

/** Reads the path of a PATCH operation. */
export function parsePatchPath(text: string): Result<PatchPath, ScimProblem> {
  return read(text, 'invalidPath', (reader) => reader.path());
}

function read<T>(
  text: string,
  scimType: 'invalidFilter' | 'invalidPath',
  parse: (reader: Reader) => T,
): Result<T, ScimProblem> {
  try {
    const reader = new Reader(tokensOf(text));
    const value = parse(reader);
    reader.end();
    return ok(value);
  } catch (error) {
    if (error instanceof Unreadable) return err(scimProblem(scimType, error.message));
    throw error;
  }
}

const TOKEN = /\s*(?:("(?:[^"\\]|\\.)*")|(-?\d+(?:\.\d+)?(?=[\s)\]]|$))|([A-Za-z$][\w$.:-]*)|([()[\]]))/y;
const BLANK = /^\s*$/;

function tokensOf(text: string): Token[] {
  if (text.length > MAX_CHARACTERS) throw new Unreadable(`is longer than ${MAX_CHARACTERS} characters`);
  const tokens: Token[] = [];
  let at = 0;
  while (!BLANK.test(text.slice(at))) {
    TOKEN.lastIndex = at;
    const [whole, quoted, number, word, mark] = TOKEN.exec(text) ?? [];
    if (whole === undefined) throw new Unreadable(`cannot be read at character ${at + 1}`);
    at += whole.length;
    // A path continues after a bracket: emails[type eq "work"].value
    if (mark === ']' && text[at] === '.') at += 1;
    tokens.push(tokenOf(quoted, number, word, mark ?? ''));
  }
  return tokens;
}

function tokenOf(
  quoted: string | undefined,
  number: string | undefined,
  word: string | undefined,
  mark: string,
): Token {
  if (quoted !== undefined) return { kind: 'value', text: quoted, value: stringOf(quoted) };
  if (number !== undefined) return { kind: 'value', text: number, value: Number(number) };
  return word === undefined ? { kind: 'mark', text: mark } : { kind: 'word', text: word };
}

function stringOf(quoted: string): string {
  try {
    return String(JSON.parse(quoted));
  } catch {
    throw new Unreadable('has a string that is not a JSON string');
  }
}

const WORD_VALUES = new Map<string, FilterValue>([
  ['true', true],
  ['false', false],
  ['null', null],
]);

/** Recursive descent, with limits on depth and terms. */
class Reader {
  readonly #tokens: readonly Token[];
  #at = 0;
  #terms = 0;
  #depth = 0;

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens;
  }

  end(): void {
    if (this.#at < this.#tokens.length) throw new Unreadable('has more after its end: join conditions with and, or');
  }

  filter(): Filter {
    this.#depth += 1;
    if (this.#depth > MAX_DEPTH) throw new Unreadable(`is nested more than ${MAX_DEPTH} deep`);
    const found = this.#joined('or', () => this.#joined('and', () => this.#term()));
    this.#depth -= 1;
    return found;
  }

  path(): PatchPath {
    const { attribute, sub } = this.#name();
    if (sub !== null || !this.#takeMark('[')) return { attribute, sub, filter: null };
    const filter = this.filter();
    this.#expectMark(']');
    const next = this.#peek();
    return { attribute, filter, sub: next?.kind === 'word' ? this.#word().toLowerCase() : null };
  }

  #joined(word: 'and' | 'or', next: () => Filter): Filter {
    let left = next();
    while (this.#takeWord(word)) left = { kind: word, left, right: next() };
    return left;
  }

  #term(): Filter {
    this.#terms += 1;
    if (this.#terms > MAX_TERMS) throw new Unreadable(`has more than ${MAX_TERMS} conditions`);
    if (this.#takeMark('(')) return this.#closed(')');
    if (this.#takeWord('not')) {
      this.#expectMark('(');
      return { kind: 'not', of: this.#closed(')') };
    }
    const name = this.#name();
    if (name.sub !== null || !this.#takeMark('[')) return this.#comparison(name);
    const of = this.#closed(']');
    const next = this.#peek();
    const isOver = next === undefined || next.kind !== 'word' || ['and', 'or'].includes(next.text.toLowerCase());
    const { attribute } = name;
    if (isOver) return { kind: 'element', attribute, of };
    const right = this.#comparison({ attribute: this.#word().toLowerCase(), sub: null });
    return { kind: 'element', attribute, of: { kind: 'and', left: of, right } };
  }

  #closed(mark: string): Filter {
    const found = this.filter();
    this.#expectMark(mark);
    return found;
  }

  #comparison(name: AttributeName): Filter {
    const word = this.#word().toLowerCase();
    if (word === 'pr') return { kind: 'present', name };
    const operator = OPERATORS.find((each) => each === word);
    if (operator === undefined) throw new Unreadable(`has an unknown operator: use ${OPERATORS.join(', ')} or pr`);
    return { kind: 'compare', name, operator, value: this.#value() };
  }

  #value(): FilterValue {
    const token = this.#next();
    const value = token.kind === 'word' ? WORD_VALUES.get(token.text.toLowerCase()) : token.value;
    if (value === undefined) throw new Unreadable('compares with something that is no value: quote strings');
    return value;
  }

  #name(): AttributeName {
    const [attribute = '', sub, ...more] = localName(this.#word()).toLowerCase().split('.');
    // What remains of an unknown schema's name has dots and colons.
    if (attribute.startsWith('urn:')) return { attribute: 'urn:', sub: null };
    if (more.length > 0 || attribute === '' || sub === '') throw new Unreadable('has a name with too many parts');
    return { attribute, sub: sub ?? null };
  }

  #peek(): Token | undefined {
    return this.#tokens[this.#at];
  }

  #next(): Token {
    const token = this.#tokens[this.#at];
    if (token === undefined) throw new Unreadable('ends too early');
    this.#at += 1;
    return token;
  }

  #word(): string {
    const token = this.#next();
    if (token.kind !== 'word') throw new Unreadable('has a value or a bracket where a name is expected');
    return token.text;
  }

  #takeWord(word: string): boolean {
    const token = this.#peek();
    const isNext = token?.kind === 'word' && token.text.toLowerCase() === word;
    if (isNext) this.#at += 1;
    return isNext;
  }

  #takeMark(mark: string): boolean {
    const token = this.#peek();
    const isNext = token?.kind === 'mark' && token.text === mark;
    if (isNext) this.#at += 1;
    return isNext;
  }

  #expectMark(mark: string): void {
    if (!this.#takeMark(mark)) throw new Unreadable(`lacks a ${mark}`);
  }
}
