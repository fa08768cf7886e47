import { expect, test } from 'vitest';
import type { StoredAuditEvent } from '../../../shared/wire/audit_events.ts';
import { alertText } from './alert_text.ts';

const EVENT: StoredAuditEvent = {
  id: 'evt_1',
  type: 'connector.approval.partly_approved',
  time: '2026-01-01T00:00:00.000Z',
  received_at: '2026-01-01T00:00:00.000Z',
  sidecar_id: null,
  session_id: null,
  actor: 'usr_1',
  writer: 'ent_1',
  sequence: 1,
  previous_hash: '',
  hash: '',
  data: { 'svc.connector.fqn': 'acme/items', 'svc.connector.operation': 'delete-item' },
};

test.each([
  [1, 1, 'Approved by one person, needs another: acme/items delete-item'],
  [1, 2, 'Approved by one person, needs 2 more: acme/items delete-item'],
  [2, 1, 'Approved by 2 persons, needs another: acme/items delete-item'],
])('a message says how many have approved a request (%i) and are missing (%i)', (given, missing, line) => {
  const approvers = Array.from({ length: given }, (_, at) => `usr_${at}`);
  const data = { ...EVENT.data, 'svc.approval.approvers': approvers, 'svc.approval.missing': missing };
  expect(alertText({ events: [{ ...EVENT, data }], approvalsUrl: null }, (name) => name).split('\n')[0]).toBe(line);
});
