import { applyPatch, parsePatch } from '../../shared/scim/patch.ts';
import { parseGroup, type ScimGroup } from '../../shared/scim/resources.ts';
import { GROUP_KIND } from '../../shared/scim/schemas.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import { apiError, type ApiError } from '../../shared/wire/errors.ts';
import type { AuditDraft, Change } from '../kernel/commit.ts';
import { freshId, nowText, type ServiceContext } from '../kernel/service_context.ts';
import { deleteGroup, findGroupNamed, insertGroup, renameGroup } from '../store/people/groups.ts';
import {
  changeDirectoryMembers,
  type DirectoryGroup,
  findDirectoryGroup,
  listDirectoryGroups,
  listMembersOfGroups,
  putScimGroup,
} from '../store/people/scim_groups.ts';
import { knownDirectoryUsers } from '../store/people/scim_users.ts';
import { commitDirectory, directoryEvent } from './directory_change.ts';
import type { ListQuery, ScimList } from './directory_users.ts';
import { invalidValue, notUnique, unknownResource, unreadable, versionChanged } from './scim_refusals.ts';
import type { Directory } from './scim_tokens.ts';
import { EVERYTHING, type ScimResource, viewGroups, type Wanted } from './scim_views.ts';

/** The most people that one request adds to a group and takes out of it: each is an event of the audit log. */
const MAX_CHANGED_MEMBERS = 1_000;

/** The groups that the directory manages; none that were made by hand. */
export async function listGroups(
  context: ServiceContext,
  { enterpriseId }: Directory,
  { filter, startIndex, count, wanted }: ListQuery,
): Promise<ScimList> {
  const page = { enterpriseId, filter, offset: startIndex - 1, limit: count };
  const { total, rows } = await listDirectoryGroups(context.database, page);
  return { total, resources: await viewGroups(context, rows, wanted) };
}

/** Refuses with `not_found`. */
export async function getGroup(
  context: ServiceContext,
  directory: Directory,
  id: string,
  wanted: Wanted,
): Promise<Result<ScimResource, ApiError>> {
  const found = await findDirectoryGroup(context.database, directory.enterpriseId, id);
  const [view] = found === null ? [] : await viewGroups(context, [found], wanted);
  return view === undefined ? err(unknownResource(id)) : ok(view);
}

/**
 * Creates a group that the directory manages. It never takes over a group that was made by hand, because something may
 * be shared with that. Refuses with `invalid_input`, `name_taken`, `limit_reached`.
 */
export async function createGroup(
  context: ServiceContext,
  directory: Directory,
  body: unknown,
): Promise<Result<ScimResource, ApiError>> {
  const input = parseGroup(body);
  if (!input.ok) return err(unreadable(input.error));
  const created = await commitDirectory(context, directory, async () => {
    const { enterpriseId } = directory;
    const now = nowText(context);
    const group = { id: freshId(context, 'grp'), enterpriseId, name: input.value.displayName, createdAt: now };
    const scim = { groupId: group.id, enterpriseId, externalId: input.value.externalId ?? null, updatedAt: now };
    const refusal = await nameProblem(context, group);
    if (refusal !== null) return err(refusal);
    const members = await planMembers(context, { group, scim }, [], input.value);
    if (!members.ok) return members;
    return ok({
      statements: [
        ...insertGroup(context.database, group),
        putScimGroup(context.database, scim),
        ...members.value.statements,
      ],
      events: [directoryEvent('control.group.created', group.id), ...members.value.events],
      adds: [{ kind: 'groups', holder: enterpriseId }],
      value: group.id,
    });
  });
  return created.ok ? getGroup(context, directory, created.value, EVERYTHING) : created;
}

interface Written {
  readonly body: unknown;
  readonly ifMatch: string | null;
}

/** Replaces a group with its members. Refuses with `not_found`, `invalid_input`, `name_taken`, `version_changed`. */
export async function replaceGroup(
  context: ServiceContext,
  directory: Directory,
  id: string,
  { body, ifMatch }: Written,
): Promise<Result<ScimResource, ApiError>> {
  const input = parseGroup(body);
  if (!input.ok) return err(unreadable(input.error));
  return changeGroup(context, directory, id, { ifMatch, describe: () => ok(input.value) });
}

/** Changes parts of a group (RFC 7644 section 3.5.2). Refuses like {@link replaceGroup}. */
export async function patchGroup(
  context: ServiceContext,
  directory: Directory,
  id: string,
  { body, ifMatch }: Written,
): Promise<Result<ScimResource, ApiError>> {
  const operations = parsePatch(body);
  if (!operations.ok) return err(unreadable(operations.error));
  const describe = ({ group, scim }: DirectoryGroup, members: readonly string[]) => {
    const before = {
      displayName: group.name,
      ...(scim.externalId !== null && { externalId: scim.externalId }),
      members: members.map((value) => ({ value })),
    };
    const patched = applyPatch(before, operations.value, GROUP_KIND.attributes);
    const read = patched.ok ? parseGroup(patched.value) : patched;
    return read.ok ? read : err(unreadable(read.error));
  };
  return changeGroup(context, directory, id, { ifMatch, describe });
}

interface GroupChange {
  readonly ifMatch: string | null;
  readonly describe: (before: DirectoryGroup, members: readonly string[]) => Result<ScimGroup, ApiError>;
}

async function changeGroup(
  context: ServiceContext,
  directory: Directory,
  id: string,
  { ifMatch, describe }: GroupChange,
): Promise<Result<ScimResource, ApiError>> {
  const changed = await commitDirectory(context, directory, async () => {
    const found = await findUnchanged(context, directory, id, ifMatch);
    if (!found.ok) return found;
    const before = (await listMembersOfGroups(context.database, [id])).map(({ value }) => value);
    const input = describe(found.value, before);
    return input.ok ? decideChange(context, found.value, before, input.value) : input;
  });
  return changed.ok ? getGroup(context, directory, id, EVERYTHING) : changed;
}

async function decideChange(
  context: ServiceContext,
  before: DirectoryGroup,
  membersBefore: readonly string[],
  input: ScimGroup,
): Promise<Result<Change<null>, ApiError>> {
  const { group } = before;
  const refusal = await nameProblem(context, { ...group, name: input.displayName });
  if (refusal !== null) return err(refusal);
  const members = await planMembers(context, before, membersBefore, input);
  if (!members.ok) return members;
  const externalId = input.externalId ?? null;
  const isRenamed = input.displayName !== group.name;
  if (!isRenamed && externalId === before.scim.externalId && members.value.events.length === 0) {
    return ok({ statements: [], events: [], value: null });
  }
  const scim = { ...before.scim, externalId, updatedAt: nowText(context) };
  return ok({
    statements: [
      ...renameGroup(context.database, group, input.displayName),
      putScimGroup(context.database, scim),
      ...members.value.statements,
    ],
    events: [...(isRenamed ? [directoryEvent('control.group.updated', group.id)] : []), ...members.value.events],
    value: null,
  });
}

/** Deletes a group, with what is shared with it. Refuses with `not_found`, `version_changed`. */
export async function removeGroup(
  context: ServiceContext,
  directory: Directory,
  id: string,
  ifMatch: string | null,
): Promise<Result<null, ApiError>> {
  return commitDirectory(context, directory, async () => {
    const found = await findUnchanged(context, directory, id, ifMatch);
    if (!found.ok) return found;
    return ok({
      statements: deleteGroup(context.database, found.value.group),
      events: [directoryEvent('control.group.deleted', id)],
      value: null,
    });
  });
}

async function findUnchanged(
  context: ServiceContext,
  { enterpriseId }: Directory,
  id: string,
  ifMatch: string | null,
): Promise<Result<DirectoryGroup, ApiError>> {
  const found = await findDirectoryGroup(context.database, enterpriseId, id);
  if (found === null) return err(unknownResource(id));
  if (ifMatch === null || ifMatch === '*') return ok(found);
  const [view] = await viewGroups(context, [found], EVERYTHING);
  return view?.version === ifMatch ? ok(found) : err(versionChanged());
}

/** Who comes and goes. Only users whom the directory manages are in its groups. */
async function planMembers(
  context: ServiceContext,
  { group, scim }: DirectoryGroup,
  before: readonly string[],
  { members }: ScimGroup,
): Promise<Result<{ readonly statements: Change<null>['statements']; readonly events: AuditDraft[] }, ApiError>> {
  const wanted = new Set(members.map(({ value }) => value));
  const added = [...wanted].filter((id) => !before.includes(id));
  const removed = before.filter((id) => !wanted.has(id));
  if (added.length + removed.length > MAX_CHANGED_MEMBERS) return err(tooManyMembers());
  const known = await knownDirectoryUsers(context.database, group.enterpriseId, added);
  const unknown = added.find((id) => !known.has(id));
  if (unknown !== undefined) {
    return err(invalidValue(`members has ${JSON.stringify(unknown.slice(0, 64))}, which is no user of this directory`));
  }
  const events = [
    ...added.map((user) => directoryEvent('control.group.member_added', group.id, user)),
    ...removed.map((user) => directoryEvent('control.group.member_removed', group.id, user)),
  ];
  return ok({ statements: changeDirectoryMembers(scim, { added, removed }), events });
}

async function nameProblem(
  context: ServiceContext,
  { id, enterpriseId, name }: DirectoryGroup['group'],
): Promise<ApiError | null> {
  const twin = await findGroupNamed(context.database, enterpriseId, name);
  if (twin === null || twin.id === id) return null;
  return notUnique('displayName is taken by another group of the enterprise, whatever its case');
}

function tooManyMembers(): ApiError {
  const message = `more than ${MAX_CHANGED_MEMBERS} members come and go: change fewer at a time`;
  return apiError('body_too_large', message);
}
