import { ok, type Result } from '../../shared/model/result.ts';
import type { ApiError } from '../../shared/wire/errors.ts';
import { policyVersion } from '../store/accounts.ts';
import { type Caller, personalOwner } from './caller.ts';
import { type Chain, type Change, commit } from './commit.ts';
import type { ServiceContext } from './service_context.ts';

/** A change of bindings or secrets, with the first policy version that includes it. */
export interface Changed<T> {
  readonly value: T;
  readonly policyVersion: number;
}

/**
 * The control plane's own chain of the caller's enterprise. What a user changes is written only while the user has the role that the
 * decision was made with: the call may have been let in before it changed.
 */
export function controlChain({
  enterpriseId,
  userId,
  role,
}: Pick<Caller, 'enterpriseId'> & Partial<Pick<Caller, 'userId' | 'role'>>): Chain {
  const chain = { enterpriseId, writer: enterpriseId };
  return userId === undefined || role === undefined ? chain : { ...chain, by: { userId, role } };
}

/** Adds the lowest policy version of a snapshot that includes the change. */
export async function withPolicyVersion<T>(
  context: ServiceContext,
  caller: Caller,
  result: Result<T, ApiError>,
): Promise<Result<Changed<T>, ApiError>> {
  if (!result.ok) return result;
  return ok({ value: result.value, policyVersion: await policyVersion(context.database, personalOwner(caller)) });
}

/** Commits a change of bindings or secrets to the control plane's own chain. */
export async function commitPolicy<T>(
  context: ServiceContext,
  caller: Caller,
  decide: () => Promise<Result<Change<T>, ApiError>>,
): Promise<Result<Changed<T>, ApiError>> {
  return withPolicyVersion(context, caller, await commit(context, controlChain(caller), decide));
}
