import { MAX_REFUSED_HOSTS } from '../../shared/model/mcp_server.ts';
import { allowedHosts, allowsHost } from '../../shared/resolve/admitted_host.ts';
import type { KnownServer } from './server_directory.ts';

/**
 * The hosts that servers in containers were refused, since the sidecar started. A server chooses them, so only the newest are
 * kept, and a person decides about each.
 */
export class RefusedHosts {
  readonly #byServer = new Map<string, Set<string>>();

  note(serverId: string, host: string): void {
    const hosts = this.#byServer.get(serverId) ?? new Set<string>();
    this.#byServer.set(serverId, hosts);
    hosts.delete(host);
    hosts.add(host);
    const [oldest] = hosts;
    if (oldest !== undefined && hosts.size > MAX_REFUSED_HOSTS) hosts.delete(oldest);
  }

  /** Newest first. */
  listOf(serverId: string): readonly string[] {
    return [...(this.#byServer.get(serverId) ?? [])].toReversed();
  }
}

/** A host that was allowed since is left out. */
export function listRefusedHosts(
  refused: Pick<RefusedHosts, 'listOf'>,
  { server, allowedHosts: hosts }: Pick<KnownServer, 'server' | 'allowedHosts'>,
): string[] {
  if (hosts === null) return [];
  const allowed = allowedHosts(hosts, []);
  return refused.listOf(server.id).filter((host) => !allowsHost(allowed, host));
}
