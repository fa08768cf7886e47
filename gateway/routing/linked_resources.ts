import type { Caller } from '../../machine/mcp_caller.ts';

const MOST_LINKS = 4_096;
const MOST_OF_RESULT = 256;

/** Resources that tool results named but no list contains: a link is resolved to the server whose result named it. */
export class LinkedResources {
  /** By session and URI: the servers that named it to that session. */
  readonly #servers = new Map<string, readonly string[]>();

  /** Records the links in a server's result, for the caller that received it. */
  learn(caller: Caller, serverId: string, result: unknown): void {
    if (typeof result !== 'object' || result === null || !('content' in result) || !Array.isArray(result.content))
      return;
    for (const block of result.content.slice(0, MOST_OF_RESULT)) {
      const uri = uriOf(block);
      if (uri !== null) this.#keep(keyOf(caller, uri), serverId);
    }
  }

  /** The servers that named this URI to the caller. */
  serversOf(caller: Caller, uri: string): readonly string[] {
    return this.#servers.get(keyOf(caller, uri)) ?? [];
  }

  #keep(key: string, serverId: string): void {
    const known = this.#servers.get(key) ?? [];
    this.#servers.delete(key);
    this.#servers.set(key, known.includes(serverId) ? known : [...known, serverId]);
    const oldest = this.#servers.size > MOST_LINKS ? this.#servers.keys().next().value : undefined;
    if (oldest !== undefined) this.#servers.delete(oldest);
  }
}

function uriOf(block: unknown): string | null {
  if (typeof block !== 'object' || block === null) return null;
  const holder = 'resource' in block && typeof block.resource === 'object' ? block.resource : block;
  if (holder === null || !('uri' in holder) || typeof holder.uri !== 'string') return null;
  return holder.uri.length <= 4_096 ? holder.uri : null;
}

function keyOf({ sessionId }: Caller, uri: string): string {
  return JSON.stringify([sessionId, uri]);
}
