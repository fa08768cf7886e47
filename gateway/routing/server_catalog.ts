import type { Caller } from '../../machine/mcp_caller.ts';
import type { Downstream } from '../fronts/downstream.ts';
import type { Fleet } from '../servers/fleet.ts';
import type { GatewayLimits } from '../gateway_limits.ts';
import type { KeptLists } from './kept_lists.ts';
import { type Listable, type Listed, ServerLists } from './server_lists.ts';
import { dropStale } from '../servers/stale_connection.ts';
import type { SupervisedServer } from '../servers/supervised_server.ts';
import { waitUnlessAborted } from '../servers/wait_unless_aborted.ts';

/** What one server listed. */
export interface ServerListing<K extends Listable> {
  readonly supervised: SupervisedServer;
  /** The server's name in the names of what it lists; empty if it is the only one. */
  readonly name: string;
  readonly items: readonly Listed[K][];
}

interface ServerCatalogOptions {
  readonly fleet: Fleet;
  readonly limits: GatewayLimits;
  readonly now: () => number;
  readonly kept: Pick<KeptLists, 'read' | 'write'>;
  /** A running server has sent a list that a client was answered without. */
  readonly onLate: (kind: Listable, serverId: string) => void;
}

/**
 * The lists of a caller's servers. A server that is still starting has the list of its last run; one without such a list, and a
 * dead one, is left out after the time limit, so that clients do not give up on all of them.
 */
export class ServerCatalog {
  readonly #options: ServerCatalogOptions;
  readonly #lists = new WeakMap<Downstream, ServerLists>();
  /** The kinds that a server did not list in time when it was asked last. */
  readonly #leftOut = new WeakMap<SupervisedServer, Set<Listable>>();

  constructor(options: ServerCatalogOptions) {
    this.#options = options;
  }

  /** Starts stopped servers and waits up to the limit for lists. */
  async listAll<K extends Listable>(
    kind: K,
    caller: Caller,
    signal: AbortSignal,
  ): Promise<readonly ServerListing<K>[]> {
    const { fleet, limits } = this.#options;
    const deadline = AbortSignal.any([signal, AbortSignal.timeout(limits.listMs)]);
    await waitUnlessAborted(fleet.listed, deadline);
    const listings = fleet.serversOf(caller).map(async (supervised) => {
      const listing = await this.#listSoon(kind, supervised, deadline);
      if (listing === null) this.#leftOutOf(supervised).add(kind);
      return listing;
    });
    return (await Promise.all(listings)).filter((listing) => listing !== null);
  }

  /**
   * The lists of a caller's servers without asking or starting any: of those that run, and of the last run of the others. Null if a
   * list is not known, unless {@link listAll} has waited for that server in vain before.
   */
  async listKnown<K extends Listable>(
    kind: K,
    caller: Caller,
    signal: AbortSignal,
  ): Promise<readonly ServerListing<K>[] | null> {
    const { fleet, limits, kept } = this.#options;
    await waitUnlessAborted(fleet.listed, AbortSignal.any([signal, AbortSignal.timeout(limits.listMs)]));
    const listings: ServerListing<K>[] = [];
    for (const supervised of fleet.serversOf(caller)) {
      const { current, server, credentials } = supervised;
      const items = current === null ? kept.read(kind, server, credentials) : this.#listsOf(current).find(kind);
      if (items !== null) listings.push({ supervised, name: fleet.prefixOf(server.id), items });
      else if (current !== null || !this.#leftOutOf(supervised).has(kind)) return null;
    }
    return listings;
  }

  /** A caller's server, by its name in the names of what it lists. */
  findServer(name: string, caller: Caller): SupervisedServer | null {
    const { fleet } = this.#options;
    return fleet.serversOf(caller).find(({ server }) => fleet.prefixOf(server.id) === name) ?? null;
  }

  /** The names of a caller's servers that still start, and are left out of these listings. */
  startingNames(caller: Caller, listings: readonly Pick<ServerListing<Listable>, 'supervised'>[]): readonly string[] {
    const { fleet } = this.#options;
    const listed = new Set(listings.map(({ supervised }) => supervised));
    const starting = fleet.serversOf(caller).filter((one) => one.isStarting && !listed.has(one));
    return starting.map(({ server }) => fleet.nameOf(server.id)).toSorted();
  }

  /**
   * A client must not wait long for a slow start: it gets the list of the last run, and is notified of the new one. A server
   * that runs by then, and has not listed yet, is waited for a little longer.
   */
  async #listSoon<K extends Listable>(
    kind: K,
    supervised: SupervisedServer,
    deadline: AbortSignal,
  ): Promise<ServerListing<K> | null> {
    const { kept, fleet, limits } = this.#options;
    const { id } = supervised.server;
    const items = this.countOf(kind, id) === null ? kept.read(kind, supervised.server, supervised.credentials) : null;
    const listing = this.#listOf(kind, supervised);
    if (items === null) return this.#waitOrNotify(kind, supervised, listing, deadline);
    const listed = await waitUnlessAborted(listing, orAfter(deadline, limits.keptListMs));
    if (listed !== null) return listed;
    if (!supervised.isStarting) {
      const patience = orAfter(deadline, limits.freshListMs);
      const fresh = await this.#waitOrNotify(kind, supervised, listing, patience);
      // Without a list before that, the server has ended.
      if (fresh !== null || !patience.aborted) return fresh;
    }
    return { supervised, name: fleet.prefixOf(id), items };
  }

  /**
   * Waits for what a server lists. If a running one is left out because it is slow, clients are notified when its list comes: after
   * its start, nothing else would tell them. The list of one that still starts comes with the notification of its start.
   */
  async #waitOrNotify<T>(
    kind: Listable,
    supervised: SupervisedServer,
    list: Promise<T | null>,
    signal: AbortSignal,
  ): Promise<T | null> {
    let isLeftOut = false;
    const notify = (listed: T | null): void => {
      if (isLeftOut && listed !== null) this.#options.onLate(kind, supervised.server.id);
    };
    list.then(notify, () => undefined);
    try {
      return await waitUnlessAborted(list, signal);
    } finally {
      isLeftOut = supervised.current !== null;
    }
  }

  /** The list of one server; null if it cannot be asked now. */
  async listOne<K extends Listable>(
    kind: K,
    supervised: SupervisedServer,
    signal: AbortSignal,
  ): Promise<ServerListing<K> | null> {
    const deadline = AbortSignal.any([signal, AbortSignal.timeout(this.#options.limits.listWaitMs)]);
    return waitUnlessAborted(this.#listOf(kind, supervised), deadline);
  }

  /** The server reports a changed list. */
  forget(kind: 'tools' | 'prompts' | 'resources', serverId: string): void {
    const downstream = this.#options.fleet.find(serverId)?.current ?? null;
    if (downstream !== null) this.#listsOf(downstream).forget(kind);
  }

  /** The number of items in a running server's last list; null if not asked yet. */
  countOf(kind: Listable, serverId: string): number | null {
    const downstream = this.#options.fleet.find(serverId)?.current ?? null;
    return downstream === null ? null : this.#listsOf(downstream).countOf(kind);
  }

  async #listOf<K extends Listable>(
    kind: K,
    supervised: SupervisedServer,
    isAgain = false,
  ): Promise<ServerListing<K> | null> {
    const connected = await supervised.connect();
    if (!connected.ok) return null;
    const name = this.#options.fleet.prefixOf(supervised.server.id);
    const lists = this.#listsOf(connected.value);
    const list = lists.list(kind);
    try {
      const items = lists.isSlow(kind)
        ? await this.#waitOrNotify(kind, supervised, list, AbortSignal.timeout(SLOW_PATIENCE_MS))
        : await list;
      if (items === null) return null;
      this.#leftOutOf(supervised).delete(kind);
      void this.#options.kept.write(kind, supervised.server, supervised.credentials, items);
      return { supervised, name, items };
    } catch (error) {
      if ((await dropStale(supervised, connected.value, error)) && !isAgain)
        return this.#listOf(kind, supervised, true);
      // A server that fails to list has no items for now; it is asked again next time.
      return null;
    }
  }

  #leftOutOf(supervised: SupervisedServer): Set<Listable> {
    const existing = this.#leftOut.get(supervised);
    if (existing !== undefined) return existing;
    const kinds = new Set<Listable>();
    this.#leftOut.set(supervised, kinds);
    return kinds;
  }

  #listsOf(downstream: Downstream): ServerLists {
    const existing = this.#lists.get(downstream);
    if (existing !== undefined) return existing;
    const lists = new ServerLists(downstream, this.#options.limits, this.#options.now);
    this.#lists.set(downstream, lists);
    return lists;
  }
}

const SLOW_PATIENCE_MS = 1_000;

function orAfter(deadline: AbortSignal, ms: number): AbortSignal {
  return AbortSignal.any([deadline, AbortSignal.timeout(ms)]);
}
