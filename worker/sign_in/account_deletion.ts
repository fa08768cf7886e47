import { err, ok, type Result } from '../../shared/model/result.ts';
import type { AccountDeletionReply } from '../../shared/wire/account.ts';
import { apiError, type ApiError } from '../../shared/wire/errors.ts';
import type { Caller } from '../kernel/caller.ts';
import { type Change, commit } from '../kernel/commit.ts';
import { controlChain } from '../kernel/policy_change.ts';
import { nowSeconds, type ServiceContext } from '../kernel/service_context.ts';
import { findLeaver, planDeparture } from '../services/people/departure.ts';
import { planDeletion } from '../services/people/enterprise_deletion.ts';
import {
  deletePerson,
  type DepartedAddress,
  guardOnlyMember,
  guardOnlyUserOfPerson,
  guardSuspended,
} from '../store/people/account_deletion.ts';
import { type Account, findAccount } from '../store/accounts.ts';
import { countDeparting, onlyUser } from '../store/people/departures.ts';
import { allOfEnterprise, countMembers } from '../store/people/enterprise_deletion.ts';
import { listIdentities } from '../store/enterprise_settings.ts';
import { listAccountsOfPerson } from '../store/identities.ts';
import { departedAddress } from './departed_addresses.ts';
import { voucherOf } from './voucher.ts';

/** An account that may be deleted. */
interface Deleted {
  readonly own: Account;
  /** All users of the person, with those that left. */
  readonly all: readonly Account[];
  /** Users that other enterprises suspended: nobody can sign in as these to leave. */
  readonly suspended: readonly Account[];
  /** Whether nobody else is in the enterprise, so that it goes too. */
  readonly isAlone: boolean;
}

/** What the deletion of the caller's account would delete. Refuses with the codes of {@link removeAccount}. */
export async function describeAccountDeletion(
  context: ServiceContext,
  caller: Caller,
): Promise<Result<AccountDeletionReply, ApiError>> {
  const found = await findDeleted(context, caller);
  if (!found.ok) return found;
  const { own, isAlone } = found.value;
  const leaving = isAlone ? allOfEnterprise(caller.enterpriseId) : onlyUser(caller.userId);
  const departing = await countDeparting(context.database, leaving, nowSeconds(context));
  return ok({ confirm: nameOf(own), deletes_enterprise: isAlone, ...departing });
}

/**
 * Deletes the caller's account in one write: its user leaves the enterprise, or the enterprise is deleted if nobody else
 * is in it, its users leave the enterprises that suspended them, and nothing is left of what proves who the person is. `confirm` is the address of the user. Refuses with
 * `not_found`, `own_sign_in_required`, `other_enterprises`, `last_owner`, `not_confirmed`.
 */
export async function removeAccount(
  context: ServiceContext,
  caller: Caller,
  confirm: string,
): Promise<Result<null, ApiError>> {
  return commit(context, controlChain(caller), async () => {
    const again = await findConfirmed(context, caller, confirm);
    return again.ok ? ok(await planAccountDeletion(context, caller, again.value)) : again;
  });
}

async function planAccountDeletion(
  context: ServiceContext,
  caller: Caller,
  { own, all, suspended, isAlone }: Deleted,
): Promise<Change<null>> {
  const { database } = context;
  const { userId, enterpriseId } = caller;
  const gone = isAlone
    ? await planDeletion(context, caller)
    : await planDeparture(context, own.user, { type: 'control.member.left', actor: userId });
  const departed = await departedAddresses(context, all);
  const elsewhere = await Promise.all(
    suspended.map(async ({ user }) => ({
      chain: { enterpriseId: user.enterpriseId, writer: user.enterpriseId },
      departure: await planDeparture(context, user, { type: 'control.member.left', actor: null }),
    })),
  );
  return {
    ...gone,
    statements: [
      ...suspended.flatMap(({ user }) => guardSuspended(user.id)),
      ...elsewhere.flatMap(({ departure }) => departure.statements),
      ...guardOnlyUserOfPerson(own.person.id, userId),
      ...(isAlone ? guardOnlyMember(enterpriseId, userId) : []),
      ...gone.statements,
      ...deletePerson(database, own.person.id, departed),
    ],
    events: [...gone.events, { type: 'control.user.deleted', actor: userId, data: { 'svc.control.resource': userId } }],
    elsewhere: elsewhere.map(({ chain, departure }) => ({ chain, events: departure.events })),
    afterwards: () => [gone, ...elsewhere.map(({ departure }) => departure)].forEach((each) => each.afterwards?.()),
  };
}

/** Every address of the person, for every enterprise that it has a user in. */
async function departedAddresses(
  { database }: ServiceContext,
  accounts: readonly Account[],
): Promise<readonly DepartedAddress[]> {
  const identities = await Promise.all(accounts.map(({ user }) => listIdentities(database, user.id)));
  const addresses = new Set([
    ...identities.flat().map(({ email }) => email),
    ...accounts.flatMap(({ user, person }) => [user.email ?? '', person.verifiedEmail ?? '']),
  ]);
  addresses.delete('');
  return Promise.all(
    accounts.flatMap(({ enterprise }) => [...addresses].map((address) => departedAddress(enterprise.id, address))),
  );
}

async function findConfirmed(context: ServiceContext, caller: Caller, confirm: string) {
  const found = await findDeleted(context, caller);
  if (!found.ok || confirm === nameOf(found.value.own)) return found;
  return err(apiError('not_confirmed', 'confirm is not the address of the account: nothing was deleted'));
}

/** What has to be repeated: the user's address, or its id if it has none. */
function nameOf({ user }: Account): string {
  return user.email ?? user.id;
}

async function findDeleted(context: ServiceContext, caller: Caller): Promise<Result<Deleted, ApiError>> {
  const { database, local } = context;
  if (local !== null) return err(apiError('not_found', 'an account on your own machine is removed by "svc uninstall"'));
  if ((await voucherOf(context, caller)) !== null) return err(ownSignInNeeded());
  const own = await findAccount(database, caller.userId);
  if (own === null) return err(apiError('unauthenticated', 'your session has ended: sign in again'));
  const all = await listAccountsOfPerson(database, own.person.id);
  const others = all.filter(({ user }) => user.id !== caller.userId && user.leftAt === null);
  const suspended = others.filter(({ user }) => user.suspendedAt !== null);
  if (suspended.length < others.length) return err(otherEnterprises(others));
  const isAlone = (await countMembers(database, caller.enterpriseId)) === 1;
  const leaver = isAlone ? ok(own.user) : await findLeaver(context, caller, caller.userId);
  return leaver.ok ? ok({ own, all, suspended, isAlone }) : leaver;
}

function ownSignInNeeded(): ApiError {
  const message =
    'you are signed in by your enterprise’s provider or by a personal token, which cannot delete your account: sign in with a way of your own, or leave the enterprise';
  return apiError('own_sign_in_required', message);
}

function otherEnterprises(others: readonly Account[]): ApiError {
  const live = others.filter(({ user }) => user.suspendedAt === null).map(({ enterprise }) => enterprise.id);
  const message = `you are in other enterprises too: switch to each one and leave it first (${live.join(', ')})`;
  return apiError('other_enterprises', message, { enterprises: live });
}
