import { err, ok, type Result } from '../shared/model/result.ts';

/** Whether a value may be in a field. */
type FieldCheck<Value> = (value: unknown) => value is Value;

type FieldChecks<Fields> = { readonly [Name in keyof Fields]-?: FieldCheck<Fields[Name]> };

/**
 * Reads an object of a few fields; null if one is missing or wrong. Fields without a check are left out. For what a command needs
 * at each start or end, where loading the schema library would take longer than all that the command does.
 */
export function readFields<Fields extends object>(value: unknown, checks: FieldChecks<Fields>): Fields | null {
  const read = readOrName(value, checks);
  return read.ok ? read.value : null;
}

/** As {@link readFields}; null too if there are fields without a check. */
export function readExactFields<Fields extends object>(value: unknown, checks: FieldChecks<Fields>): Fields | null {
  const read = readFields(value, checks);
  return read !== null && Object.keys(Object(value)).every((name) => Object.hasOwn(checks, name)) ? read : null;
}

/** What reads a value and says where it is wrong: a schema of zod, or {@link replyOf}. */
export interface ReplySchema<T> {
  safeParse(value: unknown):
    | { readonly success: true; readonly data: T }
    | {
        readonly success: false;
        readonly error: {
          readonly issues: readonly { readonly path: readonly PropertyKey[]; readonly message: string }[];
        };
      };
}

/** Reads a reply as {@link readFields} does, and names the field that is wrong. */
export function replyOf<Fields extends object>(checks: FieldChecks<Fields>): ReplySchema<Fields> {
  return {
    safeParse: (value) => {
      const read = readOrName(value, checks);
      if (read.ok) return { success: true, data: read.value };
      const path = read.error === null ? [] : [read.error];
      const isMissing = read.error !== null && !Object.hasOwn(Object(value), read.error);
      return { success: false, error: { issues: [{ path, message: isMissing ? 'missing' : 'not as expected' }] } };
    },
  };
}

/** The fields, or the name of the first that is missing or wrong; null if the value is no object. */
function readOrName<Fields extends object>(value: unknown, checks: FieldChecks<Fields>): Result<Fields, string | null> {
  if (typeof value !== 'object' || value === null) return err(null);
  const read: Partial<Fields> = {};
  for (const name in checks) {
    const has = Object.hasOwn(value, name);
    const field: unknown = has ? Reflect.get(value, name) : undefined;
    if (!checks[name](field)) return err(name);
    if (has) read[name] = field;
  }
  return isComplete(read, checks) ? ok(read) : err(null);
}

function isComplete<Fields extends object>(read: Partial<Fields>, checks: FieldChecks<Fields>): read is Fields {
  for (const name in checks) if (!Object.hasOwn(read, name) && !checks[name](undefined)) return false;
  return true;
}

export const isText = (value: unknown): value is string => typeof value === 'string';
export const isFlag = (value: unknown): value is boolean => typeof value === 'boolean';
export const isFiniteNumber = (value: unknown): value is number => Number.isFinite(value);
export const isWholeNumber = (value: unknown): value is number => Number.isSafeInteger(value);
export const isTextList = (value: unknown): value is readonly string[] => Array.isArray(value) && value.every(isText);

export function orNull<Value>(check: FieldCheck<Value>): FieldCheck<Value | null> {
  return (value): value is Value | null => value === null || check(value);
}

/** For a field that may be missing. */
export function orMissing<Value>(check: FieldCheck<Value>): FieldCheck<Value | undefined> {
  return (value): value is Value | undefined => value === undefined || check(value);
}

export function isOneOf<const Value>(values: readonly Value[]): FieldCheck<Value> {
  return (value): value is Value => values.some((each) => each === value);
}

export function isListOf<Value>(check: FieldCheck<Value>): FieldCheck<readonly Value[]> {
  return (value): value is readonly Value[] => Array.isArray(value) && value.every(check);
}

/** An object of any number of fields, whose names are checked too. */
export function isRecordOf<Value>(
  check: FieldCheck<Value>,
  isName: (name: string) => boolean = () => true,
): FieldCheck<Readonly<Record<string, Value>>> {
  return (value): value is Readonly<Record<string, Value>> =>
    typeof value === 'object' &&
    value !== null &&
    !Array.isArray(value) &&
    Object.entries(value).every(([name, field]) => isName(name) && check(field));
}

/** An object with these fields. It may have others, which stay. */
export function isObjectOf<Fields extends object>(checks: FieldChecks<Fields>): FieldCheck<Fields> {
  return (value): value is Fields => readFields(value, checks) !== null;
}

/** An object with these fields and no others. */
export function isExactObjectOf<Fields extends object>(checks: FieldChecks<Fields>): FieldCheck<Fields> {
  return (value): value is Fields => readExactFields(value, checks) !== null;
}
