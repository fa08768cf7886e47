import {
  ANSWERED_LOCALLY,
  ACCOUNT_ASKED,
  CERTIFICATE_REFUSED,
  LOGIN_CAPTURED,
  PLACEHOLDER_UNBOUND,
  TUNNEL_CLOSED,
  TUNNEL_OPENED,
  type AuditEventData,
  type AuditEventType,
} from '../../../shared/model/audit_event.ts';
import { refusalWords } from '../../../shared/report/refusal_words.ts';
import type { StoredAuditEvent } from '../../../shared/wire/audit_events.ts';
import type { BadgeKind } from '../components/badge.ts';
import { counted } from '../../../shared/model/sentence.ts';

/** What happened, in two or three words. */
interface EventWords {
  readonly kind: BadgeKind;
  readonly word: string;
}

/** One entry for every event type, checked by the compiler. */
const WORDS: { readonly [T in AuditEventType]: EventWords } = {
  'sandbox.proxy.passthrough': { kind: 'plain', word: 'Passed through' },
  'sandbox.proxy.tunnelled': { kind: 'plain', word: 'Carried unread' },
  'sandbox.proxy.rejected': { kind: 'bad', word: 'Refused' },
  'sandbox.proxy.trust_denied': { kind: 'bad', word: 'Refused' },
  'sandbox.proxy.binding_injected': { kind: 'accent', word: 'Credential added' },
  'sandbox.proxy.foreign_credential_kept': { kind: 'warn', word: 'Own credential kept' },
  'sandbox.proxy.binding_paused': { kind: 'bad', word: 'Binding paused' },
  'sandbox.proxy.binding_resumed': { kind: 'good', word: 'Binding resumed' },
  'sandbox.proxy.session_reach': { kind: 'plain', word: 'Session may reach' },
  'sandbox.proxy.session_restored': { kind: 'plain', word: 'Session restored' },
  'sandbox.proxy.session_not_restored': { kind: 'bad', word: 'Session not restored' },
  'sandbox.proxy.disabled': { kind: 'warn', word: 'Proxy off' },
  'sandbox.proxy.credential_unsealed': { kind: 'warn', word: 'Credential exposed' },
  'flightplan.launch.reach': { kind: 'plain', word: 'Step started' },
  'connector.proxy.proxied': { kind: 'accent', word: 'Connector call' },
  'connector.proxy.rejected': { kind: 'bad', word: 'Connector refused' },
  'connector.approval.requested': { kind: 'warn', word: 'Approval asked' },
  'connector.approval.waits_again': { kind: 'warn', word: 'Approval asked again' },
  'connector.approval.partly_approved': { kind: 'warn', word: 'Approved, needs more' },
  'connector.approval.decided': { kind: 'good', word: 'Approval decided' },
  'connector.approval.expired': { kind: 'plain', word: 'Approval expired' },
  'connector.approval.granted': { kind: 'warn', word: 'Grant given' },
  'connector.approval.grant_used': { kind: 'good', word: 'Grant used' },
  'connector.approval.grant_revoked': { kind: 'plain', word: 'Grant revoked' },
  'control.secret.stored': { kind: 'plain', word: 'Secret stored' },
  'control.secret.deleted': { kind: 'plain', word: 'Secret deleted' },
  'sandbox.proxy.credential_borrowed': { kind: 'plain', word: 'Credential borrowed' },
  'sandbox.proxy.borrow_failed': { kind: 'bad', word: 'Credential not borrowed' },
  'control.secret.minted': { kind: 'plain', word: 'Credential minted' },
  'control.secret.mint_failed': { kind: 'bad', word: 'Credential not minted' },
  'control.secret.value_revoked': { kind: 'plain', word: 'Minted credential revoked' },
  'control.secret.value_not_revoked': { kind: 'warn', word: 'Minted credential not revoked' },
  'control.vault.moved_out': { kind: 'warn', word: 'Sealed for a move' },
  'control.vault.moved_in': { kind: 'plain', word: 'Moved here' },
  'control.binding.created': { kind: 'plain', word: 'Binding created' },
  'control.binding.updated': { kind: 'plain', word: 'Binding changed' },
  'control.binding.deleted': { kind: 'plain', word: 'Binding deleted' },
  'control.tunnel_host.added': { kind: 'warn', word: 'Tunnelled host added' },
  'control.tunnel_host.removed': { kind: 'plain', word: 'Tunnelled host removed' },
  'control.client_certificate.added': { kind: 'warn', word: 'Client certificate added' },
  'control.client_certificate.removed': { kind: 'plain', word: 'Client certificate removed' },
  'control.sidecar.enrolled': { kind: 'plain', word: 'Sidecar enrolled' },
  'control.sidecar.revoked': { kind: 'plain', word: 'Sidecar revoked' },
  'control.sidecar.joined': { kind: 'plain', word: 'Job joined' },
  'control.sidecar.left': { kind: 'plain', word: 'Sidecar ended itself' },
  'control.service_account.created': { kind: 'plain', word: 'Service account made' },
  'control.service_account.updated': { kind: 'plain', word: 'Service account changed' },
  'control.service_account.deleted': { kind: 'warn', word: 'Service account removed' },
  'control.service_account.join_refused': { kind: 'bad', word: 'Job refused' },
  'control.credential.released': { kind: 'plain', word: 'Credential sent sealed' },
  'control.connector.installed': { kind: 'plain', word: 'Connector installed' },
  'control.connector.removed': { kind: 'plain', word: 'Connector removed' },
  'control.connector.credential_stored': { kind: 'plain', word: 'Credential stored' },
  'control.connector.credential_deleted': { kind: 'plain', word: 'Credential deleted' },
  'control.connector.credential_refreshed': { kind: 'plain', word: 'Credential refreshed' },
  'control.connector.reauthorisation_required': { kind: 'warn', word: 'Needs authorisation' },
  'control.login.held': { kind: 'warn', word: 'Login received' },
  'control.connector.tokens_revoked': { kind: 'plain', word: 'Tokens revoked' },
  'control.connector.tokens_not_revoked': { kind: 'warn', word: 'Tokens not revoked' },
  'control.login.discarded': { kind: 'plain', word: 'Login deleted' },
  'control.enterprise.created': { kind: 'plain', word: 'Enterprise created' },
  'control.enterprise.updated': { kind: 'plain', word: 'Enterprise changed' },
  'control.enterprise.calls_refused': { kind: 'bad', word: 'Calls refused' },
  'control.enterprise.deleted': { kind: 'plain', word: 'Enterprise deleted' },
  'control.user.created': { kind: 'plain', word: 'User created' },
  'control.sign_in_link.created': { kind: 'plain', word: 'Sign-in link made' },
  'control.user.signed_in': { kind: 'plain', word: 'Signed in' },
  'control.identity.linked': { kind: 'plain', word: 'Sign-in added' },
  'control.identity.unlinked': { kind: 'plain', word: 'Sign-in removed' },
  'control.token.created': { kind: 'plain', word: 'Token created' },
  'control.token.revoked': { kind: 'plain', word: 'Token revoked' },
  'control.scim_token.created': { kind: 'plain', word: 'SCIM token created' },
  'control.scim_token.revoked': { kind: 'plain', word: 'SCIM token revoked' },
  'control.session.began': { kind: 'plain', word: 'Session began' },
  'control.session.revoked': { kind: 'plain', word: 'Session ended' },
  'control.push.subscribed': { kind: 'plain', word: 'Browser notifications on' },
  'control.push.removed': { kind: 'plain', word: 'Browser notifications off' },
  'control.device.decided': { kind: 'plain', word: 'Program decided' },
  'control.user.deleted': { kind: 'plain', word: 'Account deleted' },
  'control.member.changed': { kind: 'plain', word: 'Member changed' },
  'control.member.removed': { kind: 'warn', word: 'Member removed' },
  'control.member.left': { kind: 'plain', word: 'Member left' },
  'control.invitation.created': { kind: 'plain', word: 'Invited' },
  'control.invitation.revoked': { kind: 'plain', word: 'Invitation revoked' },
  'control.invitation.accepted': { kind: 'plain', word: 'Joined' },
  'control.merge.began': { kind: 'warn', word: 'Merge began: things leave' },
  'control.merge.done': { kind: 'plain', word: 'Merged' },
  'control.join_request.created': { kind: 'plain', word: 'Asked to join' },
  'control.join_request.accepted': { kind: 'good', word: 'Request to join accepted' },
  'control.join_request.declined': { kind: 'plain', word: 'Request to join declined' },
  'control.join_request.withdrawn': { kind: 'plain', word: 'Request to join withdrawn' },
  'control.group.created': { kind: 'plain', word: 'Group created' },
  'control.group.updated': { kind: 'plain', word: 'Group changed' },
  'control.group.deleted': { kind: 'warn', word: 'Group deleted' },
  'control.group.member_added': { kind: 'plain', word: 'Added to a group' },
  'control.group.member_removed': { kind: 'plain', word: 'Taken out of a group' },
  'control.share.created': { kind: 'plain', word: 'Shared' },
  'control.share.deleted': { kind: 'plain', word: 'Share ended' },
  'control.share.accepted': { kind: 'plain', word: 'Share accepted' },
  'control.share.declined': { kind: 'plain', word: 'Share declined' },
  'control.approval_rule.created': { kind: 'plain', word: 'Rule about approvals added' },
  'control.approval_rule.deleted': { kind: 'warn', word: 'Rule about approvals removed' },
  'control.audit.pruned': { kind: 'warn', word: 'Audit pruned' },
  'control.audit.head_broken': { kind: 'bad', word: 'Audit chain broken' },
  'control.audit_sink.created': { kind: 'plain', word: 'Sink added' },
  'control.audit_sink.deleted': { kind: 'warn', word: 'Sink removed' },
  'control.audit_sink.secret_rotated': { kind: 'plain', word: 'Sink secret changed' },
  'control.audit_sink.disabled': { kind: 'bad', word: 'Sink disabled' },
  'control.audit_sink.enabled': { kind: 'plain', word: 'Sink enabled' },
  'control.audit_sink.replayed': { kind: 'plain', word: 'Refused events sent again' },
  'control.mcp_rules.updated': { kind: 'plain', word: 'Rules of MCP servers changed' },
  'control.mcp_server.created': { kind: 'plain', word: 'MCP server added' },
  'control.mcp_server.updated': { kind: 'plain', word: 'MCP server changed' },
  'control.mcp_server.deleted': { kind: 'plain', word: 'MCP server removed' },
  'control.mcp_server.tools_learned': { kind: 'plain', word: 'Tools learned' },
  'control.mcp_server.tools_waiting': { kind: 'warn', word: 'Tools wait' },
  'control.mcp_server.tools_accepted': { kind: 'plain', word: 'Tools accepted' },
  'control.mcp_server.credential_stored': { kind: 'plain', word: 'Credential stored' },
  'control.mcp_server.credential_deleted': { kind: 'plain', word: 'Credential deleted' },
  'control.mcp_server.credential_refreshed': { kind: 'plain', word: 'Credential refreshed' },
  'control.mcp_server.reauthorisation_required': { kind: 'warn', word: 'Needs authorisation' },
  'control.mcp_server.tokens_revoked': { kind: 'plain', word: 'Tokens revoked' },
  'control.mcp_server.tokens_not_revoked': { kind: 'warn', word: 'Tokens not revoked' },
  'control.mcp_client.connected': { kind: 'plain', word: 'MCP client connected' },
  'control.mcp_client.denied': { kind: 'plain', word: 'MCP client denied' },
  'control.mcp_client.ended': { kind: 'plain', word: 'MCP client disconnected' },
  'control.mcp_client.refused': { kind: 'bad', word: 'MCP client refused' },
  'mcp.server.started': { kind: 'plain', word: 'MCP server started' },
  'mcp.server.stopped': { kind: 'plain', word: 'MCP server stopped' },
  'mcp.server.failed': { kind: 'bad', word: 'MCP server failed' },
  'mcp.server.refused': { kind: 'bad', word: 'MCP server refused' },
  'mcp.tool.called': { kind: 'accent', word: 'Tool called' },
  'mcp.tool.denied': { kind: 'bad', word: 'Tool refused' },
  'sidecar.audit.mismatch_noticed': { kind: 'bad', word: 'Audit log went back' },
  'sidecar.audit.mismatch_accepted': { kind: 'warn', word: 'Audit mismatch accepted' },
};

export function eventWords({ type, data }: Pick<StoredAuditEvent, 'type' | 'data'>): EventWords {
  if (data['svc.proxy.reason'] === 'step_not_started') return { kind: 'bad', word: 'Step never ran' };
  if (type !== 'connector.approval.decided') return WORDS[type];
  return data['svc.approval.decision'] === 'deny'
    ? { kind: 'bad', word: 'Request denied' }
    : { kind: 'good', word: 'Request approved' };
}

/** What an event is about: the request, or the thing that changed. */
export function eventSubject({ data }: Pick<StoredAuditEvent, 'data'>): string {
  const host = data['svc.proxy.upstream.host'];
  if (host !== undefined)
    return `${data['svc.proxy.method'] ?? ''} ${host}${data['svc.proxy.upstream.path'] ?? ''}`.trim();
  const server = data['svc.mcp.server'];
  if (server !== undefined) return `${server} ${data['svc.mcp.tool'] ?? ''}`.trim();
  const connector = data['svc.connector.fqn'];
  if (connector !== undefined) return `${connector} ${data['svc.connector.operation'] ?? ''}`.trim();
  const listed = data['svc.control.host'];
  if (listed !== undefined) return listed;
  const bound = data['svc.proxy.binding.host'];
  const reference = data['svc.control.credential_ref'] ?? data['svc.proxy.credential_ref'];
  if (bound !== undefined) return reference === undefined ? bound : `${bound} with ${reference}`;
  return reference ?? data['svc.control.resource'] ?? data['svc.approval.id'] ?? data['svc.step.id'] ?? '';
}

/** The outcome, as a word or a number. */
export function eventOutcome({ data }: Pick<StoredAuditEvent, 'data'>): string {
  const outcome =
    data['svc.proxy.reason'] ?? data['svc.mcp.reason'] ?? data['svc.proxy.upstream.status'] ?? data['svc.mcp.outcome'];
  return outcome === undefined ? '' : String(outcome);
}

/** The explanation of a decision, in the order in which the proxy decides. */
export function decisionSentences({ type, data }: Pick<StoredAuditEvent, 'type' | 'data'>): string[] {
  const sentences = [matchSentence(type, data), ...credentialSentences(type, data)];
  const reason = data['svc.proxy.reason'];
  if (reason === ANSWERED_LOCALLY) sentences.push('The sidecar answered with placeholders. Nothing was sent upstream.');
  else if (reason === LOGIN_CAPTURED)
    sentences.push('The tokens in the reply are stored in the control plane, and the program got placeholders.');
  else if (reason === ACCOUNT_ASKED)
    sentences.push('The sidecar asked with the new token. The program got only the name of the account.');
  else if (reason === TUNNEL_OPENED) sentences.push('The tunnel was opened.');
  else if (reason === TUNNEL_CLOSED)
    sentences.push(
      `The tunnel ended. The client sent ${counted(data['svc.proxy.bytes.sent'] ?? 0, 'byte')} and received ${data['svc.proxy.bytes.received'] ?? 0}.`,
    );
  else if (reason === CERTIFICATE_REFUSED)
    sentences.push(
      `The client did not accept the certificate of svc; it may accept only the host’s own. If nothing at this host has to be mediated, a person can have it carried unread: svc tunnel add ${data['svc.proxy.upstream.host'] ?? 'HOST'}`,
    );
  else if (reason !== undefined) sentences.push(refusalWords(reason) ?? `The reason is ${reason}.`);
  const status = data['svc.proxy.upstream.status'];
  if (status !== undefined && reason !== ANSWERED_LOCALLY) sentences.push(`The upstream answered with ${status}.`);
  sentences.push(...replySentences(data));
  return sentences.filter((sentence) => sentence !== '');
}

/** The sentence that says most about a decision: why a request was refused, or what it matched. */
export function mainSentence(event: Pick<StoredAuditEvent, 'type' | 'data'>): string {
  return refusalWords(event.data['svc.proxy.reason'] ?? '') ?? decisionSentences(event)[0] ?? '';
}

function replySentences(data: AuditEventData): string[] {
  const { 'svc.proxy.reply.withheld': withheld, 'svc.proxy.reply.kept': kept, 'svc.proxy.reply.may_hold': held } = data;
  return [
    ...certificateSentences(data),
    ...(withheld === undefined ? [] : [`Withheld from the agent: the headers ${withheld.join(', ')}.`]),
    ...(kept === undefined ? [] : [`Kept for the agent by the binding: the headers ${kept.join(', ')}.`]),
    ...(held === undefined ? [] : [`The reply may have given the agent ${held} of its own.`]),
  ];
}

function certificateSentences(data: AuditEventData): string[] {
  const { 'svc.proxy.client_certificate.ref': certificate, 'svc.proxy.upstream.status': status } = data;
  if (certificate === undefined) return [];
  // Of a refused request, it may be what was refused.
  if (status === undefined) return [`The client certificate of the host is ${certificate}.`];
  return [`The upstream connection had the client certificate ${certificate}.`];
}

function matchSentence(type: AuditEventType, data: AuditEventData): string {
  const connector = data['svc.connector.fqn'];
  const bound = data['svc.proxy.binding.host'];
  if (data['svc.proxy.reason'] === LOGIN_CAPTURED)
    return 'It asked for the tokens of the login that the session was started for.';
  if (data['svc.proxy.reason'] === ACCOUNT_ASKED)
    return 'It asked whose the login is that the session was started for.';
  if (type === 'sandbox.proxy.tunnelled')
    return 'The host is on the list of hosts that are not intercepted, so its bytes were carried unread.';
  if (type === 'sandbox.proxy.passthrough')
    return 'No connector operation and no binding matched, so it was forwarded unmodified.';
  if (connector !== undefined && data['svc.connector.operation'] !== undefined) {
    return `It is the operation ${data['svc.connector.operation']} of the connector ${connector}; connectors take precedence over bindings.`;
  }
  if (bound !== undefined && type.startsWith('sandbox.')) return `It matched the binding for ${bound}.`;
  return '';
}

function credentialSentences(type: AuditEventType, data: AuditEventData): string[] {
  if (type === 'sandbox.proxy.binding_injected') {
    const scheme = data['svc.proxy.binding.scheme'] ?? 'its scheme';
    const how =
      data['svc.proxy.emit'] === 'sentinel-swap' ? 'in place of the agent’s placeholder' : 'outside the sandbox';
    return [`The credential was added ${how}, with the scheme ${scheme}; the agent never saw it.`];
  }
  if ([LOGIN_CAPTURED, ACCOUNT_ASKED].includes(data['svc.proxy.reason'] ?? '')) return [];
  if (data['svc.proxy.reason'] === ANSWERED_LOCALLY) return ['No credential was used.'];
  if (type === 'connector.proxy.proxied')
    return ['The connector’s credential was added outside the sandbox; the agent never saw it.'];
  if (type === 'sandbox.proxy.foreign_credential_kept') return ['The client sent its own credential, which was kept.'];
  if (data['svc.proxy.reason'] === PLACEHOLDER_UNBOUND) {
    return [
      `The client sent the placeholder of the binding for ${data['svc.proxy.binding.host'] ?? 'another host'}, so it expects a credential here. Bind ${data['svc.proxy.upstream.host'] ?? 'this host'}, if the credential may go there.`,
    ];
  }
  if (type === 'sandbox.proxy.passthrough') return ['No credential was added; the client’s own one, if any, was kept.'];
  return [];
}
