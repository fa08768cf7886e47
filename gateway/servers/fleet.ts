import { type Caller, mayUse } from '../../machine/mcp_caller.ts';
import { splitToolName } from '../../shared/mcp/tool_names.ts';
import { assignServerNames } from '../../shared/mcp/assign_server_names.ts';
import type { GatewayPorts, GatewayServer } from '../gateway_ports.ts';
import { StartSlots } from './start_slots.ts';
import { SupervisedServer, type SupervisedOptions } from './supervised_server.ts';

interface FleetOptions extends Omit<SupervisedOptions, 'slots' | 'onHealth' | 'ports'> {
  readonly ports: GatewayPorts;
  /** The id of the only server that is served, whose tools have no prefix; null to serve all. */
  readonly only: string | null;
  /** Called when servers were added or removed or their names changed. */
  readonly onServers: () => void;
}

const HEALTH_EVERY_MS = 60_000;

/** The servers of this gateway. They follow the control plane's list and start on the first request. */
export class Fleet {
  readonly #options: FleetOptions;
  readonly #slots: SupervisedOptions['slots'];
  readonly #servers = new Map<string, SupervisedServer>();
  readonly #watching = new AbortController();
  readonly #first = Promise.withResolvers<void>();
  #names: ReadonlyMap<string, string> = new Map();
  #watched: Promise<void> = Promise.resolve();
  #reporting = false;
  #timer: NodeJS.Timeout | null = null;

  constructor(options: FleetOptions) {
    this.#options = options;
    const { maxStarting, maxConnecting } = options.limits;
    this.#slots = { local: new StartSlots(maxStarting), remote: new StartSlots(maxConnecting) };
  }

  /** Starts following the list of servers. */
  start(): void {
    this.#watched = this.#options.ports.watchServers((servers) => this.#reconcile(servers), this.#watching.signal);
    this.#timer = setInterval(() => this.#report(), HEALTH_EVERY_MS);
    this.#timer.unref();
  }

  /** Resolves when the list of servers is available. */
  get listed(): Promise<void> {
    return this.#first.promise;
  }

  /** The enabled servers that a caller may use. */
  serversOf(caller: Caller): readonly SupervisedServer[] {
    return Array.from(this.#servers.values()).filter(
      ({ server }) => server.enabled && mayUse(caller, server.id) && this.#isServed(server.id),
    );
  }

  find(serverId: string): SupervisedServer | null {
    return this.#servers.get(serverId) ?? null;
  }

  /** The connected servers. */
  listRunning(): readonly SupervisedServer[] {
    return Array.from(this.#servers.values()).filter(({ current }) => current !== null);
  }

  /** A server's name, different for each server. */
  nameOf(serverId: string): string {
    return this.#names.get(serverId) ?? serverId;
  }

  /** The server in the names of what it lists; empty if it is the only one that is served. */
  prefixOf(serverId: string): string {
    return this.#options.only === null ? this.nameOf(serverId) : '';
  }

  /** The server that a tool or prompt belongs to, by its name for clients. */
  findByToolName(name: string, caller: Caller): SupervisedServer | null {
    const servers = this.serversOf(caller);
    if (this.#options.only !== null) return servers[0] ?? null;
    const wanted = splitToolName(name)?.server;
    return servers.find(({ server }) => this.nameOf(server.id) === wanted) ?? null;
  }

  #isServed(serverId: string): boolean {
    const { only } = this.#options;
    return only === null || only === serverId;
  }

  /** Ends every server. */
  async stop(): Promise<void> {
    this.#watching.abort();
    if (this.#timer !== null) clearInterval(this.#timer);
    await Promise.all([this.#watched, ...Array.from(this.#servers.values(), (supervised) => supervised.stop())]);
    this.#servers.clear();
  }

  #reconcile(list: readonly GatewayServer[]): void {
    if (this.#watching.signal.aborted) return;
    const wanted = new Map(list.map((known) => [known.server.id, known]));
    for (const [id, supervised] of this.#servers) {
      if (wanted.has(id)) continue;
      this.#servers.delete(id);
      void supervised.stop();
    }
    for (const known of wanted.values()) this.#take(known);
    this.#names = assignServerNames(list.map(({ server }) => server));
    this.#first.resolve();
    this.#options.onServers();
    this.#report();
  }

  #take(known: GatewayServer): void {
    const existing = this.#servers.get(known.server.id);
    if (existing !== undefined) return void existing.update(known);
    const supervised = new SupervisedServer(known, {
      ...this.#options,
      slots: this.#slots,
      onHealth: () => this.#reportSoon(),
    });
    this.#servers.set(known.server.id, supervised);
  }

  /** What a person should know of a server has changed. */
  noteChanged(): void {
    this.#reportSoon();
  }

  /** Several changes within a turn are reported once. */
  #reportSoon(): void {
    if (this.#reporting) return;
    this.#reporting = true;
    setTimeout(() => {
      this.#reporting = false;
      this.#report();
    }, 50).unref();
  }

  #report(): void {
    if (this.#watching.signal.aborted) return;
    this.#options.ports.reportHealth(Array.from(this.#servers.values(), (supervised) => supervised.health()));
  }
}
