/** Whether a value may be in a field. */
type FieldCheck<Value> = (value: unknown) => value is Value;

type FieldChecks<Fields> = { readonly [Name in keyof Fields]-?: FieldCheck<Fields[Name]> };

/**
 * Reads an object of a few fields; null if one is missing or wrong. Fields without a check are left out. For what a command needs
 * at each start or end, where loading the schema library would take longer than all that the command does.
 */
export function readFields<Fields extends object>(value: unknown, checks: FieldChecks<Fields>): Fields | null {
  if (typeof value !== 'object' || value === null) return null;
  const read: Partial<Fields> = {};
  for (const name in checks) {
    const field: unknown = Object.hasOwn(value, name) ? Reflect.get(value, name) : undefined;
    if (!checks[name](field)) return null;
    read[name] = field;
  }
  return isComplete(read, checks) ? read : null;
}

/** As {@link readFields}; null too if there are fields without a check. */
export function readExactFields<Fields extends object>(value: unknown, checks: FieldChecks<Fields>): Fields | null {
  const read = readFields(value, checks);
  return read !== null && Object.keys(Object(value)).every((name) => Object.hasOwn(checks, name)) ? read : null;
}

function isComplete<Fields extends object>(read: Partial<Fields>, checks: FieldChecks<Fields>): read is Fields {
  return Object.keys(checks).every((name) => Object.hasOwn(read, name));
}

export const isText = (value: unknown): value is string => typeof value === 'string';
export const isFlag = (value: unknown): value is boolean => typeof value === 'boolean';
export const isFiniteNumber = (value: unknown): value is number => Number.isFinite(value);
export const isWholeNumber = (value: unknown): value is number => Number.isSafeInteger(value);
export const isTextList = (value: unknown): value is readonly string[] => Array.isArray(value) && value.every(isText);

export function orNull<Value>(check: FieldCheck<Value>): FieldCheck<Value | null> {
  return (value): value is Value | null => value === null || check(value);
}
