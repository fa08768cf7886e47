import { mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { identify, type ProcessIdentity } from '../../machine/process_identity.ts';

/** In the state directory: a folder for each running sandbox, which alone sees it. The sidecar listens there. */
export const SANDBOXES = 'sandboxes';
/** The proxy's socket in it. */
export const PROXY_SOCKET = 'proxy.sock';
/** The session's roots. */
export const CA_FILE = 'ca.pem';

/** A folder's name: its launcher's process id and start time, and a number if it launches several. It is no path. */
export const SANDBOX_FOLDER_NAME = /^((\d{1,10})-\d{1,20})(-\d{1,10})?$/;

export function sandboxFolderName({ pid, started }: ProcessIdentity): string {
  return `${pid}-${started === null ? '0' : startNumber(started)}`;
}

/**
 * Makes the folder that one sandbox of this process alone sees, in the state directory `home`; `number` tells several apart. Those
 * of launchers that have ended are removed.
 */
export function makeSandboxFolder(home: string, number: number | null = null): { name: string; path: string } {
  const all = join(home, SANDBOXES);
  mkdirSync(all, { recursive: true, mode: 0o700 });
  for (const name of readdirSync(all)) {
    if (isLeft(name, identify)) rmSync(join(all, name), { recursive: true, force: true });
  }
  const launcher = sandboxFolderName(identify(process.pid) ?? { pid: process.pid, started: null });
  const name = number === null ? launcher : `${launcher}-${number}`;
  const path = join(all, name);
  // One without a number is of an earlier command of this process; with a number, it would be another sandbox's.
  if (number === null) rmSync(path, { recursive: true, force: true });
  mkdirSync(path, { mode: 0o700 });
  return { name, path };
}

/** Ticks since the start of the machine as they are; what `ps` prints on macOS, a date without its zone, in milliseconds. */
function startNumber(started: string): string {
  if (/^\d{1,20}$/.test(started)) return started;
  const time = Date.parse(`${started} UTC`);
  return Number.isNaN(time) ? '0' : String(time);
}

/**
 * True if a folder has the name of one and its launcher, which `find` looks for, surely does not run any more: the start time
 * of another user's process may be hidden.
 */
export function isLeft(name: string, find: (pid: number) => ProcessIdentity | null): boolean {
  const [, launcher, pid] = SANDBOX_FOLDER_NAME.exec(name) ?? [];
  if (pid === undefined) return false;
  const running = find(Number(pid));
  return running === null || (running.started !== null && sandboxFolderName(running) !== launcher);
}
