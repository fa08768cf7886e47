import { statSync } from 'node:fs';
import { normalize } from 'node:path';
import type { ContainerRuntime } from '../../sandbox/engine/container_runtime.ts';
import { openEngine } from '../../sandbox/engine/open_engine.ts';
import {
  type Bubblewrap,
  findBubblewrap,
  machineFacts,
  probeBubblewrap,
} from '../../sandbox/bubblewrap/find_bubblewrap.ts';
import { REPLACED_FOLDERS, SYSTEM_FOLDERS } from '../../sandbox/bubblewrap/visible_paths.ts';
import { isAtOrBelow } from '../../sandbox/launch/mount_table.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import { PACKAGE_FOLDER, PACKAGE_PROGRAMS, placeInPackage } from '../servers/confined_container.ts';
import { CONTAINER_HOME, DEFAULT_RUNTIME_IMAGES, imageFor, type ProgramCommand } from '../servers/container_command.ts';

/** Where a server can run once without network, files and secrets (decision 0099). */
export type TrialPlace =
  | { readonly kind: 'container'; readonly runtime: ContainerRuntime; readonly image: string }
  | { readonly kind: 'sandbox'; readonly bubblewrap: Bubblewrap };

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * A container if this machine has an engine with the image of the server's package (`named`) or program (`npx` ...), else
 * bubblewrap. No image is fetched. The error says why there is neither.
 */
export async function findTrialPlace(
  program: string,
  named: string | null,
  env: Environment,
): Promise<Result<TrialPlace, string>> {
  const image = named === null ? imageFor(program, DEFAULT_RUNTIME_IMAGES) : ok(named);
  const runtime = image.ok ? await openEngine(env) : null;
  if (image.ok && runtime?.ok === true) {
    const found = await runtime.value.inspectImage(image.value);
    if (found.ok) return ok({ kind: 'container', runtime: runtime.value, image: found.value.id });
  }
  const found = findBubblewrap(machineFacts(env['PATH'] ?? ''));
  if (!found.ok) return err(found.error.message);
  const made = probeBubblewrap(found.value);
  return made.ok ? ok({ kind: 'sandbox', bubblewrap: found.value }) : err(made.error.message);
}

/** What runs in a sandbox of bubblewrap. */
interface SandboxedProgram {
  readonly command: readonly string[];
  readonly packageFolder: string;
  /** What it needs of the machine beside the system. */
  readonly needs: readonly string[];
  /** Node on this machine. */
  readonly node: string;
  /** A file with the filter of system calls. */
  readonly filter: string;
}

const NODE_FOLDER = '/opt/svc/node';
/** The PATH in the sandbox. The package's programs are last, as they are at each start. */
export const SANDBOX_PATH = `${NODE_FOLDER}:/usr/local/bin:/usr/bin:/bin:${PACKAGE_PROGRAMS}`;

/** The names of users, certificates and what the linker reads. No program of the system needs more of `/etc`. */
const READ_OF_ETC = [
  'passwd',
  'group',
  'nsswitch.conf',
  'ld.so.cache',
  'ld.so.conf',
  'ld.so.conf.d',
  'ssl/certs',
  'alternatives',
];
const FILTER = 3;
const WITH_FILTER = `exec "$@" ${FILTER}<"$0"`;

/** The program in a sandbox of its own: the system and the package read-only, an empty home, no network, and nothing else. */
export function sandboxCommand({ program }: Pick<Bubblewrap, 'program'>, run: SandboxedProgram): ProgramCommand {
  const { command, packageFolder, needs, node, filter } = run;
  const system = SYSTEM_FOLDERS.filter((path) => !['/etc', '/opt'].includes(path));
  const args = [
    ...['user', 'pid', 'ipc', 'uts', 'net'].map((name) => `--unshare-${name}`),
    '--unshare-cgroup-try',
    '--die-with-parent',
    '--cap-drop',
    'ALL',
    '--seccomp',
    String(FILTER),
    ...system.flatMap((path) => bindReadOnly(path)),
    ...READ_OF_ETC.flatMap((name) => bindReadOnly(`/etc/${name}`)),
    '--proc',
    '/proc',
    '--dev',
    '/dev',
    ...['/tmp', CONTAINER_HOME].flatMap((path) => ['--tmpfs', path]),
    ...emptyFoldersOf(command).flatMap((path) => ['--dir', path]),
    ...needs
      .filter((path) => !SYSTEM_FOLDERS.some((folder) => isAtOrBelow(path, folder)))
      .flatMap((path) => bindReadOnly(path)),
    ...bindReadOnly(packageFolder, PACKAGE_FOLDER),
    ...bindReadOnly(node, `${NODE_FOLDER}/node`),
    '--chdir',
    CONTAINER_HOME,
    '--',
    ...command.map((word) => placeInPackage(word, packageFolder)),
  ];
  return { program: '/bin/sh', args: ['-c', WITH_FILTER, filter, program, ...args] };
}

function bindReadOnly(path: string, target = path): readonly string[] {
  return ['--ro-bind-try', path, target];
}

/**
 * The folders of this machine that a command names. Many servers end without the folder that they serve, so the trial has an
 * empty one in its place. A part of the system stays what it is.
 */
export function emptyFoldersOf(command: readonly string[]): readonly string[] {
  return command.slice(1).filter((word) => {
    if (!word.startsWith('/') || word !== normalize(word) || word.includes(':') || isOfPlace(word)) return false;
    return statSync(word, { throwIfNoEntry: false })?.isDirectory() === true;
  });
}

const OF_PLACE = [...SYSTEM_FOLDERS, ...REPLACED_FOLDERS, CONTAINER_HOME];

function isOfPlace(path: string): boolean {
  const isPart = OF_PLACE.some((folder) => isAtOrBelow(path, folder) || isAtOrBelow(folder, path));
  return isPart || isAtOrBelow('/tmp', path);
}
