import { chmodSync, lstatSync, mkdirSync, readFileSync, statfsSync, statSync, type Stats } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { errorCode } from '../../shared/model/error_code.ts';
import { settingsOf, type CliContext, type GlobalOptions } from '../context.ts';
import { CliError, EXIT } from '../exit_codes.ts';

/** The state directory: `--home`, else `SVC_HOME`, else `~/.svc`; absolute. */
export function homeOf(context: CliContext, options: GlobalOptions): string {
  if (options.home === '') throw new CliError(EXIT.usage, '--home is empty: give a directory');
  const chosen = options.home ?? settingsOf(context).home;
  return chosen === undefined ? resolve(context.userHome, '.svc') : resolve(context.workingDirectory, chosen);
}

/**
 * Creates the state directory, or checks that only its owner can enter it, since it holds keys. A mode that is too wide is
 * changed to 0700; a directory of another owner is refused. Returns what was changed.
 */
export function prepareHome(home: string, uid: number | undefined): readonly string[] {
  const found = statOf(home);
  if (found === null) {
    createFolders(home);
    chmodSync(home, 0o700);
    requireSpace(home);
    return [];
  }
  if (!found.isDirectory()) {
    throw new CliError(EXIT.failed, `${home} is not a directory`, ['Choose another one with --home DIR.']);
  }
  refuseOther(home, found, uid);
  requireSpace(home);
  if ((found.mode & 0o077) === 0) return [];
  chmodSync(home, 0o700);
  return [`${home} was accessible to other users (mode ${modeText(found)}): changed to 0700`];
}

/**
 * Refuses a state directory of another user, if it exists. What stops svc reads processes and containers to end from its files,
 * which that user could have written.
 */
export function requireOwnHome(home: string, uid: number | undefined): void {
  const found = statIfThere(home);
  if (found !== undefined && !found.isDirectory()) {
    throw new CliError(EXIT.failed, `${home} is not a directory: nothing was stopped`, [
      'Name the state directory of your svc with --home DIR.',
    ]);
  }
  if (found === undefined || uid === undefined || found.uid === uid) return;
  throw new CliError(EXIT.failed, `${home} belongs to user ${found.uid}, not to you (${uid}): nothing was stopped`, [
    `Run the command as that user, or choose your own directory with --home DIR.`,
  ]);
}

function refuseOther(home: string, found: Stats, uid: number | undefined): void {
  if (uid === undefined || found.uid === uid) return;
  throw new CliError(
    EXIT.failed,
    `${home} belongs to user ${found.uid}, not to you (${uid}): its owner could read your keys`,
    ['Choose a directory of your own with --home DIR.'],
  );
}

/** Creates the missing folders one by one: a recursive mkdir does not end where the system refuses new names, as in /proc. */
function createFolders(path: string): void {
  const parent = dirname(path);
  if (parent !== path && statIfThere(parent) === undefined) createFolders(parent);
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    throw new CliError(EXIT.failed, `${path} cannot be created (${errorCode(error) || 'unknown reason'})`, [
      'Choose a directory that you may write to, with --home DIR.',
    ]);
  }
}

/** Less is used up by the first start. */
const LEAST_FREE_BYTES = 4 * 1024 * 1024;

/** That the disk of a directory is full; null if it is not. */
export function fullDiskText(home: string): string | null {
  const { bavail, bsize } = statfsSync(home);
  const freeBytes = bavail * bsize;
  return freeBytes >= LEAST_FREE_BYTES
    ? null
    : `the disk of ${home} is full: ${Math.floor(freeBytes / 1024)} KiB are free`;
}

/** Refuses a full disk before a program fails on it. */
function requireSpace(home: string): void {
  const full = fullDiskText(home);
  if (full === null) return;
  throw new CliError(EXIT.failed, full, ['Free some space, or choose another directory with --home DIR.']);
}

function statOf(path: string): Stats | null {
  const found = statIfThere(path);
  if (found !== undefined || !isThere(path)) return found ?? null;
  throw new CliError(EXIT.failed, `${path} is a link whose target does not exist`, [
    'Choose another directory with --home DIR.',
  ]);
}

function isThere(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch (error) {
    if (errorCode(error) !== 'ENOTDIR') throw error;
    return false;
  }
}

/** Below a file there is nothing. */
function statIfThere(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch (error) {
    if (errorCode(error) !== 'ENOTDIR') throw error;
    return undefined;
  }
}

/** `0644`. */
export function modeText(stats: { readonly mode: number }): string {
  return `0${(stats.mode & 0o777).toString(8)}`;
}

/**
 * Reads a file of the state directory; null if there is none. A file that cannot be read, as in another user's directory, says
 * nothing about what runs there.
 */
export function readStateText(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (errorCode(error) === 'ENOENT' || errorCode(error) === 'ENOTDIR') return null;
    throw new CliError(EXIT.failed, `${path} cannot be read (${errorCode(error)})`, [
      'Run the command as the owner of the state directory, or choose your own with --home DIR.',
    ]);
  }
}

/** Reads a token file of the state directory (mode 0600); null if there is none. */
export function readTokenFile(path: string): string | null {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats === undefined) return null;
  if ((stats.mode & 0o077) !== 0) {
    throw new CliError(EXIT.failed, `${path} can be read by other users (mode ${modeText(stats)})`, [
      `If you are sure that nobody has read it: chmod 600 ${path}`,
      'Otherwise stop svc, delete the file and start svc again, which creates a new one.',
    ]);
  }
  const text = readFileSync(path, 'utf8').trim();
  if (!/^[\x21-\x7e]{16,256}$/.test(text)) {
    throw new CliError(EXIT.failed, `${path} is damaged: it should contain one line with a token`, [
      'Stop svc, delete the file and start svc again, which creates a new one.',
    ]);
  }
  return text;
}
