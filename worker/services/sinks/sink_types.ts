import { ALERT_TYPES } from '../../../shared/wire/audit_sinks.ts';
import type { AuditSinkRow } from '../../store/audit/audit_sinks.ts';
import { SINK_KIND_TABLE } from './sink_kinds.ts';

/** The event types that a sink gets; null: all. Alerts have the same for every sink, whatever was stored with it. */
export function typesOf({ kind, types }: Pick<AuditSinkRow, 'kind' | 'types'>): string[] | null {
  return SINK_KIND_TABLE[kind].isAlert ? [...ALERT_TYPES] : (types?.split(',') ?? null);
}
