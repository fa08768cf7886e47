import type { AuditEventData } from '../../shared/model/audit_event.ts';
import type { StoredAuditEvent } from '../../shared/wire/audit_events.ts';

/** An event of session `ses_1`, as the control plane returns it. */
export function storedEvent(data: AuditEventData): StoredAuditEvent {
  return {
    id: 'evt_01m7yjc1391a5krmyacsgq908t',
    type: 'sandbox.proxy.trust_denied',
    time: '2026-01-01T11:00:00.000Z',
    sidecar_id: 'sdc_01m7yjby3c69shrte2a60bpm60',
    session_id: 'ses_1',
    actor: 'session',
    data,
    writer: 'sdc_01m7yjby3c69shrte2a60bpm60',
    sequence: 1,
    previous_hash: '0'.repeat(64),
    hash: 'a'.repeat(64),
    received_at: '2026-01-01T11:00:01.000Z',
  };
}
