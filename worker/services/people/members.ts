import { err, ok, type Result } from '../../../shared/model/result.ts';
import { apiError, type ApiError } from '../../../shared/wire/errors.ts';
import type { MemberInput, MemberRecord } from '../../../shared/wire/members.ts';
import type { Page } from '../../../shared/wire/primitives.ts';
import { changeMember, findMember, hasOtherOwner, listMembers, type MemberRow } from '../../store/members.ts';
import { endAccess, onlyUser } from '../../store/people/departures.ts';
import { countLiveScimTokens } from '../../store/people/scim_tokens.ts';
import { findDirectoryUser } from '../../store/people/scim_users.ts';
import { type Caller, mayActAs } from '../../kernel/caller.ts';
import { commit } from '../../kernel/commit.ts';
import { type PageQuery, readPageById } from '../../kernel/cursors.ts';
import { controlChain } from '../../kernel/policy_change.ts';
import { changedSince, revisionOf } from '../../kernel/revision.ts';
import { nowText, type ServiceContext } from '../../kernel/service_context.ts';
import { giveUpValues } from '../sources/given_up_values.ts';

/** The users of the caller's enterprise, oldest first. Refuses with `admin_required`, `invalid_cursor`. */
export async function listMemberPage(
  context: ServiceContext,
  caller: Caller,
  query: PageQuery,
): Promise<Result<Page<MemberRecord>, ApiError>> {
  if (!mayActAs(caller, 'admin')) return err(adminsOnly());
  return readPageById(query, 'usr', {
    read: (from) => listMembers(context.database, { enterpriseId: caller.enterpriseId, ...from }),
    toItem: toRecord,
  });
}

/**
 * Sets a member's role and whether it is suspended; what the input leaves out stays. With `revision`, only if neither has changed since it was read. Suspending a user also ends everything that it is signed in with or was
 * allowed, in the same write, as when a directory suspends it; none of it works again after the suspension. Refuses with `not_found`, `admin_required`, `conflict`, `last_owner`, `managed_by_directory`.
 */
export async function putMember(
  context: ServiceContext,
  caller: Caller,
  id: string,
  change: Partial<MemberInput>,
  revision: string | null = null,
): Promise<Result<MemberRecord, ApiError>> {
  return commit(context, controlChain(caller), async () => {
    const member = await findMember(context.database, caller.enterpriseId, id);
    if (member === null) return err(apiError('not_found', `there is no member ${id}: list them with GET /v1/members`));
    const input = { role: member.role, suspended: member.suspendedAt !== null, ...change };
    const refusal = await refusalOf(context, caller, member, input);
    if (refusal !== null) return err(refusal);
    const stale = changedSince(`the member ${id}`, revision, toRecord(member).revision);
    if (stale !== null) return err(stale);
    const now = nowText(context);
    const changed = { role: input.role, suspendedAt: input.suspended ? (member.suspendedAt ?? now) : null };
    const givenUp = input.suspended ? await giveUpValues(context, id) : null;
    return ok({
      statements: [
        ...changeMember(context.database, member, changed),
        ...(input.suspended ? endAccess(context.database, onlyUser(id), now) : []),
        ...(givenUp?.statements ?? []),
      ],
      ...(givenUp && { afterwards: givenUp.afterwards }),
      events: [{ type: 'control.member.changed' as const, actor: caller.userId, data: { 'svc.control.resource': id } }],
      value: toRecord({ ...member, ...changed }),
    });
  });
}

/** What a caller may change about a member. The console offers nothing else. */
export interface MemberChanges {
  /** Change its role. */
  readonly role: boolean;
  /** Suspend it, or let it sign in again. */
  readonly suspension: boolean;
}

export function mayChangeMember(caller: Caller, member: Pick<MemberRecord, 'role'>): MemberChanges {
  const isOwner = mayActAs(caller, 'owner');
  return { role: isOwner, suspension: isOwner || (mayActAs(caller, 'admin') && member.role === 'member') };
}

/** Admins manage members. Only owners appoint, change and suspend owners and admins. At least one owner always stays. */
async function refusalOf(
  context: ServiceContext,
  caller: Caller,
  member: MemberRow,
  input: MemberInput,
): Promise<ApiError | null> {
  if (!mayActAs(caller, 'admin')) return adminsOnly();
  const isAboutAdmins = member.role !== 'member' || input.role !== 'member';
  if (isAboutAdmins && !mayActAs(caller, 'owner')) {
    return apiError('admin_required', 'only an owner can appoint or change admins and owners: ask an owner');
  }
  if (member.suspendedAt !== null && !input.suspended) {
    const scim = await findDirectoryUser(context.database, member.enterpriseId, member.id);
    const isDeactivated = scim !== null && scim.scim.deactivatedAt !== null;
    const now = nowText(context);
    if (isDeactivated && (await countLiveScimTokens(context.database, member.enterpriseId, now)) > 0) {
      return deactivated();
    }
  }
  const stays = input.role === 'owner' && !input.suspended;
  if (member.role !== 'owner' || stays) return null;
  if (await hasOtherOwner(context.database, caller.enterpriseId, member.id)) return null;
  return apiError('last_owner', 'this is the only owner who can sign in: make another person an owner first');
}

function deactivated(): ApiError {
  const message = 'the directory of your enterprise has deactivated this member: activate it there';
  return apiError('managed_by_directory', message);
}

function adminsOnly(): ApiError {
  return apiError('admin_required', 'managing members needs the role admin or owner: ask an admin');
}

function toRecord(row: MemberRow): MemberRecord {
  return {
    id: row.id,
    email: row.email,
    display_name: row.displayName,
    role: row.role,
    created_at: row.createdAt,
    suspended_at: row.suspendedAt,
    revision: revisionOf({ role: row.role, suspended_at: row.suspendedAt }),
  };
}
