import type { Result } from '../../shared/model/result.ts';
import type { LinkState } from '../control/link.ts';
import type { Session } from '../session/session.ts';
import type { LocalApiOptions } from './local_api_options.ts';

type HealthStatus = 'starting' | 'ok' | 'degraded';

/** `starting`: no policy yet and no refusal. `degraded`: something is refused, or soon will be, or a person has to look into the audit log. */
function healthStatus(facts: {
  readonly policy: Result<unknown, unknown>;
  readonly link: LinkState;
  readonly accepting: boolean;
  /** Chains of the audit log that were rolled back. */
  readonly mismatches?: number;
}): HealthStatus {
  const isWell = facts.link === 'up' && facts.accepting && (facts.mismatches ?? 0) === 0;
  if (facts.policy.ok) return isWell ? 'ok' : 'degraded';
  return facts.link === 'connecting' ? 'starting' : 'degraded';
}

/** The fields for an anonymous caller. */
export function publicHealth(options: LocalApiOptions): { readonly status: HealthStatus; readonly version: string } {
  const { policy, link, audit, version, witness } = options;
  const facts = { link: link.state, accepting: audit.accepting, mismatches: witness.mismatches.length };
  const status = healthStatus({ policy: policy.current(), ...facts });
  return { status, version };
}

/** The fields that a session may see of itself. */
export function sessionHealth(options: LocalApiOptions, session: Session): object {
  return {
    ...publicHealth(options),
    session: {
      session_id: session.id,
      expires_at: new Date(session.expiresAt).toISOString(),
      open_tunnels: session.openTunnels,
    },
  };
}

/** The fields for the host's user. */
export function hostHealth(options: LocalApiOptions): object {
  const { policy, audit, link, sessions, witness, upstreamProxy = null } = options;
  const snapshot = policy.status();
  const current = policy.current();
  const { bytes, events, dropped } = audit.pending;
  const error = link.lastError;
  return {
    ...publicHealth(options),
    snapshot: snapshot && { version: snapshot.version, age_seconds: snapshot.ageSeconds, usable: current.ok },
    spool: { bytes, events, dropped, accepting: audit.accepting },
    channel: {
      state: link.state,
      last_error: error && { reason: error.reason, message: error.message, server_time: error.serverTime ?? null },
    },
    audit_log: { remembers: witness.isKept, heads: witness.heads, mismatches: witness.mismatches },
    upstream_proxy: upstreamProxy,
    sessions: sessions.count,
  };
}
