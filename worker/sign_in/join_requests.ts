import { parseEmail } from '../../shared/model/email.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import type { Role } from '../../shared/model/role.ts';
import { apiError, type ApiError } from '../../shared/wire/errors.ts';
import type { JoinOffer, JoinRequestRecord, OwnJoinRequest } from '../../shared/wire/people/join_requests.ts';
import type { Page } from '../../shared/wire/primitives.ts';
import { type Caller, mayActAs } from '../kernel/caller.ts';
import { type AuditDraft, type Change, commit } from '../kernel/commit.ts';
import { type PageQuery, readPageById } from '../kernel/cursors.ts';
import { controlChain } from '../kernel/policy_change.ts';
import { freshId, nowSeconds, nowText } from '../kernel/service_context.ts';
import { type Account, findAccount } from '../store/accounts.ts';
import { whileActive } from '../store/active_users.ts';
import { domainStillOf, findEnterprise } from '../store/enterprise_settings.ts';
import { hasProven, listAccountsOfPerson } from '../store/identities.ts';
import {
  countOpenRequests,
  endJoinRequest,
  findJoinRequest,
  findOwnRequest,
  findRequestOf,
  insertJoinRequest,
  type JoinRequestRow,
  listAskable,
  listJoinRequests,
  listProvenAddresses,
} from '../store/people/join_requests.ts';
import { findAdoptable } from '../store/people/scim_users.ts';
import { domainNotAllowed } from './admission.ts';
import { isAllowedDomain, mayInvite } from './invitations.ts';
import { planJoining } from './joining.ts';
import type { SignInContext } from './sign_in_context.ts';
import { takeAttempt } from './throttle.ts';
import { voucherOf } from './voucher.ts';

const DAY_SECONDS = 24 * 3600;
/** How long a request waits for an admin. */
const OPEN_SECONDS = 14 * DAY_SECONDS;
/** After this time from asking, somebody who was declined may ask again. */
const KEPT_SECONDS = 30 * DAY_SECONDS;
/** The most requests to an enterprise that wait at a time. */
const MAX_OPEN = 200;
const OF_PERSON = { kind: 'join requests of person', most: 5, windowSeconds: DAY_SECONDS };

/**
 * The enterprises that the caller may ask to join: those that have proven the domain of an address that the caller has
 * proven, unless their rules close them. Empty for a sign-in that an enterprise vouches for.
 */
export async function listJoinOffers(context: SignInContext, caller: Caller): Promise<JoinOffer[]> {
  const account = await findAsker(context, caller);
  if (!account.ok) return [];
  const personId = account.value.person.id;
  const places = await listPlaces(context, personId);
  return Promise.all(
    places.map(async ({ enterprise, email }) => {
      const request = await findRequestOf(context.database, personId, enterprise.id);
      const own = request === null ? null : toOwnRecord(context, request);
      return { enterprise_id: enterprise.id, name: enterprise.name, email, request: own };
    }),
  );
}

/** An enterprise that a person may join, and the proven address that counts there. */
interface JoinPlace {
  readonly enterprise: Account['enterprise'];
  readonly email: string;
  readonly domain: string;
}

async function listPlaces(context: SignInContext, personId: string): Promise<JoinPlace[]> {
  const addresses = await listProvenAddresses(context.database, personId);
  const emails = addresses.flatMap((address) => parseEmail(address) ?? []);
  const owners = await listAskable(
    context.database,
    personId,
    emails.map(({ domain }) => domain),
  );
  const places = owners.flatMap(({ enterprise, domain }) => {
    const email = emails.find((each) => each.domain === domain);
    return email === undefined || !isAllowedDomain({ enterprise }, domain)
      ? []
      : [{ enterprise, domain, email: email.address }];
  });
  return places.filter(
    ({ enterprise }, index) => places.findIndex((it) => it.enterprise.id === enterprise.id) === index,
  );
}

/**
 * Asks to join an enterprise. If its directory has a user for the address, both sides agree already, and the caller
 * joins. Refuses with `not_found`, the same for every enterprise that may not be asked, `own_sign_in_required`,
 * `conflict`, `too_many_attempts`, `limit_reached`.
 */
export async function askToJoin(
  context: SignInContext,
  caller: Caller,
  enterpriseId: string,
): Promise<Result<OwnJoinRequest, ApiError>> {
  const asker = await findAsker(context, caller);
  if (!asker.ok) return asker;
  const personId = asker.value.person.id;
  const isPlace = (await listPlaces(context, personId)).some(({ enterprise }) => enterprise.id === enterpriseId);
  if (!isPlace) return err(noPlace(enterpriseId));
  const allowed = await takeAttempt(context, OF_PERSON, personId);
  if (!allowed.ok) return allowed;
  return commit(context, { enterpriseId, writer: enterpriseId }, () => decideAsking(context, caller, enterpriseId));
}

async function decideAsking(
  context: SignInContext,
  caller: Caller,
  enterpriseId: string,
): Promise<Result<Change<OwnJoinRequest>, ApiError>> {
  const { database } = context;
  const asker = await findAsker(context, caller);
  if (!asker.ok) return asker;
  const { person, user } = asker.value;
  const place = (await listPlaces(context, person.id)).find(({ enterprise }) => enterprise.id === enterpriseId);
  if (place === undefined) return err(noPlace(enterpriseId));
  const now = nowSeconds(context);
  const last = await findRequestOf(database, person.id, enterpriseId);
  const refusal = last === null ? null : repeatProblem(context, last);
  if (refusal !== null) return err(refusal);
  if ((await countOpenRequests(database, enterpriseId, now)) >= MAX_OPEN) return err(tooManyOpen());
  const row: JoinRequestRow = {
    id: freshId(context, 'jrq'),
    enterpriseId,
    personId: person.id,
    email: place.email,
    displayName: user.displayName,
    createdAt: nowText(context),
    endsAt: now + OPEN_SECONDS,
    outcome: null,
    expiresAt: now + KEPT_SECONDS,
  };
  const asked = [
    ...whileActive([caller.userId]),
    ...domainStillOf(place.domain, enterpriseId),
    ...insertJoinRequest(database, row, now),
  ];
  // Who asks acts in another enterprise, whose users are nobody's business here.
  const events = [event('control.join_request.created', null, row.id)];
  const isExpected = (await findAdoptable(database, enterpriseId, place.email)) !== null;
  if (!isExpected) return ok({ statements: asked, events, value: toOwnRecord(context, row) });
  const accepted = await planAcceptance(context, row, { role: 'member', actor: null });
  if (!accepted.ok) return accepted;
  return ok({
    statements: [...asked, ...accepted.value.statements],
    events: [...events, ...accepted.value.events],
    value: toOwnRecord(context, { ...row, outcome: 'accepted' }),
  });
}

/** Why somebody may not ask again yet; null if they may. */
function repeatProblem(context: SignInContext, last: JoinRequestRow): ApiError | null {
  const { state } = toOwnRecord(context, last);
  if (state === 'open') return apiError('conflict', 'you have asked already: an admin decides');
  if (state !== 'declined' || last.expiresAt <= nowSeconds(context)) return null;
  const until = new Date(last.expiresAt * 1000).toISOString().slice(0, 10);
  return apiError('conflict', `an admin has declined: you may ask again on ${until}`);
}

/** Takes an own request back. Refuses with `not_found`, `join_request_over`. */
export async function withdrawRequest(
  context: SignInContext,
  caller: Caller,
  id: string,
): Promise<Result<null, ApiError>> {
  const found = await findOwn(context, caller, id);
  if (!found.ok) return found;
  const { enterpriseId } = found.value;
  return commit(context, { enterpriseId, writer: enterpriseId }, async () => {
    const again = await findOwn(context, caller, id);
    if (!again.ok) return again;
    if (toOwnRecord(context, again.value).state !== 'open') return err(requestOver());
    return ok({
      statements: [
        ...whileActive([caller.userId]),
        ...endJoinRequest(context.database, id, { outcome: 'withdrawn', nowSeconds: nowSeconds(context) }),
      ],
      events: [event('control.join_request.withdrawn', null, id)],
      value: null,
    });
  });
}

async function findOwn(context: SignInContext, caller: Caller, id: string): Promise<Result<JoinRequestRow, ApiError>> {
  const asker = await findAsker(context, caller);
  const row = asker.ok ? await findOwnRequest(context.database, asker.value.person.id, id) : null;
  return row === null ? err(unknownRequest(id)) : ok(row);
}

/** The requests to join the caller's enterprise, newest first. Refuses with `admin_required`, `invalid_cursor`. */
export async function listJoinRequestPage(
  context: SignInContext,
  caller: Caller,
  query: PageQuery,
): Promise<Result<Page<JoinRequestRecord>, ApiError>> {
  if (!mayActAs(caller, 'admin')) return err(adminsOnly());
  return readPageById(query, 'jrq', {
    read: (from) => listJoinRequests(context.database, { enterpriseId: caller.enterpriseId, ...from }),
    toItem: (row) => toRecord(context, row),
  });
}

/**
 * Makes whoever asked a member. Refuses with `not_found`, `admin_required`, `join_request_over`, `already_member`,
 * `domain_not_allowed`, `account_unavailable`.
 */
export async function acceptRequest(
  context: SignInContext,
  caller: Caller,
  id: string,
  role: Role,
): Promise<Result<JoinRequestRecord, ApiError>> {
  return commit(context, controlChain(caller), async () => {
    const found = await findOpen(context, caller, id);
    if (!found.ok) return found;
    if (!mayInvite(caller, role)) {
      return err(apiError('admin_required', 'only an owner can accept admins and owners: ask an owner'));
    }
    const planned = await planAcceptance(context, found.value, { role, actor: caller.userId });
    if (!planned.ok) return planned;
    return ok({ ...planned.value, value: toRecord(context, { ...found.value, outcome: 'accepted' }) });
  });
}

/** The person must still have proven the address, and the enterprise the domain. */
async function planAcceptance(
  context: SignInContext,
  row: JoinRequestRow,
  { role, actor }: { readonly role: Role; readonly actor: string | null },
): Promise<Result<Change<null>, ApiError>> {
  const { database } = context;
  const { personId, enterpriseId, email, displayName } = row;
  const domain = parseEmail(email)?.domain ?? '';
  const enterprise = await findEnterprise(database, enterpriseId);
  if (enterprise === null || !isAllowedDomain({ enterprise }, domain)) return err(domainNotAllowed());
  if (!(await hasProven(database, personId, email))) return err(requestOver());
  const accounts = await listAccountsOfPerson(database, personId);
  if (accounts.some(({ user }) => user.enterpriseId === enterpriseId && user.leftAt === null)) {
    return err(apiError('already_member', 'this person is a member of the enterprise already'));
  }
  const joined = await planJoining(context, { personId, enterpriseId, email, displayName, role });
  if (!joined.ok) return joined;
  const ended = endJoinRequest(database, row.id, { outcome: 'accepted', nowSeconds: nowSeconds(context) });
  return ok({
    statements: [...domainStillOf(domain, enterpriseId), ...ended, ...joined.value.statements],
    events: [
      event('control.join_request.accepted', actor, row.id, joined.value.userId),
      event('control.user.created', actor, joined.value.userId),
    ],
    adds: joined.value.adds,
    value: null,
  });
}

/** Declines: whoever asked may ask again 30 days after asking. Refuses with `not_found`, `admin_required`, `join_request_over`. */
export async function declineRequest(
  context: SignInContext,
  caller: Caller,
  id: string,
): Promise<Result<JoinRequestRecord, ApiError>> {
  return commit(context, controlChain(caller), async () => {
    const found = await findOpen(context, caller, id);
    if (!found.ok) return found;
    return ok({
      statements: endJoinRequest(context.database, id, { outcome: 'declined', nowSeconds: nowSeconds(context) }),
      events: [event('control.join_request.declined', caller.userId, id)],
      value: toRecord(context, { ...found.value, outcome: 'declined' }),
    });
  });
}

async function findOpen(context: SignInContext, caller: Caller, id: string): Promise<Result<JoinRequestRow, ApiError>> {
  const row = await findJoinRequest(context.database, caller.enterpriseId, id);
  if (row === null) return err(unknownRequest(id));
  if (!mayActAs(caller, 'admin')) return err(adminsOnly());
  return toRecord(context, row).state === 'open' ? ok(row) : err(requestOver());
}

/** The person who calls, signed in in a way of their own: an enterprise's provider speaks for its enterprise alone. */
async function findAsker(context: SignInContext, caller: Caller): Promise<Result<Account, ApiError>> {
  const account = await findAccount(context.database, caller.userId);
  if (account === null || account.user.suspendedAt !== null) {
    return err(apiError('unauthenticated', 'your session has ended: sign in again'));
  }
  if (context.local === null && (await voucherOf(context, caller)) === null) return ok(account);
  const message = 'asking to join needs a sign-in in a way of your own, such as a password or a code host';
  return err(apiError('own_sign_in_required', message));
}

function stateOf(context: Pick<SignInContext, 'clock'>, { outcome, endsAt }: JoinRequestRow) {
  return outcome ?? (endsAt <= nowSeconds(context) ? 'expired' : 'open');
}

function toOwnRecord(context: Pick<SignInContext, 'clock'>, row: JoinRequestRow): OwnJoinRequest {
  return {
    id: row.id,
    enterprise_id: row.enterpriseId,
    state: stateOf(context, row),
    created_at: row.createdAt,
    expires_at: new Date(row.endsAt * 1000).toISOString(),
  };
}

function toRecord(context: Pick<SignInContext, 'clock'>, row: JoinRequestRow): JoinRequestRecord {
  return {
    id: row.id,
    email: row.email,
    display_name: row.displayName,
    state: stateOf(context, row),
    created_at: row.createdAt,
    expires_at: new Date(row.endsAt * 1000).toISOString(),
  };
}

function event(type: AuditDraft['type'], actor: string | null, resource: string, user?: string): AuditDraft {
  const data = { 'svc.control.resource': resource, ...(user !== undefined && { 'svc.control.user': user }) };
  return { type, actor, data };
}

function noPlace(id: string): ApiError {
  return apiError('not_found', `you cannot ask to join ${id}: GET /v1/join-offers lists those that you can ask`);
}

function unknownRequest(id: string): ApiError {
  return apiError('not_found', `there is no request ${id}: list them with GET /v1/join-requests`);
}

function requestOver(): ApiError {
  return apiError('join_request_over', 'this request was decided or withdrawn, or has expired');
}

function adminsOnly(): ApiError {
  return apiError('admin_required', 'deciding about requests to join needs the role admin or owner: ask an admin');
}

function tooManyOpen(): ApiError {
  return apiError('limit_reached', 'too many requests wait for the admins of this enterprise: tell one of them');
}
