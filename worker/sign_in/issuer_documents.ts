import type { AuthorizationServer, JWKSCacheInput } from 'oauth4webapi';
import type { Clock } from '../kernel/service_context.ts';

/** What an OpenID provider publishes about itself. */
export interface IssuerDocuments {
  /** Its discovery document, checked. */
  readonly server: AuthorizationServer;
  /** Its keys, as the library that uses them puts them here. It asks for them again after five minutes. */
  readonly keys: JWKSCacheInput;
}

interface Held extends IssuerDocuments {
  readonly readAtMs: number;
}

/** How long a discovery document is used. */
export const HELD_MS = 10 * 60_000;
/** Enterprises choose their issuers: however many there are, as many are held. */
const MOST_HELD = 200;
/** A document that is larger is used and not held. */
const MAX_CHARACTERS = 64 * 1024;

/**
 * The documents of the issuers that sign people in, kept in memory for a while. Requests do not wait for one another: of
 * several that find nothing each asks for itself (in workerd a promise of one request is none of another's).
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

  /** Begins anew with an issuer, such as after an answer that did not fit what is held. */
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
