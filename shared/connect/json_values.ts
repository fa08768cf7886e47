import type { JsonRule, JsonScalar } from '../model/connector.ts';
import { foldName, foldPointer, foldWord, namesOfPointer } from '../model/json_names.ts';
import { err, ok, type Result } from '../model/result.ts';

/** The value at each ruled pointer that a body has. */
export type RuledValues = ReadonlyMap<string, JsonScalar>;

/** A member that rules are about, or that leads to one. */
interface Place {
  readonly pointer: string;
  readonly members: Map<string, Place>;
  /** The folded names that a server could take for one of the members. */
  readonly lookalikes: Set<string>;
  readonly rules: JsonRule[];
}

/**
 * Reads the values that rules are about from a body. The agent writes the body, and the server reads it, so every form that
 * servers could read in another way is refused: a name in another spelling, a value of another type, a list. The error is a
 * predicate, and quotes nothing of the body.
 */
export function readRuledValues(rules: readonly JsonRule[], body: unknown): Result<RuledValues, string> {
  const values = new Map<string, JsonScalar>();
  const fault = readMembers(placesOf(rules), body, values);
  return fault === null ? ok(values) : err(fault);
}

function placesOf(rules: readonly JsonRule[]): Place {
  const root = placeAt('');
  for (const rule of rules) {
    const folded = foldPointer(rule.pointer);
    let place = root;
    for (const [at, name] of namesOfPointer(rule.pointer).entries()) {
      for (const each of folded[at] ?? []) place.lookalikes.add(each);
      const next = place.members.get(name) ?? placeAt(`${place.pointer}/${name}`);
      place.members.set(name, next);
      place = next;
    }
    place.rules.push(rule);
  }
  return root;
}

function placeAt(pointer: string): Place {
  return { pointer, members: new Map(), lookalikes: new Set(), rules: [] };
}

function readMembers(place: Place, object: unknown, values: Map<string, JsonScalar>): string | null {
  if (typeof object !== 'object' || object === null || Array.isArray(object)) {
    return place.pointer === '' ? 'is not a JSON object' : `has no object at ${place.pointer}`;
  }
  for (const [name, value] of Object.entries(object)) {
    const member = place.members.get(name);
    const fault = member === undefined ? lookalikeFault(place, name) : readPlace(member, value, values);
    if (fault !== null) return fault;
  }
  return null;
}

function lookalikeFault({ pointer, lookalikes, members }: Place, name: string): string | null {
  if (/\p{Cc}/u.test(name))
    return `has a member with a control character beside ${listMembers(pointer, members)}: leave it out`;
  if (!lookalikes.has(foldName(name))) return null;
  return `has a member that servers may read as ${listMembers(pointer, members)}: leave it out`;
}

function listMembers(pointer: string, members: ReadonlyMap<string, Place>): string {
  return [...members.keys()].map((member) => `${pointer}/${member}`).join(' or ');
}

/** `null` is read as absent. */
function readPlace(place: Place, value: unknown, values: Map<string, JsonScalar>): string | null {
  if (value === null) return null;
  const fault = place.rules.length > 0 ? valueFault(place, value) : null;
  if (fault !== null) return fault;
  if (isScalar(value)) values.set(place.pointer, value);
  return place.members.size > 0 ? readMembers(place, value, values) : null;
}

function valueFault({ pointer, rules }: Place, value: unknown): string | null {
  const listed = rules.flatMap(({ equals }) => equals ?? []);
  const types = new Set<string>(listed.map((each) => typeof each));
  if (rules.some(({ equals }) => equals === undefined)) types.add('number');
  if (!isScalar(value) || !types.has(typeof value)) return `has no ${[...types].join(' or ')} at ${pointer}`;
  if (typeof value === 'number') return numberFault(pointer, listed, value);
  return typeof value === 'string' ? wordFault(pointer, listed, value) : null;
}

/** A server may round a fraction to the whole number that a rule lists, and cut a number that is longer than its type. */
function numberFault(pointer: string, listed: readonly JsonScalar[], value: number): string | null {
  if (Math.abs(value) > Number.MAX_SAFE_INTEGER) return `has a number at ${pointer} that servers may not read exactly`;
  const numbers = listed.filter((each) => typeof each === 'number');
  const isRounded = !Number.isInteger(value) && numbers.length > 0 && numbers.every((each) => Number.isInteger(each));
  return isRounded ? `has a fraction at ${pointer}, where an operation lists whole numbers` : null;
}

function wordFault(pointer: string, listed: readonly JsonScalar[], value: string): string | null {
  if (/\p{Cc}/u.test(value)) return `has a control character at ${pointer}`;
  const isRespelled = !listed.includes(value) && listed.some((each) => foldWord(String(each)) === foldWord(value));
  return isRespelled ? `has a word at ${pointer} that differs from an operation's in its spelling only` : null;
}

function isScalar(value: unknown): value is JsonScalar {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean';
}
