import type { LogEntry } from '../routes/app_env.ts';
import { retainAudit } from '../services/audit_retention.ts';
import type { ServiceContext } from '../services/service_context.ts';

/** One turn, where it is this program's; a chain that cannot be cut is said in the log. */
export async function retainOnce(context: ServiceContext, days: number, log: (entry: LogEntry) => void): Promise<void> {
  const retained = await retainAudit(context, days);
  for (const { writer, sequence, reason } of retained?.broken ?? []) {
    const message = `the audit chain of ${writer} is broken at event ${sequence} (${reason}): nothing of it is removed from there`;
    log({ level: 'error', message, code: 'audit_chain_broken' });
  }
}
