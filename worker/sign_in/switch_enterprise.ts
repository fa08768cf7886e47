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

/**
 * Signs a browser in to another enterprise of the caller's person, and ends its session here. The other enterprise's
 * rules apply, to the way in which the caller signed in. Refuses with `not_found`, `own_sign_in_required` and the codes
 * of an enterprise's sign-in rules.
 */
export async function switchEnterprise(
  context: ServiceContext,
  caller: Caller,
  to: { readonly enterpriseId: string; readonly client: string },
): Promise<Result<SignedIn, ApiError>> {
  if ((await voucherOf(context, caller)) !== null) return err(ownSignInNeeded());
  const { enterpriseId } = to;
  if (!(await accountsOf(context, caller)).some(({ enterprise }) => enterprise.id === enterpriseId)) {
    return err(
      apiError('not_found', `you have no user in the enterprise ${enterpriseId}: GET /v1/enterprises lists yours`),
    );
  }
  return commit(context, { enterpriseId, writer: enterpriseId }, () => decide(context, caller, to));
}

async function decide(
  context: ServiceContext,
  caller: Caller,
  { enterpriseId, client }: { readonly enterpriseId: string; readonly client: string },
): Promise<Result<Change<SignedIn>, ApiError>> {
  const { database } = context;
  const session = caller.signIn ?? '';
  const now = nowSeconds(context);
  const provider = await findProviderOfSignIn(database, session, now);
  const account = (await accountsOf(context, caller)).find(({ enterprise }) => enterprise.id === enterpriseId);
  if (provider === null || account === undefined) return err(sessionOver());
  const problem = await problemOf(context, account, provider);
  if (problem !== null) return err(problem);
  const userId = account.user.id;
  const made = await newBrowserSession(context, userId, { provider, client });
  const data = { 'svc.control.resource': userId, 'svc.control.provider': provider };
  return ok({
    statements: [
      ...guardSignedIn({ userId: caller.userId, session }, now),
      deleteBrowserSession(database, session),
      ...insertBrowserSession(database, made.session, now),
    ],
    events: [{ type: 'control.user.signed_in' as const, actor: userId, data }],
    value: { userId, token: made.token },
  });
}

/** Why no identity of this provider signs in to the account; null if one does. */
async function problemOf({ database }: ServiceContext, account: Account, provider: string): Promise<ApiError | null> {
  const identities = await listIdentities(database, account.user.id);
  const problems = identities
    .filter((identity) => identity.provider === provider)
    .map((identity) => admissionProblem(account, identity, { provider }));
  return problems.includes(null) ? null : (problems[0] ?? sessionOver());
}

function ownSignInNeeded(): ApiError {
  const message =
    'you are signed in by your enterprise’s provider, which reaches only that enterprise: sign in with a way of your own';
  return apiError('own_sign_in_required', message);
}

function sessionOver(): ApiError {
  return apiError('unauthenticated', 'your session has ended: sign in again');
}
