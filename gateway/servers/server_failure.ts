import type { McpHealthState } from '../../shared/model/mcp_server.ts';
import type { ServerFailureReason } from '../gateway_ports.ts';

interface ProblemFacts {
  readonly state: McpHealthState;
  /** A retry may help without anyone doing something first. */
  readonly passes: boolean;
}

const FACTS: Readonly<Record<ServerFailureReason, ProblemFacts>> = {
  command_refused: { state: 'failed', passes: false },
  url_refused: { state: 'failed', passes: false },
  consent_needed: { state: 'needs_consent', passes: false },
  credential_missing: { state: 'needs_credentials', passes: false },
  credential_unavailable: { state: 'failed', passes: true },
  authorisation_needed: { state: 'needs_authorisation', passes: false },
  control_plane_unavailable: { state: 'failed', passes: true },
  audit_unavailable: { state: 'failed', passes: true },
  container_unavailable: { state: 'failed', passes: false },
  install_failed: { state: 'failed', passes: true },
  spawn_failed: { state: 'failed', passes: false },
  start_timeout: { state: 'failed', passes: true },
  handshake_failed: { state: 'failed', passes: true },
  unreachable: { state: 'failed', passes: true },
  exited: { state: 'failed', passes: true },
  output_limit: { state: 'failed', passes: true },
};

/** The server state for this problem. */
export function stateOf(reason: ServerFailureReason): McpHealthState {
  return FACTS[reason].state;
}

/** Whether a later retry may help. */
export function mayPass(reason: ServerFailureReason): boolean {
  return FACTS[reason].passes;
}
