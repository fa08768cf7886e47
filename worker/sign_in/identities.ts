import { err, ok, type Result } from '../../shared/model/result.ts';
import { apiError, type ApiError } from '../../shared/wire/errors.ts';
import type { IdentityRecord } from '../../shared/wire/identities.ts';
import { isId } from '../../shared/wire/ids.ts';
import type { Page } from '../../shared/wire/primitives.ts';
import type { Caller } from '../kernel/caller.ts';
import { commit } from '../kernel/commit.ts';
import { type PageQuery, readPageById } from '../kernel/cursors.ts';
import { controlChain } from '../kernel/policy_change.ts';
import type { SignInContext } from './sign_in_context.ts';
import { nowText } from '../kernel/service_context.ts';
import { findAccount } from '../store/accounts.ts';
import { listIdentities } from '../store/enterprise_settings.ts';
import { deleteIdentity, endSignInsBy, type IdentityRow, listIdentityRows } from '../store/identities.ts';
import { findPassword } from '../store/passwords.ts';
import { admissionProblem } from './admission.ts';
import { voucherOf } from './voucher.ts';
import { findOwnIssuer, isSameIssuer } from './own_issuer.ts';
import { PASSWORD } from './password_identity.ts';

/**
 * The caller's ways to sign in, oldest first; only the enterprise's if its provider vouches for the caller. Refuses with `invalid_cursor`.
 */
export async function listIdentityPage(
  context: SignInContext,
  caller: Caller,
  query: PageQuery,
): Promise<Result<Page<IdentityRecord>, ApiError>> {
  const voucher = await voucherOf(context, caller);
  return readPageById(query, 'idn', {
    read: (from) => listIdentityRows(context.database, { user: caller, voucher, ...from }),
    toItem: (row) => toRecord(context, row),
  });
}

/**
 * Removes one of the caller's ways to sign in. Removing the password also deletes it. Ends the sessions that used it,
 * except the calling one. A sign-in that an enterprise vouches for removes only what that enterprise vouches for.
 * Refuses with `not_found`, `would_lock_out`, `own_sign_in_required`.
 */
export async function removeIdentity(
  context: SignInContext,
  caller: Caller,
  id: string,
): Promise<Result<null, ApiError>> {
  return commit(context, controlChain(caller), async () => {
    const rows = await listIdentities(context.database, caller.userId);
    const row = rows.find((each) => each.id === id);
    if (row === undefined) return err(notFound(id));
    const others = rows.filter((each) => each.id !== id);
    if (!(await canSignIn(context, caller, others))) return err(lastWayError());
    const voucher = await voucherOf(context, caller);
    if (voucher !== null && row.vouchedBy !== voucher) return err(ownSignInRequired());
    const { provider, vouchedBy } = row;
    const isLastOfProvider = others.every((other) => other.provider !== provider);
    const ended = { userId: caller.userId, provider, vouchedBy, except: caller.signIn ?? '', now: nowText(context) };
    const data = { 'svc.control.resource': id, 'svc.control.provider': provider };
    return ok({
      statements: [
        ...deleteIdentity(context.database, row),
        ...(isLastOfProvider ? endSignInsBy(context.database, ended) : []),
      ],
      events: [{ type: 'control.identity.unlinked' as const, actor: caller.userId, data }],
      value: null,
    });
  });
}

/**
 * Whether one of these can sign the caller in now: it is configured, and the enterprise allows it. The local user needs
 * none.
 */
async function canSignIn(
  context: SignInContext,
  { userId }: Caller,
  identities: readonly IdentityRow[],
): Promise<boolean> {
  if (context.local?.userId === userId) return true;
  const account = await findAccount(context.database, userId);
  if (account === null) return false;
  const ownIssuer = await findOwnIssuer(context.database, account.enterprise.id);
  for (const identity of identities) {
    const isAllowed = admissionProblem(account, identity, identity) === null;
    if (isAllowed && (await isSetUp(context, identity, ownIssuer))) return true;
  }
  return false;
}

async function isSetUp(
  { signIn, database }: SignInContext,
  { provider, issuer, email }: IdentityRow,
  ownIssuer: string | null,
): Promise<boolean> {
  if (provider === PASSWORD) return signIn.mail !== null && (await findPassword(database, email)) !== null;
  if (isId('ent', provider)) return ownIssuer !== null && isSameIssuer(ownIssuer, issuer);
  return signIn.providers.has(provider);
}

function toRecord({ signIn }: SignInContext, row: IdentityRow): IdentityRecord {
  return {
    id: row.id,
    provider: row.provider,
    title: titleOf(signIn.providers.get(row.provider)?.title, row.provider),
    issuer: row.issuer,
    email: row.email,
    email_verified: row.emailVerified,
    created_at: row.createdAt,
    last_used_at: row.lastSignInAt,
  };
}

function titleOf(title: string | undefined, provider: string): string {
  if (title !== undefined) return title;
  if (provider === PASSWORD) return 'Password';
  return isId('ent', provider) ? 'Your enterprise' : provider;
}

function notFound(id: string): ApiError {
  return apiError('not_found', `you have no identity ${id}: list yours with GET /v1/identities`);
}

/** Refuses what a sign-in by an enterprise's provider must not do, or one that does not show how it was made. */
function ownSignInRequired(): ApiError {
  const message =
    'you are signed in by your enterprise’s provider or by a personal token, which cannot change your own ways to sign in: sign in with one of these first';
  return apiError('own_sign_in_required', message);
}

function lastWayError(): ApiError {
  const message = 'this is your last way to sign in: add another one at /identities first, then remove this one';
  return apiError('would_lock_out', message);
}
