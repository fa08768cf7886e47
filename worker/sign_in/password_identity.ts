import { apiError, type ApiError } from '../../shared/wire/errors.ts';
import type { Identity } from './provider.ts';

/** How an enterprise names passwords among the ways to sign in. */
export const PASSWORD = 'password';

/** Whoever has the password of an address: it was set with a code from its mailbox, so the address is theirs. */
export function passwordIdentity(email: string, displayName: string): Identity {
  return { issuer: 'svc', subject: email, email, emailVerified: true, displayName };
}

export function passwordsOff(): ApiError {
  return apiError('not_found', 'nobody signs in with a password here: GET /auth/providers lists the ways there are');
}
