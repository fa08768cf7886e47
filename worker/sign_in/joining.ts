import { err, ok, type Result } from '../../shared/model/result.ts';
import { hasRole, type Role } from '../../shared/model/role.ts';
import type { ApiError } from '../../shared/wire/errors.ts';
import type { Addition } from '../kernel/quotas.ts';
import { freshId, nowText } from '../kernel/service_context.ts';
import { insertUserOf } from '../store/accounts.ts';
import type { Statement } from '../store/database.ts';
import { listAccountsOfPerson } from '../store/identities.ts';
import { forgetDeparted } from '../store/people/account_deletion.ts';
import { takeBack } from '../store/people/departures.ts';
import { adoptUser, findAdoptable } from '../store/people/scim_users.ts';
import { accountUnavailable } from './admission.ts';
import { departedAddress } from './departed_addresses.ts';
import type { SignInContext } from './sign_in_context.ts';

/** A person who becomes a member, by an address that the person has proven. */
interface Joining {
  readonly personId: string;
  readonly enterpriseId: string;
  readonly email: string;
  readonly displayName: string;
  readonly role: Role;
}

/** The user that the person gets. */
interface Joined {
  readonly userId: string;
  /** Whether no user of this id was there before: somebody who left is nobody who acts until the write is done. */
  readonly isNew: boolean;
  readonly statements: readonly Statement[];
  readonly adds: readonly Addition[];
}

/**
 * Gives a person a user in an enterprise: the one that the person left with, or the one that the directory made for the
 * address, so that it ends with it, or a new one. Refuses with `account_unavailable` if the directory has deactivated it.
 */
export async function planJoining(
  context: SignInContext,
  { personId, enterpriseId, email, displayName, role }: Joining,
): Promise<Result<Joined, ApiError>> {
  const { database } = context;
  const accounts = await listAccountsOfPerson(database, personId);
  const left = accounts.find(({ enterprise }) => enterprise.id === enterpriseId)?.user;
  const waiting = left === undefined ? await findAdoptable(database, enterpriseId, email) : null;
  if (waiting !== null && waiting.suspendedAt !== null) return err(accountUnavailable());
  const userId = left?.id ?? waiting?.id ?? freshId(context, 'usr');
  const forgotten = forgetDeparted(database, await departedAddress(enterpriseId, email));
  const isNew = left === undefined && waiting === null;
  const adds: Addition[] = waiting === null ? [{ kind: 'members', holder: enterpriseId }] : [];
  if (left !== undefined) {
    const back = takeBack(database, userId, { role, email, displayName });
    return ok({ userId, isNew, statements: [back, forgotten], adds });
  }
  if (waiting !== null) {
    // It may have become an admin, or the only owner: joining takes nothing from it.
    const kept = hasRole(waiting.role, role) ? waiting.role : role;
    const adopted = adoptUser(database, waiting, { personId, role: kept, email });
    return ok({ userId, isNew, statements: [...adopted, forgotten], adds });
  }
  const user = { id: userId, enterpriseId, email, displayName, role, createdAt: nowText(context) };
  return ok({ userId, isNew, statements: [insertUserOf(database, personId, user), forgotten], adds });
}
