import type { LogEntry } from '../routes/http/app_env.ts';
import { sendAnchors } from '../services/audit/audit_anchors.ts';
import { retainAudit } from '../services/audit/audit_retention.ts';
import { removeExpiredLogins } from '../services/connectors/pending_logins.ts';
import { deliverToSinks } from '../services/sinks/sink_turn.ts';
import { removeEndedValues } from '../services/sources/secret_sources.ts';
import type { ProgramContext } from '../installation/program_context.ts';

/** Periodic work. Work on the audit log is done by one of all workers at a time. */
export interface PeriodicTurn {
  /** For the log, if it fails. */
  readonly title: string;
  readonly take: (context: ProgramContext) => Promise<unknown>;
}

interface TurnSettings {
  readonly auditRetentionDays?: number;
  readonly anchors?: unknown;
}

/**
 * The removal of expired logins and minted values, the sinks of audit events, and the turns that the settings ask for. They are separate, so that a slow receiver does not delay the removal of events.
 */
export function periodicTurns(
  { auditRetentionDays: days, anchors }: TurnSettings,
  log: (entry: LogEntry) => void,
): readonly PeriodicTurn[] {
  const turns: PeriodicTurn[] = [
    { title: 'removing expired logins', take: removeExpiredLogins },
    { title: 'sending audit events to sinks', take: (context) => deliverToSinks(context) },
    { title: 'removing ended values', take: removeEndedValues },
  ];
  if (anchors !== undefined) {
    turns.push({ title: 'sending audit heads', take: (context) => sendAnchors(context, log) });
  }
  if (days !== undefined) {
    turns.push({ title: 'removing old audit events', take: (context) => retainOnce(context, days, log) });
  }
  return turns;
}

/** Removes expired events, if it is this program's turn, and logs broken chains. */
async function retainOnce(context: ProgramContext, days: number, log: (entry: LogEntry) => void): Promise<void> {
  const retained = await retainAudit(context, days);
  for (const { writer, sequence, reason } of retained?.broken ?? []) {
    const message = `the audit chain of ${writer} is broken at event ${sequence} (${reason}): events from there on are not removed`;
    log({ level: 'error', message, code: 'audit_chain_broken' });
  }
}
