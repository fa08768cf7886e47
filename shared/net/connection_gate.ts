import { networkOf } from './ip_literal.ts';
import type { TcpEnds } from './tcp_table.ts';

/** Limits on waiting connections and on all connections. */
export interface GateLimits {
  /** Most waiting connections: those without an authenticated request. In total, and per peer. */
  readonly maxWaiting: number;
  readonly maxWaitingPerPeer: number;
  /** Most connections of all kinds; null if the system reports no limit. */
  readonly maxOpen: number | null;
}

/** Why a connection was dropped: too many waiting from its peer, too many in total, descriptors ran short, or its peer had half of all. */
export type DropReason = 'waiting_of_peer' | 'waiting' | 'descriptors' | 'share';

/** The peer that a connection counts for. */
interface Peer {
  readonly key: string;
  /** True if all users of this machine share the address, so that `usersOf` has to tell them apart. */
  readonly isShared: boolean;
}

/** A connection as the gate knows it. */
export interface GatedConnection {
  readonly peer: Peer;
  readonly ends: TcpEnds;
  drop(): void;
}

export interface GateOptions {
  readonly limits: GateLimits;
  /** The users at the other ends of shared connections; null for one that the system does not tell. Called only under pressure; never rejects. */
  readonly usersOf: (connections: readonly GatedConnection[]) => Promise<readonly (string | null)[]>;
  readonly onDropped: (reason: DropReason) => void;
}

/** The handle of an admitted connection. */
export interface Admission {
  /** Its peer has authenticated: it no longer waits, but may be dropped until its first request. */
  markAuthenticated(owner: string): void;
  /** Its request has arrived: from now on it is never dropped. */
  markServed(): void;
  /** It waits again, for another request. */
  markWaiting(): void;
  /** It has closed. */
  markClosed(): void;
}

interface Entry {
  readonly connection: GatedConnection;
  /** Its peer, with the user if known. */
  key: string;
  /** The group that it counts in; null while it serves. */
  membership: Membership | null;
  /** True once the system was asked for its user. */
  isAsked: boolean;
}
interface Membership {
  readonly groups: Map<string, Group>;
  readonly key: string;
}
/** Connections of one peer or owner, oldest first. */
type Group = Set<Entry>;

/**
 * Keeps connections without an authenticated request from displacing those that have one. At the limit, the oldest
 * connection of the peer with the most is dropped: a client whose request is on its way waits only briefly, so it is young.
 * A serving connection is never dropped; if all serve, the new one is.
 */
export class ConnectionGate {
  readonly #options: GateOptions;
  /** Waiting connections, by peer. */
  readonly #waiting = new Map<string, Group>();
  /** Authenticated connections without a request yet, by owner. */
  readonly #idle = new Map<string, Group>();
  readonly #openOf = new Map<string, number>();
  #waitingCount = 0;
  #open = 0;
  #isAsking = false;

  constructor(options: GateOptions) {
    this.#options = options;
  }

  /** The open connections, and how many of them wait. */
  get counts(): { readonly open: number; readonly waiting: number } {
    return { open: this.#open, waiting: this.#waitingCount };
  }

  /** Admits a connection, which may drop another one; null if the new one itself was dropped. */
  admit(connection: GatedConnection): Admission | null {
    const { maxOpen } = this.#options.limits;
    if (maxOpen !== null) {
      if (
        this.#hasShare(connection.peer, maxOpen) &&
        !this.#dropOldest(this.#waiting.get(connection.peer.key), 'share')
      ) {
        return this.#refuse(connection, 'share');
      }
      if (this.#open >= maxOpen && !this.#makeRoom()) return this.#refuse(connection, 'descriptors');
    }
    const { key } = connection.peer;
    const entry: Entry = { connection, key, membership: null, isAsked: false };
    this.#open += 1;
    this.#openOf.set(key, (this.#openOf.get(key) ?? 0) + 1);
    this.#wait(entry);
    return this.#admissionOf(entry);
  }

  #admissionOf(entry: Entry): Admission {
    let isOpen = true;
    return {
      markAuthenticated: (owner) => {
        if (!isOpen) return;
        this.#leave(entry);
        this.#enter(this.#idle, owner, entry);
      },
      markServed: () => this.#leave(entry),
      markWaiting: () => {
        if (isOpen && entry.membership === null) this.#wait(entry);
      },
      markClosed: () => {
        if (!isOpen) return;
        isOpen = false;
        this.#leave(entry);
        this.#forget(entry.connection.peer);
      },
    };
  }

  /** A peer may hold at most half of all connections, so that no container keeps the others out. */
  #hasShare({ key, isShared }: Peer, maxOpen: number): boolean {
    return !isShared && (this.#openOf.get(key) ?? 0) >= Math.max(1, Math.floor(maxOpen / 2));
  }

  #refuse(connection: GatedConnection, reason: DropReason): null {
    this.#options.onDropped(reason);
    connection.drop();
    return null;
  }

  #wait(entry: Entry): void {
    this.#enterWaiting(entry);
    const { key, isShared } = entry.connection.peer;
    if (isShared) this.#tellUsersApart(key);
    if (this.#waitingCount > this.#options.limits.maxWaiting) this.#dropOldest(findLargest(this.#waiting), 'waiting');
  }

  #enterWaiting(entry: Entry): void {
    this.#waitingCount += 1;
    const group = this.#enter(this.#waiting, entry.key, entry);
    if (group.size > this.#options.limits.maxWaitingPerPeer) this.#dropOldest(group, 'waiting_of_peer');
  }

  /** Drops a waiting connection, or else one without a request; false if there is neither. */
  #makeRoom(): boolean {
    return this.#dropOldest(findLargest(this.#waiting) ?? findLargest(this.#idle), 'descriptors');
  }

  #dropOldest(group: Group | null | undefined, reason: DropReason): boolean {
    const [oldest] = group ?? [];
    if (oldest === undefined) return false;
    this.#leave(oldest);
    this.#options.onDropped(reason);
    oldest.connection.drop();
    return true;
  }

  /**
   * Assigns the waiting connections of a shared address to their users, once they are half of one peer's limit. One lookup
   * covers many connections, and only one runs at a time.
   */
  #tellUsersApart(key: string): void {
    const group = this.#waiting.get(key);
    if (this.#isAsking || group === undefined || group.size * 2 < this.#options.limits.maxWaitingPerPeer) return;
    const unknown = [...group].filter(({ isAsked }) => !isAsked);
    if (unknown.length * 4 < this.#options.limits.maxWaitingPerPeer) return;
    this.#isAsking = true;
    for (const entry of unknown) entry.isAsked = true;
    void this.#regroup(key, unknown).finally(() => {
      this.#isAsking = false;
    });
  }

  async #regroup(key: string, entries: readonly Entry[]): Promise<void> {
    const users = await this.#options.usersOf(entries.map(({ connection }) => connection));
    for (const [index, entry] of entries.entries()) {
      const user = users[index] ?? null;
      if (user === null) continue;
      entry.key = `${key} ${user}`;
      if (entry.membership?.groups !== this.#waiting) continue;
      this.#leave(entry);
      this.#enterWaiting(entry);
    }
  }

  #enter(groups: Map<string, Group>, key: string, entry: Entry): Group {
    const group = groups.get(key) ?? new Set();
    groups.set(key, group);
    group.add(entry);
    entry.membership = { groups, key };
    return group;
  }

  #leave(entry: Entry): void {
    if (entry.membership === null) return;
    const { groups, key } = entry.membership;
    entry.membership = null;
    const group = groups.get(key);
    group?.delete(entry);
    if (group?.size === 0) groups.delete(key);
    if (groups === this.#waiting) this.#waitingCount -= 1;
  }

  #forget({ key }: Peer): void {
    this.#open -= 1;
    const left = (this.#openOf.get(key) ?? 1) - 1;
    if (left === 0) this.#openOf.delete(key);
    else this.#openOf.set(key, left);
  }
}

function findLargest(groups: ReadonlyMap<string, Group>): Group | null {
  let most: Group | null = null;
  for (const group of groups.values()) if (most === null || group.size > most.size) most = group;
  return most;
}

const LOOPBACK = /^(?:127\.|::1$|::ffff:127\.)/i;

/** The peer of an address: for loopback the whole machine; for IPv6 the network that one customer gets. */
export function peerAt(address: string): Peer {
  return LOOPBACK.test(address) ? { key: 'loopback', isShared: true } : { key: networkOf(address), isShared: false };
}

/** The most descriptors that are kept for files, the database and the program's own calls. */
const MOST_KEPT = 512;

/**
 * How many connections are possible with this many descriptors: each may need another one to dial, and some are reserved.
 * Null if the process report (Node's `process.report`) has no number.
 */
export function maxConnectionsFor(report: unknown): number | null {
  const soft = /"open_files":\{"soft":(\d+)/.exec(JSON.stringify(report))?.[1];
  if (soft === undefined) return null;
  const descriptors = Number(soft);
  const kept = Math.min(MOST_KEPT, Math.floor(descriptors / 4));
  return Math.max(1, Math.floor((descriptors - kept) / 2));
}

/** The part of Node's `process.report` that is used here. */
interface ProgramReport {
  excludeNetwork?: boolean;
  getReport(): object;
}

/** The most connections that the process may have open, by its descriptor limit. */
export function openableConnections(report: ProgramReport): number | null {
  // Otherwise the report would resolve the names of open sockets' peers.
  report.excludeNetwork = true;
  return maxConnectionsFor(report.getReport());
}

const TELL_EVERY_MS = 60_000;

/** Counts drops and reports them at most once a minute: how many since the last report, and why the last one was dropped. */
export function dropTeller(
  now: () => number,
  tell: (reason: DropReason, count: number) => void,
): (reason: DropReason) => void {
  let count = 0;
  let toldAt = Number.NEGATIVE_INFINITY;
  return (reason) => {
    count += 1;
    if (now() - toldAt < TELL_EVERY_MS) return;
    tell(reason, count);
    toldAt = now();
    count = 0;
  };
}
