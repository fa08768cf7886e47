import type { Refusal } from '../../shared/model/refusal.ts';
import type { Result } from '../../shared/model/result.ts';
import { err, ok } from '../../shared/model/result.ts';
import type { PresentedCertificate, UpstreamLanes } from '../ports.ts';
import { whileCertified } from './certified.ts';
import type { Dialer } from './dialer.ts';
import type { Dialling } from './dialling.ts';
import { type LanesOptions, TUNNEL_CLOSED } from './lanes.ts';
import { HTTP_2 } from '../../shared/net/client_hello.ts';
import type { HostUpstreams } from './warm_upstreams.ts';
import { UpstreamSession } from './upstream_session.ts';

/** A session, and whether it has been open for a while. */
interface LeasedNow {
  readonly session: UpstreamSession;
  readonly reused: boolean;
}

/** The session of a lane, and the one credential that it is used with. */
interface LaneSession {
  readonly credential: object | null;
  /** The id of the client certificate that it is opened with. */
  readonly certificate: string | null;
  readonly dialled: Promise<Result<LeasedNow, Refusal>>;
  session: UpstreamSession | null;
}

/** An open session of the tunnel. */
interface OpenSession {
  readonly publicOnly: boolean;
  /** See {@link HostUpstreams.epoch}. */
  readonly epoch: number;
  readonly stopWatching: () => void;
}

/**
 * The upstream sessions of one tunnel over HTTP/2: one per lane and credential. All are dialled to the tunnel's own host and
 * verified for it, as in {@link TunnelLanes}. Requests of a lane that arrive while it is dialled wait for the one dial.
 */
export class SessionLanes implements UpstreamLanes {
  readonly #dialer: Dialer;
  readonly #host: string;
  readonly #isPublicOnly: () => boolean;
  readonly #lanes = new Map<string, LaneSession>();
  readonly #open = new Map<UpstreamSession, OpenSession>();
  readonly #ownLanes = new Set<string>();
  readonly #pending = new Set<Dialling<unknown>>();
  readonly #warm: HostUpstreams | null;
  #early: Result<UpstreamSession, Refusal> | null;
  #closed = false;
  #takesWebSockets = false;
  #onWebSockets: (() => void) | null = null;

  constructor({ dialer, host, isPublicOnly, warm, early }: LanesOptions<Dialer, UpstreamSession>) {
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
    const known = this.#lanes.get(lane);
    const id = certificate?.id ?? null;
    if (known !== undefined && known.credential === credential && known.certificate === id) {
      if (known.session === null) return known.dialled;
      if (known.session.isUsable) return ok({ session: known.session, reused: true });
    }
    known?.session?.retire();
    const mayBeWarm = isRepeatable && credential !== null && certificate === null;
    const warm = mayBeWarm ? this.#takeWarm(lane, credential) : null;
    return warm ?? this.#dialLane(lane, credential, certificate);
  }

  /** Many streams may ask again at once, so they share what the first of them dials. */
  async dial(
    lane: string,
    credential: object | null,
    certificate: PresentedCertificate | null = null,
  ): Promise<Result<LeasedNow, Refusal>> {
    return this.take(lane, credential, false, certificate);
  }

  keepToTunnel(lane: string): void {
    this.#ownLanes.add(lane);
  }

  /** A session that an earlier tunnel left. */
  #takeWarm(lane: string, credential: object): Result<LeasedNow, Refusal> | null {
    if (this.#closed || this.#warm === null) return null;
    const publicOnly = this.#isPublicOnly();
    const session = this.#warm.take({ lane, credential, publicOnly }, HTTP_2);
    if (!(session instanceof UpstreamSession)) return null;
    this.#add(session, publicOnly, this.#warm.epoch());
    const leased = ok({ session, reused: true });
    this.#lanes.set(lane, { credential, certificate: null, dialled: Promise.resolve(leased), session });
    return leased;
  }

  give(): void {}

  onWebSockets(listener: () => void): void {
    if (this.#takesWebSockets) listener();
    else this.#onWebSockets = listener;
  }

  /** Drops every session, also pending ones: the tunnel has ended. What is at rest may wait for the next tunnel. */
  close(): void {
    this.#closed = true;
    for (const [lane, { credential, certificate, session }] of this.#lanes) {
      if (certificate !== null || this.#ownLanes.has(lane)) continue;
      if (session !== null && credential !== null) this.#leave(session, lane, credential);
    }
    this.#lanes.clear();
    for (const dialling of this.#pending) dialling.cancel();
    for (const session of this.#open.keys()) session.destroy();
  }

  #leave(session: UpstreamSession, lane: string, credential: object): void {
    const open = this.#open.get(session);
    if (open === undefined || this.#warm === null) return;
    this.#open.delete(session);
    open.stopWatching();
    session.onWebSockets(null);
    this.#warm.keep(session, { lane, credential, publicOnly: open.publicOnly }, open.epoch);
  }

  async #dialLane(
    lane: string,
    credential: object | null,
    certificate: PresentedCertificate | null,
  ): Promise<Result<LeasedNow, Refusal>> {
    const early = certificate === null ? this.#takeEarly() : null;
    const dialled = early === null ? this.#dial(certificate) : Promise.resolve(early);
    const made: LaneSession = { credential, certificate: certificate?.id ?? null, dialled, session: null };
    this.#lanes.set(lane, made);
    const result = await dialled;
    if (result.ok) {
      made.session = result.value.session;
      // Another credential took the lane meanwhile. Who waited for this session opens a stream first.
      if (this.#lanes.get(lane) !== made) setImmediate(() => made.session?.retire());
    } else if (this.#lanes.get(lane) === made) this.#lanes.delete(lane);
    return result;
  }

  async #dial(certificate: PresentedCertificate | null): Promise<Result<LeasedNow, Refusal>> {
    if (this.#closed) return err(TUNNEL_CLOSED);
    const lapsed = certificate?.inForce() ?? null;
    if (lapsed !== null) return err(lapsed);
    const publicOnly = this.#isPublicOnly();
    const epoch = this.#warm?.epoch() ?? 0;
    const dialling = this.#dialer.dialOffering([HTTP_2], this.#host, publicOnly, certificate);
    this.#pending.add(dialling);
    const dialled = await whileCertified(certificate, dialling);
    this.#pending.delete(dialling);
    if (!dialled.ok) return dialled;
    const session = dialled.value;
    if (!(session instanceof UpstreamSession)) throw new Error('an upstream that was offered only HTTP/2 chose it');
    if (this.#closed) {
      session.destroy();
      return err(TUNNEL_CLOSED);
    }
    this.#add(session, publicOnly, epoch);
    return ok({ session, reused: false });
  }

  #takeEarly(): Result<LeasedNow, Refusal> | null {
    const early = this.#early;
    this.#early = null;
    if (early === null || !early.ok) return early;
    return early.value.isUsable ? ok({ session: early.value, reused: true }) : null;
  }

  #add(session: UpstreamSession, publicOnly: boolean, epoch: number): void {
    session.onWebSockets(() => {
      this.#takesWebSockets = true;
      this.#onWebSockets?.();
      this.#onWebSockets = null;
    });
    const stopWatching = session.onClosed(() => this.#open.delete(session));
    if (session.isUsable) this.#open.set(session, { publicOnly, epoch, stopWatching });
  }
}
