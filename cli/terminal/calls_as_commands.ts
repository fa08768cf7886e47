const ID = '([\\w-]+)';

/** Calls that messages of the API name, and the commands for them; longer paths first. */
const COMMANDS: readonly (readonly [call: string, command: string])[] = [
  [`DELETE /v1/connectors/${ID}/credential`, 'svc connector credential rm $1'],
  [`PUT /v1/connectors/${ID}/credential`, 'svc connector credential set $1'],
  [`DELETE /v1/mcp-servers/${ID}/credentials/${ID}`, 'svc mcp credential unset $1 $2'],
  [`GET /v1/mcp-servers/${ID}/revisions`, 'svc mcp rollback $1'],
  [`GET /v1/mcp-servers/${ID}/tools`, 'svc mcp tools $1'],
  [`POST /v1/mcp-servers/${ID}/authorize`, 'svc mcp authorize $1'],
  [`GET /v1/mcp-servers/${ID}`, 'svc mcp show $1'],
  [`PUT /v1/mcp-servers/${ID}`, 'svc mcp update $1'],
  [`GET /v1/groups/${ID}/members`, 'svc group members $1'],
  [`PUT /v1/host-bindings/${ID}`, 'svc binding apply'],
  [`POST /v1/approvals/${ID}/decide`, 'svc approvals approve $1'],
  ['GET /v1/marketplace/servers\\?q=', 'svc mcp search'],
  ['GET /v1/marketplace/servers/(\\S+[^\\s.,;:])', 'svc mcp view $1'],
  ['POST /v1/tokens', 'svc token create'],
  ['GET /v1/approval-grants', 'svc approvals grants'],
  ['GET /v1/approval-rules', 'svc approvals rules'],
  ['GET /v1/approvals', 'svc approvals list'],
  ['GET /v1/audit-sinks', 'svc audit sink list'],
  ['GET /v1/connectors', 'svc connector list'],
  ['GET /v1/enterprises', 'svc enterprise list'],
  ['GET /v1/groups', 'svc group list'],
  ['GET /v1/host-bindings', 'svc binding list'],
  ['GET /v1/invitations', 'svc members invitations'],
  ['GET /v1/join-offers', 'svc enterprise offers'],
  ['GET /v1/join-requests', 'svc members requests'],
  ['GET /v1/mcp-clients', 'svc mcp clients'],
  ['GET /v1/mcp-rules', 'svc mcp rules'],
  ['GET /v1/mcp-servers', 'svc mcp list'],
  ['GET /v1/members', 'svc members list'],
  ['GET /v1/scim-tokens', 'svc scim list'],
  ['GET /v1/secrets', 'svc secret list'],
  ['GET /v1/service-accounts', 'svc service-account list'],
  ['GET /v1/shares', 'svc share list'],
  ['GET /v1/tokens', 'svc token list'],
  ['GET /v1/tunnel-hosts', 'svc tunnel list'],
  ['GET /v1/usage', 'svc enterprise usage'],
];

const CALLS = COMMANDS.map(([call, command]) => [new RegExp(`\\b${call}(?![\\w/-])`, 'g'), `\`${command}\``] as const);
const OTHER_CALL = /\b(GET|POST|PUT|PATCH|DELETE) (\/v1\/[\w/?=-]*[\w=])/g;
/** `run "svc mcp authorize NAME", or POST ...`: the command is named already. */
const OR_CALL = /("svc [^"]+"), or (?:GET|POST|PUT|PATCH|DELETE) \/v1\/[\w/-]*\w/g;

/** The commands that show the ids which a person types. */
const LISTS: Readonly<Record<string, string>> = {
  apg: 'svc approvals grants',
  apr: 'svc approvals list',
  apu: 'svc approvals rules',
  grp: 'svc group list',
  inv: 'svc members invitations',
  jrq: 'svc members requests',
  mcc: 'svc mcp clients',
  sct: 'svc scim list',
  shr: 'svc share list',
  tok: 'svc token list',
};

/** The fields of a session that a person chose by a flag. */
const FLAGS: Readonly<Record<string, string>> = {
  allowed_hosts: '--allow',
  bytes_per_day: '--bytes-per-day',
  mcp_servers: '--mcp',
  named_hosts: '--allow',
  other_port_hosts: '--allow',
  other_port_named: '--allow',
  plain_http_hosts: '--plain-http',
  plain_http_named: '--plain-http',
  requests_per_day: '--requests-per-day',
  requests_per_minute: '--requests-per-minute',
  scopes: '--scope',
  ttl_seconds: '--ttl',
  use_secrets: '--use',
};

const FIRST_FIELD = /^(\w+)(?:\.[\w.]+)?(?=: )/;

const WRONG_ID = /\bid is not an id of the form (\w+)_… \(26 characters\)/;

/**
 * A message of the API as a person at the command line can act on it: with a command in place of each call, and a flag in
 * place of the field that it begins with.
 */
export function callsAsCommands(message: string): string {
  const named = CALLS.reduce(
    (text, [call, command]) => text.replaceAll(call, command),
    message.replaceAll(OR_CALL, '$1'),
  );
  return named
    .replace(FIRST_FIELD, (text, field: string) => FLAGS[field] ?? text)
    .replace(WRONG_ID, (text, prefix: string) => {
      const list = LISTS[prefix];
      return list === undefined ? text : `${text}: \`${list}\` shows the ids`;
    })
    .replaceAll(OTHER_CALL, '`svc api $1 $2`')
    .replaceAll(/list (?:them|yours) with (`[^`]+`)/g, '$1 lists them');
}
