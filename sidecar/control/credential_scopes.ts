import type { Clock } from '../../shared/model/clock.ts';
import type { CredentialRef } from '../../shared/model/host_binding.ts';
import { refusal } from '../../shared/model/refusal.ts';
import { err } from '../../shared/model/result.ts';
import type { Narrowing, SecretScope } from '../../shared/wire/sources/narrowing.ts';
import type { CredentialSource, SessionScopes } from '../ports.ts';
import type { ControlChannel, CredentialVersion } from './control_channel.ts';
import { CredentialCache } from './credentials.ts';
import type { Link } from './link.ts';

/** What a session, or a step of a plan, does less with some secrets. */
export interface ScopedSession {
  readonly scopes: readonly SecretScope[];
  onEnd(close: () => void): void;
}

interface CredentialScopesOptions {
  /** Of sessions that narrow nothing. */
  readonly shared: CredentialSource;
  readonly channel: Pick<ControlChannel, 'credentials'>;
  readonly link: Pick<Link, 'onUp' | 'onRevoked'>;
  readonly clock: Clock;
  readonly credentialCacheSeconds: number;
  readonly monotonicNow?: () => number;
}

interface Open {
  readonly credentials: CredentialSource;
  readonly cache: CredentialCache;
  readonly onUp: () => void;
}

/**
 * Credentials of sessions that narrow some of their secrets (decision 0119). Such a session has a cache of its own, whose values are
 * minted for it alone; no other session is ever given one, and it is never given the wide value.
 */
export class CredentialScopes implements SessionScopes {
  readonly #options: CredentialScopesOptions;
  readonly #open = new Map<string, Open>();
  #versions: readonly CredentialVersion[] = [];
  #findSession: (sessionId: string) => ScopedSession | null = () => null;

  constructor(options: CredentialScopesOptions) {
    this.#options = options;
    options.link.onUp(() => {
      for (const { onUp } of this.#open.values()) onUp();
    });
    options.link.onRevoked(() => this.useVersions([]));
  }

  /** How a live session or step scope is found; before, every one is taken for an ended one. */
  useSessions(find: (sessionId: string) => ScopedSession | null): void {
    this.#findSession = find;
  }

  /** For a request of this session; null: a call of the host token. A session that has ended is given nothing. */
  of(sessionId: string | null): CredentialSource {
    const { shared } = this.#options;
    if (sessionId === null) return shared;
    const open = this.#open.get(sessionId);
    if (open !== undefined) return open.credentials;
    const session = this.#findSession(sessionId);
    if (session === null) return ENDED;
    return session.scopes.length === 0 ? shared : this.#openFor(sessionId, session);
  }

  /** As for the shared cache: what the newest snapshot changed or removed is dropped. */
  useVersions(versions: readonly CredentialVersion[]): void {
    this.#versions = versions;
    for (const { cache } of this.#open.values()) cache.useVersions(versions);
  }

  #openFor(sessionId: string, session: ScopedSession): CredentialSource {
    const { channel, clock, credentialCacheSeconds, monotonicNow, shared } = this.#options;
    const narrowings = new Map<string, Narrowing>(session.scopes.map(({ path, narrowing }) => [path, narrowing]));
    let onUp = NOTHING;
    const cache = new CredentialCache({
      channel: {
        credentials: (refs) =>
          channel.credentials(refs.map((ref) => ({ ...ref, narrowing: narrowings.get(ref.path) }))),
      },
      link: {
        onUp: (listener) => {
          onUp = listener;
        },
        onRevoked: () => undefined,
      },
      clock,
      credentialCacheSeconds,
      ...(monotonicNow && { monotonicNow }),
    });
    cache.useVersions(this.#versions);
    const credentials: CredentialSource = {
      resolve: (ref, use) => (narrowings.has(ref.path) ? cache.resolve(ref) : shared.resolve(ref, use)),
      isStored: (ref) => shared.isStored(ref),
      findStoredVersion: (ref) => shared.findStoredVersion(ref),
    };
    this.#open.set(sessionId, { credentials, cache, onUp });
    session.onEnd(() => {
      this.#open.delete(sessionId);
      cache.dropAll();
    });
    return credentials;
  }
}

const NOTHING = (): void => undefined;

const ENDED: CredentialSource = {
  resolve: ({ path }: CredentialRef) =>
    err(refusal('credential_unavailable', `The session has ended, so it is given no vault://${path}.`)),
  isStored: () => false,
  findStoredVersion: () => null,
};
