import type { ScrubPatterns } from '../../shared/inject/scrub/patterns.ts';
import { compileScrubPatterns } from '../../shared/inject/scrub/patterns.ts';
import { scrubSecrets } from '../../shared/inject/scrub/secrets_of.ts';
import type { CredentialRef, HostBinding } from '../../shared/model/host_binding.ts';
import type { Refusal } from '../../shared/model/refusal.ts';
import type { Result } from '../../shared/model/result.ts';
import { err, ok } from '../../shared/model/result.ts';
import type { Secret } from '../../shared/model/secret.ts';
import type { CredentialSource, ReleasedCredential } from '../ports.ts';

/** What a binding's request needs of the vault, and what to mask in its reply. */
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

/** Compiled scrub patterns by binding: compiling costs more than a request, and is needed once for each stored value. */
export class MaterialCache {
  readonly #known = new Map<string, KnownPatterns>();

  patternsFor(binding: HostBinding, credential: Secret, sessionToken: Secret | null): ScrubPatterns {
    const known = this.#known.get(binding.id);
    const same = known?.credential === credential && known.sessionToken === sessionToken;
    if (same && known.injection === binding.injection) return known.patterns;
    const patterns = compileScrubPatterns(scrubSecrets(binding, credential, sessionToken));
    this.#known.set(binding.id, { credential, sessionToken, injection: binding.injection, patterns });
    return patterns;
  }

  /** Forgets every secret-derived pattern, when the sidecar has lost the right to them. */
  clear(): void {
    this.#known.clear();
  }
}

/** Resolves a binding's credential, and its session token where it has one. Refuses as the source does. */
export async function resolveMaterial(
  binding: HostBinding,
  source: CredentialSource,
  cache: MaterialCache,
): Promise<Result<CredentialMaterial, Refusal>> {
  const released = await source.resolve(binding.credential);
  if (!released.ok) return err(released.error);
  const token = await resolveOptional(sessionTokenRef(binding), source);
  if (!token.ok) return err(token.error);
  const credential = released.value.secret;
  const sessionToken = token.value?.secret ?? null;
  return ok({ credential, sessionToken, scrub: cache.patternsFor(binding, credential, sessionToken) });
}

function sessionTokenRef({ injection }: HostBinding): CredentialRef | undefined {
  return injection.scheme === 'sigv4-resign' ? injection.sessionTokenRef : undefined;
}

async function resolveOptional(
  ref: CredentialRef | undefined,
  source: CredentialSource,
): Promise<Result<ReleasedCredential | null, Refusal>> {
  return ref === undefined ? ok(null) : source.resolve(ref);
}
