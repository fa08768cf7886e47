import { formatQuota, type QuotaKind, quotaOf, QUOTAS, TOTALS, type UsedBy } from '../../shared/model/quotas/quotas.ts';
import { apiError, type ApiError } from '../../shared/wire/errors.ts';
import type { Statement } from '../store/database.ts';
import {
  addAmounts,
  type CountTime,
  guardQuota,
  keptBy,
  type QuotaAmount,
  type QuotaCheck,
  type QuotaHolder,
  readQuotas,
} from '../store/quotas.ts';
import { nowSeconds, nowText, type ServiceContext } from './service_context.ts';

/** What a change adds to what somebody keeps (decision 0174). */
export interface Addition {
  readonly kind: QuotaKind;
  /** The owner, person or enterprise. */
  readonly holder: string;
  /** Rows or bytes; default: one. Negative if it gets less. */
  readonly by?: QuotaAmount;
}

/** How much the definition of a binding, connector or MCP server grows. */
export function definitionGrowth(holder: string, after: string, before = ''): Addition {
  return { kind: 'definition_bytes', holder, by: utf8Length(after) - utf8Length(before) };
}

function utf8Length(text: string): number {
  return new TextEncoder().encode(text).length;
}

const OF_OWNER = [
  'secrets',
  'secret_bytes',
  'bindings',
  'connectors',
  'connector_versions',
  'mcp_servers',
  'definition_bytes',
  'tunnel_hosts',
  'client_certificates',
] as const;

/** What everything that some owners have adds to the one that gets it. */
export function additionsOfMove(
  context: Pick<ServiceContext, 'clock'>,
  from: readonly QuotaHolder[],
  holder: string,
): Addition[] {
  return OF_OWNER.map((kind) => ({ kind, holder, by: keptBy(kind, from, countTime(context)) }));
}

type QuotaContext = Pick<ServiceContext, 'clock' | 'database' | 'quotaPercent'>;

/** A conflict if a change adds more than may be kept. They hold in the write itself, so that no two changes pass them together. */
export function guardQuotas(
  context: QuotaContext,
  enterpriseId: string,
  additions: readonly Addition[],
): readonly Statement[] {
  return toChecks(context, enterpriseId, additions).flatMap((check) => guardQuota(check, countTime(context)));
}

/** Which quota a change would go over; null if none. */
export async function findExceeded(
  context: QuotaContext,
  enterpriseId: string,
  additions: readonly Addition[],
): Promise<ApiError | null> {
  const checks = toChecks(context, enterpriseId, additions);
  const read = await readQuotas(context.database, checks, countTime(context));
  const over = read.find(({ check, used, by }) => by > 0 && used + by > check.most);
  return over === undefined ? null : limitReached(over.check, over);
}

/** The time of a count. */
export function countTime(context: Pick<ServiceContext, 'clock'>): CountTime {
  return { text: nowText(context), seconds: nowSeconds(context) };
}

/** Each kind of each holder once, with what counts for the whole enterprise. */
function toChecks({ quotaPercent }: QuotaContext, enterpriseId: string, additions: readonly Addition[]): QuotaCheck[] {
  const all = additions.flatMap((addition) => withTotal(enterpriseId, addition));
  const same = Map.groupBy(all, ({ kind, holder }) => `${kind} ${holder}`);
  return [...same.values()].flatMap((group) => {
    const [first] = group;
    if (first === undefined) return [];
    const { kind, holder } = first;
    const by = addAmounts(group.map((each) => each.by ?? 1));
    return [{ kind, holder: { id: holder, enterpriseId }, by, most: quotaOf(kind, quotaPercent) }];
  });
}

function withTotal(enterpriseId: string, addition: Addition): Addition[] {
  const total = TOTALS[addition.kind];
  return total === undefined ? [addition] : [addition, { ...addition, kind: total, holder: enterpriseId }];
}

/** Who uses what is counted of a holder. */
export function usedBy(kind: QuotaKind, { id, enterpriseId }: QuotaHolder): UsedBy {
  if (id !== enterpriseId) return 'account';
  return QUOTAS[kind].scope === 'enterprise' ? 'everybody' : 'enterprise';
}

const WHO: Readonly<Record<UsedBy, string>> = {
  account: 'the account has',
  enterprise: 'the enterprise has',
  everybody: 'the enterprise and its people have',
};

function limitReached(
  { kind, holder, most }: QuotaCheck,
  { used, by }: { readonly used: number; readonly by: number },
): ApiError {
  const { unit, what, fix } = QUOTAS[kind];
  const of = usedBy(kind, holder);
  const [has, limit, added] = [used, most, by].map((value) => formatQuota(kind, value));
  const limits = unit === 'count' ? `may have ${limit}` : `may have ${limit}: this would add ${added}`;
  const message = `${WHO[of]} ${has} ${unit === 'count' ? '' : 'of '}${what}, and ${limits}. To make room, ${fix}; who runs the control plane can raise SVC_QUOTA_PERCENT`;
  return apiError('limit_reached', message, { kind, of, limit: most, used });
}
