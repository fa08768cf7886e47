import { err, ok, type Result } from '../../shared/model/result.ts';
import { apiError, type ApiError } from '../../shared/wire/errors.ts';
import { isId } from '../../shared/wire/ids.ts';
import { type AuditDraft, type Change, commit } from '../kernel/commit.ts';
import { sha256Base64Url } from '../kernel/encoding.ts';
import { freshId, nowSeconds, nowText, type ServiceContext } from '../kernel/service_context.ts';
import { newBrowserSession, type SessionMeta } from '../services/people/sign_in.ts';
import {
  type Account,
  type EnterpriseRow,
  insertAccount,
  insertEnterprise,
  insertUser,
  insertUserOf,
} from '../store/accounts.ts';
import { hasDeparted } from '../store/people/account_deletion.ts';
import { findWaitingAccount, guardWaiting } from '../store/people/scim_users.ts';
import { deleteBrowserSession, insertBrowserSession } from '../store/browser_sessions.ts';
import { domainStillOf, findEnterprise, findEnterpriseOfDomain } from '../store/enterprise_settings.ts';
import type { Statement } from '../store/database.ts';
import {
  claimVerifiedEmail,
  findVoucher,
  type IdentityKey,
  type IdentityRow,
  insertIdentity,
  isSlugTaken,
  guardJoinable,
  guardNamed,
  listAccountsByVerifiedEmail,
  listAccountsNamedBy,
  listAccountsOfIdentity,
  touchIdentity,
} from '../store/identities.ts';
import { parseEmail, slugOf } from '../../shared/model/email.ts';
import {
  accountUnavailable,
  admissionProblem,
  chooseAccount,
  domainNotAllowed,
  enterpriseProblem,
} from './admission.ts';
import { departedAddress } from './departed_addresses.ts';
import type { Identity } from './provider.ts';
import { voucherOfProvider } from './voucher.ts';
import { replaceHidden } from '../../shared/model/shown_text.ts';

/** A sign-in: the identity and the way it was proven. */
interface SignInMethod extends SessionMeta {
  /** Extra statements of the write that starts the browser session. */
  readonly before?: (userId: string) => readonly Statement[];
}

/** The provider's name, or `password`. */
type ByProvider = Pick<SignInMethod, 'provider'>;

export interface SignedIn {
  readonly userId: string;
  /** The token of the browser session. */
  readonly token: string;
}

/**
 * Where an identity belongs: to an account of the person it signed in as before, to one of the person with its verified
 * address, to the one that a directory created for the address or that the enterprise's earlier provider named with it (decision 0108),
 * as a new member to the enterprise with its domain, or to a new enterprise. The person may have left all enterprises: then a new one,
 * because only an invitation takes the person back.
 */
type Destination =
  | { readonly kind: 'known' | 'joins' | 'provisioned' | 'named'; readonly account: Account }
  | { readonly kind: 'member'; readonly enterprise: EnterpriseRow }
  | { readonly kind: 'left'; readonly account: Account; readonly isKnown: boolean; readonly enterpriseId: string }
  | { readonly kind: 'new'; readonly enterpriseId: string };

const MAX_ATTEMPTS = 5;

/**
 * Signs an identity in. The session is created in the write that checks the rules, so a suspension or a new rule cannot
 * race a sign-in. Accounts are joined by email only if both sides verified it. The first sign-in of a new person
 * creates an enterprise. Refuses with `account_unavailable`, `provider_not_allowed`, `domain_not_allowed`,
 * `sso_required`, `account_elsewhere`.
 */
export async function signInIdentity(
  context: ServiceContext,
  identity: Identity,
  how: SignInMethod,
): Promise<Result<SignedIn, ApiError>> {
  for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt += 1) {
    const destination = await findDestination(context, identity, how);
    const enterpriseId = enterpriseOf(destination);
    const chain = { enterpriseId, writer: enterpriseId };
    const written = await commit(context, chain, () => decide(context, identity, how, destination));
    if (written.ok || written.error !== MOVED) return written;
  }
  throw new Error('the account of an identity changed at every sign-in attempt');
}

/** Another sign-in of the same person came first, so the account is looked up again. Never returned to a caller. */
const MOVED: ApiError = apiError('conflict', 'another sign-in came first');

async function findDestination(context: ServiceContext, identity: Identity, how: SignInMethod): Promise<Destination> {
  const ofIdentity = await listAccountsOfIdentity(context.database, keyOf(identity, how));
  const known = chooseAccount(ofIdentity.filter(isPresent), identity, how);
  if (known !== null) return { kind: 'known', account: known };
  const [left] = ofIdentity;
  if (left !== undefined) return leftBehind(context, left, true);
  const own = voucherOfProvider(how.provider);
  const waiting = own === null ? null : await findProvisioned(context, identity, own);
  if (waiting !== null) return { kind: 'provisioned', account: waiting };
  const named = own === null ? null : await findNamed(context, identity, own);
  if (named !== null) return { kind: 'named', account: named };
  const ofAddress = identity.emailVerified ? await listAccountsByVerifiedEmail(context.database, identity.email) : [];
  const owner = chooseAccount(ofAddress.filter(isPresent), identity, how);
  if (owner !== null) return { kind: 'joins', account: owner };
  const [leftAddress] = ofAddress;
  if (leftAddress !== undefined) return leftBehind(context, leftAddress, false);
  const enterprise = await enterpriseFor(context, identity, how);
  if (enterprise === null) return { kind: 'new', enterpriseId: freshId(context, 'ent') };
  const provisioned = await findProvisioned(context, identity, enterprise.id);
  return provisioned === null ? { kind: 'member', enterprise } : { kind: 'provisioned', account: provisioned };
}

/** The account that the directory of an enterprise created for a verified address, and that nobody has signed in to. */
async function findProvisioned(
  { database }: ServiceContext,
  { email, emailVerified }: Identity,
  enterpriseId: string,
): Promise<Account | null> {
  return emailVerified ? findWaitingAccount(database, enterpriseId, email.toLowerCase()) : null;
}

/**
 * The account of the enterprise that its own provider named with this address, while the address is of a domain that the enterprise has
 * proven: with another provider, whose identities are all new, everybody stays who they are.
 */
async function findNamed(
  { database }: ServiceContext,
  { email, emailVerified }: Identity,
  enterpriseId: string,
): Promise<Account | null> {
  const domain = emailVerified ? parseEmail(email)?.domain : undefined;
  const holder = domain === undefined ? null : await findEnterpriseOfDomain(database, domain);
  if (holder?.id !== enterpriseId) return null;
  const accounts = await listAccountsNamedBy(database, enterpriseId, email.toLowerCase());
  return accounts.find(isPresent) ?? null;
}

function isPresent({ user }: Account): boolean {
  return user.leftAt === null;
}

function leftBehind(context: ServiceContext, account: Account, isKnown: boolean): Destination {
  return { kind: 'left', account, isKnown, enterpriseId: freshId(context, 'ent') };
}

/**
 * The enterprise that a new person joins: the one that owns the provider, or the one with the verified domain; none that
 * somebody with this address left.
 */
async function enterpriseFor(
  context: ServiceContext,
  identity: Identity,
  { provider }: ByProvider,
): Promise<EnterpriseRow | null> {
  const found = await findEnterpriseFor(context, identity, provider);
  if (found === null) return null;
  const departed = await departedAddress(found.id, identity.email);
  return (await hasDeparted(context.database, departed)) ? null : found;
}

async function findEnterpriseFor(
  { database }: ServiceContext,
  { email, emailVerified }: Identity,
  provider: string,
): Promise<EnterpriseRow | null> {
  if (isId('ent', provider)) {
    const own = await findEnterprise(database, provider);
    return own?.deletedAt === null ? own : null;
  }
  const domain = emailVerified ? parseEmail(email)?.domain : undefined;
  const owner = domain === undefined ? null : await findEnterpriseOfDomain(database, domain);
  return owner?.domainJoining === 'automatic' ? owner : null;
}

function enterpriseOf(destination: Destination): string {
  if (destination.kind === 'new' || destination.kind === 'left') return destination.enterpriseId;
  return destination.kind === 'member' ? destination.enterprise.id : destination.account.enterprise.id;
}

async function decide(
  context: ServiceContext,
  identity: Identity,
  how: SignInMethod,
  before: Destination,
): Promise<Result<Change<SignedIn>, ApiError>> {
  const destination = await findDestination(context, identity, how);
  // The provider's enterprise was deleted meanwhile: nothing else is its to sign in to.
  if (destination.kind === 'new' && voucherOfProvider(how.provider) !== null) return err(accountUnavailable());
  if (destination.kind === 'new' && before.kind === 'new')
    return createAccount(context, identity, how, before.enterpriseId);
  if (destination.kind === 'left' && before.kind === 'left')
    return startAnew(context, identity, how, { ...destination, enterpriseId: before.enterpriseId });
  if (destination.kind === 'new' || destination.kind === 'left') return err(MOVED);
  if (enterpriseOf(destination) !== enterpriseOf(before)) return err(MOVED);
  if (destination.kind === 'member') return addMember(context, identity, how, destination.enterprise);
  const problem = admissionProblem(destination.account, identity, how);
  if (problem !== null) return err(problem);
  const { account } = destination;
  if (destination.kind === 'known') return ok(await signInKnown(context, identity, how, account));
  const isJoinable = guardJoining(destination.kind, account, identity.email);
  return ok(await join(context, identity, how, { account, isJoinable }));
}

/** The condition that an identity with this address still belongs to an account. */
function guardJoining(
  kind: 'joins' | 'provisioned' | 'named',
  { user: { id, enterpriseId } }: Account,
  email: string,
): readonly Statement[] {
  if (kind === 'joins') return guardJoinable(id, email);
  const address = email.toLowerCase();
  if (kind === 'provisioned') return guardWaiting(id, address);
  const { domain = '' } = parseEmail(email) ?? {};
  return [...domainStillOf(domain, enterpriseId), ...guardNamed(id, enterpriseId, address)];
}

function signInKnown(
  context: ServiceContext,
  identity: Identity,
  how: SignInMethod,
  { user, person }: Account,
): Promise<Change<SignedIn>> {
  const { email, emailVerified } = identity;
  const touched = touchIdentity(context.database, keyOf(identity, how), {
    email,
    emailVerified,
    lastSignInAt: nowText(context),
  });
  const claimed =
    emailVerified && person.verifiedEmail === null
      ? [claimVerifiedEmail(context.database, person.id, { key: keyOf(identity, how), address: email })]
      : [];
  return planSignIn(context, user.id, how, { statements: [touched, ...claimed], events: [] });
}

function join(
  context: ServiceContext,
  identity: Identity,
  how: SignInMethod,
  { account: { user, person }, isJoinable }: { readonly account: Account; readonly isJoinable: readonly Statement[] },
): Promise<Change<SignedIn>> {
  const statements = [
    ...isJoinable,
    insertIdentity(context.database, newIdentity(context, identity, how, ownedBy(user, person, how))),
  ];
  return planSignIn(context, user.id, how, { statements, events: [draft('control.identity.linked', user.id, how)] });
}

/** Adds a person with a verified address of an enterprise's domain as a new member. */
async function addMember(
  context: ServiceContext,
  identity: Identity,
  how: SignInMethod,
  enterprise: EnterpriseRow,
): Promise<Result<Change<SignedIn>, ApiError>> {
  const domain = identity.emailVerified ? parseEmail(identity.email)?.domain : undefined;
  const problem = domain === undefined ? domainNotAllowed() : enterpriseProblem(enterprise, identity, how);
  if (problem !== null || domain === undefined) return err(problem ?? domainNotAllowed());
  const { person, user } = newUser(context, identity, { enterpriseId: enterprise.id, role: 'member' });
  const statements = [
    ...domainStillOf(domain, enterprise.id),
    ...insertUser(context.database, { person, user }),
    insertIdentity(context.database, newIdentity(context, identity, how, ownedBy(user, person, how))),
  ];
  const events = [draft('control.user.created', user.id, how)];
  const signedIn = await planSignIn(context, user.id, how, { statements, events });
  return ok({ ...signedIn, adds: [{ kind: 'members', holder: enterprise.id }] });
}

async function createAccount(
  context: ServiceContext,
  identity: Identity,
  how: SignInMethod,
  enterpriseId: string,
): Promise<Result<Change<SignedIn>, ApiError>> {
  const { person, user } = newUser(context, identity, { enterpriseId, role: 'owner' });
  const { enterprise, events } = await planEnterprise(context, user, how);
  const statements = [
    ...insertAccount(context.database, { person, user, enterprise }),
    insertIdentity(context.database, newIdentity(context, identity, how, ownedBy(user, person, how))),
  ];
  return ok({ ...(await planSignIn(context, user.id, how, { statements, events })), begins: [enterpriseId] });
}

/** The row of a user's own new enterprise, and the events of both. */
export async function planEnterprise(
  context: ServiceContext,
  { id: userId, enterpriseId, email, createdAt, displayName: name }: ReturnType<typeof newUser>['user'],
  how: ByProvider,
) {
  const slug = await freeSlug(context, email);
  const created: AuditDraft = {
    ...draft('control.enterprise.created', userId, how),
    data: { 'svc.control.resource': enterpriseId },
  };
  return {
    enterprise: { id: enterpriseId, slug, name, billingEmail: email, createdAt },
    events: [created, draft('control.user.created', userId, how)],
  };
}

/**
 * Gives a person who left all enterprises a new one. An enterprise's provider does not, and neither does what it vouches
 * for: they sign in to that enterprise alone.
 */
async function startAnew(
  context: ServiceContext,
  identity: Identity,
  how: SignInMethod,
  { account, isKnown, enterpriseId }: Extract<Destination, { kind: 'left' }>,
): Promise<Result<Change<SignedIn>, ApiError>> {
  const { database } = context;
  const key = keyOf(identity, how);
  const voucher = voucherOfProvider(how.provider) ?? (await findVoucher(database, key));
  if (voucher !== null) return err(accountUnavailable());
  const { user } = newUser(context, identity, { enterpriseId, role: 'owner' });
  const { email, emailVerified } = identity;
  const { enterprise, events } = await planEnterprise(context, user, how);
  const person = account.person;
  const statements = [
    insertEnterprise(database, enterprise),
    insertUserOf(database, person.id, user),
    isKnown
      ? touchIdentity(database, key, { email, emailVerified, lastSignInAt: nowText(context) })
      : insertIdentity(database, newIdentity(context, identity, how, ownedBy(user, person, how))),
  ];
  return ok({ ...(await planSignIn(context, user.id, how, { statements, events })), begins: [enterpriseId] });
}

/** A new person, and its user in an enterprise. */
export function newUser(
  context: ServiceContext,
  identity: Identity,
  membership: { readonly enterpriseId: string; readonly role: 'owner' | 'member' },
) {
  const { email, emailVerified } = identity;
  const createdAt = nowText(context);
  const id = freshId(context, 'usr');
  return {
    person: { id: freshId(context, 'per'), verifiedEmail: emailVerified ? email : null, createdAt },
    user: { ...membership, id, email, displayName: displayNameOf(identity), createdAt },
  };
}

const MAX_SLUG_TRIES = 20;

/** The slug from the email, with a number if it is taken; of two concurrent requests for one, the other tries again. */
async function freeSlug(context: ServiceContext, address: string): Promise<string> {
  const email = parseEmail(address);
  const wanted = email === null ? 'enterprise' : slugOf(email);
  for (let number = 1; number <= MAX_SLUG_TRIES; number += 1) {
    const slug = number === 1 ? wanted : `${wanted}-${number}`;
    if (!(await isSlugTaken(context.database, slug))) return slug;
  }
  return `${wanted}-${freshId(context, 'ent').slice(-8)}`;
}

/** Signs a user in: a change that creates the browser session. */
async function planSignIn(
  context: ServiceContext,
  userId: string,
  how: SignInMethod,
  { statements, events }: Pick<Change<never>, 'statements' | 'events'>,
): Promise<Change<SignedIn>> {
  const { token, session } = await newBrowserSession(context, userId, how);
  const begun = insertBrowserSession(context.database, session, nowSeconds(context));
  return {
    statements: [...statements, ...(how.before?.(userId) ?? []), ...begun],
    events: [...events, draft('control.user.signed_in', userId, how)],
    value: { userId, token },
  };
}

/** Ends the browser session of a token, if there is one. */
export async function endBrowserSession(context: ServiceContext, token: string): Promise<void> {
  await context.database.write([deleteBrowserSession(context.database, await sha256Base64Url(token))]);
}

type SignInEventType =
  | 'control.user.signed_in'
  | 'control.user.created'
  | 'control.enterprise.created'
  | 'control.identity.linked';

function draft(type: SignInEventType, userId: string, { provider }: ByProvider): AuditDraft {
  return { type, actor: userId, data: { 'svc.control.resource': userId, 'svc.control.provider': provider } };
}

export function keyOf({ issuer, subject }: Identity, { provider }: ByProvider): IdentityKey {
  return { provider, issuer, subject };
}

/** Whose identity it is that signs in by a provider. */
function ownedBy(user: { readonly id: string }, person: { readonly id: string }, { provider }: ByProvider) {
  return { userId: user.id, personId: person.id, vouchedBy: voucherOfProvider(provider) };
}

/** The row of an identity that is added to a person. */
export function newIdentity(
  context: ServiceContext,
  identity: Identity,
  how: ByProvider,
  to: Pick<IdentityRow, 'userId' | 'personId' | 'vouchedBy'>,
) {
  const now = nowText(context);
  const { email, emailVerified } = identity;
  const id = freshId(context, 'idn');
  return { id, ...keyOf(identity, how), ...to, email, emailVerified, createdAt: now, lastSignInAt: now };
}

const MAX_NAME = 200;

/** The identity's name on one line, safe to display; the address if there is none. */
function displayNameOf({ displayName, email }: Identity): string {
  const line = replaceHidden(displayName, { keepsLines: false, write: () => '' }).trim();
  return line === '' ? email : line.slice(0, MAX_NAME);
}
