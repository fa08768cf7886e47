import type { AccountChoice } from '../../shared/model/account_choice.ts';
import type { SecretScope } from '../../shared/wire/sources/narrowing.ts';
import type { LiveSession, SealedReach } from '../ports.ts';
import { type CloseTunnel, OpenTunnels } from './open_tunnels.ts';
import { isSameHash } from './token.ts';

/** What a step may reach and for how long, from the verified lock. */
export interface StepReach {
  readonly stepId: string;
  readonly effect: string;
  /** Exact hosts, canonical. */
  readonly hosts: readonly string[];
  readonly timeoutSeconds: number;
  /** The account that it uses where a host has several. Null: it names no credential. */
  readonly choice: AccountChoice | null;
  /** What it does less with some secrets. */
  readonly scopes: readonly SecretScope[];
}

interface ScopeFacts {
  readonly scopeId: string;
  readonly step: StepReach;
  readonly session: LiveSession;
  readonly tokenHash: Buffer;
  /** Milliseconds since the epoch. */
  readonly expiresAt: number;
}

/**
 * The proxy credential of one step of a plan (specification section 1, Tool-step egress). Its token opens tunnels of its
 * session to the sealed hosts only, until it expires or is revoked; both close its tunnels.
 */
export class StepScope implements LiveSession {
  readonly scopeId: string;
  /** The session's id. */
  readonly id: string;
  readonly ca: LiveSession['ca'];
  readonly reach: SealedReach;
  readonly step: StepReach;
  readonly choice: AccountChoice | null;
  readonly expiresAt: number;
  readonly credentialsId: string;
  readonly #onEnd: (() => void)[] = [];
  readonly #session: LiveSession;
  readonly #tokenHash: Buffer;
  readonly #tunnels = new OpenTunnels(Number.POSITIVE_INFINITY);
  #timer: NodeJS.Timeout | null = null;
  #onUnreported: (() => void) | null = null;

  constructor({ scopeId, step, session, tokenHash, expiresAt }: ScopeFacts) {
    this.scopeId = scopeId;
    this.id = session.id;
    this.ca = session.ca;
    this.step = step;
    this.choice = step.choice;
    this.credentialsId = step.scopes.length === 0 ? session.id : scopeId;
    const hosts = new Set(step.hosts);
    this.reach = { stepId: step.stepId, includes: (host) => hosts.has(host) };
    this.expiresAt = expiresAt;
    this.#session = session;
    this.#tokenHash = tokenHash;
  }

  get openTunnels(): number {
    return this.#tunnels.count;
  }

  get scopes(): readonly SecretScope[] {
    return this.step.scopes;
  }

  onEnd(close: () => void): void {
    this.#onEnd.push(close);
  }

  /** True if the token with this hash opens a tunnel now. Compares in constant time. */
  isOpenedBy(hash: Buffer, now: number): boolean {
    return isSameHash(this.#tokenHash, hash) && !this.#tunnels.ended && now < this.expiresAt;
  }

  /** Ends the scope after this time. */
  endAfter(ms: number, end: () => void): void {
    this.#timer = setTimeout(end, ms).unref();
  }

  /** A tunnel of the scope counts as one of the session too. */
  openTunnel(close: CloseTunnel): (() => void) | null {
    const closed = this.#tunnels.open(close);
    if (closed === null) return null;
    const closedInSession = this.#session.openTunnel(close);
    if (closedInSession === null) {
      closed();
      return null;
    }
    return () => {
      closed();
      closedInSession();
    };
  }

  /** They end with the scope, and with what ends the session's. */
  onTunnelsClosed(close: () => void): () => void {
    const stops = [this.#tunnels.onClosed(close), this.#session.onTunnelsClosed?.(close)];
    return () => {
      for (const stop of stops) stop?.();
    };
  }

  /** Called when the scope ends and nobody has reported the start of its step. */
  onUnreported(call: () => void): void {
    this.#onUnreported = call;
  }

  noteReported(): void {
    this.#onUnreported = null;
  }

  async end(): Promise<void> {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#onUnreported?.();
    this.#onUnreported = null;
    for (const close of this.#onEnd) close();
    await this.#tunnels.end();
  }
}
