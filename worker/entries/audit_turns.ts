import type { LogEntry } from '../routes/http/app_env.ts';
import { sendAnchors } from '../services/audit/audit_anchors.ts';
import { retainAudit } from '../services/audit/audit_retention.ts';
import type { ProgramContext } from '../installation/program_context.ts';

/** Work on the audit log that is done now and then, by one of all the workers. */
export interface AuditTurn {
  /** For the log, when it fails. */
  readonly what: string;
  readonly take: (context: ProgramContext) => Promise<unknown>;
}

interface TurnSettings {
  readonly auditRetentionDays?: number;
  readonly anchors?: unknown;
}

/** What the settings ask for. Each is a turn of its own: a receiver that is slow keeps no event from being removed. */
export function auditTurns(
  { auditRetentionDays: days, anchors }: TurnSettings,
  log: (entry: LogEntry) => void,
): readonly AuditTurn[] {
  const turns: AuditTurn[] = [];
  if (anchors !== undefined) {
    turns.push({ what: 'sending audit heads', take: (context) => sendAnchors(context, log) });
  }
  if (days !== undefined) {
    turns.push({ what: 'removing old audit events', take: (context) => retainOnce(context, days, log) });
  }
  return turns;
}

/** One turn, where it is this program's; a chain that cannot be cut is said in the log. */
async function retainOnce(context: ProgramContext, days: number, log: (entry: LogEntry) => void): Promise<void> {
  const retained = await retainAudit(context, days);
  for (const { writer, sequence, reason } of retained?.broken ?? []) {
    const message = `the audit chain of ${writer} is broken at event ${sequence} (${reason}): nothing of it is removed from there`;
    log({ level: 'error', message, code: 'audit_chain_broken' });
  }
}
