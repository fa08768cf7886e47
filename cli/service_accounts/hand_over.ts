import { randomBytes } from 'node:crypto';
import { copyFileSync, constants, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { errorCode, SYSTEM_REASONS } from '../../shared/model/error_code.ts';
import { type SessionAccess, sessionEnvironment } from '../../sandbox/launch/session_environment.ts';
import { CliError, EXIT } from '../exit_codes.ts';

/** Written last: once it is there, the others are. */
const SCRIPT = 'env.sh';
const JSON_FILE = 'env.json';
const ROOTS = 'ca.pem';

/** Runs while the session lasts, and ends in order at the first signal. */
export const WAITING: readonly [string, ...string[]] = [
  '/bin/sh',
  '-c',
  'trap \'kill "$!" 2>/dev/null; exit 0\' TERM INT HUP; while :; do sleep 3600 & wait "$!"; done',
];

/**
 * Refuses what is no folder before anything is asked for. Removes the session of a container that was killed: it is over, and the
 * next one may be minutes away.
 */
export function openFolder(folder: string): void {
  if (statSync(folder, { throwIfNoEntry: false })?.isDirectory() !== true) {
    throw new CliError(EXIT.usage, `--hand-over ${folder} is not a folder`, [
      'Name an empty one that the agent sees at the same path.',
    ]);
  }
  try {
    takeBack(folder);
  } catch (error) {
    throw notWritable(folder, error);
  }
}

/**
 * Writes what a session gives a program into a folder: for one in another container of the same pod, which shares the network and sees
 * the folder at the same path. Nothing of this process's own environment is in it.
 */
export function handOver(folder: string, session: SessionAccess): void {
  const variables = sessionEnvironment({}, { ...session, caBundlePath: join(folder, ROOTS) });
  const lines = Object.entries(variables).map(([name, value]) => `export ${name}=${quoted(value)}\n`);
  try {
    put(folder, ROOTS, (file) => copyFileSync(session.caBundlePath, file, constants.COPYFILE_EXCL));
    put(folder, JSON_FILE, (file) => writeFileSync(file, `${JSON.stringify(variables, null, 2)}\n`, { flag: 'wx' }));
    put(folder, SCRIPT, (file) => writeFileSync(file, lines.join(''), { flag: 'wx' }));
  } catch (error) {
    throw notWritable(folder, error);
  }
}

function notWritable(folder: string, error: unknown): CliError {
  const reason = SYSTEM_REASONS[errorCode(error)] ?? errorCode(error);
  return new CliError(EXIT.notStarted, `the session cannot be written into ${folder}: ${reason}`, [
    'The folder has to be writable for the user of this container, such as by fsGroup.',
  ]);
}

/** Takes it away: the session is over. */
export function takeBack(folder: string): void {
  for (const name of [SCRIPT, JSON_FILE, ROOTS]) rmSync(join(folder, name), { force: true });
}

/** Under a name that nobody can have put a link at, then in place. */
function put(folder: string, name: string, write: (file: string) => void): void {
  const draft = join(folder, `.${randomBytes(16).toString('hex')}`);
  write(draft);
  renameSync(draft, join(folder, name));
}

function quoted(value: string): string {
  return `'${value.replaceAll("'", String.raw`'\''`)}'`;
}
