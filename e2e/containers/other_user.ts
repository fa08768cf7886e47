import { chownSync, mkdirSync, mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT, runOk } from '../support/program.ts';
import { asUser, SVC_DIRECTLY } from './run_as.ts';

const USER = 'svc-e2e';
const FOLDERS = ['run', 'home', 'tmp', 'checkout'];

/** The environment of another user's shell. */
export interface Person {
  readonly uid: number;
  readonly folder: string;
  readonly env: Readonly<Record<string, string>>;
  /** Beside their own: the group of an engine's socket. */
  readonly groups: readonly number[];
}

/** The user of the tests, with new folders, the engine's client, and the engine's address for that folder. */
export async function makePerson(
  client: string,
  engineOf: (folder: string) => string,
  groups: readonly number[] = [],
): Promise<Person> {
  const [, , uid = '', , , home = ''] = (await runOk('getent', ['passwd', USER])).stdout.split(':');
  const folder = mkdtempSync(join(home, 'engine-'));
  for (const name of FOLDERS) mkdirSync(join(folder, name), { mode: 0o700 });
  for (const name of ['', ...FOLDERS]) chownSync(join(folder, name), Number(uid), Number(uid));
  const env = {
    HOME: home,
    USER,
    XDG_RUNTIME_DIR: join(folder, 'run'),
    DOCKER_HOST: engineOf(folder),
    SVC_HOME: join(folder, 'home'),
    TMPDIR: join(folder, 'tmp'),
    PATH: `${client}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin`,
  };
  return { uid: Number(uid), folder, env, groups };
}

/**
 * The command that runs svc as the user from a checkout in the user's folder: programs in the engine's user namespace no longer
 * have root's rights, and the checkout may be in a folder that only root can read. It is mounted for that process only, so
 * nothing has to be undone.
 */
export function svcOf(person: Person): readonly [string, ...string[]] {
  return withCheckout(person, SVC_DIRECTLY);
}

/** The same for any program; what is in the checkout is in the user's. */
export function withCheckout({ uid, folder }: Person, command: readonly string[]): readonly [string, ...string[]] {
  const checkout = join(folder, 'checkout');
  const mounted = 'mount --bind "$1" "$2" && shift 2 && exec "$@"';
  const there = command.map((path) => (path.startsWith(ROOT) ? join(checkout, path.slice(ROOT.length)) : path));
  return ['unshare', '--mount', 'sh', '-c', mounted, 'sh', ROOT, checkout, ...asUser(uid), ...there];
}
