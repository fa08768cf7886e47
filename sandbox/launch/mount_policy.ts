import { isAbsolute, resolve, posix } from 'node:path';
import { err, ok, type Result } from '../../shared/model/result.ts';
import type { BindMount } from '../engine/container_runtime.ts';
import { isAtOrBelow, isWithin, type MountTable } from './mount_table.ts';

/** The default mount point of the working directory (design section 9). */
export const WORKSPACE = '/home/agent/workspace';

/** `realpath` that returns null for a missing path. */
type RealPath = (path: string) => string | null;

/** The limits of mounts (decision 0020). */
export interface MountPolicy {
  /** The base of a relative source. */
  readonly workingDirectory: string;
  /** Paths that a container must not reach: the state directory, and the sockets and state of engines. */
  readonly guarded: readonly { readonly path: string; readonly name: string }[];
  readonly realPath: RealPath;
  /** The mount table, used to detect bind mounts; null or absent if the system has none. */
  readonly mountTable?: MountTable | null;
}

/** Trees of the kernel, which expose the host's processes and devices. */
const KERNEL_TREES = ['/proc', '/sys', '/dev'];
/** Paths in the container that the start needs. Neither they nor their parents may be covered by a mount. */
const RELIED_ON = [
  '/etc/svc',
  '/run/svc',
  '/usr/local/bin',
  '/usr/local/share/svc',
  '/bin',
  '/sbin',
  '/lib',
  '/usr/bin',
];
/** Inside the container: no mount may be here or below. */
const CLOSED = ['/etc/svc', '/run/svc', '/usr/local/share/svc', ...KERNEL_TREES];

/** Parses `HOST:CONTAINER` or `HOST:CONTAINER:ro`. The source may still be relative and contain links. */
export function parseMount(text: string): Result<BindMount, string> {
  const shown = JSON.stringify(text);
  const parts = text.split(':');
  const mode = parts.length === 3 ? parts[2] : undefined;
  const [source = '', target = ''] = parts;
  if (parts.length < 2 || parts.length > 3 || source === '' || target === '') {
    return err(`is ${shown}: write HOST:CONTAINER or HOST:CONTAINER:ro (a path with a colon cannot be mounted)`);
  }
  if (mode !== undefined && mode !== 'ro' && mode !== 'rw') {
    return err(`is ${shown}: after the second colon only \`ro\` (read-only) or \`rw\` may stand`);
  }
  if (!target.startsWith('/')) return err(`is ${shown}: the path in the container must be absolute, such as /data`);
  if (/\p{Cc}/u.test(text)) return err(`is ${shown}: a path may not hold a control character`);
  return ok({ source, target: withoutTrailingSlash(posix.normalize(target)), readOnly: mode === 'ro' });
}

/** The mount with its source resolved, if the policy allows it; else a sentence with the problem and the fix. */
export function checkMount(mount: BindMount, policy: MountPolicy): Result<BindMount, string> {
  const target = targetProblem(mount.target);
  if (target !== null) return err(target);
  const asked = isAbsolute(mount.source) ? mount.source : resolve(policy.workingDirectory, mount.source);
  const source = policy.realPath(asked);
  if (source === null) return err(`the source ${JSON.stringify(asked)} does not exist: create it, or correct the path`);
  const problem = sourceProblem(source, policy);
  if (problem === null) return ok({ ...mount, source });
  const through = source === asked ? '' : ` (through ${JSON.stringify(asked)})`;
  return err(`the source ${JSON.stringify(source)}${through} ${problem}`);
}

/** Checks every mount; two with the same target are refused. */
export function checkMounts(mounts: readonly BindMount[], policy: MountPolicy): Result<readonly BindMount[], string> {
  const checked: BindMount[] = [];
  for (const mount of mounts) {
    const one = checkMount(mount, policy);
    if (!one.ok) return one;
    if (checked.some(({ target }) => target === mount.target)) {
      return err(`two mounts go to ${JSON.stringify(mount.target)}: give each a place of its own`);
    }
    checked.push(one.value);
  }
  return ok(checked);
}

function sourceProblem(source: string, policy: MountPolicy): string | null {
  if (source === '/') return 'is the whole file system: mount the directory that the agent works in';
  const tree = KERNEL_TREES.find((path) => isAtOrBelow(source, path));
  if (tree !== undefined) return `lies in ${tree}, which leads to the host itself: mount the data that is needed`;
  for (const { path, name } of policy.guarded) {
    for (const real of new Set([path, policy.realPath(path) ?? path])) {
      if (exposesByBindMount(source, real, policy.mountTable ?? null)) {
        return `is, lies in or contains a bind mount of ${name} (${real}), which no container may reach`;
      }
      if (isAtOrBelow(source, real)) return `is or lies in ${name} (${real}), which no container may reach`;
      if (isAtOrBelow(real, source)) {
        return `contains ${name} (${real}), which no container may reach: mount a directory below it, such as the project's`;
      }
    }
  }
  return null;
}

function targetProblem(target: string): string | null {
  const shown = JSON.stringify(target);
  const closed = CLOSED.find((path) => isAtOrBelow(target, path));
  if (closed !== undefined) return `the place ${shown} lies in ${closed}, which is not for mounts: choose another`;
  const covered = RELIED_ON.find((path) => isAtOrBelow(path, target));
  if (covered !== undefined)
    return `the place ${shown} would cover ${covered} of the image: choose one below /home or /mnt`;
  return null;
}

/** Whether a resolved source exposes the guarded path, a part of it or its parent, under another name. */
export function exposesByBindMount(source: string, real: string, mountTable: MountTable | null): boolean {
  if (mountTable === null || isAtOrBelow(source, real) || isAtOrBelow(real, source)) return false;
  const [guarded] = mountTable.listDevicePaths(real);
  if (guarded === undefined) return false;
  return mountTable.listDevicePaths(source).some((place) => isWithin(place, guarded) || isWithin(guarded, place));
}

function withoutTrailingSlash(path: string): string {
  return path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path;
}
