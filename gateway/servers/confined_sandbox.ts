import { KERNEL_SETTINGS, SYSTEM_FOLDERS } from '../../sandbox/bubblewrap/visible_paths.ts';
import type { Bubblewrap } from '../../sandbox/bubblewrap/find_bubblewrap.ts';
import { isAtOrBelow } from '../../sandbox/launch/mount_table.ts';
import { PACKAGE_FOLDER, PACKAGE_PROGRAMS, placeInPackage } from './confined_container.ts';
import { CONTAINER_HOME, type ProgramCommand } from './container_command.ts';

/** A program in a sandbox of bubblewrap. */
interface ConfinedProgram {
  readonly command: readonly string[];
  /** The folder of its installed package; null if the command needs none. */
  readonly packageFolder: string | null;
  /** What it needs of the machine beside the system. */
  readonly needs: readonly string[];
  /** Node on this machine. */
  readonly node: string;
  /** A file with the filter of system calls. */
  readonly filter: string;
  /** Folders that are there, empty and writable. */
  readonly emptyFolders?: readonly string[];
  /** Shown read-only, each at its place in the sandbox. */
  readonly files?: readonly { readonly source: string; readonly target: string }[];
  /** What starts the command, with its arguments. */
  readonly starter?: readonly string[];
}

/** The folders of the system that are there. Of `/etc` a few files are; `/opt` has programs of other vendors, and often their settings. */
export const SANDBOX_SYSTEM = SYSTEM_FOLDERS.filter((path) => !['/etc', '/opt'].includes(path));

const NODE_FOLDER = '/opt/svc/node';
/** Node in the sandbox. */
export const SANDBOX_NODE = `${NODE_FOLDER}/node`;
/** The folders of the system's programs. */
export const SYSTEM_PROGRAMS = ['/usr/local/bin', '/usr/bin', '/bin'];
/** The PATH in the sandbox. The package's programs are last, as they are at each start. */
export const SANDBOX_PATH = [NODE_FOLDER, ...SYSTEM_PROGRAMS, PACKAGE_PROGRAMS].join(':');

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
const TMPFS_BYTES = 1024 * 1024 * 1024;
const FILTER = 3;
const WITH_FILTER = `exec "$@" ${FILTER}<"$0"`;
/**
 * A signal to the process group would end bubblewrap, and the sandbox with it, before the program could decide. The starter gives the
 * program the usual reactions again.
 */
const SHIELDED = 'trap "" INT HUP TERM;';

/** The program in a sandbox of its own: the system and the package read-only, an empty home, no network, and nothing else. */
export function sandboxCommand(
  { program, limitsSizes = false }: Pick<Bubblewrap, 'program' | 'limitsSizes'>,
  run: ConfinedProgram,
): ProgramCommand {
  const { command, packageFolder, needs, node, filter, emptyFolders = [], files = [], starter = [] } = run;
  // As in a container. Otherwise each could take half of the machine's memory.
  const size = limitsSizes ? ['--size', String(TMPFS_BYTES)] : [];
  const args = [
    ...['user', 'pid', 'ipc', 'uts', 'net'].map((name) => `--unshare-${name}`),
    '--unshare-cgroup-try',
    '--die-with-parent',
    '--cap-drop',
    'ALL',
    '--seccomp',
    String(FILTER),
    ...SANDBOX_SYSTEM.flatMap((path) => bindReadOnly(path)),
    ...READ_OF_ETC.flatMap((name) => bindReadOnly(`/etc/${name}`)),
    '--proc',
    '/proc',
    ...KERNEL_SETTINGS.flatMap((path) => bindReadOnly(path)),
    '--dev',
    '/dev',
    ...['/tmp', CONTAINER_HOME, ...emptyFolders].flatMap((path) => [...size, '--tmpfs', path]),
    ...needs
      .filter((path) => !SANDBOX_SYSTEM.some((folder) => isAtOrBelow(path, folder)))
      .flatMap((path) => bindReadOnly(path)),
    ...(packageFolder === null ? [] : bindReadOnly(packageFolder, PACKAGE_FOLDER)),
    ...bindReadOnly(node, SANDBOX_NODE),
    ...files.flatMap(({ source, target }) => ['--ro-bind', source, target]),
    // The folders that hold these mounts: nothing is writable but the home and /tmp.
    '--remount-ro',
    '/',
    '--chdir',
    CONTAINER_HOME,
    '--',
    ...starter,
    ...command.map((word) => placeInPackage(word, packageFolder)),
  ];
  const script = starter.length === 0 ? WITH_FILTER : `${SHIELDED} ${WITH_FILTER}`;
  return { program: '/bin/sh', args: ['-c', script, filter, program, ...args] };
}

function bindReadOnly(path: string, target = path): readonly string[] {
  return ['--ro-bind-try', path, target];
}
