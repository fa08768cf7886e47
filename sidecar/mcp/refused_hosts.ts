/** The number of hosts that are remembered for one server. */
const MOST_HOSTS = 50;

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
    if (oldest !== undefined && hosts.size > MOST_HOSTS) hosts.delete(oldest);
  }

  /** Newest first. */
  listOf(serverId: string): readonly string[] {
    return [...(this.#byServer.get(serverId) ?? [])].toReversed();
  }
}
