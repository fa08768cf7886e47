import type { ScrubPatterns } from '../../shared/inject/scrub/patterns.ts';
import { SEARCH_KEY_WORDS } from '../../shared/inject/scrub/block_search.ts';
import { compileScrubPatterns } from '../../shared/inject/scrub/patterns.ts';
import { scrubSecrets } from '../../shared/inject/scrub/scrub_secrets.ts';
import type { CredentialRef, HostBinding } from '../../shared/model/host_binding.ts';
import type { Refusal } from '../../shared/model/refusal.ts';
import type { Result } from '../../shared/model/result.ts';
import { ok } from '../../shared/model/result.ts';
import type { Secret } from '../../shared/model/secret.ts';
import type { CredentialSource, ReleasedCredential } from '../ports.ts';

/** The vault values that a binding's request needs, and the patterns to mask in its reply. */
export interface CredentialMaterial {
  readonly credential: Secret;
  readonly sessionToken: Secret | null;
  readonly scrub: ScrubPatterns;
}

interface KnownPatterns {
  readonly credential: Secret;
  readonly sessionToken: Secret | null;
  readonly injection: HostBinding['injection'];
  readonly patterns: ScrubPatterns;
}

/** Compiled scrub patterns by binding. Compiling costs more than a request, and is needed once per stored value. */
export class MaterialCache {
  readonly #known = new Map<string, KnownPatterns>();

  patternsFor(binding: HostBinding, credential: Secret, sessionToken: Secret | null): ScrubPatterns {
    const known = this.#known.get(binding.id);
    const same = known?.credential === credential && known.sessionToken === sessionToken;
    if (same && known.injection === binding.injection) return known.patterns;
    const key = crypto.getRandomValues(new Uint32Array(SEARCH_KEY_WORDS));
    const patterns = compileScrubPatterns(scrubSecrets(binding, credential, sessionToken), key);
    this.#known.set(binding.id, { credential, sessionToken, injection: binding.injection, patterns });
    return patterns;
  }

  /** Drops every pattern derived from a secret, when the sidecar may no longer use them. */
  clear(): void {
    this.#known.clear();
  }
}

/** Resolves a binding's credential and, if it has one, its session token; synchronously if the source does. Refuses as the source does. */
export function resolveMaterial(
  binding: HostBinding,
  source: CredentialSource,
  cache: MaterialCache,
): Result<CredentialMaterial, Refusal> | Promise<Result<CredentialMaterial, Refusal>> {
  const tokenRef = sessionTokenRef(binding);
  const released = source.resolve(binding.credential);
  if (tokenRef === undefined && !(released instanceof Promise)) return materialOf(binding, released, NO_TOKEN, cache);
  return resolveBoth(binding, released, tokenRef, source, cache);
}

type Released = Result<ReleasedCredential, Refusal>;

const NO_TOKEN: Result<null, Refusal> = ok(null);

async function resolveBoth(
  binding: HostBinding,
  first: Released | Promise<Released>,
  tokenRef: CredentialRef | undefined,
  source: CredentialSource,
  cache: MaterialCache,
): Promise<Result<CredentialMaterial, Refusal>> {
  const released = await first;
  if (!released.ok) return released;
  const token = tokenRef === undefined ? NO_TOKEN : await source.resolve(tokenRef);
  return materialOf(binding, released, token, cache);
}

function materialOf(
  binding: HostBinding,
  released: Released,
  token: Result<ReleasedCredential | null, Refusal>,
  cache: MaterialCache,
): Result<CredentialMaterial, Refusal> {
  if (!released.ok) return released;
  if (!token.ok) return token;
  const credential = released.value.secret;
  const sessionToken = token.value?.secret ?? null;
  return ok({ credential, sessionToken, scrub: cache.patternsFor(binding, credential, sessionToken) });
}

function sessionTokenRef({ injection }: HostBinding): CredentialRef | undefined {
  return injection.scheme === 'sigv4-resign' ? injection.sessionTokenRef : undefined;
}
