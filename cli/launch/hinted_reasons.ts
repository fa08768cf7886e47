import { CERTIFICATE_REFUSED, PLACEHOLDER_UNBOUND } from '../../shared/model/audit_event.ts';
import type { RefusalReason } from '../../shared/model/refusal.ts';

const REFUSALS: readonly RefusalReason[] = [
  'connect_port_not_allowed',
  'egress_host_not_allowed',
  'non_connect_proxy_request',
];

/** The reasons of the events that the hints of end_hints.ts are made of. */
export const HINTED_REASONS: ReadonlySet<string> = new Set([...REFUSALS, CERTIFICATE_REFUSED, PLACEHOLDER_UNBOUND]);

/**
 * Whether a session that had events with these reasons may have hints; null: they are not known. Most sessions have none, and what
 * reads and checks the audit log need not be loaded.
 */
export function mayHaveHints(reasons: readonly string[] | null): boolean {
  return reasons === null || reasons.some((reason) => HINTED_REASONS.has(reason));
}
