import { apiError, type ApiError } from '../../shared/wire/errors.ts';
import type { Identity } from './provider.ts';

/** The name of passwords in an enterprise's list of ways to sign in. */
export const PASSWORD = 'password';

/**
 * The identity of an address with a password. The address is verified: the password was set with a code from its
 * mailbox.
 */
export function passwordIdentity(email: string, displayName: string): Identity {
  return { issuer: 'svc', subject: email, email, emailVerified: true, displayName };
}

export function passwordsOff(): ApiError {
  return apiError('not_found', 'password sign-in is off here: GET /auth/providers lists the ways to sign in');
}
