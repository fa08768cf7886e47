import { join } from 'node:path';
import { z } from 'zod';
import { serversDirectory } from '../../machine/server_directories.ts';
import { readPrivateFile, writePrivateFile } from '../../machine/state_file.ts';
import { parseJson } from '../../shared/model/json.ts';
import type { McpServer } from '../../shared/model/mcp_server.ts';
import { launchHash } from '../routing/kept_lists.ts';

const keptRevision = z.strictObject({
  version: z.literal(1),
  /** SHA-256 of what the server was started from. */
  launch: z.string(),
  /** When the server is asked again, in milliseconds since the epoch. */
  until: z.number(),
});

/** A server may learn a newer revision without a change of its configuration. */
const KEPT_MS = 7 * 24 * 3_600_000;
/** Of a server that was silent, which may only have started slowly. */
const GUESS_KEPT_MS = 3_600_000;

/**
 * The servers that speak an earlier revision, in `$SVC_HOME/mcp/servers/<id>/revision.json`: asking one that does not answer takes
 * long at each start.
 */
export class KeptRevisions {
  readonly #mcpHome: string;
  readonly #now: () => number;

  constructor(mcpHome: string, now: () => number) {
    this.#mcpHome = mcpHome;
    this.#now = now;
  }

  /** True if this configuration is known to speak an earlier revision. */
  isLegacy(server: McpServer): boolean {
    const text = readPrivateFile(this.#path(server));
    const parsed = keptRevision.safeParse(text.ok && text.value !== null ? parseJson(text.value) : undefined);
    if (!parsed.success) return false;
    const { launch, until } = parsed.data;
    const left = until - this.#now();
    return launch === launchHash(server, '') && left > 0 && left <= KEPT_MS;
  }

  /**
   * Keeps that it was asked, and speaks an earlier revision; `isGuess` if it did not answer, so that this is only assumed. A failure
   * only means that it is asked again.
   */
  async keepLegacy(server: McpServer, isGuess: boolean): Promise<void> {
    const until = this.#now() + (isGuess ? GUESS_KEPT_MS : KEPT_MS);
    const kept = { version: 1, launch: launchHash(server, ''), until };
    await writePrivateFile(this.#path(server), `${JSON.stringify(kept)}\n`).catch(() => undefined);
  }

  #path({ id }: McpServer): string {
    return join(serversDirectory(this.#mcpHome), id, 'revision.json');
  }
}
