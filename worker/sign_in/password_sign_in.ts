import { err, type Result } from '../../shared/model/result.ts';
import { Secret } from '../../shared/model/secret.ts';
import type { LoginInput } from '../../shared/wire/auth.ts';
import { apiError, type ApiError } from '../../shared/wire/errors.ts';
import { isPassword } from '../services/people/passwords.ts';
import type { SignInContext } from './sign_in_context.ts';
import { findPassword } from '../store/passwords.ts';
import { type SignedIn, signInIdentity } from './sign_in_identity.ts';
import { PASSWORD, passwordIdentity, passwordsOff } from './password_identity.ts';
import { clearAttempts, takeAttempt, takeClientAttempt } from './throttle.ts';

/** Attempts per address, whether it has an account or not. */
export const PASSWORD_TRIES = { kind: 'password', most: 10, windowSeconds: 15 * 60 };

/** Attempts per client over all addresses. This limits the load by one machine and the addresses it can try. */
export const CLIENT_TRIES = { kind: 'password by client', most: 100, windowSeconds: 15 * 60 };

/** The client: its name for itself and its address. */
interface SignInClient {
  readonly client: string;
  readonly address: string | null;
}

/**
 * Signs in with a password. A wrong password and an unknown address get the same answer after the same work. Refuses
 * with `not_found`, `too_many_attempts`, `wrong_email_or_password`, and the codes of `signInIdentity`.
 */
export async function signInWithPassword(
  context: SignInContext,
  input: LoginInput,
  { client: clientName, address }: SignInClient,
): Promise<Result<SignedIn, ApiError>> {
  if (context.signIn.mail === null) return err(passwordsOff());
  const client = await takeClientAttempt(context, CLIENT_TRIES, address);
  if (!client.ok) return client;
  const email = input.email.toLowerCase();
  const allowed = await takeAttempt(context, PASSWORD_TRIES, email);
  if (!allowed.ok) return allowed;
  const stored = await findPassword(context.database, email);
  if (!(await isPassword(new Secret(input.password), stored?.hash ?? null, context.signIn.passwordCost)))
    return err(wrongError());
  await clearAttempts(context, PASSWORD_TRIES, email);
  return signInIdentity(context, passwordIdentity(email, ''), { provider: PASSWORD, client: clientName });
}

function wrongError(): ApiError {
  const message =
    'the email or the password is wrong: try again, or sign up with the same address to set a new password';
  return apiError('wrong_email_or_password', message);
}
