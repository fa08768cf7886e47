import type { HostBinding } from '../../model/host_binding.ts';
import type { Secret } from '../../model/secret.ts';
import { adapterOf } from '../schemes.ts';

/**
 * The texts that replies to a binding's requests must not show: the credential, its encoded form (the Basic pair), and the
 * session token. They are compiled into scrub patterns and used for nothing else.
 */
export function scrubSecrets(binding: HostBinding, credential: Secret, sessionToken: Secret | null): string[] {
  const value = credential.reveal();
  const derived = adapterOf(binding.injection).deriveSecrets(binding.injection, value);
  return [value, ...derived, ...(sessionToken === null ? [] : [sessionToken.reveal()])];
}
