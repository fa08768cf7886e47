import type { ProcessIdentity } from '../../machine/process_identity.ts';

/** In the state directory: a folder for each running sandbox, which alone sees it. The sidecar listens there. */
export const SANDBOXES = 'sandboxes';
/** The proxy's socket in it. */
export const PROXY_SOCKET = 'proxy.sock';
/** The session's roots. */
export const CA_FILE = 'ca.pem';

/** A folder's name: its launcher's process id and start time. It is no path. */
export const SANDBOX_FOLDER_NAME = /^(\d{1,10})-(\d{1,20})$/;

export function sandboxFolderName({ pid, started }: ProcessIdentity): string {
  return `${pid}-${started === null ? '0' : startNumber(started)}`;
}

/** Ticks since the start of the machine as they are; what `ps` prints on macOS, a date without its zone, in milliseconds. */
function startNumber(started: string): string {
  if (/^\d{1,20}$/.test(started)) return started;
  const time = Date.parse(`${started} UTC`);
  return Number.isNaN(time) ? '0' : String(time);
}

/**
 * True if a folder has the name of one and its launcher, which `identify` looks for, surely does not run any more: the start time
 * of another user's process may be hidden.
 */
export function isLeft(name: string, identify: (pid: number) => ProcessIdentity | null): boolean {
  const [, pid] = SANDBOX_FOLDER_NAME.exec(name) ?? [];
  if (pid === undefined) return false;
  const running = identify(Number(pid));
  return running === null || (running.started !== null && sandboxFolderName(running) !== name);
}
