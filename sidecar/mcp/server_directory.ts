import { consentText, needsConsent } from '../../shared/mcp/consent_hash.ts';
import { isContainerCommand, isPlacedInContainer } from '../../shared/mcp/server_isolation.ts';
import { referencesOf } from '../../shared/mcp/references.ts';
import type { McpServer } from '../../shared/model/mcp_server.ts';
import type { SnapshotMcpServer, UnreadableMcpServer } from '../../shared/wire/mcp/mcp_servers.ts';
import type { SnapshotSource } from '../control/snapshot.ts';
import type { CredentialCache } from '../control/credentials.ts';
import { Waiters } from '../control/waiters.ts';
import type { Consent, Consents } from './consents.ts';
import { sha256Hex } from '../../machine/sha256.ts';

/** A server of the current policy, with this machine's state for it. */
export interface KnownServer extends SnapshotMcpServer {
  readonly consent: 'given' | 'needed' | 'not_needed';
  /** SHA-256 of the text to consent to; null for a server that runs no code here. */
  readonly consentHash: string | null;
  /** The hashed text. */
  readonly consentText: string | null;
  /** The last consent, even if the server has changed since. */
  readonly lastConsent: Consent | null;
  /** The vault paths that it refers to and that have no value. */
  readonly missing: readonly string[];
  /** Changes when a new value is stored for one of its references. */
  readonly credentials: string;
  /** The hashes of the tools that may be listed and called; null: all. */
  readonly reviewed: readonly string[] | null;
  /** The kinds of what `reviewed` has. */
  readonly reviewedKinds: readonly string[];
  /** The only hosts that its container may reach; null if its network is not closed. */
  readonly allowedHosts: readonly string[] | null;
  /** The id of the image of its own `docker run` that was last consented to; null if there is none. */
  readonly image: string | null;
}

interface ServerDirectoryOptions {
  readonly policy: Pick<
    SnapshotSource,
    'mcpServers' | 'reviewedTools' | 'reviewedKinds' | 'listUnreadableMcpServers' | 'onCredentials'
  >;
  readonly credentials: Pick<CredentialCache, 'findStoredVersion'>;
  readonly consents: Pick<Consents, 'listAll' | 'onChange'>;
}

/** The text that a person consents to, and its SHA-256 in hex; both null for a server that runs no program here. */
export function consentOf(server: McpServer): { readonly text: string; readonly hash: string } | null {
  if (!needsConsent(server)) return null;
  const text = consentText(server);
  return { text, hash: sha256Hex(text) };
}

/** The MCP servers of this machine: the newest policy combined with the consents and the stored credentials. */
export class ServerDirectory {
  readonly #options: ServerDirectoryOptions;
  readonly #waiters = new Waiters();

  constructor(options: ServerDirectoryOptions) {
    this.#options = options;
    const wake = (): void => this.#waiters.wake();
    options.policy.onCredentials(wake);
    options.consents.onChange(wake);
  }

  /** All servers; null before the first policy, which says nothing about what runs. */
  listAll(): readonly KnownServer[] | null {
    const servers = this.#options.policy.mcpServers();
    if (servers === null) return null;
    const consents = new Map(this.#options.consents.listAll().map((consent) => [consent.server_id, consent]));
    return servers.map((one) => this.#toKnownServer(one, consents.get(one.server.id) ?? null));
  }

  find(serverId: string): KnownServer | null {
    return this.listAll()?.find(({ server }) => server.id === serverId) ?? null;
  }

  /** Servers that this version cannot use, and so does not start. */
  listUnreadable(): readonly UnreadableMcpServer[] {
    return this.#options.policy.listUnreadableMcpServers();
  }

  /** Waits until something may have changed, for at most `ms` or until the signal is aborted. */
  waitForChange(ms: number, signal: AbortSignal): Promise<void> {
    return this.#waiters.wait(ms, signal);
  }

  /** Calls `listener` whenever something may have changed; returns a function that unsubscribes it. */
  onChange(listener: () => void): () => void {
    return this.#waiters.add(listener);
  }

  #toKnownServer({ server, authorization }: SnapshotMcpServer, lastConsent: Consent | null): KnownServer {
    const { text: asked = null, hash: consentHash = null } = consentOf(server) ?? {};
    const { owner } = server;
    const stored = referencesOf(server).map((path) => {
      return [path, this.#options.credentials.findStoredVersion({ owner, path })] as const;
    });
    const missing = stored.filter(([, version]) => version === null).map(([path]) => path);
    const credentials = stored.length === 0 ? '' : sha256Hex(JSON.stringify(stored));
    const image = isContainerCommand(server.command) ? (lastConsent?.image ?? null) : null;
    // A consent to a tag without an image would cover whatever its publisher makes of it.
    const isCovered = lastConsent?.hash === consentHash && (image !== null || !isContainerCommand(server.command));
    const consent = consentHash === null ? 'not_needed' : isCovered ? 'given' : 'needed';
    const reviewed = this.#options.policy.reviewedTools(server.id);
    const allowedHosts = isPlacedInContainer(server) ? (lastConsent?.hosts ?? null) : null;
    const facts = {
      authorization,
      allowedHosts,
      image,
      consentHash,
      consentText: asked,
      lastConsent,
      missing,
      credentials,
      reviewed,
      reviewedKinds: this.#options.policy.reviewedKinds(),
    };
    return { server, consent, ...facts };
  }
}
