import type { AuditEventType } from '../model/audit_event.ts';

/** The outcomes of a request. */
export type RequestDecision = 'added' | 'connector' | 'passed' | 'refused';

/** The audit events that each stand for one request of an agent. */
export const REQUEST_DECISIONS: ReadonlyMap<AuditEventType, RequestDecision> = new Map([
  ['sandbox.proxy.binding_injected', 'added'],
  ['sandbox.proxy.foreign_credential_kept', 'passed'],
  ['sandbox.proxy.passthrough', 'passed'],
  ['sandbox.proxy.rejected', 'refused'],
  ['sandbox.proxy.trust_denied', 'refused'],
  ['connector.proxy.proxied', 'connector'],
  ['connector.proxy.rejected', 'refused'],
]);
