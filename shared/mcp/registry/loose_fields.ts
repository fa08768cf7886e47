/** An object of JSON whose members nobody has checked. */
export type LooseObject = Readonly<Record<string, unknown>>;

/** The value as an object that is no array; null when it is none. */
export function looseObject(value: unknown): LooseObject | null {
  return isLooseObject(value) ? value : null;
}

/** The first of these members that is there; registries have spelled the same member in several ways. */
export function readMember(object: LooseObject, ...names: readonly string[]): unknown {
  const name = names.find((candidate) => Object.hasOwn(object, candidate) && object[candidate] !== null);
  return name === undefined ? undefined : object[name];
}

/** A text of at most so many characters; null for everything else. Numbers and booleans are the text they are written as. */
export function looseText(value: unknown, maxCharacters: number): string | null {
  const text = typeof value === 'number' || typeof value === 'boolean' ? String(value) : value;
  return typeof text === 'string' && text.length <= maxCharacters ? text : null;
}

/** A text that is cut where it is too long, never inside a character; empty when it is no text. */
export function cutText(value: unknown, maxCharacters: number): string {
  if (typeof value !== 'string') return '';
  return value.length <= maxCharacters ? value : value.slice(0, maxCharacters).replace(/\p{Cs}$/u, '');
}

/** True only for `true`, however it is spelled. */
export function looseFlag(value: unknown): boolean {
  return value === true || value === 'true';
}

function isLooseObject(value: unknown): value is LooseObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
