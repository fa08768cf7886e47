import type { Refusal } from '../../shared/model/refusal.ts';
import { refusal } from '../../shared/model/refusal.ts';
import type { Result } from '../../shared/model/result.ts';
import { err, ok } from '../../shared/model/result.ts';
import { HTTP_1_1 } from '../../shared/net/client_hello.ts';
import { Connection } from '../../machine/connection/connection.ts';
import type { LeasedConnection, PresentedCertificate, UpstreamLanes } from '../ports.ts';
import { whileCertified } from './certified.ts';
import type { Dialer } from './dialer.ts';
import type { Dialling } from './dialling.ts';
import type { HostUpstreams } from './warm_upstreams.ts';

/** A connection, and whether it has served an exchange. */
type LeasedNow = LeasedConnection & { readonly reused: boolean };

/** What the lanes of a tunnel are made of. */
export interface LanesOptions<Dials, Dialled> {
  readonly dialer: Dials;
  readonly host: string;
  /** Called before each dial. Absent: every address may be dialled. */
  readonly isPublicOnly: () => boolean;
  /** Where its connections wait for the next tunnel; null or absent: they end with this one. */
  readonly warm?: HostUpstreams | null;
  /** The dial that was made before the first request; null or absent: none. */
  readonly early?: EarlyDial<Dialled> | null;
}

export interface EarlyDial<Dialled> {
  readonly dialled: Result<Dialled, Refusal>;
  readonly publicOnly: boolean;
  /** See {@link HostUpstreams.epoch}; from before the dial. */
  readonly epoch: number;
}

/** An open connection of the tunnel. */
interface OpenConnection {
  readonly publicOnly: boolean;
  readonly epoch: number;
  /** What was sent on it; null: nothing yet, or no credential. */
  credential: object | null;
  /** The id of the client certificate that it was opened with. */
  readonly certificate: string | null;
  readonly stopWatching: () => void;
}

/**
 * The upstream connections of one tunnel over HTTP/1.1: one per lane (a binding, or passthrough) and credential. All are dialled to
 * the tunnel's own host and verified for it, so a pooled socket can never belong to another authority, session or credential. Those
 * with a credential may wait for the session's next tunnel afterwards (see {@link HostUpstreams}).
 */
export class TunnelLanes implements UpstreamLanes {
  readonly #dialer: Pick<Dialer, 'dial'>;
  readonly #host: string;
  readonly #isPublicOnly: () => boolean;
  readonly #warm: HostUpstreams | null;
  readonly #idle = new Map<string, Connection>();
  readonly #open = new Map<Connection, OpenConnection>();
  readonly #ownLanes = new Set<string>();
  #dialling: Dialling | null = null;
  #early: Result<Connection, Refusal> | null;
  #closed = false;

  constructor({ dialer, host, isPublicOnly, warm, early }: LanesOptions<Pick<Dialer, 'dial'>, Connection>) {
    this.#dialer = dialer;
    this.#host = host;
    this.#isPublicOnly = isPublicOnly;
    this.#warm = warm ?? null;
    this.#early = early?.dialled ?? null;
    if (early?.dialled.ok === true) this.#add(early.dialled.value, early.publicOnly, early.epoch);
  }

  take(
    lane: string,
    credential: object | null,
    isRepeatable: boolean,
    certificate: PresentedCertificate | null = null,
  ): Result<LeasedNow, Refusal> | Promise<Result<LeasedNow, Refusal>> {
    const idle = this.#idle.get(lane);
    this.#idle.delete(lane);
    const open = idle === undefined ? undefined : this.#open.get(idle);
    const isSame = open?.credential === credential && open.certificate === (certificate?.id ?? null);
    if (idle !== undefined && isSame && isIdle(idle)) return ok({ connection: idle, reused: true });
    idle?.destroy();
    if (certificate !== null) return this.dial(lane, credential, certificate);
    const warm = isRepeatable && credential !== null ? this.#takeWarm(lane, credential) : null;
    return warm ?? this.#takeEarly(credential) ?? this.dial(lane, credential);
  }

  async dial(
    _lane: string,
    credential: object | null,
    certificate: PresentedCertificate | null = null,
  ): Promise<Result<LeasedNow, Refusal>> {
    if (this.#closed) return err(TUNNEL_CLOSED);
    const lapsed = certificate?.inForce() ?? null;
    if (lapsed !== null) return err(lapsed);
    const publicOnly = this.#isPublicOnly();
    const epoch = this.#warm?.epoch() ?? 0;
    this.#dialling = this.#dialer.dial(this.#host, publicOnly, certificate);
    const dialled = await whileCertified(certificate, this.#dialling);
    this.#dialling = null;
    if (!dialled.ok) return dialled;
    const connection = dialled.value;
    if (this.#closed) {
      connection.destroy();
      return err(TUNNEL_CLOSED);
    }
    this.#add(connection, publicOnly, epoch, credential, certificate?.id ?? null);
    return ok({ connection, reused: false });
  }

  /** A connection that an earlier tunnel left. */
  #takeWarm(lane: string, credential: object): Result<LeasedNow, Refusal> | null {
    if (this.#closed || this.#warm === null) return null;
    const publicOnly = this.#isPublicOnly();
    const connection = this.#warm.take({ lane, credential, publicOnly }, HTTP_1_1);
    if (!(connection instanceof Connection)) return null;
    this.#add(connection, publicOnly, this.#warm.epoch(), credential);
    return ok({ connection, reused: true });
  }

  /** The result of the early dial, once; null if there is none, or if its connection has ended since. */
  #takeEarly(credential: object | null): Result<LeasedNow, Refusal> | null {
    const early = this.#early;
    this.#early = null;
    if (early === null || !early.ok) return early;
    const open = this.#open.get(early.value);
    if (open !== undefined && isIdle(early.value)) {
      open.credential = credential;
      return ok({ connection: early.value, reused: true });
    }
    early.value.destroy();
    return null;
  }

  #add(
    connection: Connection,
    publicOnly: boolean,
    epoch: number,
    credential: object | null = null,
    certificate: string | null = null,
  ): void {
    const stopWatching = connection.onClosed(() => this.#open.delete(connection));
    if (!connection.closed) this.#open.set(connection, { publicOnly, epoch, credential, certificate, stopWatching });
  }

  onWebSockets(): void {}

  give(lane: string, connection: Connection): void {
    if (!isIdle(connection)) return connection.destroy();
    this.#idle.get(lane)?.destroy();
    this.#idle.set(lane, connection);
  }

  keepToTunnel(lane: string): void {
    this.#ownLanes.add(lane);
  }

  /** Drops every connection, also pending ones: the tunnel has ended. What is idle may wait for the next tunnel. */
  close(): void {
    this.#closed = true;
    this.#dialling?.cancel();
    for (const [lane, connection] of this.#idle) if (!this.#ownLanes.has(lane)) this.#leave(lane, connection);
    this.#idle.clear();
    for (const connection of this.#open.keys()) connection.destroy();
  }

  #leave(lane: string, connection: Connection): void {
    const open = this.#open.get(connection);
    if (open === undefined || open.credential === null || this.#warm === null) return;
    if (open.certificate !== null) return;
    this.#open.delete(connection);
    open.stopWatching();
    this.#warm.keep(connection, { lane, credential: open.credential, publicOnly: open.publicOnly }, open.epoch);
  }
}

export const TUNNEL_CLOSED = refusal('upstream_unreachable', 'the tunnel was closed before its upstream answered');

/** An idle connection must have no unread bytes: they would be read as the reply to the next request. */
function isIdle(connection: Connection): boolean {
  if (connection.closed) return false;
  const early = connection.take();
  return early === undefined;
}
