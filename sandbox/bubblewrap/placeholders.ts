import { randomBytes } from 'node:crypto';
import { mkdirSync, readdirSync, rmdirSync } from 'node:fs';
import { join } from 'node:path';
import { identify } from '../../machine/process_identity.ts';
import { errorCode } from '../../shared/model/error_code.ts';
import { isLeft, sandboxFolderName } from './sandbox_folder.ts';

/** In a placeholder, for each sandbox that needs it: its launcher, as in sandbox_folder.ts. git does not see an empty folder. */
const HOLD = /^\.svc-(\d{1,10}-\d{1,20})-[0-9a-f]{16}(?:-kept)?$/;
/** At the end of a hold in a person's own folder: whichever sandbox ends last leaves the folder. */
const KEPT = '-kept';
/** Each is lost only to another sandbox that ends in the same moment. */
const TRIES = 100;

interface Held {
  readonly folder: string;
  readonly hold: string;
  /** A person's own empty folder stays. */
  readonly isPlaceholder: boolean;
}

/** True if a folder has nothing of a person's. Another sandbox may have made it, and would remove it. */
export function isPlaceholder(names: readonly string[]): boolean {
  return names.every((name) => HOLD.test(name));
}

/**
 * Makes the folders that are not there, and keeps each until it is released: if a folder in which something is mounted is removed
 * by another process, the kernel unmounts it everywhere, and a sandbox in the same project would lose what protects it.
 *
 * @returns what releases them. The last sandbox removes what was made.
 */
export function holdPlaceholders(folders: readonly string[]): () => void {
  const self = identify(process.pid) ?? { pid: process.pid, started: null };
  const name = `.svc-${sandboxFolderName(self)}-${randomBytes(8).toString('hex')}`;
  const held = folders.flatMap((folder) => hold(folder, name) ?? []);
  return () => {
    for (const { folder, hold: own, isPlaceholder: isOurs } of held) {
      tryTo(rmdirSync, own);
      if (isOurs) tryTo(rmdirSync, folder);
    }
  };
}

function hold(folder: string, name: string): Held | null {
  for (let left = TRIES; left > 0; left -= 1) {
    const made = tryTo(mkdirSync, folder);
    if (made !== null && made !== 'EEXIST') return null;
    const before = namesIn(folder);
    if (!isPlaceholder(before)) return null;
    const isOurs = made === null || (before.length > 0 && !before.some((each) => each.endsWith(KEPT)));
    const own = join(folder, isOurs ? name : name + KEPT);
    const code = tryTo(mkdirSync, own);
    if (code === null) {
      removeLeft(folder, before);
      return { folder, hold: own, isPlaceholder: isOurs };
    }
    // The last of the other sandboxes has just removed it.
    if (code !== 'ENOENT') return null;
  }
  return null;
}

/** Of launchers that were killed. */
function removeLeft(folder: string, names: readonly string[]): void {
  for (const name of names) {
    const [, launcher] = HOLD.exec(name) ?? [];
    if (launcher !== undefined && isLeft(launcher, identify)) tryTo(rmdirSync, join(folder, name));
  }
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

/** @returns the system's code of a failure, such as ENOTEMPTY where somebody uses a folder by now; null: it is done. */
function tryTo(change: (path: string) => unknown, path: string): string | null {
  try {
    change(path);
    return null;
  } catch (error) {
    return errorCode(error) || 'UNKNOWN';
  }
}
