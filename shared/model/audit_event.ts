/** The audit events (specification section 6; `foreign_credential_kept` and the control plane's own are additions). */
export const AUDIT_EVENT_TYPES = [
  'sandbox.proxy.passthrough',
  'sandbox.proxy.rejected',
  'sandbox.proxy.trust_denied',
  'sandbox.proxy.binding_injected',
  'sandbox.proxy.foreign_credential_kept',
  'sandbox.proxy.disabled',
  'sandbox.proxy.credential_unsealed',
  'flightplan.launch.reach',
  'control.secret.stored',
  'control.secret.deleted',
  'control.binding.created',
  'control.binding.updated',
  'control.binding.deleted',
  'control.sidecar.enrolled',
  'control.sidecar.revoked',
  'control.credential.released',
] as const;
export type AuditEventType = (typeof AUDIT_EVENT_TYPES)[number];

/** The keys an event's `data` may have. None of them can hold a secret, a header, a body, a query string or a full URL. */
export interface AuditEventData {
  readonly 'svc.proxy.source'?: 'transparent_connect_tls';
  readonly 'svc.proxy.mediation'?: 'binding' | 'passthrough' | 'refused';
  readonly 'svc.proxy.method'?: string;
  readonly 'svc.proxy.upstream.host'?: string;
  /** The path without its query. */
  readonly 'svc.proxy.upstream.path'?: string;
  readonly 'svc.proxy.upstream.status'?: number;
  readonly 'svc.proxy.reason'?: string;
  readonly 'svc.proxy.binding.host'?: string;
  readonly 'svc.proxy.binding.scheme'?: string;
  readonly 'svc.proxy.emit'?: string;
  /** Only of an unsealed credential: the reference it was taken from. */
  readonly 'svc.proxy.credential_ref'?: string;
  readonly 'svc.sandbox.mode'?: string;
  /** The image as it was asked for. */
  readonly 'svc.sandbox.image'?: string;
  readonly 'svc.step.id'?: string;
  readonly 'svc.reach.effect'?: string;
  readonly 'svc.reach.hosts'?: readonly string[];
  /** True when the reach came from the verified lock and the step ran under its scope. */
  readonly 'svc.reach.enforced'?: boolean;
  readonly 'svc.control.resource'?: string;
  readonly 'svc.control.credential_ref'?: string;
  readonly 'svc.control.owner'?: string;
}

/**
 * An audit event as a writer makes it. `id` is made by the writer (`evt_` + 26 characters), so that sending it again is
 * harmless. `time` is RFC 3339 in UTC with milliseconds.
 */
export interface AuditEvent {
  readonly id: string;
  readonly type: AuditEventType;
  readonly time: string;
  /** The sidecar that wrote it; null for the control plane's own events. */
  readonly sidecar_id: string | null;
  readonly session_id: string | null;
  /** Who acted: `usr_…` on the control plane, `session` on the data plane. */
  readonly actor: string | null;
  readonly data: AuditEventData;
}
