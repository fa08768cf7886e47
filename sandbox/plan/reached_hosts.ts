import type { z } from 'zod';
import type { readAuditEvent } from '../../shared/wire/audit_events.ts';

/** An event in the reply of the control plane. */
type AuditEvent = Pick<z.output<typeof readAuditEvent>, 'type' | 'data'>;

/** A host that a step tried to reach. */
export interface ReachedHost {
  readonly host: string;
  readonly requests: number;
  /** Why it was refused; null if requests were forwarded. */
  readonly refused: string | null;
}

const REFUSALS: readonly AuditEvent['type'][] = ['sandbox.proxy.trust_denied', 'sandbox.proxy.rejected'];

/** The hosts that each step tried to reach, from the audit events of its session. Steps without one are left out. */
export function listReachedHosts(events: readonly AuditEvent[]): ReadonlyMap<string, readonly ReachedHost[]> {
  const steps = new Map<string, Map<string, ReachedHost>>();
  for (const { type, data } of events) {
    const [step, host] = [data['svc.step.id'], data['svc.proxy.upstream.host']];
    if (step === undefined || host === undefined) continue;
    const refused = REFUSALS.includes(type) ? (data['svc.proxy.reason'] ?? 'refused') : null;
    const hosts = steps.get(step) ?? new Map<string, ReachedHost>();
    const key = `${host} ${refused ?? ''}`;
    hosts.set(key, { host, refused, requests: (hosts.get(key)?.requests ?? 0) + 1 });
    steps.set(step, hosts);
  }
  return new Map([...steps].map(([step, hosts]) => [step, [...hosts.values()]]));
}

/** `api.example.com (3), evil.example.com (1 refused: step_scope_host_denied)`; `-` for none. */
export function formatReachedHosts(hosts: readonly ReachedHost[]): string {
  if (hosts.length === 0) return '-';
  return hosts
    .map(({ host, requests, refused }) => `${host} (${requests}${refused === null ? '' : ` refused: ${refused}`})`)
    .join(', ');
}
