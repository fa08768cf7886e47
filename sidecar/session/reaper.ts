import { lstat, mkdir, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { CONTAINER_FILE, readContainerRecord, removeAllBut } from './container_record.ts';
import type { EngineAddress } from './sandbox.ts';
import type { SessionContainers } from './session_containers.ts';

export interface ReaperOptions {
  /** `$SVC_HOME/sessions`. */
  readonly directory: string;
  readonly containers: Pick<SessionContainers, 'removeOrphans'> | null;
  /** Whether a session of this run owns it. */
  readonly isLive: (sessionId: string) => boolean;
}

export const SESSION_NAME = /^ses_[0-9a-z]{26}$/;

interface LeftOver {
  readonly directory: string;
  readonly runtime: EngineAddress;
}

/**
 * Removes what the sessions of an earlier run left behind. Keys are gone when this resolves; `containers` resolves when the
 * engines have been asked to remove their containers. While an engine fails to, the folder stays with only the container's
 * record.
 */
export async function reapLeftOvers(options: ReaperOptions): Promise<{ readonly containers: Promise<unknown> }> {
  await mkdir(options.directory, { recursive: true, mode: 0o700 });
  const names = (await readdir(options.directory)).filter((name) => SESSION_NAME.test(name) && !options.isLive(name));
  const left = await Promise.all(names.map((name) => removeKeys(options.directory, name)));
  const byEngine = Map.groupBy(
    left.filter((one) => one !== null),
    ({ runtime }) => runtime.endpoint,
  );
  const removals = [...byEngine.values()].map((group) => removeContainers(options, group));
  return { containers: Promise.all(removals) };
}

/** Null if nothing is left of the session. */
async function removeKeys(sessions: string, name: string): Promise<LeftOver | null> {
  const directory = join(sessions, name);
  // A link is removed and never followed.
  const isFolder = (await lstat(directory)).isDirectory();
  const record = isFolder ? await readContainerRecord(directory) : null;
  if (record === null || record.sessionId !== name) {
    await rm(directory, { recursive: true, force: true });
    return null;
  }
  await removeAllBut(directory, CONTAINER_FILE);
  return { directory, runtime: record.runtime };
}

async function removeContainers({ containers, isLive }: ReaperOptions, group: readonly LeftOver[]): Promise<void> {
  const [first] = group;
  if (first === undefined || containers === null) return;
  const removed = await containers.removeOrphans(first.runtime, isLive);
  if (removed) await Promise.all(group.map(({ directory }) => rm(directory, { recursive: true, force: true })));
}
