import type { Filter } from '../../shared/scim/filter.ts';
import { applyPatch, parsePatch } from '../../shared/scim/patch.ts';
import { addressOf, displayNameOf, parseUser, type ScimUser } from '../../shared/scim/resources.ts';
import { USER_KIND } from '../../shared/scim/schemas.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import { apiError, type ApiError } from '../../shared/wire/errors.ts';
import type { Change } from '../kernel/commit.ts';
import { freshId, nowText, type ServiceContext, timeAfter } from '../kernel/service_context.ts';
import { planDeparture } from '../services/people/departure.ts';
import { giveUpValues } from '../services/sources/given_up_values.ts';
import { departedAddress } from '../sign_in/departed_addresses.ts';
import { insertUser } from '../store/accounts.ts';
import type { Statement } from '../store/database.ts';
import { domainStillOf, listDomains } from '../store/enterprise_settings.ts';
import { isProvenAddress } from '../store/identities.ts';
import { changeMember, hasOtherOwner, type MemberRow } from '../store/members.ts';
import { forgetDeparted } from '../store/people/account_deletion.ts';
import { endAccess, onlyUser, takeBack } from '../store/people/departures.ts';
import {
  countDirectoryUsers,
  describeUser,
  type DirectoryUser,
  findDirectoryTwin,
  findDirectoryUser,
  listDirectoryUsers,
  listUsersOfAddress,
  moveWaitingAddress,
  putScimUser,
} from '../store/people/scim_users.ts';
import { commitDirectory, directoryEvent } from './directory_change.ts';
import { invalidValue, notUnique, unknownResource, unreadable, versionChanged } from './scim_refusals.ts';
import type { Directory } from './scim_tokens.ts';
import { EVERYTHING, type ScimResource, viewUsers, type Wanted, writtenUser } from './scim_views.ts';

/** The most users that a directory may manage in an enterprise. */
const MAX_USERS = 20_000;

/** What a list asks for; `startIndex` begins with 1. */
export interface ListQuery {
  readonly filter: Filter | null;
  readonly startIndex: number;
  readonly count: number;
  readonly wanted: Wanted;
}

export interface ScimList {
  readonly total: number;
  readonly resources: readonly ScimResource[];
}

/** The users that the directory manages. Members whom it does not manage are not among them. */
export async function listUsers(
  context: ServiceContext,
  { enterpriseId }: Directory,
  { filter, startIndex, count, wanted }: ListQuery,
): Promise<ScimList> {
  const page = { enterpriseId, filter, offset: startIndex - 1, limit: count };
  const { total, rows } = await listDirectoryUsers(context.database, page);
  return { total, resources: await viewUsers(context, rows, wanted) };
}

/** Refuses with `not_found`. */
export async function getUser(
  context: ServiceContext,
  directory: Directory,
  id: string,
  wanted: Wanted,
): Promise<Result<ScimResource, ApiError>> {
  const found = await findDirectoryUser(context.database, directory.enterpriseId, id);
  const [view] = found === null ? [] : await viewUsers(context, [found], wanted);
  return view === undefined ? err(unknownResource(id)) : ok(view);
}

/**
 * Makes somebody a member whom the directory manages: the member with the address, the one who left with it, or a new
 * one. Nobody's account elsewhere is touched, and the reply does not tell whether there is one. Refuses with
 * `invalid_input`, `name_taken`, `limit_reached`, `last_owner`.
 */
export async function createUser(
  context: ServiceContext,
  directory: Directory,
  body: unknown,
): Promise<Result<ScimResource, ApiError>> {
  const input = parseUser(body);
  if (!input.ok) return err(unreadable(input.error));
  const created = await commitDirectory(context, directory, () => decideCreation(context, directory, input.value));
  return created.ok ? getUser(context, directory, created.value, EVERYTHING) : created;
}

async function decideCreation(
  context: ServiceContext,
  { enterpriseId }: Directory,
  input: ScimUser,
): Promise<Result<Change<string>, ApiError>> {
  const { database } = context;
  const email = await findAllowedAddress(context, enterpriseId, input);
  if (!email.ok) return email;
  const twin = await findDirectoryTwin(database, enterpriseId, {
    userName: input.userName,
    email: email.value.address,
  });
  if (twin !== null) return err(notUnique('a user with this userName or address exists'));
  if ((await countDirectoryUsers(database, enterpriseId)) >= MAX_USERS) return err(tooManyUsers());
  const place = await findPlace(context, enterpriseId, email.value.address, displayNameOf(input));
  const activity = await planActivity(context, place.member, { active: input.active, deactivatedAt: null });
  if (!activity.ok) return activity;
  const now = nowText(context);
  const { deactivatedAt, afterwards } = activity.value;
  const row = { ...scimRow(place.member, input, email.value.address), deactivatedAt, createdAt: now, updatedAt: now };
  return ok({
    statements: [
      ...domainStillOf(email.value.domain, enterpriseId),
      ...place.statements,
      ...activity.value.statements,
      putScimUser(database, row),
      forgetDeparted(database, await departedAddress(enterpriseId, email.value.address)),
    ],
    events: [directoryEvent(place.isNew ? 'control.user.created' : 'control.member.changed', place.member.id)],
    adds: place.isNew ? [{ kind: 'members', holder: enterpriseId }] : [],
    ...(afterwards && { afterwards }),
    value: place.member.id,
  });
}

/** The member that a directory's user becomes, and what makes it one. */
interface Place {
  readonly member: MemberRow;
  readonly statements: readonly Statement[];
  readonly isNew: boolean;
}

async function findPlace(
  context: ServiceContext,
  enterpriseId: string,
  email: string,
  displayName: string,
): Promise<Place> {
  const { database } = context;
  const known = await listUsersOfAddress(database, enterpriseId, email);
  const present = known.find(({ leftAt }) => leftAt === null);
  if (present !== undefined) return { member: present, statements: [], isNew: false };
  const [left] = known;
  const as = { role: 'member' as const, email, displayName };
  if (left !== undefined) {
    const member = { ...left, ...as, leftAt: null, suspendedAt: null };
    return { member, statements: [takeBack(database, left.id, as)], isNew: true };
  }
  const createdAt = nowText(context);
  const id = freshId(context, 'usr');
  // Somebody has an account with this address: a person of their own, whom the first sign-in by the enterprise's
  // provider becomes. The account elsewhere is not signed in to by it.
  const verifiedEmail = (await isProvenAddress(database, email)) ? null : email;
  const person = { id: freshId(context, 'per'), verifiedEmail, createdAt };
  const user = { id, enterpriseId, createdAt, ...as };
  const member: MemberRow = {
    ...user,
    personId: person.id,
    policyVersion: 0,
    suspendedAt: null,
    leftAt: null,
    verifiedEmail: null,
  };
  return { member, statements: insertUser(database, { person, user }), isNew: true };
}

/**
 * Replaces what the directory says about a user. Refuses with `not_found`, `invalid_input`, `name_taken`, `last_owner`,
 * `version_changed`.
 */
export async function replaceUser(
  context: ServiceContext,
  directory: Directory,
  id: string,
  { body, ifMatch }: { readonly body: unknown; readonly ifMatch: string | null },
): Promise<Result<ScimResource, ApiError>> {
  const input = parseUser(body);
  if (!input.ok) return err(unreadable(input.error));
  return changeUser(context, directory, id, { ifMatch, describe: () => ok(input.value) });
}

/** Changes parts of it (RFC 7644 section 3.5.2). Refuses like {@link replaceUser}. */
export async function patchUser(
  context: ServiceContext,
  directory: Directory,
  id: string,
  { body, ifMatch }: { readonly body: unknown; readonly ifMatch: string | null },
): Promise<Result<ScimResource, ApiError>> {
  const operations = parsePatch(body);
  if (!operations.ok) return err(unreadable(operations.error));
  const describe = (before: DirectoryUser) => {
    const patched = applyPatch(writtenUser(before), operations.value, USER_KIND.attributes);
    const read = patched.ok ? parseUser(patched.value) : patched;
    return read.ok ? read : err(unreadable(read.error));
  };
  return changeUser(context, directory, id, { ifMatch, describe });
}

interface UserChange {
  readonly ifMatch: string | null;
  readonly describe: (before: DirectoryUser) => Result<ScimUser, ApiError>;
}

async function changeUser(
  context: ServiceContext,
  directory: Directory,
  id: string,
  change: UserChange,
): Promise<Result<ScimResource, ApiError>> {
  const changed = await commitDirectory(context, directory, async () => {
    const found = await findUnchanged(context, directory, id, change.ifMatch);
    if (!found.ok) return found;
    const input = change.describe(found.value);
    return input.ok ? decideChange(context, directory, found.value, input.value) : input;
  });
  return changed.ok ? getUser(context, directory, id, EVERYTHING) : changed;
}

async function decideChange(
  context: ServiceContext,
  { enterpriseId }: Directory,
  { user, scim }: DirectoryUser,
  input: ScimUser,
): Promise<Result<Change<null>, ApiError>> {
  const { database } = context;
  const email = await findAllowedAddress(context, enterpriseId, input);
  if (!email.ok) return email;
  const { address, domain } = email.value;
  const twin = await findDirectoryTwin(database, enterpriseId, { userName: input.userName, email: address });
  const others = twin !== null && twin.user.id !== user.id;
  if (others) return err(notUnique('another user has this userName or address'));
  const activity = await planActivity(context, user, { active: input.active, deactivatedAt: scim.deactivatedAt });
  if (!activity.ok) return activity;
  const { deactivatedAt, statements, afterwards } = activity.value;
  const before = { ...scim, updatedAt: '' };
  const row = { ...scimRow(user, input, address), deactivatedAt, createdAt: scim.createdAt, updatedAt: '' };
  if (statements.length === 0 && JSON.stringify(sorted(row)) === JSON.stringify(sorted(before))) {
    return ok({ statements: [], events: [], value: null });
  }
  return ok({
    statements: [
      ...domainStillOf(domain, enterpriseId),
      describeUser(database, user.id, { email: address, displayName: displayNameOf(input) }),
      ...(address === scim.email ? [] : [moveWaitingAddress(database, user.personId, address)]),
      ...statements,
      putScimUser(database, { ...row, updatedAt: nowText(context) }),
    ],
    events: [directoryEvent('control.member.changed', user.id)],
    ...(afterwards && { afterwards }),
    value: null,
  });
}

function sorted(row: object): unknown {
  return Object.entries(row).toSorted(([left], [right]) => (left < right ? -1 : 1));
}

/**
 * Takes a member out of the enterprise, as a removal by an admin does. Refuses with `not_found`, `last_owner`,
 * `version_changed`.
 */
export async function deleteUser(
  context: ServiceContext,
  directory: Directory,
  id: string,
  ifMatch: string | null,
): Promise<Result<null, ApiError>> {
  return commitDirectory(context, directory, async () => {
    const found = await findUnchanged(context, directory, id, ifMatch);
    if (!found.ok) return found;
    const refusal = await lastOwnerProblem(context, found.value.user);
    if (refusal !== null) return err(refusal);
    return ok(await planDeparture(context, found.value.user, { type: 'control.member.removed', actor: null }));
  });
}

async function findUnchanged(
  context: ServiceContext,
  { enterpriseId }: Directory,
  id: string,
  ifMatch: string | null,
): Promise<Result<DirectoryUser, ApiError>> {
  const found = await findDirectoryUser(context.database, enterpriseId, id);
  if (found === null) return err(unknownResource(id));
  if (ifMatch === null || ifMatch === '*') return ok(found);
  const [view] = await viewUsers(context, [found], EVERYTHING);
  return view?.version === ifMatch ? ok(found) : err(versionChanged());
}

/** What follows for a member from `active`. */
interface Activity {
  readonly statements: readonly Statement[];
  readonly deactivatedAt: string | null;
  readonly afterwards?: () => void;
}

/**
 * False suspends the member and ends its sign-ins, tokens, grants and sidecars. True ends that suspension, and none that
 * an admin made: directories send it with every other change.
 */
async function planActivity(
  context: ServiceContext,
  member: MemberRow,
  { active, deactivatedAt }: { readonly active: boolean; readonly deactivatedAt: string | null },
): Promise<Result<Activity, ApiError>> {
  const { database } = context;
  const { role, suspendedAt } = member;
  if (active) {
    const isOurs = suspendedAt !== null && suspendedAt === deactivatedAt;
    const statements = isOurs ? changeMember(database, member, { role, suspendedAt: null }) : [];
    return ok({ statements, deactivatedAt: null });
  }
  // A later time than the suspension's says that somebody else made that.
  const since = deactivatedAt ?? timeAfter(nowText(context), suspendedAt ?? '');
  if (suspendedAt !== null) return ok({ statements: [], deactivatedAt: since });
  const refusal = await lastOwnerProblem(context, member);
  if (refusal !== null) return err(refusal);
  const now = nowText(context);
  const suspended = changeMember(database, member, { role, suspendedAt: now });
  const { statements, afterwards } = await giveUpValues(context, member.id);
  const all = [...statements, ...suspended, ...endAccess(database, onlyUser(member.id), now)];
  return ok({ statements: all, deactivatedAt: now, afterwards });
}

async function lastOwnerProblem(
  context: ServiceContext,
  { id, enterpriseId, role }: MemberRow,
): Promise<ApiError | null> {
  if (role !== 'owner' || (await hasOtherOwner(context.database, enterpriseId, id))) return null;
  return apiError('last_owner', 'this is the only owner who can sign in: make another person an owner first');
}

/** The address that counts, if the enterprise has proven its domain. */
async function findAllowedAddress(
  context: ServiceContext,
  enterpriseId: string,
  input: ScimUser,
): Promise<Result<{ readonly address: string; readonly domain: string }, ApiError>> {
  const email = addressOf(input);
  if (email === null) return err(invalidValue('emails has no address, and userName is none'));
  const domains = await listDomains(context.database, enterpriseId);
  if (domains.includes(email.domain)) return ok(email);
  return err(
    invalidValue(`the domain of the address must be proven by the enterprise: ${domains.join(', ') || 'none is'}`),
  );
}

function scimRow({ id, enterpriseId }: MemberRow, input: ScimUser, email: string) {
  const { userName, externalId = null, displayName, name, emails } = input;
  return {
    userId: id,
    enterpriseId,
    userName,
    externalId,
    email,
    attributes: JSON.stringify({ displayName, name, emails }),
  };
}

function tooManyUsers(): ApiError {
  return apiError('limit_reached', `a directory may manage ${MAX_USERS} users of an enterprise`);
}
