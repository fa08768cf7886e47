import { QUOTA_KINDS, quotaOf, QUOTAS } from '../../../shared/model/quotas/quotas.ts';
import type { UsageRecord } from '../../../shared/wire/usage.ts';
import { type Caller, mayActAs, personalOwner } from '../../kernel/caller.ts';
import { countTime, usedBy } from '../../kernel/quotas.ts';
import type { ServiceContext } from '../../kernel/service_context.ts';
import { readQuotas } from '../../store/quotas.ts';

/** How much the caller keeps of each kind, and for admins also the enterprise and all of its people. */
export async function listUsage(context: ServiceContext, caller: Caller): Promise<UsageRecord[]> {
  const read = await readQuotas(context.database, holdersFor(caller), countTime(context));
  return read.map(({ check: { kind, holder }, used }) => {
    const { what, unit } = QUOTAS[kind];
    return { kind, of: usedBy(kind, holder), what, unit, used, limit: quotaOf(kind, context.quotaPercent) };
  });
}

/** Each kind with those whose things the caller may count. */
function holdersFor(caller: Caller) {
  const { enterpriseId } = caller;
  const isAdmin = mayActAs(caller, 'admin');
  return QUOTA_KINDS.flatMap((kind) => {
    const { scope } = QUOTAS[kind];
    const ids = [
      ...(scope === 'enterprise' ? [] : [personalOwner(caller)]),
      ...(scope === 'person' || !isAdmin ? [] : [enterpriseId]),
    ];
    return ids.map((id) => ({ kind, holder: { id, enterpriseId } }));
  });
}
