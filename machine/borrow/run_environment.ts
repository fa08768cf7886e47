import { statSync } from 'node:fs';
import { userInfo } from 'node:os';
import { join } from 'node:path';

/** Nothing that a person, a project or an agent can write to comes before the system's own folders, or after. */
const FIXED_PATH = '/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin';

/**
 * The environment of every borrowed program, apart from the variables of its consent. It is made of the system's own record of the
 * user, and of nothing that svc was started with.
 */
export function runEnvironment(): Readonly<Record<string, string>> {
  const { username, homedir, uid } = userInfo();
  const base = { PATH: FIXED_PATH, HOME: homedir, USER: username, LOGNAME: username, LANG: 'C.UTF-8' };
  const runtime = join('/run/user', String(uid));
  if (!isOwn(runtime, uid)) return base;
  const bus = join(runtime, 'bus');
  const session = isOwn(bus, uid) ? { DBUS_SESSION_BUS_ADDRESS: `unix:path=${bus}` } : {};
  return { ...base, XDG_RUNTIME_DIR: runtime, ...session };
}

function isOwn(path: string, uid: number): boolean {
  const stats = statSync(path, { throwIfNoEntry: false });
  return stats !== undefined && stats.uid === uid && (stats.isSocket() || (stats.mode & 0o077) === 0);
}
