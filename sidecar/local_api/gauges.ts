import type { LocalApiOptions } from './local_api_options.ts';

/** The gauges of `/metrics`, read on each request. */
export function addGauges(options: LocalApiOptions): void {
  const { audit, link, metrics, policy, sessions, witness } = options;
  const gauge = (name: string, help: string, read: () => number): void => metrics.gauge({ name, help, read });
  gauge('svc_sessions', 'Live sessions.', () => sessions.count);
  gauge('svc_open_tunnels', 'Open tunnels of all sessions.', () =>
    sessions.list().reduce((sum, session) => sum + session.openTunnels, 0),
  );
  gauge('svc_control_plane_up', 'Whether the latest call to the control plane succeeded.', () =>
    Number(link.state === 'up'),
  );
  gauge('svc_policy_version', 'Version of the current policy; 0 for none.', () => policy.status()?.version ?? 0);
  gauge(
    'svc_policy_age_seconds',
    'Time since the control plane confirmed the policy; -1 for none.',
    () => policy.status()?.ageSeconds ?? -1,
  );
  gauge('svc_policy_usable', 'Whether the current policy decides requests.', () => Number(policy.current().ok));
  gauge('svc_audit_spool_events', 'Audit events waiting to be sent.', () => audit.pending.events);
  gauge('svc_audit_spool_bytes', 'Bytes of audit events waiting to be sent.', () => audit.pending.bytes);
  gauge(
    'svc_audit_log_mismatches',
    "Chains of the control plane's audit log that were rolled back and that no person has accepted.",
    () => witness.mismatches.length,
  );
  gauge('svc_audit_accepting', 'Whether credentialed requests may be recorded.', () => Number(audit.accepting));
  gauge('svc_audit_events_dropped', 'Audit events lost because the reserve was full too.', () => audit.pending.dropped);
}
