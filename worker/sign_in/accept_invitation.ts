import { parseEmail } from '../../shared/model/email.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import { apiError, type ApiError } from '../../shared/wire/errors.ts';
import type { InvitationRecord } from '../../shared/wire/invitations.ts';
import type { Caller } from '../kernel/caller.ts';
import { type AuditDraft, type Change, commit } from '../kernel/commit.ts';
import { sha256Base64Url } from '../kernel/encoding.ts';
import { nowSeconds } from '../kernel/service_context.ts';
import { type Account, findAccount } from '../store/accounts.ts';
import { endInvitation, findInvitationByToken, type InvitationRow } from '../store/invitations.ts';
import { hasProven, listAccountsOfPerson } from '../store/identities.ts';
import { domainNotAllowed } from './admission.ts';
import { invitationOver, isAllowedDomain, mayInvite, toRecord } from './invitations.ts';
import { planJoining } from './joining.ts';
import type { SignInContext } from './sign_in_context.ts';
import { voucherOf } from './voucher.ts';

/** What the page of an invitation shows. */
export interface Invitation {
  readonly record: InvitationRecord;
  readonly inviter: string;
  readonly enterprise: string;
}

/**
 * The invitation of a link. Whoever has the link may see it; only the invited address may accept it. Refuses with
 * `not_found`, `invitation_over`.
 */
export async function openInvitation(context: SignInContext, token: string): Promise<Result<Invitation, ApiError>> {
  const found = await findOpen(context, token);
  if (!found.ok) return found;
  const { row, inviter } = found.value;
  const { user, enterprise } = inviter;
  return ok({ record: toRecord(context, row), inviter: user.displayName, enterprise: enterprise.name });
}

/** An open invitation, and who invited: still a member who may. */
async function findOpen(
  context: SignInContext,
  token: string,
): Promise<Result<{ readonly row: InvitationRow; readonly inviter: Account }, ApiError>> {
  const row = await findInvitationByToken(context.database, await sha256Base64Url(token));
  if (row === null) return err(apiError('not_found', 'there is no such invitation: check that the link is whole'));
  const inviter = await findAccount(context.database, row.invitedBy);
  const mayStill = inviter !== null && inviter.user.suspendedAt === null && mayInvite(inviter.user, row.role);
  if (!mayStill || toRecord(context, row).state !== 'open') return err(invitationOver());
  return ok({ row, inviter });
}

/** The user that somebody got by accepting. */
export interface Accepted {
  readonly userId: string;
  readonly enterpriseId: string;
}

/**
 * Gives the caller's person a user in the enterprise. The sign-in must be the person's own, and the person must have
 * proven the invited address. Refuses with `not_found`, `invitation_over`, `own_sign_in_required`,
 * `invitation_for_another`, `already_member`, `domain_not_allowed`.
 */
export async function acceptInvitation(
  context: SignInContext,
  caller: Caller,
  token: string,
): Promise<Result<Accepted, ApiError>> {
  const found = await findOpen(context, token);
  if (!found.ok) return found;
  const { enterpriseId } = found.value.row;
  return commit(context, { enterpriseId, writer: enterpriseId }, () => decide(context, caller, token));
}

async function decide(
  context: SignInContext,
  caller: Caller,
  token: string,
): Promise<Result<Change<Accepted>, ApiError>> {
  const found = await findOpen(context, token);
  if (!found.ok) return found;
  const { row, inviter } = found.value;
  const account = await findAccount(context.database, caller.userId);
  if (account === null || account.user.suspendedAt !== null) return err(signInAgain());
  const problem = await acceptProblem(context, caller, { account, row, inviter });
  if (problem !== null) return err(problem);
  const { email, role, enterpriseId } = row;
  const { displayName } = account.user;
  const joined = await planJoining(context, { personId: account.person.id, enterpriseId, email, displayName, role });
  if (!joined.ok) return joined;
  const { userId, isNew, statements, adds } = joined.value;
  return ok({
    statements: [
      ...endInvitation(context.database, row.id, { outcome: 'accepted', nowSeconds: nowSeconds(context) }),
      ...statements,
    ],
    events: [
      event('control.invitation.accepted', isNew ? userId : null, row.id),
      event('control.user.created', isNew ? userId : null, userId),
    ],
    adds,
    value: { userId, enterpriseId },
  });
}

function isOf(enterpriseId: string) {
  return ({ enterprise }: Account): boolean => enterprise.id === enterpriseId;
}

function event(
  type: 'control.invitation.accepted' | 'control.user.created',
  actor: string | null,
  resource: string,
): AuditDraft {
  return { type, actor, data: { 'svc.control.resource': resource } };
}

/** Why this caller may not accept; the address is compared before anything else is told. */
async function acceptProblem(
  context: SignInContext,
  caller: Caller,
  { account, row, inviter }: { readonly account: Account; readonly row: InvitationRow; readonly inviter: Account },
): Promise<ApiError | null> {
  if ((await voucherOf(context, caller)) !== null) return ownSignInNeeded();
  if (!(await hasProven(context.database, account.person.id, row.email))) return forAnother();
  const accounts = await listAccountsOfPerson(context.database, account.person.id);
  if (accounts.some((each) => isOf(row.enterpriseId)(each) && each.user.leftAt === null)) return alreadyMember();
  const domain = parseEmail(row.email)?.domain ?? '';
  return isAllowedDomain(inviter, domain) ? null : domainNotAllowed();
}

function signInAgain(): ApiError {
  return apiError('unauthenticated', 'your session has ended: sign in again');
}

function ownSignInNeeded(): ApiError {
  const message =
    'you are signed in by your enterprise’s provider, which reaches only that enterprise: sign out, and sign in with a way of your own that proves the invited address';
  return apiError('own_sign_in_required', message);
}

function forAnother(): ApiError {
  const message =
    'this invitation is for another address than yours: sign out, and sign in in a way that proves the invited address';
  return apiError('invitation_for_another', message);
}

function alreadyMember(): ApiError {
  return apiError('already_member', 'you are a member of this enterprise already');
}
