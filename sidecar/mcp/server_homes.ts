import { lstat, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { SnapshotSource } from '../control/snapshot.ts';
import { errorCode } from '../../shared/model/error_code.ts';
import type { Clock } from '../../shared/model/clock.ts';
import { serversDirectory } from '../../machine/server_directories.ts';
import { removeTree } from './remove_tree.ts';

export interface ServerHomesOptions {
  /** `$SVC_HOME/mcp`. */
  readonly mcpHome: string;
  /** The servers that there are, by id; null while that is not known. */
  readonly existing: () => ReadonlySet<string> | null;
  /** Those of which something may run, by id; null when that cannot be told. */
  readonly inUse: () => ReadonlySet<string> | null;
  /** Waits; resolves at once when the signal is aborted. */
  readonly pause: (ms: number, signal: AbortSignal) => Promise<void>;
  readonly warn: (message: string) => void;
}

const SERVER_ID = /^mcp_[0-9a-z]{26}$/;
const LOOK_AGAIN_MS = 5_000;

/** Removes the directories of servers that are gone, once nothing of them runs; also of those that went while nobody looked. */
export class ServerHomes {
  readonly #options: ServerHomesOptions;
  readonly #stopped = new AbortController();
  readonly #kept = new Set<string>();
  #isSweeping = false;
  #again = false;

  constructor(options: ServerHomesOptions) {
    this.#options = options;
  }

  /** Servers may have gone. */
  notify(): void {
    this.#again = true;
    if (!this.#isSweeping) void this.#sweepUntilDone();
  }

  /** What is left of a removal goes with the next start. */
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
      warn(`The directories of MCP servers cannot be looked at (${errorCode(error) || 'unknown error'}).`);
    } finally {
      this.#isSweeping = false;
    }
  }

  /** Removes what can be removed now. False when there may be more of it later. */
  async sweep(): Promise<boolean> {
    const existing = this.#options.existing();
    if (existing === null) return false;
    const gone = (await this.#names()).filter((name) => !existing.has(name) && !this.#kept.has(name));
    const used = gone.length === 0 ? new Set<string>() : this.#options.inUse();
    if (used === null) return false;
    const removable = gone.filter((name) => !used.has(name));
    for (const name of removable) await this.#remove(name);
    return removable.length === gone.length;
  }

  /** A link in the place of the directory is somebody else's: nothing is looked for behind it. */
  async #names(): Promise<readonly string[]> {
    const directory = serversDirectory(this.#options.mcpHome);
    const isThere = await lstat(directory).then(
      (found) => found.isDirectory(),
      () => false,
    );
    return isThere ? (await readdir(directory)).filter((name) => SERVER_ID.test(name)) : [];
  }

  /** One that cannot be removed is told once, and left to a person. */
  async #remove(name: string): Promise<void> {
    const path = join(serversDirectory(this.#options.mcpHome), name);
    try {
      await removeTree(path);
    } catch (error) {
      this.#kept.add(name);
      const why = errorCode(error) || 'unknown error';
      this.#options.warn(`The directory of an MCP server that is gone could not be removed (${why}): remove ${path}`);
    }
  }
}

export interface ExistingServersOptions {
  readonly policy: Pick<SnapshotSource, 'current' | 'status' | 'mcpServers' | 'unreadableMcpServers'>;
  readonly clock: Clock;
  /** When this program began; milliseconds since the epoch. */
  readonly startedAt: number;
}

/**
 * The servers that there are, when the control plane has said so to this very program: what was kept from a run before may be
 * old, and a policy that may not be used (this sidecar is revoked, or has not heard for too long) tells nothing about them.
 */
export function existingServers({ policy, clock, startedAt }: ExistingServersOptions): ReadonlySet<string> | null {
  const [servers, status] = [policy.mcpServers(), policy.status()];
  if (!policy.current().ok || servers === null || status === null) return null;
  if ((status.ageSeconds + 1) * 1000 > clock.now() - startedAt) return null;
  const unreadable = policy.unreadableMcpServers().map(({ id }) => id);
  const ids = [...servers.map(({ server }) => server.id), ...unreadable];
  return ids.includes(null) ? null : new Set(ids.filter((id) => id !== null));
}
