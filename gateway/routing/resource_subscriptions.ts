import type { Downstream } from '../fronts/downstream.ts';
import type { Fleet } from '../servers/fleet.ts';
import { KeptStream, type StreamTimes } from '../servers/kept_stream.ts';
import { maskError } from '../servers/mask_error.ts';
import type { ResourceAtServer } from './resource_router.ts';

/** One resource of one server, with its subscribers and the URI that each uses. */
interface Subscribed {
  readonly serverId: string;
  readonly uri: string;
  readonly clients: Map<string, string>;
  /** The request to the server; rejects if it refuses. */
  asking: Promise<void>;
  /** Later generation: the stream that delivers changes. */
  stream: KeptStream | null;
}

const MOST = 4_096;
const MOST_OF_CLIENT = 256;
const TOGETHER_MS = 100;

/** Subscriptions to resources: one per server and resource, shared by all clients, and renewed after a restart of the server. */
export class ResourceSubscriptions {
  readonly #fleet: Pick<Fleet, 'find'>;
  readonly #times: StreamTimes;
  readonly #tell: (clientKey: string, uri: string) => void;
  readonly #subscribed = new Map<string, Subscribed>();
  readonly #changed = new Set<string>();
  #timer: NodeJS.Timeout | null = null;

  constructor(fleet: Pick<Fleet, 'find'>, times: StreamTimes, tell: (clientKey: string, uri: string) => void) {
    this.#fleet = fleet;
    this.#times = times;
    this.#tell = tell;
  }

  /** `asked` is the client's URI. Rejects if the server refuses. */
  async add(clientKey: string, asked: string, { supervised, uri }: ResourceAtServer): Promise<void> {
    const serverId = supervised.server.id;
    const key = JSON.stringify([serverId, uri]);
    if (!this.#subscribed.has(key)) await this.#makeRoom(clientKey);
    const known = this.#subscribed.get(key);
    if (known !== undefined) {
      known.clients.set(clientKey, asked);
      // The server may still refuse the first subscriber's request.
      return known.asking;
    }
    if (this.#subscribed.size >= MOST) throw new Error('there are too many subscriptions');
    const clients = new Map([[clientKey, asked]]);
    const mine: Subscribed = { serverId, uri, clients, asking: Promise.resolve(), stream: null };
    this.#subscribed.set(key, mine);
    const { current } = supervised;
    // It has subscriptions once it runs.
    if (current === null) return void supervised.connect();
    mine.asking = this.#ask(key, mine, current);
    return mine.asking;
  }

  async #ask(key: string, mine: Subscribed, current: Downstream): Promise<void> {
    try {
      await this.#subscribe(current, mine, 'once');
    } catch (error) {
      if (this.#subscribed.get(key) === mine) this.#subscribed.delete(key);
      throw maskError(error, current.mask);
    }
    await this.#endUnwanted(key, mine, current);
  }

  /** While the server was asked, the last client may have left, and another one may have come. */
  async #endUnwanted(key: string, mine: Subscribed, current: Downstream): Promise<void> {
    const isWanted = mine.clients.size > 0 || (mine.stream === null && this.#subscribed.has(key));
    if (!isWanted) await this.#unsubscribe(mine, current);
  }

  /** Rejects if the server refuses; a stream that is asked for `again` is opened later then. */
  async #subscribe(downstream: Downstream, one: Subscribed, how: 'once' | 'again'): Promise<void> {
    const { client } = downstream;
    if (client.getServerCapabilities()?.resources?.subscribe !== true) return;
    if (client.getProtocolEra() !== 'modern') return void (await client.subscribeResource({ uri: one.uri }));
    const stream = new KeptStream({
      ...this.#times,
      downstream,
      filter: { resourceSubscriptions: [one.uri] },
      onReturn: () => this.notifyUpdated(one.serverId, one.uri),
    });
    await stream.open().catch((error: unknown) => {
      if (how === 'once') throw error;
      void stream.keep(null);
    });
    one.stream = stream;
  }

  async #unsubscribe({ stream, uri }: Subscribed, current: Downstream | null): Promise<void> {
    const ended = stream?.close() ?? current?.client.unsubscribeResource({ uri });
    await Promise.resolve(ended).catch(() => undefined);
  }

  async remove(clientKey: string, asked: string): Promise<void> {
    for (const [key, one] of this.#subscribed) {
      if (one.clients.get(clientKey) === asked) await this.#leave(key, one, clientKey);
    }
  }

  /** The client has disconnected. */
  removeClient(clientKey: string): void {
    for (const [key, one] of this.#subscribed) {
      if (one.clients.has(clientKey)) void this.#leave(key, one, clientKey);
    }
  }

  /** The server reports a changed resource. */
  notifyUpdated(serverId: string, uri: string): void {
    const key = JSON.stringify([serverId, uri]);
    if (!this.#subscribed.has(key)) return;
    this.#changed.add(key);
    if (this.#timer !== null) return;
    this.#timer = setTimeout(() => this.#tellChanged(), TOGETHER_MS);
    this.#timer.unref();
  }

  /** The server has reconnected and has no subscriptions. */
  async renew(serverId: string): Promise<void> {
    const current = this.#fleet.find(serverId)?.current ?? null;
    if (current === null) return;
    const ofServer = [...this.#subscribed].filter(([, one]) => one.serverId === serverId);
    await Promise.allSettled(ofServer.map(([key, one]) => this.#renewOne(key, one, current)));
  }

  async #renewOne(key: string, one: Subscribed, current: Downstream): Promise<void> {
    await this.#subscribe(current, one, 'again');
    await this.#endUnwanted(key, one, current);
  }

  /** Several changes of one resource are reported once. */
  #tellChanged(): void {
    this.#timer = null;
    const keys = [...this.#changed];
    this.#changed.clear();
    for (const key of keys) {
      for (const [clientKey, asked] of this.#subscribed.get(key)?.clients ?? []) this.#tell(clientKey, asked);
    }
  }

  /** At its limit, a client loses its oldest subscription; at the total limit, the client with the most does. */
  async #makeRoom(clientKey: string): Promise<void> {
    let count = 0;
    for (const { clients } of this.#subscribed.values()) if (clients.has(clientKey)) count += 1;
    if (count >= MOST_OF_CLIENT) await this.#leaveOldest(clientKey);
    else if (this.#subscribed.size >= MOST) await this.#leaveOldest(this.#findGreediest());
  }

  #findGreediest(): string {
    const counts = new Map<string, number>();
    for (const { clients } of this.#subscribed.values()) {
      for (const key of clients.keys()) counts.set(key, (counts.get(key) ?? 0) + 1);
    }
    const [most] = [...counts].toSorted(([, a], [, b]) => b - a);
    return most?.[0] ?? '';
  }

  async #leaveOldest(clientKey: string): Promise<void> {
    for (const [key, one] of this.#subscribed) {
      if (one.clients.has(clientKey)) return this.#leave(key, one, clientKey);
    }
  }

  async #leave(key: string, one: Subscribed, clientKey: string): Promise<void> {
    one.clients.delete(clientKey);
    if (one.clients.size > 0) return;
    this.#subscribed.delete(key);
    const current = this.#fleet.find(one.serverId)?.current ?? null;
    await this.#unsubscribe(one, current);
  }
}
