import { chmod, lstat, readdir, rmdir, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import type { SnapshotSource } from '../control/snapshot.ts';
import { errorCode } from '../../shared/model/error_code.ts';
import type { Clock } from '../../shared/model/clock.ts';
import { serversDirectory } from '../../machine/server_directories.ts';

interface ServerHomesOptions {
  /** `$SVC_HOME/mcp`. */
  readonly mcpHome: string;
  /** The existing servers, by id; null while unknown. */
  readonly findExisting: () => ReadonlySet<string> | null;
  /** Servers with processes that may still run, by id; null while unknown. */
  readonly findInUse: () => ReadonlySet<string> | null;
  /** Waits; resolves at once when the signal is aborted. */
  readonly pause: (ms: number, signal: AbortSignal) => Promise<void>;
  readonly warn: (message: string) => void;
}

const SERVER_ID = /^mcp_[0-9a-z]{26}$/;
const LOOK_AGAIN_MS = 5_000;

/** Removes the directories of deleted servers once none of their processes runs; also of servers that were deleted while this program did not run. */
export class ServerHomes {
  readonly #options: ServerHomesOptions;
  readonly #stopped = new AbortController();
  readonly #kept = new Set<string>();
  #isSweeping = false;
  #again = false;

  constructor(options: ServerHomesOptions) {
    this.#options = options;
  }

  /** Servers may have been deleted. */
  notify(): void {
    this.#again = true;
    if (!this.#isSweeping) void this.#sweepUntilDone();
  }

  /** The next start continues an interrupted removal. */
  stop(): void {
    this.#stopped.abort();
  }

  async #sweepUntilDone(): Promise<void> {
    const { pause, warn } = this.#options;
    const { signal } = this.#stopped;
    this.#isSweeping = true;
    try {
      while (this.#again && !signal.aborted) {
        this.#again = false;
        if (await this.sweep()) continue;
        this.#again = true;
        await pause(LOOK_AGAIN_MS, signal);
      }
    } catch (error) {
      warn(`The directories of MCP servers cannot be read (${errorCode(error) || 'unknown error'}).`);
    } finally {
      this.#isSweeping = false;
    }
  }

  /** Removes what can be removed now. False if there may be more to remove later. */
  async sweep(): Promise<boolean> {
    const existing = this.#options.findExisting();
    if (existing === null) return false;
    const gone = (await this.#listNames()).filter((name) => !existing.has(name) && !this.#kept.has(name));
    const used = gone.length === 0 ? new Set<string>() : this.#options.findInUse();
    if (used === null) return false;
    const removable = gone.filter((name) => !used.has(name));
    for (const name of removable) await this.#remove(name);
    return removable.length === gone.length;
  }

  /** A link in place of the directory was put there by somebody else: it is not followed. */
  async #listNames(): Promise<readonly string[]> {
    const directory = serversDirectory(this.#options.mcpHome);
    const isThere = await lstat(directory).then(
      (found) => found.isDirectory(),
      () => false,
    );
    return isThere ? (await readdir(directory)).filter((name) => SERVER_ID.test(name)) : [];
  }

  /** A failure is reported once, and left to a person. */
  async #remove(name: string): Promise<void> {
    const path = join(serversDirectory(this.#options.mcpHome), name);
    try {
      await removeTree(path);
    } catch (error) {
      this.#kept.add(name);
      const why = errorCode(error) || 'unknown error';
      this.#options.warn(`The directory of a deleted MCP server could not be removed (${why}): remove ${path}`);
    }
  }
}

export interface ExistingServersOptions {
  readonly policy: Pick<SnapshotSource, 'current' | 'status' | 'mcpServers' | 'listUnreadableMcpServers'>;
  readonly clock: Clock;
  /** When this program started; milliseconds since the epoch. */
  readonly startedAt: number;
}

/**
 * The existing servers, if the control plane has confirmed them to this process. A policy stored by an earlier run may be
 * old, and an unusable policy (this sidecar is revoked, or had no contact for too long) says nothing about them.
 */
export function findExistingServers({ policy, clock, startedAt }: ExistingServersOptions): ReadonlySet<string> | null {
  const [servers, status] = [policy.mcpServers(), policy.status()];
  if (!policy.current().ok || servers === null || status === null) return null;
  if ((status.ageSeconds + 1) * 1000 > clock.now() - startedAt) return null;
  const unreadable = policy.listUnreadableMcpServers().map(({ id }) => id);
  const ids = [...servers.map(({ server }) => server.id), ...unreadable];
  return ids.includes(null) ? null : new Set(ids.filter((id) => id !== null));
}

/**
 * Removes a directory with its whole content, also read-only parts. Links are removed, never followed. No process may still
 * run in it: a directory that is swapped during the removal is not detected.
 */
async function removeTree(path: string): Promise<void> {
  try {
    if (!(await lstat(path)).isDirectory()) return await unlink(path);
    await chmod(path, 0o700);
    for (const name of await readdir(path)) await removeTree(join(path, name));
    await rmdir(path);
  } catch (error) {
    if (errorCode(error) !== 'ENOENT') throw error;
  }
}
