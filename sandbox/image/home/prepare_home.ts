import { existsSync, lstatSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/**
 * Prepares the home of an agent before it starts, as the agent's own user. `svc launch NAME` runs it in the container: an
 * earlier agent may have put anything into the home, and what is followed or read here then stays inside. It uses nothing but
 * Node.
 */

type Json = Readonly<Record<string, unknown>>;

/** What is to be in a home. Paths begin with `~/`. */
export interface WantedHome {
  readonly files: readonly { readonly path: string; readonly write: 'merge' | 'create'; readonly json: Json }[];
  /** Where the agent keeps a login of its own. */
  readonly credentialFiles: readonly string[];
  /** A file with one of them was written by svc. */
  readonly placeholders: readonly string[];
}

/** A file that svc or an agent writes for its settings is far smaller. */
const MOST_READ_BYTES = 16 * 1024 * 1024;

/** Writes the files, and gives a line for each problem that a person has to know. */
export function prepareHome(home: string, wanted: WantedHome): readonly string[] {
  const problems = wanted.files.flatMap(({ path, write, json }) => {
    const why = writeJson(inHome(home, path), write, json);
    return why === null ? [] : [`${path} ${why}, so it was not changed: the agent may ask about its placeholder`];
  });
  const logins = wanted.credentialFiles.filter((path) => holdsOther(inHome(home, path), wanted.placeholders));
  return [
    ...problems,
    ...logins.map((path) => `${path} holds a login of the agent itself: the agent can read it and may use it`),
  ];
}

function inHome(home: string, path: string): string {
  return join(home, path.slice('~/'.length));
}

/** Null, or why the file could not be written. A pipe would block, and is not read. */
function writeJson(path: string, write: 'merge' | 'create', wanted: Json): string | null {
  const temporary = `${path}.svc-${process.pid}.tmp`;
  try {
    if (write === 'create' && isThere(path)) return null;
    const before = existsSync(path) ? readObject(path) : {};
    if (typeof before === 'string') return before;
    const after = mergeJson(before, wanted);
    if (JSON.stringify(after) === JSON.stringify(before)) return null;
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    writeFileSync(temporary, `${JSON.stringify(after, null, 2)}\n`, { mode: 0o600, flag: 'wx' });
    renameSync(temporary, path);
    return null;
  } catch (error) {
    if (existsSync(temporary)) rmSync(temporary);
    return error instanceof SyntaxError ? 'is not valid JSON' : `cannot be written (${String(error)})`;
  }
}

function isThere(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
}

/** The object in a file, or why there is none. */
function readObject(path: string): Json | string {
  const stats = statSync(path);
  if (!stats.isFile()) return 'is not a regular file';
  if (stats.size > MOST_READ_BYTES) return 'is too large';
  const read: unknown = JSON.parse(readFileSync(path, 'utf8'));
  return isObject(read) ? read : 'is no JSON object';
}

function holdsOther(path: string, placeholders: readonly string[]): boolean {
  try {
    const stats = statSync(path, { throwIfNoEntry: false });
    if (stats === undefined) return false;
    if (!stats.isFile() || stats.size > MOST_READ_BYTES) return true;
    const text = readFileSync(path, 'utf8');
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
