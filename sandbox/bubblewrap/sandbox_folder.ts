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
  return `${pid}-${started ?? '0'}`;
}

/** The launcher that a folder's name tells; null if it is not the name of one. */
export function launcherOf(name: string): ProcessIdentity | null {
  const [, pid, started] = SANDBOX_FOLDER_NAME.exec(name) ?? [];
  return pid === undefined || started === undefined ? null : { pid: Number(pid), started };
}
