/** The audit events (specification section 6; `foreign_credential_kept` and the control plane's own are additions). */
export const AUDIT_EVENT_TYPES = [
  'sandbox.proxy.passthrough',
  'sandbox.proxy.tunnelled',
  'sandbox.proxy.rejected',
  'sandbox.proxy.trust_denied',
  'sandbox.proxy.binding_injected',
  'sandbox.proxy.foreign_credential_kept',
  'sandbox.proxy.binding_paused',
  'sandbox.proxy.binding_resumed',
  'sandbox.proxy.session_reach',
  'sandbox.proxy.session_restored',
  'sandbox.proxy.session_not_restored',
  'sandbox.proxy.disabled',
  'sandbox.proxy.credential_unsealed',
  'sandbox.proxy.credential_borrowed',
  'sandbox.proxy.borrow_failed',
  'flightplan.launch.reach',
  'connector.proxy.proxied',
  'connector.proxy.rejected',
  'connector.approval.requested',
  'connector.approval.waits_again',
  'connector.approval.partly_approved',
  'connector.approval.decided',
  'connector.approval.expired',
  'connector.approval.granted',
  'connector.approval.grant_used',
  'connector.approval.grant_revoked',
  'control.secret.stored',
  'control.secret.deleted',
  'control.secret.minted',
  'control.secret.mint_failed',
  'control.secret.value_revoked',
  'control.secret.value_not_revoked',
  'control.vault.moved_out',
  'control.vault.moved_in',
  'control.binding.created',
  'control.binding.updated',
  'control.binding.deleted',
  'control.tunnel_host.added',
  'control.tunnel_host.removed',
  'control.client_certificate.added',
  'control.client_certificate.removed',
  'control.sidecar.enrolled',
  'control.sidecar.revoked',
  'control.credential.released',
  'control.connector.installed',
  'control.connector.removed',
  'control.connector.credential_stored',
  'control.connector.credential_deleted',
  'control.connector.credential_refreshed',
  'control.connector.tokens_revoked',
  'control.connector.tokens_not_revoked',
  'control.login.held',
  'control.login.discarded',
  'control.connector.reauthorisation_required',
  'control.enterprise.created',
  'control.enterprise.updated',
  'control.enterprise.deleted',
  'control.enterprise.calls_refused',
  'control.user.created',
  'control.user.signed_in',
  'control.user.deleted',
  'control.sign_in_link.created',
  'control.identity.linked',
  'control.identity.unlinked',
  'control.token.created',
  'control.token.revoked',
  'control.scim_token.created',
  'control.scim_token.revoked',
  'control.session.began',
  'control.session.revoked',
  'control.push.subscribed',
  'control.push.removed',
  'control.device.decided',
  'control.member.changed',
  'control.member.removed',
  'control.member.left',
  'control.service_account.created',
  'control.service_account.updated',
  'control.service_account.deleted',
  'control.service_account.join_refused',
  'control.sidecar.joined',
  'control.sidecar.left',
  'control.invitation.created',
  'control.invitation.revoked',
  'control.invitation.accepted',
  'control.merge.began',
  'control.merge.done',
  'control.join_request.created',
  'control.join_request.accepted',
  'control.join_request.declined',
  'control.join_request.withdrawn',
  'control.group.created',
  'control.group.updated',
  'control.group.deleted',
  'control.group.member_added',
  'control.group.member_removed',
  'control.share.created',
  'control.share.deleted',
  'control.share.accepted',
  'control.share.declined',
  'control.approval_rule.created',
  'control.approval_rule.deleted',
  'control.audit.pruned',
  'control.audit.head_broken',
  'control.audit_sink.created',
  'control.audit_sink.deleted',
  'control.audit_sink.secret_rotated',
  'control.audit_sink.disabled',
  'control.audit_sink.enabled',
  'control.audit_sink.replayed',
  'control.mcp_rules.updated',
  'control.mcp_server.created',
  'control.mcp_server.updated',
  'control.mcp_server.deleted',
  'control.mcp_server.tools_learned',
  'control.mcp_server.tools_waiting',
  'control.mcp_server.tools_accepted',
  'control.mcp_server.credential_stored',
  'control.mcp_server.credential_deleted',
  'control.mcp_server.credential_refreshed',
  'control.mcp_server.reauthorisation_required',
  'control.mcp_server.tokens_revoked',
  'control.mcp_server.tokens_not_revoked',
  'control.mcp_client.connected',
  'control.mcp_client.denied',
  'control.mcp_client.ended',
  'control.mcp_client.refused',
  'mcp.server.started',
  'mcp.server.stopped',
  'mcp.server.failed',
  'mcp.server.refused',
  'mcp.tool.called',
  'mcp.tool.denied',
  'sidecar.audit.mismatch_noticed',
  'sidecar.audit.mismatch_accepted',
] as const;
export type AuditEventType = (typeof AUDIT_EVENT_TYPES)[number];

/** The reason of a request that passed through with a placeholder to a host without a binding. */
export const PLACEHOLDER_UNBOUND = 'placeholder_unbound';

/** The reason of a reply that the sidecar made itself, with placeholders: nothing was sent upstream. */
export const ANSWERED_LOCALLY = 'answered_locally';

/** The reason of a forwarded request for the tokens of a login: svc has them, and the program got placeholders. */
export const LOGIN_CAPTURED = 'login_captured';

/** The reason of a request with which the sidecar asked the provider whose the new login is. */
export const ACCOUNT_ASKED = 'login_account_asked';

/** The two events of a tunnel that is not intercepted: before its first byte goes up, and at its end with the byte counts. */
export const TUNNEL_OPENED = 'tunnel_opened';
export const TUNNEL_CLOSED = 'tunnel_closed';

/** The reason of a tunnel to a host without a binding whose client did not accept the certificate of svc. */
export const CERTIFICATE_REFUSED = 'client_refused_certificate';

/** The endpoint of a connector request (specification section 6). */
export const PROXY_SOURCES = [
  'generated_connector_shim',
  'daemon_request_boundary',
  'transparent_connect_tls',
  'transparent_plain_http',
] as const;
export type ProxySource = (typeof PROXY_SOURCES)[number];

/** How a tool call ended. `tool_error`: the tool itself reported a failure. */
export const MCP_OUTCOMES = ['ok', 'tool_error', 'error', 'cancelled', 'timeout'] as const;
export type McpOutcome = (typeof MCP_OUTCOMES)[number];

/** The allowed keys of an event's `data`. None can contain a secret, a header, a body, a query string or a full URL. */
export interface AuditEventData {
  readonly 'svc.proxy.source'?: ProxySource;
  readonly 'svc.proxy.mediation'?: 'connector' | 'binding' | 'passthrough' | 'refused';
  readonly 'svc.proxy.method'?: string;
  readonly 'svc.proxy.upstream.host'?: string;
  /** The path without its query. */
  readonly 'svc.proxy.upstream.path'?: string;
  readonly 'svc.proxy.upstream.status'?: number;
  readonly 'svc.proxy.reason'?: string;
  /** Only for a summary of attempts that ended before a request: their number. */
  readonly 'svc.proxy.count'?: number;
  /** Only for the end of a tunnel that was not intercepted: the bytes that its client sent, and those that it received. */
  readonly 'svc.proxy.bytes.sent'?: number;
  readonly 'svc.proxy.bytes.received'?: number;
  readonly 'svc.proxy.binding.host'?: string;
  readonly 'svc.proxy.binding.scheme'?: string;
  readonly 'svc.proxy.emit'?: string;
  /** For a binding that was written: its replies keep cookies and challenges. */
  readonly 'svc.proxy.binding.keep_cookies'?: boolean;
  /** Names of the reply's headers that were withheld: cookies, challenges, `alt-svc`. Never a value. */
  readonly 'svc.proxy.reply.withheld'?: readonly string[];
  /** The same for headers that the binding's `keep_cookies` let through. */
  readonly 'svc.proxy.reply.kept'?: readonly string[];
  /** The secret of the client certificate of the upstream connection, and its version. Never a key. */
  readonly 'svc.proxy.client_certificate.ref'?: string;
  readonly 'svc.proxy.client_certificate.version'?: string;
  /** For a reply that may contain its own credential: the kinds, from a closed list. */
  readonly 'svc.proxy.reply.may_hold'?: string;
  /** For an unsealed or borrowed credential: its vault reference. */
  readonly 'svc.proxy.credential_ref'?: string;
  /** The name of the program that gave a borrowed value, or gave none; and until when the value is used. */
  readonly 'svc.borrow.program'?: string;
  readonly 'svc.borrow.until'?: string;
  readonly 'svc.sandbox.mode'?: string;
  /** The requested image name. */
  readonly 'svc.sandbox.image'?: string;
  readonly 'svc.step.id'?: string;
  readonly 'svc.reach.effect'?: string;
  readonly 'svc.reach.hosts'?: readonly string[];
  /** True if the reach came from the verified lock and the step ran under its scope. */
  readonly 'svc.reach.enforced'?: boolean;
  /** The network of the plan's container besides the proxy: none (`sealed`), or the engine's (`open`). */
  readonly 'svc.reach.egress'?: 'open' | 'sealed';
  readonly 'svc.connector.fqn'?: string;
  readonly 'svc.connector.version'?: string;
  readonly 'svc.connector.operation'?: string;
  /** The tool name that the caller of a run by name gave, unchecked. */
  readonly 'svc.connector.tool'?: string;
  /** The reference of the connector's credential, never its value. */
  readonly 'svc.connector.credential_ref'?: string;
  /** The typed audit fields of the operation: path inputs, the status, and whether query and body inputs were given. */
  readonly 'svc.connector.fields'?: Readonly<Record<string, string | number | boolean>>;
  readonly 'svc.approval.id'?: string;
  readonly 'svc.approval.decision'?: 'approve' | 'deny';
  /** The rules that say who approves; how many more persons they need, or who has approved under them. */
  readonly 'svc.approval.rules'?: readonly string[];
  readonly 'svc.approval.missing'?: number;
  readonly 'svc.approval.approvers'?: readonly string[];
  /** A rule about who approves, as JSON. */
  readonly 'svc.approval.rule'?: string;
  /** The grant that was given with an approval, or that let a request through. */
  readonly 'svc.approval.grant'?: string;
  /** When it ends, and how many requests it lets through, if that is limited. */
  readonly 'svc.approval.grant_ends'?: string;
  readonly 'svc.approval.grant_times'?: number;
  /** Which of its requests this is; the approved one is the first. */
  readonly 'svc.approval.grant_use'?: number;
  readonly 'svc.control.resource'?: string;
  readonly 'svc.control.credential_ref'?: string;
  /** A host or pattern of the list of hosts that are not intercepted. */
  readonly 'svc.control.host'?: string;
  readonly 'svc.control.owner'?: string;
  /** A user and a group that a change concerns; what is shared, and whose secret it is. */
  readonly 'svc.control.user'?: string;
  readonly 'svc.control.group'?: string;
  readonly 'svc.control.shared'?: string;
  readonly 'svc.control.shared_by'?: string;
  /** The SCIM token with which a directory made a change. */
  readonly 'svc.control.scim_token'?: string;
  /** Events received before this time were removed; this is their number. */
  readonly 'svc.audit.before'?: string;
  readonly 'svc.audit.removed'?: number;
  /** The chain of the audit log, and where it was found to end. */
  readonly 'svc.audit.writer'?: string;
  readonly 'svc.audit.found_sequence'?: number;
  readonly 'svc.audit.found_hash'?: string;
  /** The end that a sidecar remembers. */
  readonly 'svc.audit.remembered_sequence'?: number;
  readonly 'svc.audit.remembered_hash'?: string;
  /** The kind of the source that mints a secret's value; what a value was minted for, and until when. */
  readonly 'svc.control.source'?: string;
  readonly 'svc.control.minted_for'?: string;
  readonly 'svc.control.until'?: string;
  /** How a user signed in: a provider's name. */
  readonly 'svc.control.provider'?: string;
  /** The issuer and the subject of the token with which a job joined or an MCP client was connected, and why one was refused. */
  readonly 'svc.control.issuer'?: string;
  readonly 'svc.control.subject'?: string;
  readonly 'svc.control.reason'?: string;
  /** The service account whose own rows were changed. */
  readonly 'svc.control.service_account'?: string;
  /** Fields that a change changed, each with its value before and after. */
  readonly 'svc.control.changed'?: string;
  /** An MCP server's name. */
  readonly 'svc.mcp.server'?: string;
  readonly 'svc.mcp.server_id'?: string;
  readonly 'svc.mcp.registry_id'?: string;
  readonly 'svc.mcp.version'?: string;
  /** The server runs unchecked code. */
  readonly 'svc.mcp.unchecked'?: boolean;
  /** The server's own name for the tool. Never an argument's value. */
  readonly 'svc.mcp.tool'?: string;
  readonly 'svc.mcp.outcome'?: McpOutcome;
  readonly 'svc.mcp.duration_ms'?: number;
  readonly 'svc.mcp.reason'?: string;
  /** The rules of an enterprise about MCP servers, as JSON. */
  readonly 'svc.mcp.rules'?: string;
  /** The id of an MCP client that a person, or the provider of the person's enterprise, connected, or that was denied or refused. */
  readonly 'svc.mcp.client'?: string;
}

/**
 * An audit event from its writer. The writer makes the `id` (`evt_` + 26 characters), so that sending the event again is
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

/**
 * Why a chain does not verify. `wrong_enterprise`: an event, or the whole chain, was moved to another enterprise;
 * `wrong_writers`: the sealed set of writers differs from the chains; `missing_chain`: a chain of that set is gone.
 */
export const CHAIN_BREAKS = [
  'missing_event',
  'wrong_previous_hash',
  'wrong_hash',
  'wrong_head',
  'wrong_beginning',
  'wrong_enterprise',
  'wrong_writers',
  'missing_chain',
] as const;
export type ChainBreak = (typeof CHAIN_BREAKS)[number];
