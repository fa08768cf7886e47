import { err, ok, type Result } from '../../shared/model/result.ts';
import type { MembershipRecord } from '../../shared/wire/enterprise.ts';
import { apiError, type ApiError } from '../../shared/wire/errors.ts';
import type { Caller } from '../kernel/caller.ts';
import { type Change, commit } from '../kernel/commit.ts';
import { nowSeconds, type ServiceContext } from '../kernel/service_context.ts';
import { newBrowserSession } from '../services/people/sign_in.ts';
import { type Account, findAccount } from '../store/accounts.ts';
import { deleteBrowserSession, insertBrowserSession } from '../store/browser_sessions.ts';
import { listIdentities } from '../store/enterprise_settings.ts';
import { guardSignedIn, listAccountsOfPerson } from '../store/identities.ts';
import { findProviderOfSignIn } from '../store/sign_ins.ts';
import { admissionProblem } from './admission.ts';
import type { SignedIn } from './sign_in_identity.ts';
import { voucherOf } from './voucher.ts';

/**
 * The enterprises that the caller's person has a user in, the newest first; only the caller's own if its provider vouches
 * for the caller.
 */
export async function listMemberships(context: ServiceContext, caller: Caller): Promise<MembershipRecord[]> {
  const isOwn = (await voucherOf(context, caller)) === null;
  const accounts = await accountsOf(context, caller);
  return accounts.filter(({ user }) => isOwn || user.id === caller.userId).map((account) => toRecord(account, caller));
}

function toRecord({ user, enterprise }: Account, caller: Caller): MembershipRecord {
  return {
    id: enterprise.id,
    name: enterprise.name,
    slug: enterprise.slug,
    role: user.role,
    user_id: user.id,
    current: user.id === caller.userId,
    suspended_at: user.suspendedAt,
  };
}

async function accountsOf({ database }: ServiceContext, { userId }: Caller): Promise<Account[]> {
  const account = await findAccount(database, userId);
  const all = account === null ? [] : await listAccountsOfPerson(database, account.person.id);
  return all.filter(({ user }) => user.leftAt === null);
}

/** An account that the caller may go on with, and the provider of the caller's sign-in. */
interface Switch {
  readonly account: Account;
  readonly provider: string;
}

/**
 * Finds the caller's account in another enterprise, under that enterprise's sign-in rules and by the way in which the
 * caller signed in. Refuses with `not_found` and the codes of the rules. A sign-in that an enterprise vouches for is not
 * told whether there is one.
 */
export async function findSwitch(
  context: ServiceContext,
  caller: Caller,
  enterpriseId: string,
): Promise<Result<Switch, ApiError>> {
  const { database } = context;
  const provider = await findProviderOfSignIn(database, caller.signIn ?? '', nowSeconds(context));
  const isOwn = (await voucherOf(context, caller)) === null;
  const account = (await accountsOf(context, caller)).find(({ enterprise }) => enterprise.id === enterpriseId);
  if (provider === null || !isOwn || account === undefined) return err(notReached(enterpriseId));
  const problem = await problemOf(context, account, provider);
  return problem === null ? ok({ account, provider }) : err(problem);
}

/**
 * Signs a browser in to another enterprise of the caller's person, and ends its session here. Refuses with the codes of
 * {@link findSwitch}.
 */
export async function switchEnterprise(
  context: ServiceContext,
  caller: Caller,
  { enterpriseId, client }: { readonly enterpriseId: string; readonly client: string },
): Promise<Result<SignedIn, ApiError>> {
  const found = await findSwitch(context, caller, enterpriseId);
  if (!found.ok) return found;
  return commit(context, { enterpriseId, writer: enterpriseId }, async () => {
    const again = await findSwitch(context, caller, enterpriseId);
    return again.ok ? ok(await planSwitch(context, caller, { ...again.value, client })) : again;
  });
}

async function planSwitch(
  context: ServiceContext,
  caller: Caller,
  { account, provider, client }: Switch & { readonly client: string },
): Promise<Change<SignedIn>> {
  const { database } = context;
  const session = caller.signIn ?? '';
  const now = nowSeconds(context);
  const userId = account.user.id;
  const made = await newBrowserSession(context, userId, { provider, client });
  const data = { 'svc.control.resource': userId, 'svc.control.provider': provider };
  return {
    statements: [
      ...guardSignedIn({ userId: caller.userId, session }, now),
      deleteBrowserSession(database, session),
      ...insertBrowserSession(database, made.session, now),
    ],
    events: [{ type: 'control.user.signed_in', actor: userId, data }],
    value: { userId, token: made.token },
  };
}

/** Why no identity of this provider signs in to the account; null if one does. */
async function problemOf({ database }: ServiceContext, account: Account, provider: string): Promise<ApiError | null> {
  const identities = await listIdentities(database, account.user.id);
  const problems = identities
    .filter((identity) => identity.provider === provider)
    .map((identity) => admissionProblem(account, identity, { provider }));
  return problems.includes(null) ? null : (problems[0] ?? notReached(account.enterprise.id));
}

function notReached(enterpriseId: string): ApiError {
  const message = `your way to sign in does not let you into the enterprise ${enterpriseId}: sign out and sign in the way that you do there, or choose another one: GET /v1/enterprises lists those that you can use now`;
  return apiError('not_found', message);
}
