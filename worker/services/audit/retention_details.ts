import { summarizeLog } from '../../store/audit/audit_beginnings.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { ServiceContext } from '../../kernel/service_context.ts';

/** How long events are kept, and what is kept of the caller's enterprise. */
export interface RetentionDetails {
  /** For all enterprises; null: for ever. */
  readonly days: number | null;
  readonly events: number;
  readonly removed: number;
  /** When the oldest event was received; null if there is none. */
  readonly oldest: string | null;
}

export async function describeRetention(
  context: ServiceContext,
  { enterpriseId }: Pick<Caller, 'enterpriseId'>,
): Promise<RetentionDetails> {
  return { days: context.auditRetentionDays, ...(await summarizeLog(context.database, enterpriseId)) };
}
