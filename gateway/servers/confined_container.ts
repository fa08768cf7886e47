import { join, relative } from 'node:path';
import { AGENT_HARDENING } from '../../sandbox/engine/agent_hardening.ts';
import type { BindMount, ContainerSpec } from '../../sandbox/engine/container_runtime.ts';
import { makeReadableByAll } from '../packages/package_folder.ts';
import { CONTAINER_HOME, CONTAINER_TMPFS } from './container_command.ts';

/** Where a container or a sandbox has the package of a server. */
export const PACKAGE_FOLDER = '/opt/svc/package';
/** The programs of its dependencies there. */
export const PACKAGE_PROGRAMS = `${PACKAGE_FOLDER}/node_modules/.bin`;

const USER = '65532:65532';

const CONFINEMENT = {
  memory: 1024,
  cpus: 2,
  tmpfs: CONTAINER_TMPFS,
} as const;

/**
 * Waits for a line, which is written before every message of the protocol, so that the program finds the proxy open. A shell
 * reads a pipe byte by byte, so the messages after the line are the program's. The package's programs are last on the PATH: none
 * takes the place of one of the image.
 */
const WAIT = 'read -r _ || exit 1; [ -z "$1" ] || PATH="$PATH:$1"; shift; exec "$@"';

interface ConfinedProgram {
  /** The image, by its id. */
  readonly image: string;
  readonly command: readonly string[];
  /** The folder of its installed package; null if the command needs none. */
  readonly packageFolder: string | null;
}

/** A server's container without a network, which has nothing of the machine but its package, read-only. */
export function confinedSpec(
  { image, command, packageFolder }: ConfinedProgram,
  { mounts, ...more }: Pick<ContainerSpec, 'labels' | 'env' | 'mounts'>,
  emptyFolders: readonly string[] = [],
): ContainerSpec {
  const programs = packageFolder === null ? '' : PACKAGE_PROGRAMS;
  const empty = emptyFolders.map((path) => `${path}:rw,nosuid,nodev,mode=1777,size=16m`);
  return {
    ...more,
    image,
    name: null,
    mounts: [...mounts, ...packageMount(packageFolder)],
    workdir: CONTAINER_HOME,
    user: USER,
    entrypoint: '/bin/sh',
    command: ['-c', WAIT, 'svc-mcp', programs, ...command.map((word) => placeInPackage(word, packageFolder))],
    tty: false,
    stdin: true,
    network: 'none',
    hardening: { ...AGENT_HARDENING, capabilities: [], pidsLimit: 256 },
    confinement: { ...CONFINEMENT, tmpfs: [...CONFINEMENT.tmpfs, ...empty] },
    removedAtEnd: true,
    enginesProxies: 'left_out',
  };
}

/** The store is closed to other users by the directory above, so its files may be readable for the container's user. */
function packageMount(folder: string | null): readonly BindMount[] {
  if (folder === null) return [];
  makeReadableByAll(folder);
  return [{ source: folder, target: PACKAGE_FOLDER, readOnly: true }];
}

/** Where the container finds a path of the package. */
export function placeInPackage(word: string, folder: string | null): string {
  return folder !== null && word.startsWith(`${folder}/`) ? join(PACKAGE_FOLDER, relative(folder, word)) : word;
}
