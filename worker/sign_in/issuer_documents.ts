import type { JWK } from 'jose';
import type { AuthorizationServer, JWKSCacheInput } from 'oauth4webapi';
import type { Clock } from '../kernel/clock.ts';
import { SeenOutcomes } from '../kernel/seen_outcomes.ts';

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

/** The keys of an issuer, for what it signs outside a sign-in. */
interface HeldKeys {
  readonly keys: readonly JWK[];
  readonly readAtMs: number;
}

/** How long a discovery document is cached. */
export const HELD_MS = 10 * 60_000;
/** How long keys are: a key that its issuer withdraws is used no longer. */
const KEYS_HELD_MS = 5 * 60_000;
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
  readonly #keys = new Map<string, HeldKeys>();
  readonly #outcomes: SeenOutcomes;

  constructor(clock: Pick<Clock, 'now'>, outcomes = new SeenOutcomes()) {
    this.#clock = clock;
    this.#outcomes = outcomes;
  }

  /** Notes how a use of a provider went: null if it answered. */
  note(provider: string, problem: string | null): void {
    this.#outcomes.note(provider, problem, this.#clock.now());
  }

  /** The documents of an issuer. How a use of them went is noted under the name of the provider, of which each enterprise has its own. */
  async documents(
    issuer: string,
    provider: string,
    read: () => Promise<AuthorizationServer>,
  ): Promise<IssuerDocuments> {
    const held = this.#held.get(issuer);
    if (held !== undefined && this.#clock.now() - held.readAtMs < HELD_MS) {
      this.note(provider, null);
      return held;
    }
    const server = await this.#noted(provider, read);
    const found: Held = { server, keys: {}, readAtMs: this.#clock.now() };
    keep(this.#held, { issuer, document: server, entry: found });
    return found;
  }

  async #noted<T>(provider: string, read: () => Promise<T>): Promise<T> {
    try {
      const document = await read();
      this.note(provider, null);
      return document;
    } catch (error) {
      this.note(provider, 'its discovery document could not be read');
      throw error;
    }
  }

  /** The keys of an issuer as they were read lately; null if they have to be read. */
  findKeys(issuer: string): readonly JWK[] | null {
    const held = this.#keys.get(issuer);
    return held !== undefined && this.#clock.now() - held.readAtMs < KEYS_HELD_MS ? held.keys : null;
  }

  keepKeys(issuer: string, keys: readonly JWK[]): void {
    keep(this.#keys, { issuer, document: keys, entry: { keys, readAtMs: this.#clock.now() } });
  }

  /** Drops an issuer's documents, for example after an answer that did not match them. */
  forget(issuer: string): void {
    this.#held.delete(issuer);
  }
}

function keep<T>(
  held: Map<string, T>,
  { issuer, document, entry }: { readonly issuer: string; readonly document: object; readonly entry: T },
): void {
  held.delete(issuer);
  if (JSON.stringify(document).length > MAX_CHARACTERS) return;
  held.set(issuer, entry);
  const [oldest] = held.keys();
  if (held.size > MOST_HELD && oldest !== undefined) held.delete(oldest);
}
