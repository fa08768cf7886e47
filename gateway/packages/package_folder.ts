import { chmodSync, lstatSync, readdirSync, readFileSync, readlinkSync, realpathSync, unlinkSync } from 'node:fs';
import { lstat, readdir } from 'node:fs/promises';
import { basename, join, relative, sep } from 'node:path';
import { z } from 'zod';
import { parseJson } from '../../shared/model/json.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';

/** The files of an installed package: path, and size in bytes; -1 for a link. */
type FileList = readonly (readonly [path: string, bytes: number])[];

const MAX_FILES = 200_000;

/**
 * Lists what npm put into a folder. An archive may bring no links, and npm makes them only in `.bin`; a link to a place outside
 * of the folder, or any other link, makes the package unusable.
 */
export function listPackageFiles(folder: string): Result<FileList, string> {
  const found: [string, number][] = [];
  const open = [''];
  for (let path = open.pop(); path !== undefined; path = open.pop()) {
    for (const entry of readdirSync(join(folder, path), { withFileTypes: true })) {
      const inner = path === '' ? entry.name : `${path}/${entry.name}`;
      if (entry.isDirectory()) open.push(inner);
      else if (entry.isFile()) found.push([inner, lstatSync(join(folder, inner)).size]);
      else if (entry.isSymbolicLink() && basename(path) === '.bin' && isInside(folder, inner)) found.push([inner, -1]);
      else return err(`has ${JSON.stringify(inner)}, which is no file of the package`);
      if (found.length > MAX_FILES) return err(`has more than ${MAX_FILES} files`);
    }
  }
  return ok(found.toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

/** Removes the links that install scripts made, such as node-gyp's to the machine's Python: a package may have none. */
export function removeStrayLinks(folder: string): void {
  for (const entry of readdirSync(folder, { withFileTypes: true, recursive: true })) {
    if (entry.isSymbolicLink() && basename(entry.parentPath) !== '.bin') unlinkSync(join(entry.parentPath, entry.name));
  }
}

/**
 * Lets every user read the files, for a container that runs as another one. The folder itself is last: once it is readable,
 * everything in it is.
 */
export function makeReadableByAll(folder: string): void {
  if ((lstatSync(folder).mode & 0o005) === 0o005) return;
  for (const entry of readdirSync(folder, { withFileTypes: true, recursive: true })) {
    if (entry.isSymbolicLink()) continue;
    const path = join(entry.parentPath, entry.name);
    const { mode } = lstatSync(path);
    chmodSync(path, mode | ((mode & 0o100) === 0 ? 0o444 : 0o555));
  }
  chmodSync(folder, 0o755);
}

const LOOK_MS = 1_000;

/** A signal that is aborted once a folder has more bytes, while something writes into it. */
export function watchSize(folder: string, mostBytes: number): { readonly tooLarge: AbortSignal; stop(): void } {
  const tooLarge = new AbortController();
  let timer: NodeJS.Timeout;
  let isStopped = false;
  const look = async (): Promise<void> => {
    if ((await bytesIn(folder)) > mostBytes) tooLarge.abort();
    else if (!isStopped) timer = setTimeout(() => void look(), LOOK_MS).unref();
  };
  timer = setTimeout(() => void look(), LOOK_MS).unref();
  return {
    tooLarge: tooLarge.signal,
    stop: () => {
      isStopped = true;
      clearTimeout(timer);
    },
  };
}

/** What disappears meanwhile does not count. */
async function bytesIn(folder: string): Promise<number> {
  let bytes = 0;
  const entries = await readdir(folder, { withFileTypes: true, recursive: true }).catch(() => []);
  for (const entry of entries) {
    if (!entry.isFile()) continue;
    const found = await lstat(join(entry.parentPath, entry.name)).catch(() => null);
    bytes += found?.size ?? 0;
  }
  return bytes;
}

/** True if every listed file is there with its size. Further files do not matter: a program may keep a cache beside its code. */
export function hasAllFiles(folder: string, files: FileList): boolean {
  return files.every(([path, bytes]) => {
    const found = lstatSync(join(folder, path), { throwIfNoEntry: false });
    if (found === undefined) return false;
    return bytes < 0 ? found.isSymbolicLink() && isInside(folder, path) : found.isFile() && found.size === bytes;
  });
}

function isInside(folder: string, path: string): boolean {
  if (readlinkSync(join(folder, path)).startsWith(sep)) return false;
  try {
    const real = relative(realpathSync(folder), realpathSync(join(folder, path)));
    return real !== '' && real !== '..' && !real.startsWith(`..${sep}`);
  } catch {
    return false;
  }
}

const manifest = z.looseObject({ bin: z.union([z.string(), z.record(z.string(), z.string())]).optional() });

/** The program that npx would start for a package, as a path in the folder. */
export function findProgram(folder: string, name: string): Result<string, string> {
  const path = join(folder, 'node_modules', name, 'package.json');
  const parsed = manifest.safeParse(parseJson(readFileSync(path, 'utf8')));
  const bin = parsed.success ? (parsed.data.bin ?? {}) : {};
  const unscoped = name.slice(name.indexOf('/') + 1);
  const names = typeof bin === 'string' ? [unscoped] : Object.keys(bin);
  const isOne = typeof bin === 'string' || new Set(Object.values(bin)).size === 1;
  const chosen = isOne ? names[0] : names.find((each) => each === unscoped);
  if (chosen === undefined)
    return err(names.length === 0 ? 'has no program' : 'has several programs, none of its name');
  const program = `node_modules/.bin/${basename(chosen)}`;
  const isThere = lstatSync(join(folder, program), { throwIfNoEntry: false }) !== undefined;
  return isThere ? ok(program) : err(`names the program ${JSON.stringify(chosen)}, which it does not have`);
}
