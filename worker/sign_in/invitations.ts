import { err, ok, type Result } from '../../shared/model/result.ts';
import type { Role } from '../../shared/model/role.ts';
import { parseEmail } from '../../shared/model/email.ts';
import { apiError, type ApiError } from '../../shared/wire/errors.ts';
import type { CreatedInvitation, InvitationInput, InvitationRecord } from '../../shared/wire/invitations.ts';
import type { Page } from '../../shared/wire/primitives.ts';
import { type Caller, mayActAs } from '../kernel/caller.ts';
import { commit } from '../kernel/commit.ts';
import { type PageQuery, readPageById } from '../kernel/cursors.ts';
import { randomToken, sha256Base64Url } from '../kernel/encoding.ts';
import { controlChain } from '../kernel/policy_change.ts';
import { toUnlinkedLine } from '../kernel/unlinked_line.ts';
import { freshId, nowSeconds, nowText } from '../kernel/service_context.ts';
import { type Account, findAccount } from '../store/accounts.ts';
import {
  endInvitation,
  findInvitation,
  insertInvitation,
  type InvitationRow,
  listInvitations,
} from '../store/invitations.ts';
import { admissionRules, domainNotAllowed } from './admission.ts';
import type { SignInContext } from './sign_in_context.ts';
import { takeAttempt } from './throttle.ts';

const DAY_SECONDS = 24 * 3600;
/** How long a link says what became of its invitation. */
const KEPT_SECONDS = 30 * DAY_SECONDS;
/** Of a name in a mail. */
const MOST_NAME_CHARACTERS = 200;
/** Limits the mails that an enterprise sends, and those to one address. */
const OF_ENTERPRISE = { kind: 'invitations of enterprise', most: 100, windowSeconds: 3600 };
const TO_ADDRESS = { kind: 'invitations to address', most: 5, windowSeconds: 3600 };

/**
 * Invites an address to the caller's enterprise, and mails the link if mail is set up. It replaces an open invitation of
 * the same address. Refuses with `admin_required`, `not_found`, `public_url_missing`, `domain_not_allowed`,
 * `too_many_attempts`, `limit_reached`.
 */
export async function createInvitation(
  context: SignInContext,
  caller: Caller,
  input: InvitationInput,
): Promise<Result<CreatedInvitation, ApiError>> {
  const refusal = inviteProblem(context, caller, input.role);
  if (refusal !== null) return err(refusal);
  const { publicUrl } = context;
  if (publicUrl === null) return err(noPublicUrl());
  const limited = await takeAttempts(context, caller, input.email.toLowerCase());
  if (!limited.ok) return limited;
  const token = randomToken();
  const created = await commit(context, controlChain(caller), async () => {
    const account = await findAccount(context.database, caller.userId);
    const email = parseEmail(input.email);
    if (account === null || email === null || !isAllowedDomain(account, email.domain)) return err(domainNotAllowed());
    const now = nowSeconds(context);
    const endsAt = now + input.expires_in_days * DAY_SECONDS;
    const row: InvitationRow = {
      id: freshId(context, 'inv'),
      enterpriseId: caller.enterpriseId,
      email: email.address,
      role: input.role,
      tokenHash: await sha256Base64Url(token),
      invitedBy: caller.userId,
      createdAt: nowText(context),
      endsAt,
      outcome: null,
      expiresAt: endsAt + KEPT_SECONDS,
    };
    const data = { 'svc.control.resource': row.id };
    const events = [{ type: 'control.invitation.created' as const, actor: caller.userId, data }];
    const adds = [{ kind: 'invitations' as const, holder: caller.enterpriseId }];
    return ok({ statements: insertInvitation(context.database, row, now), events, adds, value: { row, account } });
  });
  if (!created.ok) return created;
  const { row, account } = created.value;
  const url = `${publicUrl}/invitations/${token}`;
  return ok({ ...toRecord(context, row), url, mailed: await mailLink(context, { row, account, url }) });
}

/** The invitations of the caller's enterprise, newest first. Refuses with `admin_required`, `invalid_cursor`. */
export async function listInvitationPage(
  context: SignInContext,
  caller: Caller,
  query: PageQuery,
): Promise<Result<Page<InvitationRecord>, ApiError>> {
  if (!mayActAs(caller, 'admin')) return err(adminsOnly());
  return readPageById(query, 'inv', {
    read: (from) => listInvitations(context.database, { enterpriseId: caller.enterpriseId, ...from }),
    toItem: (row) => toRecord(context, row),
  });
}

/** Revokes an open invitation. Refuses with `admin_required`, `not_found`, `invitation_over`. */
export async function revokeInvitation(
  context: SignInContext,
  caller: Caller,
  id: string,
): Promise<Result<null, ApiError>> {
  return commit(context, controlChain(caller), async () => {
    const row = await findInvitation(context.database, caller.enterpriseId, id);
    if (row === null || !mayActAs(caller, 'admin')) return err(row === null ? unknownInvitation(id) : adminsOnly());
    if (toRecord(context, row).state !== 'open') return err(invitationOver());
    const data = { 'svc.control.resource': id };
    return ok({
      statements: endInvitation(context.database, id, { outcome: 'revoked', nowSeconds: nowSeconds(context) }),
      events: [{ type: 'control.invitation.revoked' as const, actor: caller.userId, data }],
      value: null,
    });
  });
}

/** Whether a caller may invite with this role: as for changing members, only owners make owners and admins. */
export function mayInvite(caller: Pick<Caller, 'role'>, role: Role): boolean {
  return mayActAs(caller, role === 'member' ? 'admin' : 'owner');
}

function inviteProblem({ local }: SignInContext, caller: Caller, role: Role): ApiError | null {
  if (!mayActAs(caller, 'admin')) return adminsOnly();
  if (!mayInvite(caller, role)) {
    return apiError('admin_required', 'only an owner can invite admins and owners: ask an owner');
  }
  if (local === null) return null;
  return apiError('not_found', 'a control plane on your own machine has one user: people are invited to a hosted one');
}

async function takeAttempts(
  context: SignInContext,
  { enterpriseId }: Caller,
  address: string,
): Promise<Result<void, ApiError>> {
  const ofEnterprise = await takeAttempt(context, OF_ENTERPRISE, enterpriseId);
  return ofEnterprise.ok ? takeAttempt(context, TO_ADDRESS, address) : ofEnterprise;
}

/** Whether the enterprise's rules let somebody with an address of this domain sign in. */
export function isAllowedDomain({ enterprise }: Pick<Account, 'enterprise'>, domain: string): boolean {
  const { allowedDomains } = admissionRules(enterprise);
  return allowedDomains.length === 0 || allowedDomains.includes(domain);
}

/** Names are chosen by whoever invites: a link in one would be theirs, in a mail of this control plane. */
function inMail(name: string): string {
  return toUnlinkedLine(name, MOST_NAME_CHARACTERS);
}

/** Mails the link. The invitation holds without the mail, so a failure is only reported. */
async function mailLink(
  { signIn }: SignInContext,
  { row, account, url }: { readonly row: InvitationRow; readonly account: Account; readonly url: string },
): Promise<boolean> {
  if (signIn.mail === null) return false;
  const until = new Date(row.endsAt * 1000).toISOString();
  const text = [
    `${inMail(account.user.displayName)} invites you to ${inMail(account.enterprise.name)} on svc, with the role ${row.role}.`,
    `Sign in as ${row.email} at this link, which works once and until ${until}:`,
    url,
    'If you do not know the sender, ignore this mail.',
  ].join('\n\n');
  return (await signIn.mail.send({ to: row.email, subject: 'An invitation to svc', text })).ok;
}

export function toRecord(context: Pick<SignInContext, 'clock'>, row: InvitationRow): InvitationRecord {
  const isExpired = row.endsAt <= nowSeconds(context);
  return {
    id: row.id,
    email: row.email,
    role: row.role,
    state: row.outcome ?? (isExpired ? 'expired' : 'open'),
    created_at: row.createdAt,
    expires_at: new Date(row.endsAt * 1000).toISOString(),
  };
}

function adminsOnly(): ApiError {
  return apiError('admin_required', 'inviting people needs the role admin or owner: ask an admin');
}

function noPublicUrl(): ApiError {
  return apiError('public_url_missing', 'this control plane has no SVC_PUBLIC_URL, so it cannot make links: set it');
}

function unknownInvitation(id: string): ApiError {
  return apiError('not_found', `there is no invitation ${id}: list them with GET /v1/invitations`);
}

export function invitationOver(): ApiError {
  const message = 'this invitation was used or revoked, or has expired: ask whoever invited you for another one';
  return apiError('invitation_over', message);
}
