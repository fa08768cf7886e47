import { err, ok, type Result } from '../../../shared/model/result.ts';
import type { DeletionReply } from '../../../shared/wire/enterprise.ts';
import { apiError, type ApiError } from '../../../shared/wire/errors.ts';
import { type Caller, mayActAs } from '../../kernel/caller.ts';
import { type Change, commit } from '../../kernel/commit.ts';
import { controlChain } from '../../kernel/policy_change.ts';
import { nowSeconds, nowText, type ServiceContext } from '../../kernel/service_context.ts';
import { findAccount } from '../../store/accounts.ts';
import { countDeparting } from '../../store/people/departures.ts';
import { allOfEnterprise, countMembers, deleteEnterprise } from '../../store/people/enterprise_deletion.ts';
import { tokenRevocations } from './departure.ts';

/** What the deletion of the caller's enterprise would delete and end. Refuses with `not_found`, `admin_required`. */
export async function describeDeletion(
  context: ServiceContext,
  caller: Caller,
): Promise<Result<DeletionReply, ApiError>> {
  const refusal = deletionProblem(context, caller);
  if (refusal !== null) return err(refusal);
  const { database } = context;
  const { enterpriseId } = caller;
  const departing = await countDeparting(database, allOfEnterprise(enterpriseId), nowSeconds(context));
  return ok({ members: await countMembers(database, enterpriseId), ...departing });
}

/**
 * Deletes the caller's enterprise in one write, with what it and all of its users own, and ends their sign-ins, tokens and
 * sidecars. Tokens of OAuth credentials are revoked at their providers afterwards. `confirm` is the enterprise's slug. The
 * audit log stays as long as every audit log. Refuses with `not_found`, `admin_required`, `not_confirmed`.
 */
export async function removeEnterprise(
  context: ServiceContext,
  caller: Caller,
  confirm: string,
): Promise<Result<null, ApiError>> {
  return commit(context, controlChain(caller), async () => {
    const account = await findAccount(context.database, caller.userId);
    const role = account?.user.role ?? 'member';
    const refusal = deletionProblem(context, { ...caller, role });
    if (refusal !== null) return err(refusal);
    if (confirm !== account?.enterprise.slug) return err(notConfirmed());
    return ok(await planDeletion(context, caller));
  });
}

/** The change that deletes the caller's enterprise. */
export async function planDeletion(
  context: ServiceContext,
  { enterpriseId: id, userId }: Pick<Caller, 'enterpriseId' | 'userId'>,
): Promise<Change<null>> {
  const revokeTokens = await tokenRevocations(context, id, allOfEnterprise(id));
  return {
    statements: deleteEnterprise(context.database, id, nowText(context)),
    events: [{ type: 'control.enterprise.deleted', actor: userId, data: { 'svc.control.resource': id } }],
    afterwards: () => revokeTokens.forEach((revoke) => revoke()),
    value: null,
  };
}

function deletionProblem({ local }: ServiceContext, caller: Caller): ApiError | null {
  if (local !== null) return apiError('not_found', 'a control plane on your own machine is removed by "svc uninstall"');
  if (mayActAs(caller, 'owner')) return null;
  return apiError('admin_required', 'only an owner can delete the enterprise: ask an owner');
}

function notConfirmed(): ApiError {
  return apiError('not_confirmed', 'confirm is not the slug of the enterprise: nothing was deleted');
}
