import type { BrokenChain } from '../../../shared/wire/audit_events.ts';
import { findNextDueEnterprise } from '../../store/audit/audit_beginnings.ts';
import { setAnew, takeTurn } from '../../store/installation.ts';
import { PRUNE_LIMITS, pruneEnterprise, type PruneLimits } from './audit_pruning.ts';
import { nowText, type ServiceContext } from '../../kernel/service_context.ts';

const DAY_MS = 24 * 3_600_000;
/** How often one of all workers looks for expired events. */
const EVERY_MS = 3_600_000;
/** The limits of one turn; the rest is for the next. */
const TURN_LIMITS: PruneLimits = { ...PRUNE_LIMITS, writes: 20 };

/** The result of a turn; null if another worker has it or had it less than an hour ago. */
interface Retained {
  readonly removed: number;
  /** False if the next turn should start at once. */
  readonly finished: boolean;
  /** Chains that do not verify: nothing is removed from the broken event on. */
  readonly broken: readonly BrokenChain[];
}

/**
 * Removes the audit events of all enterprises that were received more than the configured number of days ago.
 * Concurrent workers are safe, because each write is conditional on the chain it read; they take turns to avoid doing
 * work twice.
 */
export async function retainAudit(
  context: ServiceContext,
  days: number,
  limits: PruneLimits = TURN_LIMITS,
): Promise<Retained | null> {
  const now = context.clock.now();
  const until = new Date(now + EVERY_MS).toISOString();
  const taken = takeTurn(context.database, 'audit_retention_until', { now: nowText(context), until });
  if (!(await context.database.write(taken)).ok) return null;
  const retained = await removeDue(context, new Date(now - days * DAY_MS).toISOString(), limits);
  if (!retained.finished) {
    await context.database.write([setAnew(context.database, 'audit_retention_until', nowText(context))]);
  }
  return retained;
}

async function removeDue(context: ServiceContext, before: string, limits: PruneLimits): Promise<Retained> {
  let removed = 0;
  let done = '';
  const broken: BrokenChain[] = [];
  for (let left = limits.writes; left > 0 && !context.stopping.aborted;) {
    const enterpriseId = await findNextDueEnterprise(context.database, before, done);
    if (enterpriseId === null) return { removed, finished: true, broken };
    const pruned = await pruneEnterprise(context, {
      enterpriseId,
      by: null,
      before,
      limits: { ...limits, writes: left },
    });
    if (!pruned.ok) throw new Error(pruned.error.message);
    removed += pruned.value.removed;
    left -= Math.max(1, pruned.value.writes);
    done = enterpriseId;
    broken.push(...pruned.value.broken);
  }
  return { removed, finished: false, broken };
}
