import { lstatSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { readRegularFile } from '../../machine/regular_file.ts';

const SESSION_NAME = /^ses_[0-9a-z]{26}$/;
const MOST_BYTES = 1024 * 1024;

/** The folders of the sessions of a state directory. Links and everything else in there are left out. */
export function listSessionFolders(home: string): readonly { readonly id: string; readonly path: string }[] {
  const directory = join(home, 'sessions');
  if (!isFolder(directory)) return [];
  const names = readdirSync(directory).filter((name) => SESSION_NAME.test(name));
  return names.map((id) => ({ id, path: join(directory, id) })).filter(({ path }) => isFolder(path));
}

/** Reads a file that programs of the same user can replace; null if it is not a regular file of a plausible size. */
export function readSessionText(path: string): string | null {
  const file = readRegularFile(path, MOST_BYTES);
  return file.ok ? file.value.bytes.toString('utf8') : null;
}

function isFolder(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}
