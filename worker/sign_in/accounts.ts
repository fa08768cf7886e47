import { err, ok, type Result } from '../../shared/model/result.ts';
import { apiError, type ApiError } from '../../shared/wire/errors.ts';
import { type AuditDraft, type Change, commit } from '../services/commit.ts';
import { freshId, nowText, type ServiceContext } from '../services/service_context.ts';
import { type Account, insertAccount } from '../store/accounts.ts';
import type { Statement } from '../store/database.ts';
import {
  claimVerifiedEmail,
  findAccountByVerifiedEmail,
  findAccountOfIdentity,
  type IdentityKey,
  insertIdentity,
  isSlugTaken,
  joinable,
  touchIdentity,
} from '../store/identities.ts';
import { parseEmail, slugOf } from '../../shared/model/email.ts';
import { admissionProblem } from './admission.ts';
import type { Identity } from './provider.ts';

/** How somebody signs in. */
export interface SignInMethod {
  /** The provider's name, or `password`. */
  readonly provider: string;
}

export interface SignedIn {
  readonly userId: string;
}

/** Where an identity belongs: to an account it signed in to before, to one with its verified address, or to a new one. */
type Place =
  | { readonly kind: 'known' | 'joins'; readonly account: Account }
  | { readonly kind: 'new'; readonly enterpriseId: string };

const MAX_ATTEMPTS = 5;

/**
 * Signs an identity in. Accounts join by email only where both sides verified it; the first sign-in of somebody new makes an
 * enterprise. Refuses with `account_unavailable`, `provider_not_allowed`, `domain_not_allowed`.
 */
export async function signInIdentity(
  context: ServiceContext,
  identity: Identity,
  how: SignInMethod,
): Promise<Result<SignedIn, ApiError>> {
  for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt += 1) {
    const place = await locate(context, identity, how);
    const enterpriseId = place.kind === 'new' ? place.enterpriseId : place.account.enterprise.id;
    const chain = { enterpriseId, writer: enterpriseId };
    const written = await commit(context, chain, () => decide(context, identity, how, place));
    if (written.ok || written.error !== MOVED) return written;
  }
  throw new Error('an identity was given another account each time it signed in');
}

/** Another sign-in of the same person came first: its place has to be looked up again. Never answered. */
const MOVED: ApiError = apiError('conflict', 'another sign-in came first');

async function locate(context: ServiceContext, identity: Identity, how: SignInMethod): Promise<Place> {
  const known = await findAccountOfIdentity(context.database, keyOf(identity, how));
  if (known !== null) return { kind: 'known', account: known };
  const owner = identity.emailVerified ? await findAccountByVerifiedEmail(context.database, identity.email) : null;
  if (owner !== null) return { kind: 'joins', account: owner };
  return { kind: 'new', enterpriseId: freshId(context, 'ent') };
}

async function decide(
  context: ServiceContext,
  identity: Identity,
  how: SignInMethod,
  before: Place,
): Promise<Result<Change<SignedIn>, ApiError>> {
  const place = await locate(context, identity, how);
  if (place.kind === 'new' && before.kind === 'new') return createAccount(context, identity, how, before.enterpriseId);
  if (place.kind === 'new' || before.kind === 'new' || place.account.user.id !== before.account.user.id)
    return err(MOVED);
  const problem = admissionProblem(place.account, identity, how);
  if (problem !== null) return err(problem);
  return ok(
    place.kind === 'known'
      ? signInKnown(context, identity, how, place.account)
      : join(context, identity, how, place.account),
  );
}

function signInKnown(
  context: ServiceContext,
  identity: Identity,
  how: SignInMethod,
  { user }: Account,
): Change<SignedIn> {
  const { email, emailVerified } = identity;
  const touched = touchIdentity(context.database, keyOf(identity, how), {
    email,
    emailVerified,
    lastSignInAt: nowText(context),
  });
  const claimed =
    emailVerified && user.verifiedEmail === null ? [claimVerifiedEmail(context.database, user.id, email)] : [];
  return signedIn(user.id, how, [touched, ...claimed], []);
}

function join(context: ServiceContext, identity: Identity, how: SignInMethod, { user }: Account): Change<SignedIn> {
  const statements = [
    ...joinable(user.id, identity.email),
    insertIdentity(context.database, newIdentity(context, identity, how, user.id)),
  ];
  return signedIn(user.id, how, statements, [draft('control.identity.linked', user.id, how)]);
}

async function createAccount(
  context: ServiceContext,
  identity: Identity,
  how: SignInMethod,
  enterpriseId: string,
): Promise<Result<Change<SignedIn>, ApiError>> {
  const createdAt = nowText(context);
  const userId = freshId(context, 'usr');
  const displayName = displayNameOf(identity);
  const slug = await freeSlug(context, identity.email);
  const enterprise = { id: enterpriseId, slug, name: displayName, billingEmail: identity.email, createdAt };
  const user = {
    id: userId,
    enterpriseId,
    email: identity.email,
    displayName,
    role: 'owner' as const,
    verifiedEmail: identity.emailVerified ? identity.email : null,
    createdAt,
  };
  const statements = [
    ...insertAccount(context.database, { user, enterprise }),
    insertIdentity(context.database, newIdentity(context, identity, how, userId)),
  ];
  const created: AuditDraft = {
    ...draft('control.enterprise.created', userId, how),
    data: { 'svc.control.resource': enterpriseId },
  };
  return ok(signedIn(userId, how, statements, [created, draft('control.user.created', userId, how)]));
}

const MAX_SLUG_TRIES = 20;

/** The slug of the email, with a number where others have it; of two who want one at once, one looks again. */
async function freeSlug(context: ServiceContext, address: string): Promise<string> {
  const email = parseEmail(address);
  const wanted = email === null ? 'enterprise' : slugOf(email);
  for (let number = 1; number <= MAX_SLUG_TRIES; number += 1) {
    const slug = number === 1 ? wanted : `${wanted}-${number}`;
    if (!(await isSlugTaken(context.database, slug))) return slug;
  }
  return `${wanted}-${freshId(context, 'ent').slice(-8)}`;
}

function signedIn(
  userId: string,
  how: SignInMethod,
  statements: readonly Statement[],
  events: readonly AuditDraft[],
): Change<SignedIn> {
  return { statements, events: [...events, draft('control.user.signed_in', userId, how)], value: { userId } };
}

type SignInEventType =
  | 'control.user.signed_in'
  | 'control.user.created'
  | 'control.enterprise.created'
  | 'control.identity.linked';

function draft(type: SignInEventType, userId: string, { provider }: SignInMethod): AuditDraft {
  return { type, actor: userId, data: { 'svc.control.resource': userId, 'svc.control.provider': provider } };
}

function keyOf({ issuer, subject }: Identity, { provider }: SignInMethod): IdentityKey {
  return { provider, issuer, subject };
}

function newIdentity(context: ServiceContext, identity: Identity, how: SignInMethod, userId: string) {
  const now = nowText(context);
  const { email, emailVerified } = identity;
  return { ...keyOf(identity, how), userId, email, emailVerified, createdAt: now, lastSignInAt: now };
}

const MAX_NAME = 200;

/** A name that a stranger chose, on one line; the address where there is none. */
function displayNameOf({ displayName, email }: Identity): string {
  const line = displayName.replaceAll(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu, '').trim();
  return line === '' ? email : line.slice(0, MAX_NAME);
}
