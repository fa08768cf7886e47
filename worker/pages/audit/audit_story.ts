import type { AuditEventType } from '../../../shared/model/audit_event.ts';
import type { NameOf } from '../../services/audit/names.ts';
import type { StoredAuditEvent } from '../../../shared/wire/audit_events.ts';

type Told = Pick<StoredAuditEvent, 'type' | 'data' | 'actor'>;

/** Explanations of events other than the proxy's decisions about requests. */
const STORIES: Partial<Record<AuditEventType, string>> = {
  'sandbox.proxy.disabled':
    'A launch requested a sandbox without the proxy, or the proxy was unavailable: nothing is sealed in it.',
  'sandbox.proxy.credential_unsealed':
    'A container, or a command of svc run, received the credential in plaintext, because somebody requested that. Until another value is stored, the credential counts as exposed.',
  'connector.approval.requested':
    'This operation or tool needs an approval: the spec of the connector says so, or the rules of the MCP server. An agent’s request is held for a minute meanwhile.',
  'connector.approval.waits_again':
    'An agent had given up this request and tries it again: it is held for another minute, and the approval is still open.',
  'connector.approval.granted':
    'With an approval, somebody allowed further requests of the same operation with the same path inputs, from the same session.',
  'connector.approval.grant_used': 'The grant covers this request, so nobody was asked.',
  'connector.approval.grant_revoked': 'The next request of this kind asks for an approval again.',
  'connector.approval.expired':
    'Nobody decided within an hour, it was approved and no identical request came within fifteen minutes, or something has changed: the connector or server, the rules about who approves, or who approved it.',
  'control.credential.released':
    'A sidecar requested the credential of its user or the enterprise. It was encrypted to that sidecar’s own key.',
  'control.connector.credential_refreshed':
    'The access token was about to expire, so the control plane refreshed it at the provider.',
  'control.connector.reauthorisation_required':
    'The provider issues no further access tokens: requests are refused until somebody authorises the connector again.',
  'control.login.held':
    'A program logged in in a session that was started for it. Its tokens wait until the user stores or deletes them.',
  'control.mcp_server.credential_refreshed':
    'The access token was about to expire, so the control plane refreshed it at the provider.',
  'control.mcp_server.tools_learned':
    'A gateway listed the tools or the prompts of the server for the first time. They were accepted with the server.',
  'control.mcp_server.tools_waiting':
    'The server offers tools or prompts that are new, have changed, or have a warning. They are neither listed nor used until somebody accepts them.',
  'control.mcp_server.tools_accepted': 'Somebody has looked at tools or prompts that waited, and accepted them.',
  'control.mcp_server.reauthorisation_required':
    'The provider issues no further access tokens: the server is refused until somebody authorises it again.',
  'control.audit.pruned': 'Events older than the retention period were removed; a sealed record says how many.',
  'control.audit.head_broken':
    'The end of this chain does not match the control plane’s seal: somebody changed it, or cut events off, in the database. The chain continues, but no longer verifies.',
  'mcp.server.started': 'A client requested the server, and a person has consented to its command.',
  'mcp.server.stopped': 'Nobody used the server any more, or its configuration was changed.',
  'mcp.server.failed': 'The gateway could not start the server, or lost it.',
  'mcp.server.refused': 'The gateway did not start the server.',
  'mcp.tool.called': 'The policy of the server’s tools allows the call, so the gateway passed it on.',
  'mcp.tool.denied': 'The gateway did not pass the call on.',
  'sidecar.audit.mismatch_noticed':
    'The sidecar remembers a later or different end of a chain than this log has: the database was changed, or restored from a backup.',
  'sidecar.audit.mismatch_accepted':
    'A person on the sidecar’s machine confirmed that the log was restored. The sidecar follows it from its present end on.',
};

/** The gateway's reason as a sentence. */
const GATEWAY_REASONS: Readonly<Record<string, string>> = {
  approval_required: 'Nobody approved the call while it was held.',
  approval_denied: 'Somebody denied this call.',
  control_plane_unavailable: 'The control plane was unreachable, and nothing is passed on without it.',
  tool_waiting: 'It is new or has changed, and nobody has accepted it yet.',
  tool_not_allowed: 'The policy of the server’s tools does not allow it.',
  arguments_too_large: 'Its arguments exceed the size limit.',
  too_many_calls: 'Too many calls are running.',
  command_refused: 'Its command is not allowed.',
  url_refused: 'Its address must not be called.',
  consent_needed: 'Nobody has consented to its command on this machine.',
  credential_missing: 'One of its credentials is not stored.',
  credential_unavailable: 'One of its credentials could not be retrieved.',
  authorisation_needed: 'Somebody has to sign in to it first.',
  audit_unavailable: 'It could not be recorded, and nothing is started without a record.',
  install_failed: 'Its package could not be installed.',
  spawn_failed: 'Its program could not be started.',
  start_timeout: 'It did not answer in time.',
  handshake_failed: 'Its answer was not that of an MCP server.',
  exited: 'Its program ended.',
  output_limit: 'It wrote more than allowed.',
  unreachable: 'It could not be reached.',
  container_unavailable: 'It requires a container, and none was available.',
};

/** What happened and who did it, in sentences; empty for a request, which {@link decisionSentences} explains. */
export function storySentences(event: Told, nameOf: NameOf = () => null): string[] {
  const { type, data } = event;
  const story = STORIES[type];
  const gateway = data['svc.mcp.reason'];
  return [
    ...decisionSentencesOf(event, nameOf),
    ...reachTold(event),
    ...sessionReachTold(event),
    ...(story === undefined ? [] : [story]),
    ...(gateway === undefined ? [] : [GATEWAY_REASONS[gateway] ?? `The gateway’s reason is ${gateway}.`]),
    ...(story === undefined && type.startsWith('control.') ? [actorSentence(event, nameOf)] : []),
  ];
}

function decisionSentencesOf({ type, data, actor }: Told, nameOf: NameOf): string[] {
  if (type !== 'connector.approval.decided') return [];
  const who = nameOf(actor) ?? actor ?? 'Somebody';
  return data['svc.approval.decision'] === 'deny'
    ? [`${who} denied it: identical requests are refused for fifteen minutes.`]
    : [`${who} approved it: one identical request may go through within fifteen minutes.`];
}

/** The reach of a step of a plan, with the statements that hold for it. */
function reachTold({ type, data }: Told): string[] {
  if (type !== 'flightplan.launch.reach') return [];
  const open = data['svc.reach.egress'] === 'open';
  const hosts = data['svc.reach.hosts'] ?? [];
  return [
    reachSentence(data['svc.proxy.reason'], data['svc.reach.enforced'] === true, hosts.length > 0),
    ...(open ? ['The container of the plan can also use the engine’s network, so a step can bypass the proxy.'] : []),
  ];
}

/** What a limited session could reach when it started. */
function sessionReachTold({ type, data }: Told): string[] {
  if (type !== 'sandbox.proxy.session_reach') return [];
  const open = data['svc.reach.egress'] === 'open';
  return [
    'A session started that reaches only these hosts through the proxy: bound ones, those of connectors with a credential, and allowed ones. Bindings that are made later add their hosts.',
    ...(open ? ['It runs without a sandbox, so its programs can bypass the proxy.'] : []),
  ];
}

function reachSentence(reason: string | undefined, enforced: boolean, hasHosts: boolean): string {
  if (reason === 'step_not_started') return 'A step of a plan was about to start, but its command never ran.';
  if (reason === 'step_start_unknown') return 'A step of a plan got its scope, but its start was not reported.';
  if (enforced)
    return 'A step of a plan started, under a scope of the proxy with the hosts and the time of the signed lock.';
  return hasHosts
    ? 'A step of a plan started without an open scope of its own.'
    : 'A step of a plan started that has no hosts in the signed lock: it has no scope, and the proxy opens nothing for it.';
}

function actorSentence({ actor }: Told, nameOf: NameOf): string {
  return actor === null ? 'The control plane did this by itself.' : `${nameOf(actor) ?? actor} did this.`;
}
