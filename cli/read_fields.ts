import { err, ok, type Result } from '../shared/model/result.ts';
import { toPrintable } from '../shared/model/shown_text.ts';

/** What is wrong with a value. */
interface Wrong {
  /** Where within it: names of fields and places in lists. Empty: the value itself. */
  readonly path: readonly (string | number)[];
  readonly message: 'missing' | 'not as expected' | 'not known';
}

const UNEXPECTED: Wrong = { path: [], message: 'not as expected' };

/** Whether a value may be in a field. */
interface FieldCheck<Value> {
  (value: unknown): value is Value;
  /** Gives what is read of a value that has parts: those that are checked, and no others. */
  readonly read?: (value: unknown) => Result<Value, Wrong>;
}

type FieldChecks<Fields> = { readonly [Name in keyof Fields]-?: FieldCheck<Fields[Name]> };

/**
 * Reads an object of a few fields; null if one is missing or wrong. Fields without a check are left out, also within fields. For what
 * a command needs at each start or end, where loading the schema library would take longer than all that the command does.
 */
export function readFields<Fields extends object>(value: unknown, checks: FieldChecks<Fields>): Fields | null {
  const read = readObject(value, checks);
  return read.ok ? read.value : null;
}

/** As {@link readFields}; null too if there are fields without a check. */
export function readExactFields<Fields extends object>(value: unknown, checks: FieldChecks<Fields>): Fields | null {
  const read = readExactObject(value, checks);
  return read.ok ? read.value : null;
}

/** As {@link readExactFields}; otherwise says what is wrong, such as `folders./srv.sha256 is missing`. */
export function parseExactFields<Fields extends object>(
  value: unknown,
  checks: FieldChecks<Fields>,
): Result<Fields, string> {
  const read = readExactObject(value, checks);
  if (read.ok) return read;
  const { path, message } = read.error;
  return err(`${toPrintable(path.join('.')) || 'its content'} is ${message}`);
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
      const read = readObject(value, checks);
      if (read.ok) return { success: true, data: read.value };
      return { success: false, error: { issues: [read.error] } };
    },
  };
}

function readObject<Fields extends object>(value: unknown, checks: FieldChecks<Fields>): Result<Fields, Wrong> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return err(UNEXPECTED);
  const read: Partial<Fields> = {};
  for (const name in checks) {
    const has = Object.hasOwn(value, name);
    const field = readPart(checks[name], has ? Reflect.get(value, name) : undefined, name);
    if (!field.ok) return has ? field : err({ path: [name], message: 'missing' });
    if (has) read[name] = field.value;
  }
  return isComplete(read, checks) ? ok(read) : err(UNEXPECTED);
}

function readExactObject<Fields extends object>(value: unknown, checks: FieldChecks<Fields>): Result<Fields, Wrong> {
  const read = readObject(value, checks);
  const unknown = Object.keys(Object(value)).find((name) => !Object.hasOwn(checks, name));
  return read.ok && unknown !== undefined ? err({ path: [unknown], message: 'not known' }) : read;
}

function isComplete<Fields extends object>(read: Partial<Fields>, checks: FieldChecks<Fields>): read is Fields {
  for (const name in checks) if (!Object.hasOwn(read, name) && !checks[name](undefined)) return false;
  return true;
}

/** What a check reads of a part of a value. */
function readPart<Value>(check: FieldCheck<Value>, value: unknown, at: string | number): Result<Value, Wrong> {
  const read = readAs(check, value);
  return read.ok ? read : err({ ...read.error, path: [at, ...read.error.path] });
}

function readAs<Value>(check: FieldCheck<Value>, value: unknown): Result<Value, Wrong> {
  if (check.read !== undefined) return check.read(value);
  return check(value) ? ok(value) : err(UNEXPECTED);
}

function checkOf<Value>(read: (value: unknown) => Result<Value, Wrong>): FieldCheck<Value> {
  return Object.assign((value: unknown): value is Value => read(value).ok, { read });
}

export const isText = (value: unknown): value is string => typeof value === 'string';
export const isFlag = (value: unknown): value is boolean => typeof value === 'boolean';
export const isFiniteNumber = (value: unknown): value is number => Number.isFinite(value);
export const isWholeNumber = (value: unknown): value is number => Number.isSafeInteger(value);
export const isTextList = isListOf(isText);

export function orNull<Value>(check: FieldCheck<Value>): FieldCheck<Value | null> {
  return checkOf<Value | null>((value) => (value === null ? ok(null) : readAs(check, value)));
}

/** For a field that may be missing. */
export function orMissing<Value>(check: FieldCheck<Value>): FieldCheck<Value | undefined> {
  return checkOf<Value | undefined>((value) => (value === undefined ? ok(undefined) : readAs(check, value)));
}

export function isOneOf<const Value>(values: readonly Value[]): FieldCheck<Value> {
  return (value): value is Value => values.some((each) => each === value);
}

export function isListOf<Value>(check: FieldCheck<Value>): FieldCheck<readonly Value[]> {
  return checkOf((value) => {
    if (!Array.isArray(value)) return err(UNEXPECTED);
    const list: Value[] = [];
    for (const [at, entry] of value.entries()) {
      const read = readPart<Value>(check, entry, at);
      if (!read.ok) return read;
      list.push(read.value);
    }
    return ok(list);
  });
}

/** An object of any number of fields, whose names are checked too. */
export function isRecordOf<Value>(
  check: FieldCheck<Value>,
  isName: (name: string) => boolean = () => true,
): FieldCheck<Readonly<Record<string, Value>>> {
  return checkOf((value) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return err(UNEXPECTED);
    const entries: [string, Value][] = [];
    for (const [name, field] of Object.entries(value)) {
      const read = isName(name)
        ? readPart<Value>(check, field, name)
        : err({ path: [name], message: 'not known' as const });
      if (!read.ok) return read;
      entries.push([name, read.value]);
    }
    return ok(Object.fromEntries(entries));
  });
}

/** An object with these fields. Others are left out where it is read. */
export function isObjectOf<Fields extends object>(checks: FieldChecks<Fields>): FieldCheck<Fields> {
  return checkOf((value) => readObject(value, checks));
}

/** An object with these fields and no others. */
export function isExactObjectOf<Fields extends object>(checks: FieldChecks<Fields>): FieldCheck<Fields> {
  return checkOf((value) => readExactObject(value, checks));
}
