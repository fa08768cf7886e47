import { readFileSync, statSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import type { RuntimeFailure } from '../../sandbox/engine/container_runtime.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import { errorCode } from '../../shared/model/error_code.ts';
import { identify, type ProcessIdentity } from '../../machine/process_identity.ts';
import { reachFailure } from './reach_failure.ts';
import type { Failure } from '../../shared/model/failure.ts';
import type { ReachFailureReason } from './reach_failure.ts';

/** A container's network namespace, held open so that it stays the checked one even if its process exits. */
export interface ContainerNamespace {
  readonly network: FileHandle;
  readonly user: FileHandle;
  /** The container's first process. */
  readonly process: ProcessIdentity;
  close(): Promise<void>;
}

export interface ContainerProcess {
  readonly pid: number;
  readonly containerId: string;
  /** Asks the engine; used only if the cgroup does not tell. Null while the container does not run. */
  readonly pidOf: () => Promise<Result<number | null, RuntimeFailure>>;
  /** `/proc`, except in tests. */
  readonly proc?: string;
}

/**
 * The process of a container, verified by its cgroup, or else by the engine and its mounts. The engine's word alone proves nothing:
 * the process ids of an engine in a virtual machine are those of other processes here.
 */
export async function checkContainerProcess(
  wanted: ContainerProcess,
): Promise<Result<ProcessIdentity, Failure<ReachFailureReason>>> {
  const { pid, containerId, proc = '/proc' } = wanted;
  const before = identify(pid);
  if (before === null) return err(goneFailure(pid));
  if (!namesContainer(readText(`${proc}/${pid}/cgroup`), containerId)) {
    const known = await wanted.pidOf();
    if (!known.ok) return err(reachFailure('engine_unavailable', known.error.message));
    const isNamed = known.value === pid && mountsFilesOf(readText(`${proc}/${pid}/mountinfo`), containerId);
    if (!isNamed) return err(otherProcessFailure(wanted));
  }
  const after = identify(pid);
  return after?.started === before.started ? ok(before) : err(goneFailure(pid));
}

/** Opens a container's network namespace by its first process, and verifies that it is the container's own. */
export async function openContainerNamespace(
  wanted: ContainerProcess,
): Promise<Result<ContainerNamespace, Failure<ReachFailureReason>>> {
  const { pid, proc = '/proc' } = wanted;
  const handles: FileHandle[] = [];
  const close = async (): Promise<void> => {
    await Promise.all(handles.map((handle) => handle.close()));
  };
  const refuse = async (problem: Failure<ReachFailureReason>): Promise<Result<never, Failure<ReachFailureReason>>> => {
    await close();
    return err(problem);
  };
  let network: FileHandle;
  let user: FileHandle;
  try {
    handles.push((network = await open(`${proc}/${pid}/ns/net`, 'r')));
    handles.push((user = await open(`${proc}/${pid}/ns/user`, 'r')));
  } catch (error) {
    const checked = await checkContainerProcess(wanted);
    return refuse(checked.ok ? forbiddenFailure(errorCode(error)) : checked.error);
  }
  // Checked after opening: detects a pid that was reused since the namespace was opened.
  const checked = await checkContainerProcess(wanted);
  if (!checked.ok) return refuse(checked.error);
  const { ino } = await network.stat();
  if (ino !== inodeOf(`${proc}/${pid}/ns/net`)) return refuse(goneFailure(pid));
  if (ino === inodeOf(`${proc}/self/ns/net`)) return refuse(sharedNetworkFailure());
  return ok({ network, user, process: checked.value, close });
}

/** Whether a process's cgroups (version 1 or 2) are a container's: one path segment is its id, `docker-<id>.scope` or `libpod-<id>`. */
export function namesContainer(cgroups: string, containerId: string): boolean {
  return cgroups.split('\n').some((line) => {
    const path = line.split(':').slice(2).join(':');
    return path
      .split('/')
      .some((part) => part === containerId || /^[a-z]+-([0-9a-f]{64})(?:\.scope)?$/.exec(part)?.[1] === containerId);
  });
}

/** Whether a process has files of a container mounted, such as its `resolv.conf`: every engine keeps them in a folder with the id. */
export function mountsFilesOf(mountinfo: string, containerId: string): boolean {
  return mountinfo.split('\n').some((line) => line.split(' ')[3]?.split('/').includes(containerId) === true);
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'latin1');
  } catch {
    return '';
  }
}

function inodeOf(path: string): number | null {
  return statSync(path, { throwIfNoEntry: false })?.ino ?? null;
}

function otherProcessFailure({ pid, containerId }: ContainerProcess): Failure<ReachFailureReason> {
  const message = `Process ${pid} is not known to belong to container ${containerId.slice(0, 12)}: neither its cgroup nor its mounts name it. svc supports an engine that runs its containers in a virtual machine only if that has another kernel release than this machine.`;
  return reachFailure('not_the_container', message);
}

function goneFailure(pid: number): Failure<ReachFailureReason> {
  return reachFailure('not_the_container', `Process ${pid} has ended, or its pid was reused.`);
}

function forbiddenFailure(code: string): Failure<ReachFailureReason> {
  const message = `The network namespace of the container cannot be opened (${code}): run the sidecar as root or with a rootless engine.`;
  return reachFailure('namespace_forbidden', message);
}

function sharedNetworkFailure(): Failure<ReachFailureReason> {
  const message = "The container is on the host's own network (--network host), so it cannot have its own proxy.";
  return reachFailure('shared_network', message);
}
