import type { Refusal } from '../../shared/model/refusal.ts';
import { refusal } from '../../shared/model/refusal.ts';
import type { Result } from '../../shared/model/result.ts';
import { err, ok } from '../../shared/model/result.ts';
import type { Connection } from '../../machine/connection/connection.ts';
import type { LeasedConnection, UpstreamLanes } from '../ports.ts';
import type { Dialer } from './dialer.ts';
import type { Dialling } from './dialling.ts';

/** A connection, and whether it has served an exchange. */
type LeasedNow = LeasedConnection & { readonly reused: boolean };

/**
 * The upstream connections of one tunnel over HTTP/1.1: one per lane (a binding, or passthrough). All are dialled to the tunnel's own host
 * and verified for it, so a pooled socket can never belong to another authority, session or credential.
 */
export class TunnelLanes implements UpstreamLanes {
  readonly #dialer: Pick<Dialer, 'dial'>;
  readonly #host: string;
  readonly #isPublicOnly: () => boolean;
  readonly #idle = new Map<string, Connection>();
  readonly #open = new Set<Connection>();
  #dialling: Dialling | null = null;
  #early: Result<Connection, Refusal> | null;
  #closed = false;

  /** Calls `isPublicOnly` before each dial. `early`: the result of a dial that was made before the first request. */
  constructor(
    dialer: Pick<Dialer, 'dial'>,
    host: string,
    isPublicOnly: () => boolean = () => false,
    early: Result<Connection, Refusal> | null = null,
  ) {
    this.#dialer = dialer;
    this.#host = host;
    this.#isPublicOnly = isPublicOnly;
    this.#early = early;
    if (early?.ok === true) this.#keep(early.value);
  }

  take(lane: string): Result<LeasedNow, Refusal> | Promise<Result<LeasedNow, Refusal>> {
    const idle = this.#idle.get(lane);
    this.#idle.delete(lane);
    if (idle !== undefined && isIdle(idle)) return ok({ connection: idle, reused: true });
    idle?.destroy();
    return this.#takeEarly() ?? this.dial();
  }

  async dial(): Promise<Result<LeasedNow, Refusal>> {
    if (this.#closed) return err(TUNNEL_CLOSED);
    this.#dialling = this.#dialer.dial(this.#host, this.#isPublicOnly());
    const dialled = await this.#dialling.connected;
    this.#dialling = null;
    if (!dialled.ok) return dialled;
    const connection = dialled.value;
    if (this.#closed) {
      connection.destroy();
      return err(TUNNEL_CLOSED);
    }
    this.#keep(connection);
    return ok({ connection, reused: false });
  }

  /** The result of the early dial, once; null if there is none, or if its connection has ended since. */
  #takeEarly(): Result<LeasedNow, Refusal> | null {
    const early = this.#early;
    this.#early = null;
    if (early === null || !early.ok) return early;
    if (isIdle(early.value)) return ok({ connection: early.value, reused: true });
    early.value.destroy();
    return null;
  }

  #keep(connection: Connection): void {
    this.#open.add(connection);
    connection.onClosed(() => this.#open.delete(connection));
  }

  onWebSockets(): void {}

  give(lane: string, connection: Connection): void {
    if (!isIdle(connection)) return connection.destroy();
    this.#idle.get(lane)?.destroy();
    this.#idle.set(lane, connection);
  }

  /** Drops every connection, also pending ones: the tunnel has ended. */
  close(): void {
    this.#closed = true;
    this.#dialling?.cancel();
    this.#idle.clear();
    for (const connection of this.#open) connection.destroy();
  }
}

export const TUNNEL_CLOSED = refusal('upstream_unreachable', 'the tunnel was closed before its upstream answered');

/** An idle connection must have no unread bytes: they would be read as the reply to the next request. */
function isIdle(connection: Connection): boolean {
  if (connection.closed) return false;
  const early = connection.take();
  return early === undefined;
}
