import { existsSync, lstatSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/**
 * Prepares the home of an agent before it starts, as the agent's own user. `svc launch NAME` runs it in the container: an
 * earlier agent may have put anything into the home, and what is followed or read here then stays inside. It uses nothing but
 * Node.
 */

type Json = Readonly<Record<string, unknown>>;

/** A file that is to be in a home; its path begins with `~/`. */
interface WantedFile {
  readonly path: string;
  /**
   * `merge` adds to a file that exists. `create` leaves it as it is, unless it has the placeholder of an earlier start. `login`
   * puts the members of the agent's login into it, unless the agent has a login of its own there.
   */
  readonly write: 'merge' | 'create' | 'login';
  readonly json: Json;
}

/** What is to be in a home. */
export interface WantedHome {
  readonly files: readonly WantedFile[];
  /** Where the agent keeps a login of its own, and the beginnings of its tokens for a file that is there also without one. */
  readonly credentialFiles: readonly { readonly path: string; readonly tokens: readonly string[] | null }[];
  /** A file with one of them was written by svc. */
  readonly placeholders: readonly string[];
}

/** The placeholders of this start, and those of all starts: a file with an earlier one was written by svc too. */
interface Placeholders {
  readonly now: readonly string[];
  readonly ever: readonly string[];
}

/** A file that svc or an agent writes for its settings is far smaller. */
const MOST_READ_BYTES = 16 * 1024 * 1024;
/** The placeholders that this home has had. An agent that writes here can only have svc replace files that are the agent's anyway. */
const RECORD = '.svc-placeholders.json';

/** Writes the files, and gives a line for each problem that a person has to know. */
export function prepareHome(home: string, wanted: WantedHome): readonly string[] {
  const placeholders = { now: wanted.placeholders, ever: recordPlaceholders(join(home, RECORD), wanted.placeholders) };
  const problems = wanted.files.flatMap((file) => {
    const why = writeFile(inHome(home, file.path), file, placeholders);
    return why === null ? [] : [`${file.path} ${why}, so it was not changed: the agent may ask about its placeholder`];
  });
  const logins = wanted.credentialFiles.filter(({ path, tokens }) =>
    holdsOther(inHome(home, path), placeholders.ever, tokens),
  );
  return [
    ...problems,
    ...logins.map(({ path }) => `${path} holds a login of the agent itself: the agent can read it and may use it`),
  ];
}

function inHome(home: string, path: string): string {
  return join(home, path.slice('~/'.length));
}

/** Adds these to the home's record, and returns all of them. Where there is no record, earlier ones are not known. */
function recordPlaceholders(path: string, placeholders: readonly string[]): readonly string[] {
  const recorded = readRecord(path);
  const all = [...new Set([...recorded, ...placeholders])];
  if (all.length > recorded.length) {
    // Without a record the next start leaves a file that it would have replaced, and says so.
    writeFile(path, { path, write: 'merge', json: { placeholders: all } }, { now: [], ever: [] });
  }
  return all;
}

function readRecord(path: string): readonly string[] {
  try {
    const read: unknown = existsSync(path) ? JSON.parse(readText(path).text ?? '{}') : {};
    const listed: unknown = isObject(read) ? read['placeholders'] : [];
    // A shorter one could be in any file.
    return Array.isArray(listed) ? listed.filter((each) => typeof each === 'string' && each.length >= 16) : [];
  } catch {
    return [];
  }
}

/** An agent of another start may write its file at the same time, though rarely. */
const MOST_TRIES = 5;

/** Null, or why the file could not be written. */
function writeFile(path: string, wanted: WantedFile, placeholders: Placeholders): string | null {
  try {
    for (let tries = 1; tries <= MOST_TRIES; tries += 1) {
      const outcome = tryToWrite(path, wanted, placeholders);
      if (outcome !== 'changed_meanwhile') return outcome;
    }
    return 'is being changed by another program';
  } catch (error) {
    return error instanceof SyntaxError ? 'is not valid JSON' : `cannot be written (${String(error)})`;
  }
}

function tryToWrite(path: string, wanted: WantedFile, placeholders: Placeholders): string | null {
  if (wanted.write === 'create' && isThere(path) && !isOutdated(path, placeholders)) return null;
  const { text, why } = existsSync(path) ? readText(path) : NOTHING;
  if (why !== null) return why;
  const before: unknown = text === null ? {} : JSON.parse(text);
  if (!isObject(before)) return 'is no JSON object';
  if (wanted.write === 'login' && hasOtherLogin(before, wanted.json, placeholders)) return null;
  const after = combine(before, wanted);
  if (JSON.stringify(after) === JSON.stringify(before)) return null;
  return replaceIfSame(path, text, after) ? null : 'changed_meanwhile';
}

function combine(before: Json, { write, json }: WantedFile): Json {
  if (write === 'create') return json;
  return write === 'login' ? { ...before, ...json } : mergeJson(before, json);
}

/** Whether svc wrote it, for a placeholder that does not count at this start. */
function isOutdated(path: string, { now, ever }: Placeholders): boolean {
  const { text } = existsSync(path) ? readText(path) : NOTHING;
  const has = (placeholders: readonly string[]): boolean => placeholders.some((each) => text?.includes(each) === true);
  return !has(now) && has(ever);
}

/** Whether the file has one of these members with a value that svc did not write. */
function hasOtherLogin(before: Json, wanted: Json, { ever }: Placeholders): boolean {
  const own = Object.keys(wanted).flatMap((name) => before[name] ?? []);
  const text = JSON.stringify(own);
  return own.length > 0 && !ever.some((placeholder) => text.includes(placeholder));
}

/** Writes the file if it still has this text. False if it was changed. */
function replaceIfSame(path: string, text: string | null, json: Json): boolean {
  const temporary = `${path}.svc-${process.pid}.tmp`;
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    writeFileSync(temporary, `${JSON.stringify(json, null, 2)}\n`, { mode: 0o600, flag: 'wx' });
    if ((existsSync(path) ? readText(path).text : null) !== text) return false;
    renameSync(temporary, path);
    return true;
  } finally {
    if (existsSync(temporary)) rmSync(temporary);
  }
}

function isThere(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
}

/** The text of a file, or why it is not read. A pipe would block. */
interface Read {
  readonly text: string | null;
  readonly why: string | null;
}

const NOTHING: Read = { text: null, why: null };

function readText(path: string): Read {
  const stats = statSync(path);
  if (!stats.isFile()) return { text: null, why: 'is not a regular file' };
  if (stats.size > MOST_READ_BYTES) return { text: null, why: 'is too large' };
  return { text: readFileSync(path, 'utf8'), why: null };
}

function holdsOther(path: string, placeholders: readonly string[], tokens: readonly string[] | null): boolean {
  try {
    if (statSync(path, { throwIfNoEntry: false }) === undefined) return false;
    const { text } = readText(path);
    if (text === null) return true;
    if (tokens !== null && !tokens.some((token) => text.includes(token))) return false;
    return !placeholders.some((placeholder) => text.includes(placeholder));
  } catch {
    // The agent, who is the same user, cannot read it either.
    return false;
  }
}

/** The first object with the second's values: objects are merged, lists get the elements that they lack, others are replaced. */
export function mergeJson(before: Json, wanted: Json): Json {
  const merged: Record<string, unknown> = { ...before };
  for (const [name, value] of Object.entries(wanted)) {
    const old = Object.hasOwn(before, name) ? before[name] : undefined;
    if (isObject(value)) merged[name] = mergeJson(isObject(old) ? old : {}, value);
    else if (Array.isArray(value)) merged[name] = joinLists(Array.isArray(old) ? old : [], value);
    else merged[name] = value;
  }
  return merged;
}

function joinLists(before: readonly unknown[], wanted: readonly unknown[]): readonly unknown[] {
  return [...before, ...wanted.filter((value) => !before.includes(value))];
}

export function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
