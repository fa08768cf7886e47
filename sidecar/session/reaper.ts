import { lstat, mkdir, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { CONTAINER_FILE, readContainerRecord, removeAllBut } from './container_record.ts';
import type { EngineAddress } from './sandbox.ts';
import type { SessionContainers } from './session_containers.ts';

interface ReaperOptions {
  /** `$SVC_HOME/sessions`. */
  readonly directory: string;
  readonly containers: Pick<SessionContainers, 'removeOrphans'> | null;
  /** Whether a session of this run owns it. */
  readonly isLive: (sessionId: string) => boolean;
  readonly warn: (message: string) => void;
  /** Removes a folder with everything in it. */
  readonly remove?: (folder: string) => Promise<void>;
}

export const SESSION_NAME = /^ses_[0-9a-z]{26}$/;

interface LeftOver {
  readonly directory: string;
  readonly runtime: EngineAddress;
}

/**
 * Removes what the sessions of an earlier run left behind. Keys are gone when this resolves; `containers` resolves when the
 * engines have been asked to remove their containers. While an engine fails to, the folder stays with only the container's
 * record. A folder that cannot be removed is reported, and the others are removed.
 */
export async function reapLeftOvers(options: ReaperOptions): Promise<{ readonly containers: Promise<unknown> }> {
  await mkdir(options.directory, { recursive: true, mode: 0o700 });
  const names = (await readdir(options.directory)).filter((name) => SESSION_NAME.test(name) && !options.isLive(name));
  const left = await Promise.all(names.map((name) => removeKeys(options, name)));
  const byEngine = Map.groupBy(
    left.filter((one) => one !== null),
    ({ runtime }) => runtime.endpoint,
  );
  const removals = [...byEngine.values()].map((group) => removeContainers(options, group));
  return { containers: Promise.all(removals) };
}

/** Null if nothing is left of the session, or if it could not be removed. */
async function removeKeys(options: ReaperOptions, name: string): Promise<LeftOver | null> {
  const directory = join(options.directory, name);
  try {
    // A link is removed and never followed.
    const isFolder = (await lstat(directory)).isDirectory();
    const record = isFolder ? await readContainerRecord(directory) : null;
    if (record !== null && record.sessionId === name) {
      await removeAllBut(directory, CONTAINER_FILE);
      return { directory, runtime: record.runtime };
    }
  } catch (error) {
    options.warn(`${directory} of an earlier run could not be emptied: ${String(error)}`);
    return null;
  }
  await removeOne(options, directory);
  return null;
}

async function removeContainers(options: ReaperOptions, group: readonly LeftOver[]): Promise<void> {
  const { containers, isLive } = options;
  const [first] = group;
  if (first === undefined || containers === null) return;
  const removed = await containers.removeOrphans(first.runtime, isLive);
  if (removed) await Promise.all(group.map(({ directory }) => removeOne(options, directory)));
}

async function removeOne({ remove = removeFolder, warn }: ReaperOptions, directory: string): Promise<void> {
  try {
    await remove(directory);
  } catch (error) {
    warn(`${directory} of an earlier run could not be removed: ${String(error)}`);
  }
}

async function removeFolder(folder: string): Promise<void> {
  await rm(folder, { recursive: true, force: true });
}
