import { hasRole } from '../../shared/model/role.ts';
import { findAccount } from '../store/accounts.ts';
import type { Caller } from './caller.ts';
import type { ServiceContext } from './service_context.ts';

/**
 * A caller with no more than the role that they have now: the call may have been let in before it changed. Roles change on the chain of the
 * enterprise, so that a decision on that chain which reads this cannot race such a change.
 */
export async function atPresent({ database }: ServiceContext, caller: Caller): Promise<Caller> {
  const role = (await findAccount(database, caller.userId))?.user.role ?? 'member';
  return hasRole(role, caller.role) ? caller : { ...caller, role };
}
