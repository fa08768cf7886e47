import { closeSync, constants, fstatSync, lstatSync, openSync, readdirSync, readSync } from 'node:fs';
import { join } from 'node:path';

const SESSION_NAME = /^ses_[0-9a-z]{26}$/;
const MOST_BYTES = 1024 * 1024;

/** The folders of the sessions of a state directory. Links and everything else in there are left out. */
export function listSessionFolders(home: string): readonly { readonly id: string; readonly path: string }[] {
  const directory = join(home, 'sessions');
  if (!isFolder(directory)) return [];
  const names = readdirSync(directory).filter((name) => SESSION_NAME.test(name));
  return names.map((id) => ({ id, path: join(directory, id) })).filter(({ path }) => isFolder(path));
}

/**
 * Reads a file that programs of the same user can replace; null if it is not a regular file of a plausible size. A link is not
 * followed, and a named pipe does not block.
 */
export function readRegularFile(path: string): string | null {
  let file: number;
  try {
    file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch {
    return null;
  }
  try {
    const { size } = fstatSync(file);
    if (!fstatSync(file).isFile() || size > MOST_BYTES) return null;
    const bytes = Buffer.alloc(size);
    return bytes.subarray(0, readSync(file, bytes, 0, size, 0)).toString('utf8');
  } catch {
    return null;
  } finally {
    closeSync(file);
  }
}

function isFolder(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}
