/**
 * The canonical text of a JSON value: keys sorted by UTF-16 code unit, no spaces, numbers and strings as ECMAScript writes
 * them (RFC 8785). Throws on values that JSON cannot represent, because a hash over a silently changed value would prove
 * nothing.
 */
export function canonicalJson(value: unknown): string {
  if (value === null || typeof value === 'boolean') return String(value);
  if (typeof value === 'string') return canonicalString(value);
  if (typeof value === 'number') return canonicalNumber(value);
  if (Array.isArray(value)) return `[${value.map((item) => canonicalJson(item)).join(',')}]`;
  if (typeof value === 'object') return canonicalObject(value);
  throw new TypeError(`canonical JSON cannot contain a ${typeof value}`);
}

function canonicalString(value: string): string {
  if (!value.isWellFormed()) throw new TypeError('canonical JSON cannot contain a lone surrogate');
  return JSON.stringify(value);
}

function canonicalNumber(value: number): string {
  if (!Number.isFinite(value)) throw new TypeError(`canonical JSON cannot contain ${value}`);
  return JSON.stringify(value);
}

/** An undefined property is omitted, as in JSON.stringify. */
function canonicalObject(value: object): string {
  const members: Readonly<Record<string, unknown>> = { ...value };
  let text = '';
  // Without a function that compares them, texts are sorted by code unit.
  for (const key of Object.keys(members).toSorted()) {
    const member = members[key];
    if (member !== undefined) text += `${text === '' ? '' : ','}${canonicalString(key)}:${canonicalJson(member)}`;
  }
  return `{${text}}`;
}
