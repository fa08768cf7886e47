import type { Refusal } from '../../shared/model/refusal.ts';
import type { Result } from '../../shared/model/result.ts';
import { err, ok } from '../../shared/model/result.ts';
import type { UpstreamLanes } from '../ports.ts';
import type { Dialer } from './dialer.ts';
import type { Dialling } from './dialling.ts';
import { TUNNEL_CLOSED } from './lanes.ts';
import { HTTP_2 } from '../../shared/net/client_hello.ts';
import { UpstreamSession } from './upstream_session.ts';

/** A session, and whether it has been open for a while. */
interface LeasedNow {
  readonly session: UpstreamSession;
  readonly reused: boolean;
}

/** The session of a lane, and the one credential that it is used with. */
interface LaneSession {
  readonly credential: object | null;
  readonly dialled: Promise<Result<LeasedNow, Refusal>>;
  session: UpstreamSession | null;
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
  readonly #open = new Set<UpstreamSession>();
  readonly #pending = new Set<Dialling<unknown>>();
  #early: Result<UpstreamSession, Refusal> | null;
  #closed = false;
  #takesWebSockets = false;
  #onWebSockets: (() => void) | null = null;

  /** Calls `isPublicOnly` before each dial. `early`: the result of a dial that was made before the first request. */
  constructor(
    dialer: Dialer,
    host: string,
    isPublicOnly: () => boolean,
    early: Result<UpstreamSession, Refusal> | null,
  ) {
    this.#dialer = dialer;
    this.#host = host;
    this.#isPublicOnly = isPublicOnly;
    this.#early = early;
    if (early?.ok === true) this.#keep(early.value);
  }

  take(lane: string, credential: object | null): Result<LeasedNow, Refusal> | Promise<Result<LeasedNow, Refusal>> {
    const known = this.#lanes.get(lane);
    if (known !== undefined && known.credential === credential) {
      if (known.session === null) return known.dialled;
      if (known.session.isUsable) return ok({ session: known.session, reused: true });
    }
    known?.session?.retire();
    return this.#dialLane(lane, credential);
  }

  /** Many streams may ask again at once, so they share what the first of them dials. */
  async dial(lane: string, credential: object | null): Promise<Result<LeasedNow, Refusal>> {
    return this.take(lane, credential);
  }

  give(): void {}

  onWebSockets(listener: () => void): void {
    if (this.#takesWebSockets) listener();
    else this.#onWebSockets = listener;
  }

  /** Drops every session, also pending ones: the tunnel has ended. */
  close(): void {
    this.#closed = true;
    this.#lanes.clear();
    for (const dialling of this.#pending) dialling.cancel();
    for (const session of this.#open) session.close();
  }

  async #dialLane(lane: string, credential: object | null): Promise<Result<LeasedNow, Refusal>> {
    const early = this.#takeEarly();
    const dialled = early === null ? this.#dial() : Promise.resolve(early);
    const made: LaneSession = { credential, dialled, session: null };
    this.#lanes.set(lane, made);
    const result = await dialled;
    if (result.ok) {
      made.session = result.value.session;
      // Another credential took the lane meanwhile. Who waited for this session opens a stream first.
      if (this.#lanes.get(lane) !== made) setImmediate(() => made.session?.retire());
    } else if (this.#lanes.get(lane) === made) this.#lanes.delete(lane);
    return result;
  }

  async #dial(): Promise<Result<LeasedNow, Refusal>> {
    if (this.#closed) return err(TUNNEL_CLOSED);
    const dialling = this.#dialer.dialOffering([HTTP_2], this.#host, this.#isPublicOnly());
    this.#pending.add(dialling);
    const dialled = await dialling.connected;
    this.#pending.delete(dialling);
    if (!dialled.ok) return dialled;
    const session = dialled.value;
    if (!(session instanceof UpstreamSession)) throw new Error('an upstream that was offered only HTTP/2 chose it');
    if (this.#closed) {
      session.close();
      return err(TUNNEL_CLOSED);
    }
    this.#keep(session);
    return ok({ session, reused: false });
  }

  #takeEarly(): Result<LeasedNow, Refusal> | null {
    const early = this.#early;
    this.#early = null;
    if (early === null || !early.ok) return early;
    return early.value.isUsable ? ok({ session: early.value, reused: true }) : null;
  }

  #keep(session: UpstreamSession): void {
    this.#open.add(session);
    session.onWebSockets(() => {
      this.#takesWebSockets = true;
      this.#onWebSockets?.();
      this.#onWebSockets = null;
    });
    session.onClosed(() => this.#open.delete(session));
  }
}
