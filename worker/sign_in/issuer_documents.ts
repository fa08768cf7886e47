import type { AuthorizationServer, JWKSCacheInput } from 'oauth4webapi';
import type { Clock } from '../kernel/clock.ts';

/** The documents that an OpenID provider publishes. */
export interface IssuerDocuments {
  /** Its validated discovery document. */
  readonly server: AuthorizationServer;
  /** Its keys, stored here by the library that uses them. It refreshes them after five minutes. */
  readonly keys: JWKSCacheInput;
}

interface Held extends IssuerDocuments {
  readonly readAtMs: number;
}

/** How long a discovery document is cached. */
export const HELD_MS = 10 * 60_000;
/** The cache size. Enterprises choose their issuers, so there may be many. */
const MOST_HELD = 200;
/** A larger document is used and not cached. */
const MAX_CHARACTERS = 64 * 1024;

/**
 * Caches the documents of issuers in memory. Concurrent requests that find nothing each fetch them: in workerd a
 * request must not await another request's promise.
 */
export class HeldIssuers {
  readonly #clock: Pick<Clock, 'now'>;
  readonly #held = new Map<string, Held>();

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock;
  }

  async documents(issuer: string, read: () => Promise<AuthorizationServer>): Promise<IssuerDocuments> {
    const held = this.#held.get(issuer);
    if (held !== undefined && this.#clock.now() - held.readAtMs < HELD_MS) return held;
    const found: Held = { server: await read(), keys: {}, readAtMs: this.#clock.now() };
    this.#keep(issuer, found);
    return found;
  }

  /** Drops an issuer's documents, for example after an answer that did not match them. */
  forget(issuer: string): void {
    this.#held.delete(issuer);
  }

  #keep(issuer: string, found: Held): void {
    this.#held.delete(issuer);
    if (JSON.stringify(found.server).length > MAX_CHARACTERS) return;
    this.#held.set(issuer, found);
    const [oldest] = this.#held.keys();
    if (this.#held.size > MOST_HELD && oldest !== undefined) this.#held.delete(oldest);
  }
}
