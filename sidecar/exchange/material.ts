import type { ScrubPatterns } from '../../shared/inject/scrub/patterns.ts';
import { SEARCH_KEY_WORDS } from '../../shared/inject/scrub/block_search.ts';
import { compileScrubPatterns } from '../../shared/inject/scrub/patterns.ts';
import { scrubSecrets } from '../../shared/inject/scrub/scrub_secrets.ts';
import { useOf, useOfSessionToken } from '../../shared/borrow/borrow_grant.ts';
import type { CredentialRef, HostBinding } from '../../shared/model/host_binding.ts';
import { refusal, type Refusal } from '../../shared/model/refusal.ts';
import type { Result } from '../../shared/model/result.ts';
import { err, ok } from '../../shared/model/result.ts';
import type { Secret } from '../../shared/model/secret.ts';
import { keySetProblem, MINTED_KEY_ID } from '../../shared/model/source_kind.ts';
import { formatVaultReference } from '../../shared/model/vault_path.ts';
import { type CertificateAndKey, readCertificateAndKey } from '../../machine/client_certificate.ts';
import type { CredentialSource, ReleasedCredential } from '../ports.ts';

/** The vault values that a binding's request needs, and the patterns to mask in its reply. */
export interface CredentialMaterial {
  readonly credential: Secret;
  readonly sessionToken: Secret | null;
  /** Of a key set; else the binding has it. */
  readonly accessKeyId: string | null;
  readonly scrub: ScrubPatterns;
  /** Whether the end of one of the values has come; null if none has an end. */
  readonly hasEnded: (() => boolean) | null;
}

interface KnownPatterns {
  readonly credential: Secret;
  readonly sessionToken: Secret | null;
  readonly injection: HostBinding['injection'];
  readonly patterns: ScrubPatterns;
}

/** What is derived from stored values, once per value, because it costs more than a request: the scrub patterns of bindings, and certificates with their keys. */
export class MaterialCache {
  readonly #known = new Map<string, KnownPatterns>();
  #certificates = new WeakMap<Secret, Result<CertificateAndKey, string>>();

  patternsFor(binding: HostBinding, credential: Secret, sessionToken: Secret | null): ScrubPatterns {
    const known = this.#known.get(binding.id);
    const same = known?.credential === credential && known.sessionToken === sessionToken;
    if (same && known.injection === binding.injection) return known.patterns;
    const key = crypto.getRandomValues(new Uint32Array(SEARCH_KEY_WORDS));
    const patterns = compileScrubPatterns(scrubSecrets(binding, credential, sessionToken), key);
    this.#known.set(binding.id, { credential, sessionToken, injection: binding.injection, patterns });
    return patterns;
  }

  /** As {@link readCertificateAndKey} reads it. */
  certificateIn(value: Secret): Result<CertificateAndKey, string> {
    const known = this.#certificates.get(value) ?? readCertificateAndKey(value.reveal());
    this.#certificates.set(value, known);
    return known;
  }

  /** Drops everything derived from a secret, when the sidecar may no longer use it. */
  clear(): void {
    this.#known.clear();
    this.#certificates = new WeakMap();
  }
}

/**
 * Resolves a binding's credential and, if it has one, its session token, for a request to `host`; synchronously if the source does.
 * Refuses as the source does.
 */
export function resolveMaterial(
  binding: HostBinding,
  host: string,
  source: CredentialSource,
  cache: MaterialCache,
): Result<CredentialMaterial, Refusal> | Promise<Result<CredentialMaterial, Refusal>> {
  const tokenRef = sessionTokenRef(binding);
  const released = source.resolve(binding.credential, useOf(binding, host));
  if (tokenRef === undefined && !(released instanceof Promise)) return materialOf(binding, released, NO_TOKEN, cache);
  const resolveToken = (ref: CredentialRef) => source.resolve(ref, useOfSessionToken(binding, host));
  return resolveBoth(binding, released, tokenRef, resolveToken, cache);
}

type Released = Result<ReleasedCredential, Refusal>;

const NO_TOKEN: Result<null, Refusal> = ok(null);

async function resolveBoth(
  binding: HostBinding,
  first: Released | Promise<Released>,
  tokenRef: CredentialRef | undefined,
  resolve: (ref: CredentialRef) => Released | Promise<Released>,
  cache: MaterialCache,
): Promise<Result<CredentialMaterial, Refusal>> {
  const released = await first;
  if (!released.ok) return released;
  const token = tokenRef === undefined ? NO_TOKEN : await resolve(tokenRef);
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
  const refused = refuseKeySet(binding, released.value, token.value);
  if (refused !== null) return err(refused);
  const { secret: credential, signedAs } = released.value;
  const sessionToken = signedAs?.sessionToken ?? token.value?.secret ?? null;
  const scrub = cache.patternsFor(binding, credential, sessionToken);
  const hasEnded = eitherEnded(released.value.hasEnded, token.value?.hasEnded);
  return ok({ credential, sessionToken, accessKeyId: signedAs?.accessKeyId ?? null, scrub, hasEnded });
}

type HasEnded = ReleasedCredential['hasEnded'];

function eitherEnded(one: HasEnded, other: HasEnded): (() => boolean) | null {
  if (one === undefined || other === undefined) return one ?? other ?? null;
  return () => one() || other();
}

/** A key set is used whole, by a binding that says so; a part of it as any other credential would reach a host that may keep it. */
function refuseKeySet(
  { credential: { path }, injection }: HostBinding,
  released: ReleasedCredential,
  token: ReleasedCredential | null,
): Refusal | null {
  const wantsKeySet = injection.scheme === 'sigv4-resign' && injection.accessKeyId === MINTED_KEY_ID;
  const hasKeySet = released.signedAs !== undefined;
  if (hasKeySet !== wantsKeySet) {
    const reference = formatVaultReference(path);
    const message = hasKeySet
      ? `${keySetProblem(reference)}.`
      : `${reference} is no key set of AWS, and its binding has the access_key_id "${MINTED_KEY_ID}": write the access key id there, or have the secret minted by AWS.`;
    return refusal('credential_unavailable', message);
  }
  if (token?.signedAs === undefined) return null;
  return refusal('credential_unavailable', `The session token of the binding cannot be used: it is a key set of AWS.`);
}

function sessionTokenRef({ injection }: HostBinding): CredentialRef | undefined {
  return injection.scheme === 'sigv4-resign' ? injection.sessionTokenRef : undefined;
}
