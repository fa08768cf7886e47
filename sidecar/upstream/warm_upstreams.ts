import type { Connection } from '../../machine/connection/connection.ts';
import { HTTP_1_1, HTTP_2 } from '../../shared/net/client_hello.ts';
import type { UpstreamOwner } from '../ports.ts';
import { UpstreamSession } from './upstream_session.ts';

/** A verified connection to an upstream: one of HTTP/1.1, or a session of HTTP/2. */
export type Upstream = Connection | UpstreamSession;

/** The part of the kept connections that one tunnel may use: those of its owner to its host. */
export interface HostUpstreams {
  /** Changes with the policy. A connection is kept only if it still is what it was before the connection was dialled. */
  epoch(): number;
  /** The version that the newest one speaks; null if there is none. */
  protocol(): string | null;
  /** Hands over one that was used for the same, over this version; null if there is none. */
  take(use: UpstreamUse, protocol: string): Upstream | null;
  /** Keeps one that is at rest, and ends it if it may not be kept. */
  keep(upstream: Upstream, use: UpstreamUse, epoch: number): void;
}

/** What a kept connection was used for. Only a request that is equal in all of it gets the connection. */
export interface UpstreamUse {
  /** A binding's or a connector's id. */
  readonly lane: string;
  /** The released value that was sent on it; another version of it is another object. */
  readonly credential: object;
  /** Whether private addresses were refused when it was dialled. */
  readonly publicOnly: boolean;
}

interface Kept extends UpstreamUse {
  readonly host: string;
  readonly upstream: Upstream;
  readonly timer: NodeJS.Timeout;
}

interface OwnerUpstreams {
  /** Oldest first. */
  readonly kept: Set<Kept>;
  readonly stop: () => void;
}

/** More are closed, the oldest first. A session uses few hosts at once, and each kept connection is a descriptor. */
const MOST_PER_OWNER = 16;
const MOST_OWNERS = 256;

/**
 * Upstream connections that wait for the next tunnel of the same owner: a session, or the scope of a step (decision 0114). Who
 * gets one could have dialled the same host with the same credential, so it brings no right. Each ends after a few seconds, with
 * its owner, with a change of the policy, and with the first byte or frame that arrives while nobody waits for a reply.
 */
export class WarmUpstreams {
  readonly #keepMs: number;
  readonly #owners = new Map<UpstreamOwner, OwnerUpstreams>();
  #epoch = 0;

  constructor(keepSeconds: number) {
    this.#keepMs = keepSeconds * 1000;
  }

  /** The part of one tunnel: its owner's connections to its host. */
  of(owner: UpstreamOwner, host: string): HostUpstreams {
    return {
      epoch: () => this.#epoch,
      protocol: () => {
        const newest = this.#find(owner, (one) => one.host === host);
        return newest === undefined ? null : protocolOf(newest.upstream);
      },
      take: (use, protocol) => this.#take(owner, host, use, protocol),
      keep: (upstream, use, epoch) => this.#keep(owner, host, upstream, use, epoch),
    };
  }

  /** The policy has changed, or this sidecar is revoked: nothing that was dialled before serves another tunnel. */
  dropAll(): void {
    this.#epoch += 1;
    for (const owner of this.#owners.keys()) this.#dropOwner(owner);
  }

  /** How many wait. */
  get size(): number {
    return [...this.#owners.values()].reduce((sum, { kept }) => sum + kept.size, 0);
  }

  /** The newest that fits. */
  #find(owner: UpstreamOwner, fits: (one: Kept) => boolean): Kept | undefined {
    return [...(this.#owners.get(owner)?.kept ?? [])].findLast(fits);
  }

  #take(owner: UpstreamOwner, host: string, use: UpstreamUse, protocol: string): Upstream | null {
    const fits = (one: Kept): boolean =>
      one.host === host && protocolOf(one.upstream) === protocol && isSameUse(one, use);
    const found = this.#find(owner, fits);
    if (found === undefined) return null;
    this.#remove(owner, found);
    if (isAtRest(found.upstream)) return found.upstream;
    found.upstream.destroy();
    return null;
  }

  #keep(owner: UpstreamOwner, host: string, upstream: Upstream, use: UpstreamUse, epoch: number): void {
    const mayKeep = this.#keepMs > 0 && epoch === this.#epoch && isAtRest(upstream);
    const all = mayKeep ? (this.#owners.get(owner) ?? this.#add(owner)) : null;
    if (all === null) return upstream.destroy();
    const kept: Kept = { ...use, host, upstream, timer: setTimeout(() => this.#drop(owner, kept), this.#keepMs) };
    kept.timer.unref();
    all.kept.add(kept);
    const [oldest] = all.kept;
    if (all.kept.size > MOST_PER_OWNER && oldest !== undefined) this.#drop(owner, oldest);
    upstream.onArrival(() => this.#drop(owner, kept));
  }

  /** Null if the owner has ended, or if nothing of it is kept. */
  #add(owner: UpstreamOwner): OwnerUpstreams | null {
    let hasEnded = false;
    const stop = owner.onTunnelsClosed?.(() => {
      hasEnded = true;
      this.#dropOwner(owner);
    });
    if (stop === undefined || hasEnded) return null;
    const [oldest] = this.#owners.keys();
    if (this.#owners.size >= MOST_OWNERS && oldest !== undefined) this.#dropOwner(oldest);
    const added = { kept: new Set<Kept>(), stop };
    this.#owners.set(owner, added);
    return added;
  }

  #dropOwner(owner: UpstreamOwner): void {
    for (const one of this.#owners.get(owner)?.kept ?? []) this.#drop(owner, one);
  }

  #drop(owner: UpstreamOwner, kept: Kept): void {
    this.#remove(owner, kept);
    kept.upstream.destroy();
  }

  #remove(owner: UpstreamOwner, kept: Kept): void {
    clearTimeout(kept.timer);
    kept.upstream.onArrival(null);
    const of = this.#owners.get(owner);
    of?.kept.delete(kept);
    if (of?.kept.size !== 0) return;
    of.stop();
    this.#owners.delete(owner);
  }
}

function protocolOf(upstream: Upstream): string {
  return upstream instanceof UpstreamSession ? HTTP_2 : HTTP_1_1;
}

function isAtRest(upstream: Upstream): boolean {
  return upstream instanceof UpstreamSession ? upstream.isAtRest : upstream.canWrite;
}

function isSameUse(one: UpstreamUse, other: UpstreamUse): boolean {
  return one.lane === other.lane && one.credential === other.credential && one.publicOnly === other.publicOnly;
}
