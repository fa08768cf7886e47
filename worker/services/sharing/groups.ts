import { err, ok, type Result } from '../../../shared/model/result.ts';
import { mayManageGroups } from '../../../shared/sharing/share_rules.ts';
import { apiError, type ApiError } from '../../../shared/wire/errors.ts';
import type { Page } from '../../../shared/wire/primitives.ts';
import type { GroupInput, GroupMember, GroupRecord } from '../../../shared/wire/sharing/groups.ts';
import type { Caller } from '../../kernel/caller.ts';
import { type AuditDraft, type Change, commit } from '../../kernel/commit.ts';
import { type PageQuery, readPageById } from '../../kernel/cursors.ts';
import { controlChain } from '../../kernel/policy_change.ts';
import { changedSince, revisionOf } from '../../kernel/revision.ts';
import { freshId, nowText, type ServiceContext } from '../../kernel/service_context.ts';
import { findMember } from '../../store/members.ts';
import {
  type CountedGroup,
  deleteGroup,
  deleteGroupMember,
  findGroup,
  findGroupNamed,
  insertGroup,
  insertGroupMember,
  isGroupMember,
  listGroupMembers,
  listGroups,
  renameGroup,
} from '../../store/people/groups.ts';

/** The groups of the caller's enterprise, oldest first. Refuses with `invalid_cursor`. */
export async function listGroupPage(
  context: ServiceContext,
  { enterpriseId }: Caller,
  query: PageQuery,
): Promise<Result<Page<GroupRecord>, ApiError>> {
  return readPageById(query, 'grp', {
    read: (from) => listGroups(context.database, { enterpriseId, now: nowText(context), ...from }),
    toItem: toRecord,
  });
}

/** Refuses with `not_found`. */
export async function getGroup(
  context: ServiceContext,
  caller: Caller,
  id: string,
): Promise<Result<GroupRecord, ApiError>> {
  const group = await findGroup(context.database, caller.enterpriseId, { id, now: nowText(context) });
  return group === null ? err(notFound(id)) : ok(toRecord(group));
}

/** The people in a group. Refuses with `not_found`, `invalid_cursor`. */
export async function listGroupMemberPage(
  context: ServiceContext,
  caller: Caller,
  id: string,
  query: PageQuery,
): Promise<Result<Page<GroupMember>, ApiError>> {
  const group = await findGroup(context.database, caller.enterpriseId, { id, now: nowText(context) });
  if (group === null) return err(notFound(id));
  return readPageById(query, 'usr', {
    read: (from) => listGroupMembers(context.database, { groupId: id, ...from }),
    toItem: (row) => ({ id: row.id, display_name: row.displayName }),
  });
}

/** Refuses with `admin_required`, `name_taken`, `limit_reached`. */
export async function createGroup(
  context: ServiceContext,
  caller: Caller,
  { name }: GroupInput,
): Promise<Result<GroupRecord, ApiError>> {
  if (!mayManageGroups(caller)) return err(adminsOnly());
  return commit(context, controlChain(caller), async () => {
    const { enterpriseId } = caller;
    const twin = await findGroupNamed(context.database, enterpriseId, name);
    if (twin !== null) return err(nameTaken(twin.id));
    const row = { id: freshId(context, 'grp'), enterpriseId, name, createdAt: nowText(context) };
    const write = insertGroup(context.database, row);
    const shown = toRecord({ ...row, members: 0, isManaged: 0 });
    const made = change(caller, 'control.group.created', row.id, write, shown);
    return ok({ ...made, adds: [{ kind: 'groups', holder: enterpriseId }] });
  });
}

/** Gives a group another name. Refuses with `not_found`, `admin_required`, `managed_by_directory`, `conflict`, `name_taken`. */
export async function putGroup(
  context: ServiceContext,
  caller: Caller,
  id: string,
  { name }: GroupInput,
  revision: string | null = null,
): Promise<Result<GroupRecord, ApiError>> {
  return commit(context, controlChain(caller), async () => {
    const group = await findManaged(context, caller, id);
    if (!group.ok) return group;
    const stale = changedSince(`the group ${id}`, revision, toRecord(group.value).revision);
    if (stale !== null) return err(stale);
    const twin = await findGroupNamed(context.database, caller.enterpriseId, name);
    if (twin !== null && twin.id !== id) return err(nameTaken(twin.id));
    const write = renameGroup(context.database, group.value, name);
    return ok(change(caller, 'control.group.updated', id, write, toRecord({ ...group.value, name })));
  });
}

/** Deletes a group, with what is shared with it. Refuses with `not_found`, `admin_required`, `managed_by_directory`. */
export async function removeGroup(
  context: ServiceContext,
  caller: Caller,
  id: string,
): Promise<Result<null, ApiError>> {
  return commit(context, controlChain(caller), async () => {
    const group = await findManaged(context, caller, id);
    if (!group.ok) return group;
    return ok(change(caller, 'control.group.deleted', id, deleteGroup(context.database, group.value), null));
  });
}

/** A person and a group. */
interface Membership {
  readonly id: string;
  readonly user: string;
}

/** Puts a member of the enterprise into a group; no change if it is in it. Refuses with `not_found`, `admin_required`. */
export async function addGroupMember(
  context: ServiceContext,
  caller: Caller,
  { id, user }: Membership,
): Promise<Result<null, ApiError>> {
  return commit(context, controlChain(caller), async () => {
    const group = await findManaged(context, caller, id);
    if (!group.ok) return group;
    const member = await findMember(context.database, caller.enterpriseId, user);
    if (member === null)
      return err(apiError('not_found', `there is no member ${user}: list them with GET /v1/members`));
    if (await isGroupMember(context.database, id, user)) return ok(NOTHING);
    const write = insertGroupMember(context.database, group.value, user);
    return ok(change(caller, 'control.group.member_added', id, write, null, user));
  });
}

/** Takes a person out of a group. Refuses with `not_found`, `admin_required`. */
export async function removeGroupMember(
  context: ServiceContext,
  caller: Caller,
  { id, user }: Membership,
): Promise<Result<null, ApiError>> {
  return commit(context, controlChain(caller), async () => {
    const group = await findManaged(context, caller, id);
    if (!group.ok) return group;
    if (!(await isGroupMember(context.database, id, user))) {
      return err(
        apiError('not_found', `${user} is not in the group ${id}: list its people with GET /v1/groups/${id}/members`),
      );
    }
    const write = deleteGroupMember(context.database, id, user);
    return ok(change(caller, 'control.group.member_removed', id, write, null, user));
  });
}

const NOTHING: Change<null> = { statements: [], events: [], value: null };

async function findManaged(
  context: ServiceContext,
  caller: Caller,
  id: string,
): Promise<Result<CountedGroup, ApiError>> {
  const group = await findGroup(context.database, caller.enterpriseId, { id, now: nowText(context) });
  if (group === null) return err(notFound(id));
  if (!mayManageGroups(caller)) return err(adminsOnly());
  return group.isManaged === 1 ? err(managedByDirectory()) : ok(group);
}

function change<T>(
  caller: Caller,
  type: AuditDraft['type'],
  id: string,
  statements: Change<T>['statements'],
  value: T,
  user?: string,
): Change<T> {
  const data = { 'svc.control.resource': id, ...(user !== undefined && { 'svc.control.user': user }) };
  return { statements, events: [{ type, actor: caller.userId, data }], value };
}

function toRecord({ id, name, members, createdAt, isManaged }: CountedGroup): GroupRecord {
  const managedBy = isManaged === 1 ? ('scim' as const) : null;
  return { id, name, members, created_at: createdAt, managed_by: managedBy, revision: revisionOf({ name }) };
}

function notFound(id: string): ApiError {
  return apiError('not_found', `there is no group ${id}: list them with GET /v1/groups`);
}

function adminsOnly(): ApiError {
  return apiError('admin_required', 'changing groups needs the role admin or owner: ask an admin');
}

function managedByDirectory(): ApiError {
  const message = 'the directory of your enterprise manages this group: change it there';
  return apiError('managed_by_directory', message);
}

function nameTaken(id: string): ApiError {
  const message = `is taken by ${id}: choose another, whatever its case`;
  return apiError('name_taken', `name ${message}`, { fields: [{ field: 'name', message }] });
}
