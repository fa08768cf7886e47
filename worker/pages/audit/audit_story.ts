import type { AuditEventType } from '../../../shared/model/audit_event.ts';
import type { StoredAuditEvent } from '../../../shared/wire/audit_events.ts';

type Told = Pick<StoredAuditEvent, 'type' | 'data' | 'actor'>;

/** What came about, of what is no decision of the proxy about a request. */
const STORIES: Partial<Record<AuditEventType, string>> = {
  'sandbox.proxy.disabled':
    'A launch asked for a sandbox without the proxy, or could have none: nothing is sealed in it.',
  'sandbox.proxy.credential_unsealed':
    'A container was given the credential itself, because somebody asked for that and said why. Until another value is stored it counts as unsealed.',
  'connector.approval.requested':
    'The connector’s spec says that a person approves this operation, so the request was held for a minute.',
  'connector.approval.expired': 'Nobody decided within the minute that the request was held.',
  'control.credential.released':
    'A sidecar asked for the credential, for one of its user’s or the enterprise’s. It was sealed to that sidecar’s own key.',
  'control.connector.credential_refreshed':
    'The access token was near its end, so the control plane asked the provider for another.',
  'control.connector.reauthorisation_required':
    'The provider gives no further access token: requests are refused until somebody authorises the connector again.',
  'control.mcp_server.credential_refreshed':
    'The access token was near its end, so the control plane asked the provider for another.',
  'control.mcp_server.reauthorisation_required':
    'The provider gives no further access token: the server is refused until somebody authorises it again.',
  'control.audit.pruned':
    'Events older than the time that the log is kept for were removed; a sealed note says how many.',
  'control.audit.head_broken':
    'The end of this chain was not what the control plane had sealed: somebody changed it, or cut events off, in the database. The chain goes on, and does not verify any more.',
  'mcp.server.started': 'A client asked for the server, and a person has consented to what it runs.',
  'mcp.server.stopped': 'Nobody used the server any more, or its configuration was changed.',
  'mcp.server.failed': 'The gateway could not start the server, or lost it.',
  'mcp.server.refused': 'The gateway did not start the server.',
  'mcp.tool.called': 'The policy of the server’s tools allows the call, so the gateway passed it on.',
  'mcp.tool.denied': 'The gateway did not pass the call on.',
  'sidecar.audit.mismatch_noticed':
    'The sidecar remembers a later end of a chain of this log than it found, or another one: the database was changed, or restored from a backup.',
  'sidecar.audit.mismatch_accepted':
    'A person on the sidecar’s machine confirmed that the log was put back. The sidecar follows it from its present end on.',
};

/** What the gateway gives as a reason, as a sentence. */
const GATEWAY_REASONS: Readonly<Record<string, string>> = {
  approval_required: 'Nobody approved the call while it was held.',
  approval_denied: 'Somebody denied this call.',
  control_plane_unavailable: 'The control plane could not be asked, and nothing is passed on without it.',
  tool_not_allowed: 'The policy of the server’s tools does not allow it.',
  arguments_too_large: 'Its arguments are larger than a call may have.',
  too_many_calls: 'As many calls as may be are under way.',
  command_refused: 'What it would run is not among what may be run.',
  url_refused: 'Its address is none that may be called.',
  consent_needed: 'Nobody has consented on this machine to what it runs.',
  credential_missing: 'One of its credentials is not stored.',
  credential_unavailable: 'One of its credentials could not be had.',
  authorisation_needed: 'Somebody has to sign in to it first.',
  audit_unavailable: 'It could not be recorded, and nothing is started unrecorded.',
  spawn_failed: 'Its program could not be started.',
  start_timeout: 'It did not answer in time.',
  handshake_failed: 'It did not answer as an MCP server does.',
  exited: 'Its program ended.',
  output_limit: 'It wrote more than it may.',
  unreachable: 'It could not be reached.',
  container_unavailable: 'It is to run in a container, and none could be had.',
};

/** What came about and who did it, in sentences; nothing for a request, which {@link decisionSentences} tells of. */
export function storySentences(event: Told): string[] {
  const { type, data } = event;
  const story = STORIES[type];
  const gateway = data['svc.mcp.reason'];
  return [
    ...decisionSentencesOf(event),
    ...reachTold(event),
    ...(story === undefined ? [] : [story]),
    ...(gateway === undefined ? [] : [GATEWAY_REASONS[gateway] ?? `The gateway’s reason is ${gateway}.`]),
    ...(story === undefined && type.startsWith('control.') ? [actorSentence(event)] : []),
  ];
}

function decisionSentencesOf({ type, data, actor }: Told): string[] {
  if (type !== 'connector.approval.decided') return [];
  const who = actor ?? 'Somebody';
  return data['svc.approval.decision'] === 'deny'
    ? [`${who} denied it: identical requests are refused for fifteen minutes.`]
    : [`${who} approved it: one identical request may go through within fifteen minutes.`];
}

/** What a step of a plan may reach, in the words that are true of this one. */
function reachTold({ type, data }: Told): string[] {
  if (type !== 'flightplan.launch.reach') return [];
  const open = data['svc.reach.egress'] === 'open';
  const hosts = data['svc.reach.hosts'] ?? [];
  return [
    reachSentence(data['svc.proxy.reason'], data['svc.reach.enforced'] === true, hosts.length > 0),
    ...(open
      ? ['The container of the plan has the engine’s network beside the proxy, so a step can go around it.']
      : []),
  ];
}

function reachSentence(reason: string | undefined, enforced: boolean, hasHosts: boolean): string {
  if (reason === 'step_not_started') return 'A step of a plan was to begin, and its command never ran.';
  if (reason === 'step_start_unknown') return 'A step of a plan got its scope, but its start was not reported.';
  if (enforced)
    return 'A step of a plan began, under a scope of the proxy with the hosts and the time that the signed lock says.';
  return hasHosts
    ? 'A step of a plan began, and no scope that was minted for it was open then.'
    : 'A step of a plan began for which the signed lock has no hosts: it got no scope, and the proxy opens nothing for it.';
}

function actorSentence({ actor }: Told): string {
  return actor === null
    ? 'The control plane did it by itself.'
    : `${actor} did it, who was signed in and has the role for it.`;
}
