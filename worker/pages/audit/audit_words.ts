import type { AuditEventData, AuditEventType } from '../../../shared/model/audit_event.ts';
import { REFUSALS, type RefusalReason } from '../../../shared/model/refusal.ts';
import type { StoredAuditEvent } from '../../../shared/wire/audit_events.ts';
import type { BadgeKind } from '../components/badge.ts';

/** What happened, in two or three words. */
export interface EventWords {
  readonly kind: BadgeKind;
  readonly word: string;
}

/** Words for every type: one without them does not compile. */
const WORDS: { readonly [T in AuditEventType]: EventWords } = {
  'sandbox.proxy.passthrough': { kind: 'plain', word: 'Passed through' },
  'sandbox.proxy.rejected': { kind: 'bad', word: 'Refused' },
  'sandbox.proxy.trust_denied': { kind: 'bad', word: 'Denied' },
  'sandbox.proxy.binding_injected': { kind: 'accent', word: 'Credential added' },
  'sandbox.proxy.foreign_credential_kept': { kind: 'warn', word: 'Own credential kept' },
  'sandbox.proxy.binding_paused': { kind: 'bad', word: 'Binding paused' },
  'sandbox.proxy.binding_resumed': { kind: 'good', word: 'Binding resumed' },
  'sandbox.proxy.disabled': { kind: 'warn', word: 'Proxy off' },
  'sandbox.proxy.credential_unsealed': { kind: 'warn', word: 'Unsealed credential' },
  'flightplan.launch.reach': { kind: 'plain', word: 'Step started' },
  'connector.proxy.proxied': { kind: 'accent', word: 'Connector call' },
  'connector.proxy.rejected': { kind: 'bad', word: 'Connector refused' },
  'connector.approval.requested': { kind: 'warn', word: 'Approval asked' },
  'connector.approval.decided': { kind: 'good', word: 'Approval decided' },
  'connector.approval.expired': { kind: 'plain', word: 'Approval expired' },
  'control.secret.stored': { kind: 'plain', word: 'Secret stored' },
  'control.secret.deleted': { kind: 'plain', word: 'Secret deleted' },
  'control.binding.created': { kind: 'plain', word: 'Binding created' },
  'control.binding.updated': { kind: 'plain', word: 'Binding changed' },
  'control.binding.deleted': { kind: 'plain', word: 'Binding deleted' },
  'control.sidecar.enrolled': { kind: 'plain', word: 'Sidecar enrolled' },
  'control.sidecar.revoked': { kind: 'plain', word: 'Sidecar revoked' },
  'control.credential.released': { kind: 'plain', word: 'Credential released' },
  'control.connector.installed': { kind: 'plain', word: 'Connector installed' },
  'control.connector.removed': { kind: 'plain', word: 'Connector removed' },
  'control.connector.credential_stored': { kind: 'plain', word: 'Credential stored' },
  'control.connector.credential_deleted': { kind: 'plain', word: 'Credential deleted' },
  'control.connector.credential_refreshed': { kind: 'plain', word: 'Credential refreshed' },
  'control.connector.reauthorisation_required': { kind: 'warn', word: 'Needs authorisation' },
  'control.enterprise.created': { kind: 'plain', word: 'Enterprise created' },
  'control.enterprise.updated': { kind: 'plain', word: 'Enterprise changed' },
  'control.user.created': { kind: 'plain', word: 'User created' },
  'control.user.signed_in': { kind: 'plain', word: 'Signed in' },
  'control.identity.linked': { kind: 'plain', word: 'Sign-in added' },
  'control.identity.unlinked': { kind: 'plain', word: 'Sign-in removed' },
  'control.token.created': { kind: 'plain', word: 'Token created' },
  'control.token.revoked': { kind: 'plain', word: 'Token revoked' },
  'control.session.began': { kind: 'plain', word: 'Session began' },
  'control.session.revoked': { kind: 'plain', word: 'Session ended' },
  'control.device.decided': { kind: 'plain', word: 'Program decided' },
  'control.member.changed': { kind: 'plain', word: 'Member changed' },
  'control.audit.pruned': { kind: 'warn', word: 'Audit pruned' },
  'control.audit.head_broken': { kind: 'bad', word: 'Audit chain broken' },
  'control.mcp_server.created': { kind: 'plain', word: 'MCP server added' },
  'control.mcp_server.updated': { kind: 'plain', word: 'MCP server changed' },
  'control.mcp_server.deleted': { kind: 'plain', word: 'MCP server removed' },
  'control.mcp_server.credential_stored': { kind: 'plain', word: 'Credential stored' },
  'control.mcp_server.credential_deleted': { kind: 'plain', word: 'Credential deleted' },
  'control.mcp_server.credential_refreshed': { kind: 'plain', word: 'Credential refreshed' },
  'control.mcp_server.reauthorisation_required': { kind: 'warn', word: 'Needs authorisation' },
  'mcp.server.started': { kind: 'plain', word: 'MCP server started' },
  'mcp.server.stopped': { kind: 'plain', word: 'MCP server stopped' },
  'mcp.server.failed': { kind: 'bad', word: 'MCP server failed' },
  'mcp.server.refused': { kind: 'bad', word: 'MCP server refused' },
  'mcp.tool.called': { kind: 'accent', word: 'Tool called' },
  'mcp.tool.denied': { kind: 'bad', word: 'Tool denied' },
  'sidecar.audit.mismatch_noticed': { kind: 'bad', word: 'Audit log went back' },
  'sidecar.audit.mismatch_accepted': { kind: 'warn', word: 'Audit mismatch accepted' },
};

export function eventWords({ type, data }: Pick<StoredAuditEvent, 'type' | 'data'>): EventWords {
  if (type !== 'connector.approval.decided') return WORDS[type];
  return data['svc.approval.decision'] === 'deny'
    ? { kind: 'bad', word: 'Request denied' }
    : { kind: 'good', word: 'Request approved' };
}

/** What an event is about: the request, or the thing that was changed. */
export function eventSubject({ data }: Pick<StoredAuditEvent, 'data'>): string {
  const host = data['svc.proxy.upstream.host'];
  if (host !== undefined)
    return `${data['svc.proxy.method'] ?? ''} ${host}${data['svc.proxy.upstream.path'] ?? ''}`.trim();
  const server = data['svc.mcp.server'];
  if (server !== undefined) return `${server} ${data['svc.mcp.tool'] ?? ''}`.trim();
  const connector = data['svc.connector.fqn'];
  if (connector !== undefined) return `${connector} ${data['svc.connector.operation'] ?? ''}`.trim();
  const bound = data['svc.proxy.binding.host'];
  const reference = data['svc.control.credential_ref'] ?? data['svc.proxy.credential_ref'];
  if (bound !== undefined) return reference === undefined ? bound : `${bound} with ${reference}`;
  return reference ?? data['svc.control.resource'] ?? data['svc.approval.id'] ?? data['svc.step.id'] ?? '';
}

/** How it ended, in a word or a number. */
export function eventOutcome({ data }: Pick<StoredAuditEvent, 'data'>): string {
  const outcome =
    data['svc.proxy.reason'] ?? data['svc.mcp.reason'] ?? data['svc.proxy.upstream.status'] ?? data['svc.mcp.outcome'];
  return outcome === undefined ? '' : String(outcome);
}

/** Why a request was refused, as a sentence; every reason has one. */
const REASONS: { readonly [R in RefusalReason]: string } = {
  proxy_authentication_required: 'The client gave no valid session and token to the proxy.',
  non_connect_proxy_request: 'The proxy carries HTTPS alone, and this was a plain request.',
  invalid_connect_target: 'The tunnel was asked for with a target that is none.',
  connect_port_not_allowed: 'The proxy connects to port 443 alone.',
  step_scope_host_denied: 'The step that asked is sealed to other hosts by its plan’s lock.',
  too_many_tunnels: 'The session has as many tunnels open as it may.',
  session_ca_unavailable: 'The session’s certificate authority is not there, so no TLS could be spoken.',
  invalid_request: 'What came through the tunnel was no valid HTTP request.',
  ambiguous_target: 'Servers could read this request as another one than it is written, so it was not sent.',
  authority_mismatch: 'The request named another host than the tunnel was opened to.',
  head_too_large: 'The head of the request was larger than the limit.',
  host_not_allowed: 'The host is not among the allowed hosts of the binding.',
  effect_not_allowed: 'The binding is for reading alone, and the method may write.',
  binding_paused: 'Too many replies of this session held the credential, so the binding is paused for it.',
  body_too_large: 'The body was larger than a request with a credential may have.',
  credential_unavailable: 'The credential is not stored, or could not be had in time.',
  control_plane_unavailable: 'The control plane could not be asked, and nothing is sent without it.',
  snapshot_expired: 'The sidecar’s policy is too old to act on: it has not heard from the control plane for a day.',
  connector_specs_invalid: 'The connectors could not be read, so no request could be matched safely.',
  reauthorisation_required: 'The connector’s authorisation has ended: authorise it again.',
  approval_required: 'Nobody approved the request while it was held.',
  approval_denied: 'Somebody denied this request.',
  graphql_unreadable: 'The GraphQL request could not be read in one way alone, so it was not sent.',
  graphql_operation_not_allowed: 'The GraphQL document is no operation of the connector, or several at once.',
  audit_unavailable: 'It could not be recorded, and nothing is sent unrecorded.',
  signing_form_unsupported: 'The client used a form of signature that cannot be made again.',
  passthrough_target_not_allowed: 'The target is an address of a private range, which passthrough refuses.',
  egress_address_not_allowed:
    'The name leads to a private address or to this machine, which a sealed session reaches by named hosts only.',
  upstream_unreachable: 'The upstream could not be reached.',
  upstream_tls_failed: 'The upstream’s certificate could not be verified.',
  upstream_invalid_reply: 'The upstream’s reply was no valid HTTP.',
};

function isRefusalReason(text: string): text is RefusalReason {
  return Object.hasOwn(REFUSALS, text);
}

/** Why this decision, in sentences, in the order in which the proxy decides. */
export function decisionSentences({ type, data }: Pick<StoredAuditEvent, 'type' | 'data'>): string[] {
  const sentences = [matchSentence(type, data), ...credentialSentences(type, data)];
  const reason = data['svc.proxy.reason'];
  if (reason !== undefined) sentences.push(isRefusalReason(reason) ? REASONS[reason] : `The reason is ${reason}.`);
  const status = data['svc.proxy.upstream.status'];
  if (status !== undefined) sentences.push(`The upstream answered with ${status}.`);
  sentences.push(...replySentences(data));
  return sentences.filter((sentence) => sentence !== '');
}

function replySentences(data: AuditEventData): string[] {
  const { 'svc.proxy.reply.withheld': withheld, 'svc.proxy.reply.kept': kept, 'svc.proxy.reply.may_hold': held } = data;
  return [
    ...(withheld === undefined ? [] : [`Headers that were withheld from the agent: ${withheld.join(', ')}.`]),
    ...(kept === undefined ? [] : [`Headers that the binding keeps for the agent: ${kept.join(', ')}.`]),
    ...(held === undefined ? [] : [`The reply may have given the agent ${held} of its own.`]),
  ];
}

function matchSentence(type: AuditEventType, data: AuditEventData): string {
  const connector = data['svc.connector.fqn'];
  const bound = data['svc.proxy.binding.host'];
  if (type === 'sandbox.proxy.passthrough')
    return 'No connector operation and no host binding matched, so it was forwarded unmodified.';
  if (connector !== undefined && data['svc.connector.operation'] !== undefined) {
    return `It is the operation ${data['svc.connector.operation']} of the connector ${connector}, which comes before every host binding.`;
  }
  if (bound !== undefined && type.startsWith('sandbox.')) return `It matched the host binding for ${bound}.`;
  return '';
}

function credentialSentences(type: AuditEventType, data: AuditEventData): string[] {
  if (type === 'sandbox.proxy.binding_injected') {
    const scheme = data['svc.proxy.binding.scheme'] ?? 'its scheme';
    const how =
      data['svc.proxy.emit'] === 'sentinel-swap'
        ? 'in the place of the stand-in that the agent holds'
        : 'outside the sandbox';
    return [`The credential was added by ${scheme}, ${how}; the agent never saw it.`];
  }
  if (type === 'connector.proxy.proxied')
    return ['The connector’s credential was added outside the sandbox; the agent never saw it.'];
  if (type === 'sandbox.proxy.foreign_credential_kept')
    return ['The client sent a credential of its own, and that one was kept.'];
  if (type === 'sandbox.proxy.passthrough') return ['No credential was added; one that the client sends itself stays.'];
  return [];
}
