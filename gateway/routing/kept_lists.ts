import { join } from 'node:path';
import type { Prompt } from '@modelcontextprotocol/client';
import { z } from 'zod';
import { readPrivateFile, writePrivateFile } from '../../machine/state_file.ts';
import { sha256Hex } from '../../machine/sha256.ts';
import { serversDirectory } from '../../machine/server_directories.ts';
import { parseJson } from '../../shared/model/json.ts';
import type { McpServer } from '../../shared/model/mcp_server.ts';
import { isListed, type Listable, type Listed } from './server_lists.ts';

/**
 * The `_meta` key of what was listed in an earlier run, by a server that is still starting. Of a whole list: the names of the
 * servers that are left out because they are starting.
 */
export const STARTING_META = 'svc/starting';

const INSTRUCTIONS = 'instructions';
const MAX_CHARACTERS = 4 * 1024 * 1024;
const keptList = z.strictObject({
  version: z.literal(1),
  /** SHA-256 of what the server was started from: another program, or another account, has other tools. */
  launch: z.string(),
  /** SHA-256 of the items. */
  hash: z.string(),
  items: z.array(z.looseObject({})),
});
const metaHolder = z.looseObject({ _meta: z.looseObject({}).optional().catch(undefined) });

/**
 * What each server listed when it ran last, in `$SVC_HOME/mcp/servers/<id>`, so that a client does not wait for a slow start.
 * The lists are those that clients got: credentials are masked, hidden characters are written out.
 */
export class KeptLists {
  readonly #mcpHome: string;
  readonly #written = new Map<string, string>();

  constructor(mcpHome: string) {
    this.#mcpHome = mcpHome;
  }

  /** The list of the last run, marked as such; null if there is none for this configuration. */
  read<K extends Listable>(kind: K, server: McpServer, credentials: string): readonly Listed[K][] | null {
    return this.#read(kind, this.#path(kind, server), launchHash(server, credentials));
  }

  /** The instructions of the last run; null if it had none, or another configuration. */
  readInstructions(server: McpServer, credentials: string): Prompt | null {
    const kept = this.#read('prompts', this.#path(INSTRUCTIONS, server), launchHash(server, credentials));
    const [found = null] = kept ?? [];
    return found;
  }

  #read<K extends Listable>(kind: K, path: string, launch: string): readonly Listed[K][] | null {
    const text = readPrivateFile(path);
    const parsed = keptList.safeParse(text.ok && text.value !== null ? parseJson(text.value) : undefined);
    if (!parsed.success || parsed.data.launch !== launch) return null;
    const { items, hash } = parsed.data;
    if (sha256Hex(JSON.stringify(items)) !== hash) return null;
    return items
      .map((item) => {
        const { _meta: meta } = metaHolder.parse(item);
        return { ...item, _meta: { ...meta, [STARTING_META]: true } };
      })
      .filter((item): item is typeof item & Listed[K] => isListed(kind, item));
  }

  /** Keeps a list. A failure only means that the next slow start has no list. */
  write<K extends Listable>(
    kind: K,
    server: McpServer,
    credentials: string,
    items: readonly Listed[K][],
  ): Promise<void> {
    return this.#write(this.#path(kind, server), launchHash(server, credentials), items);
  }

  writeInstructions(server: McpServer, credentials: string, item: Prompt): Promise<void> {
    return this.#write(this.#path(INSTRUCTIONS, server), launchHash(server, credentials), [item]);
  }

  async #write(path: string, launch: string, items: readonly object[]): Promise<void> {
    const text = JSON.stringify(items);
    const kept = { version: 1, launch, hash: sha256Hex(text) } as const;
    const key = `${kept.launch} ${kept.hash}`;
    if (text.length > MAX_CHARACTERS || this.#written.get(path) === key) return;
    this.#written.set(path, key);
    await writePrivateFile(path, `${JSON.stringify({ ...kept, items })}\n`).catch(() => this.#written.delete(path));
  }

  #path(kind: Listable | typeof INSTRUCTIONS, server: McpServer): string {
    return join(serversDirectory(this.#mcpHome), server.id, `${kind}.json`);
  }
}

/** SHA-256 of what a server is started from. */
export function launchHash(server: McpServer, credentials: string): string {
  const { mode, command, env, version, isolation, url, transport, headers } = server;
  return sha256Hex(JSON.stringify([mode, command, env, version, isolation, url, transport, headers, credentials]));
}
