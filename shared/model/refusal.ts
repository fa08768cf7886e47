import type { AuditEventType } from './audit_event.ts';

/**
 * Every refusal of the data plane, with its HTTP status and the audit event that records it (one table for code, event and
 * tests). `null`: only counted in the metrics, because the audit log itself is full.
 */
export const REFUSALS = {
  proxy_authentication_required: { status: 407, event: 'sandbox.proxy.rejected' },
  non_connect_proxy_request: { status: 403, event: 'sandbox.proxy.rejected' },
  plain_http_bound_host: { status: 403, event: 'sandbox.proxy.rejected' },
  invalid_connect_target: { status: 400, event: 'sandbox.proxy.rejected' },
  connect_port_not_allowed: { status: 403, event: 'sandbox.proxy.rejected' },
  step_scope_host_denied: { status: 403, event: 'sandbox.proxy.trust_denied' },
  egress_host_not_allowed: { status: 403, event: 'sandbox.proxy.trust_denied' },
  too_many_tunnels: { status: 429, event: 'sandbox.proxy.rejected' },
  session_ca_unavailable: { status: 500, event: 'sandbox.proxy.rejected' },
  invalid_request: { status: 400, event: 'sandbox.proxy.rejected' },
  ambiguous_target: { status: 400, event: 'sandbox.proxy.rejected' },
  authority_mismatch: { status: 421, event: 'sandbox.proxy.rejected' },
  head_too_large: { status: 431, event: 'sandbox.proxy.rejected' },
  host_not_allowed: { status: 403, event: 'sandbox.proxy.trust_denied' },
  account_not_chosen: { status: 403, event: 'sandbox.proxy.trust_denied' },
  effect_not_allowed: { status: 403, event: 'sandbox.proxy.trust_denied' },
  borrow_not_consented: { status: 403, event: 'sandbox.proxy.trust_denied' },
  request_limit_reached: { status: 429, event: 'sandbox.proxy.trust_denied' },
  binding_paused: { status: 403, event: 'sandbox.proxy.rejected' },
  body_too_large: { status: 413, event: 'sandbox.proxy.rejected' },
  credential_unavailable: { status: 503, event: 'sandbox.proxy.rejected' },
  control_plane_unavailable: { status: 503, event: 'sandbox.proxy.rejected' },
  snapshot_expired: { status: 503, event: 'sandbox.proxy.rejected' },
  connector_specs_invalid: { status: 503, event: 'sandbox.proxy.rejected' },
  reauthorisation_required: { status: 503, event: 'connector.proxy.rejected' },
  approval_required: { status: 403, event: 'connector.proxy.rejected' },
  approval_denied: { status: 403, event: 'connector.proxy.rejected' },
  graphql_unreadable: { status: 400, event: 'connector.proxy.rejected' },
  graphql_operation_not_allowed: { status: 403, event: 'connector.proxy.rejected' },
  json_unreadable: { status: 400, event: 'connector.proxy.rejected' },
  json_operation_not_allowed: { status: 403, event: 'connector.proxy.rejected' },
  placeholder_not_accepted: { status: 403, event: 'connector.proxy.rejected' },
  login_not_stored: { status: 503, event: 'sandbox.proxy.rejected' },
  login_not_accepted: { status: 403, event: 'sandbox.proxy.rejected' },
  audit_unavailable: { status: 503, event: null },
  signing_form_unsupported: { status: 501, event: 'sandbox.proxy.rejected' },
  passthrough_target_not_allowed: { status: 403, event: 'sandbox.proxy.rejected' },
  egress_address_not_allowed: { status: 403, event: 'sandbox.proxy.trust_denied' },
  upstream_proxy_failed: { status: 502, event: 'sandbox.proxy.rejected' },
  upstream_unreachable: { status: 502, event: 'sandbox.proxy.rejected' },
  upstream_tls_failed: { status: 502, event: 'sandbox.proxy.rejected' },
  upstream_invalid_reply: { status: 502, event: 'sandbox.proxy.rejected' },
} as const satisfies Record<string, { status: number; event: AuditEventType | null }>;

export type RefusalReason = keyof typeof REFUSALS;

/**
 * svc decided not to do what was asked. The reason is a stated code: by default one of the data plane's, which is also the
 * audit reason and the error code.
 */
export interface Refusal<Reason extends string = RefusalReason> {
  readonly reason: Reason;
  /** Names what was wrong and the fix; never holds a secret, a query string or a header value. */
  readonly message: string;
  /** When the same request may be admitted (`Retry-After`, RFC 9110 section 10.2.3). */
  readonly retryAfterSeconds?: number;
}

/** A {@link Refusal} value. */
export function refusal(reason: RefusalReason, message: string): Refusal {
  return { reason, message };
}
