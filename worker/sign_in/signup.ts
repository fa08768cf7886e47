import { err, ok, type Result } from '../../shared/model/result.ts';
import { Secret } from '../../shared/model/secret.ts';
import type { SignupInput, SignupReply, VerifyInput } from '../../shared/wire/auth.ts';
import { apiError, type ApiError } from '../../shared/wire/errors.ts';
import { randomToken, sha256Base64Url } from '../kernel/encoding.ts';
import { hashPassword } from '../services/people/passwords.ts';
import type { SignInContext } from './sign_in_context.ts';
import { nowSeconds, nowText } from '../kernel/service_context.ts';
import {
  endAllSignInsOfPerson,
  findPassword,
  findSignup,
  insertSignup,
  setPassword,
  type SignupRow,
  takeSignup,
  useSignupTry,
} from '../store/passwords.ts';
import { type SignedIn, signInIdentity } from './sign_in_identity.ts';
import type { Mail } from '../kernel/mail.ts';
import { PASSWORD, passwordIdentity, passwordsOff } from './password_identity.ts';
import { takeAttempt, takeClientAttempt } from './throttle.ts';

const SIGNUP_SECONDS = 10 * 60;
const TRIES = 5;
const CODE_DIGITS = 8;
/** Limits the mails to one address, so that a stranger cannot flood a mailbox or guess a code by requesting many. */
export const SIGNUP_TRIES = { kind: 'signup', most: 5, windowSeconds: 3600 };
export const CLIENT_SIGNUPS = { kind: 'signup by client', most: 20, windowSeconds: 3600 };
const IN_ALL = { kind: 'mail', most: 1_000, windowSeconds: 3600 };

/**
 * Starts creating an account with a password, or setting a new password of an existing account. A code sent by mail
 * proves that the address is the caller's. Work and answer are the same for every address, so they do not reveal
 * whether it has an account. Refuses with `not_found`, `too_many_attempts`, `mail_failed`.
 */
export async function beginSignup(
  context: SignInContext,
  input: SignupInput,
  clientAddress: string | null,
): Promise<Result<SignupReply, ApiError>> {
  const { mail } = context.signIn;
  if (mail === null) return err(passwordsOff());
  const email = input.email.toLowerCase();
  const allowed = await takeSignupAttempts(context, email, clientAddress);
  if (!allowed.ok) return allowed;
  const [id, code] = [randomToken(), randomCode()];
  const now = nowSeconds(context);
  const row: SignupRow = {
    idHash: await sha256Base64Url(id),
    email,
    displayName: input.display_name ?? '',
    passwordHash: await hashPassword(new Secret(input.password), context.signIn.passwordCost),
    codeHash: await codeHash(context, id, code),
    attemptsLeft: TRIES,
    expiresAt: now + SIGNUP_SECONDS,
  };
  const written = await context.database.write(insertSignup(context.database, row, now));
  if (!written.ok) throw new Error('two signups have the same id');
  const sent = await sendCode(mail, email, code);
  return sent.ok ? ok({ signup_id: id, expires_at: new Date(row.expiresAt * 1000).toISOString() }) : sent;
}

async function takeSignupAttempts(
  context: SignInContext,
  email: string,
  clientAddress: string | null,
): Promise<Result<void, ApiError>> {
  const ofClient = await takeClientAttempt(context, CLIENT_SIGNUPS, clientAddress);
  if (!ofClient.ok) return ofClient;
  const ofAddress = await takeAttempt(context, SIGNUP_TRIES, email);
  return ofAddress.ok ? takeAttempt(context, IN_ALL, '') : ofAddress;
}

async function sendCode(mail: Mail, to: string, code: string): Promise<Result<void, ApiError>> {
  const text = [
    `Your code is ${code}. It is valid for ten minutes.`,
    'It sets the password for this address and replaces an existing one.',
    'If you did not ask for it, ignore this mail: without the code nothing changes.',
  ].join('\n');
  const sent = await mail.send({ to, subject: 'Your code for svc', text });
  return sent.ok
    ? ok(undefined)
    : err(apiError('mail_failed', `sending the code failed (${sent.error.message}): try again`));
}

/**
 * Completes a signup with the mailed code: sets the password and signs in. Sessions that used the previous password
 * end. Refuses with `not_found`, `verification_failed`, and the codes of `signInIdentity`.
 */
export async function verifySignup(
  context: SignInContext,
  input: VerifyInput,
  client: string,
): Promise<Result<SignedIn, ApiError>> {
  if (context.signIn.mail === null) return err(passwordsOff());
  const row = await signupOfCode(context, input);
  if (row === null) return err(verificationFailed());
  const taken = await context.database.write(takeSignup(context.database, row.idHash));
  if (!taken.ok) return err(verificationFailed());
  const now = nowText(context);
  const known = await findPassword(context.database, row.email);
  const before = (userId: string) => [
    setPassword(context.database, { email: row.email, hash: row.passwordHash, updatedAt: now }),
    // A browser that signed in with the previous password may not be the owner's.
    ...(known === null ? [] : endAllSignInsOfPerson(context.database, userId, now)),
  ];
  const identity = passwordIdentity(row.email, row.displayName);
  return signInIdentity(context, identity, { provider: PASSWORD, client, before });
}

/** Finds the signup of a code. The attempt is counted before the code is compared, so concurrent guesses each count. */
async function signupOfCode(context: SignInContext, input: VerifyInput): Promise<SignupRow | null> {
  const idHash = await sha256Base64Url(input.signup_id);
  const used = await context.database.write([useSignupTry(context.database, idHash, nowSeconds(context))]);
  if (!used.ok || used.value[0] !== 1) return null;
  const row = await findSignup(context.database, idHash);
  return row !== null && (await codeHashes(context, input)).includes(row.codeHash) ? row : null;
}

/** Keyed, because eight digits could be guessed from a plain hash. */
function codeHash({ vault }: SignInContext, id: string, code: string): Promise<string> {
  return vault.mac(codeText(id, code));
}

function codeHashes({ vault }: SignInContext, { signup_id: id, code }: VerifyInput): Promise<readonly string[]> {
  return vault.macs(codeText(id, code));
}

function codeText(id: string, code: string): string {
  return JSON.stringify(['svc signup code', id, code]);
}

function randomCode(): string {
  const limit = 10 ** CODE_DIGITS;
  const fair = Math.floor(2 ** 32 / limit) * limit;
  for (;;) {
    const number = crypto.getRandomValues(new Uint32Array(1))[0] ?? fair;
    if (number < fair) return String(number % limit).padStart(CODE_DIGITS, '0');
  }
}

function verificationFailed(): ApiError {
  const message =
    'the code is wrong, was used already, or has expired after ten minutes or five attempts: sign up again for a new one';
  return apiError('verification_failed', message);
}
