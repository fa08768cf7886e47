/** A JSON object with unchecked members. */
export type LooseObject = Readonly<Record<string, unknown>>;

/** The value if it is an object and not an array; else null. */
export function looseObject(value: unknown): LooseObject | null {
  return isLooseObject(value) ? value : null;
}

/** The first of these members that exists; registries spell some members in several ways. */
export function readMember(object: LooseObject, ...names: readonly string[]): unknown {
  const name = names.find((candidate) => Object.hasOwn(object, candidate) && object[candidate] !== null);
  return name === undefined ? undefined : object[name];
}

/** A text of limited length; null for anything else. Numbers and booleans become text. */
export function looseText(value: unknown, maxCharacters: number): string | null {
  const text = typeof value === 'number' || typeof value === 'boolean' ? String(value) : value;
  return typeof text === 'string' && text.length <= maxCharacters ? text : null;
}

/** A truncated text, never cut inside a character; empty if it is not a text. */
export function cutText(value: unknown, maxCharacters: number): string {
  if (typeof value !== 'string') return '';
  return value.length <= maxCharacters ? value : value.slice(0, maxCharacters).replace(/\p{Cs}$/u, '');
}

/** True only for `true`, also as a string. */
export function looseFlag(value: unknown): boolean {
  return value === true || value === 'true';
}

function isLooseObject(value: unknown): value is LooseObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
