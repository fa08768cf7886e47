import { accessSync, constants, type Dirent, lstatSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { isAtOrBelow } from '../launch/mount_table.ts';

/** A folder of the system in which not everything is for everybody. */
export interface SharedFolder {
  readonly path: string;
  /** How many levels of it are looked through: what is private is near the top, and a program's own files may be very many. */
  readonly levels: number;
}

/** More entries than an `/etc` has; what is deeper then is not looked at. */
const MOST_ENTRIES = 20_000;
const FOR_OTHERS_TO_READ = 0o004;
const FOR_OTHERS_TO_ENTER = 0o001;
const EXECUTABLE = 0o111;

/** What a sandbox shows of such a folder though it is private; paths without links. */
export interface NeededPaths {
  /** Folders with programs: private folders above them are looked through, and programs in them are no secret. */
  readonly programs: readonly string[];
  /** What a person named: shown whole. */
  readonly asked: readonly string[];
}

/**
 * What this user may read in a folder and other users of the machine may not: keys of services, settings with a password. A
 * sandbox has the rights of its user, so without this the one of root would show all of it.
 */
export function listPrivate({ path: folder, levels }: SharedFolder, needed: NeededPaths): readonly string[] {
  const found: string[] = [];
  let left = MOST_ENTRIES;
  let level = [folder];
  for (let depth = 0; depth < levels && level.length > 0 && left > 0; depth += 1) {
    const entries = level.flatMap(entriesOf).slice(0, left);
    left -= entries.length;
    level = [];
    for (const { path, entry } of entries) {
      const what = judge(path, entry, needed);
      if (what === 'private' && mayUse(path, entry)) found.push(path);
      if (what === 'looked_through') level.push(path);
    }
  }
  return found;
}

function judge(path: string, entry: Dirent, { programs, asked }: NeededPaths): 'private' | 'looked_through' | 'shown' {
  const mode = entry.isSymbolicLink() ? null : modeOf(path);
  if (mode === null || asked.some((each) => isAtOrBelow(path, each))) return 'shown';
  if (!entry.isDirectory()) {
    const isProgram = (mode & EXECUTABLE) !== 0 && programs.includes(dirname(path));
    return (mode & FOR_OTHERS_TO_READ) !== 0 || isProgram ? 'shown' : 'private';
  }
  const isOnTheWay = [...programs, ...asked].some((each) => isAtOrBelow(each, path));
  return (mode & FOR_OTHERS_TO_ENTER) !== 0 || isOnTheWay ? 'looked_through' : 'private';
}

function entriesOf(folder: string): readonly { readonly path: string; readonly entry: Dirent }[] {
  try {
    return readdirSync(folder, { withFileTypes: true }).map((entry) => ({ path: join(folder, entry.name), entry }));
  } catch {
    // What this user cannot read, the sandbox cannot.
    return [];
  }
}

/** Null if it is gone, or in a folder that this user may not enter. */
function modeOf(path: string): number | null {
  try {
    return lstatSync(path).mode;
  } catch {
    return null;
  }
}

/** Whether this user may read a file, or enter a folder. */
function mayUse(path: string, entry: Dirent): boolean {
  try {
    accessSync(path, entry.isDirectory() ? constants.X_OK : constants.R_OK);
    return true;
  } catch {
    return false;
  }
}
