import type { HostBinding } from '../../model/host_binding.ts';
import type { Secret } from '../../model/secret.ts';
import { adapterOf } from '../schemes.ts';

/**
 * What replies to a binding's requests must not show, to be compiled into scrub patterns and used for nothing else: the
 * credential, what its scheme makes of it (the Basic pair), and the session token.
 */
export function scrubSecrets(binding: HostBinding, credential: Secret, sessionToken: Secret | null): string[] {
  const value = credential.reveal();
  const derived = adapterOf(binding.injection).deriveSecrets(binding.injection, value);
  return [value, ...derived, ...(sessionToken === null ? [] : [sessionToken.reveal()])];
}
