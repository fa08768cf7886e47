import { type McpServerRecord, listMissingCredentials } from '../../shared/wire/mcp/mcp_servers.ts';
import { controlClient } from '../clients.ts';
import type { Call } from '../command_line.ts';
import type { OwnerOption } from '../command_options.ts';
import { listAllMcpServers, findMcpServer } from './mcp_lookup.ts';
import { toolRules } from './mcp_tools.ts';
import { toPrintable } from '../../shared/model/shown_text.ts';
import type { Column } from '../terminal/output.ts';
import { agoText } from '../terminal/relative_time.ts';
import { commandText, shortenText } from '../terminal/cell_text.ts';

/** `svc mcp list`. */
export async function listMcpServers(call: Call<OwnerOption>): Promise<undefined> {
  const items = await listAllMcpServers(controlClient(call.context, call.options), call.options.owner);
  call.print.rows(
    { items },
    items,
    COLUMNS,
    'No MCP servers yet: svc mcp add NAME -- COMMAND, or svc mcp add NAME --url URL',
  );
}

const COLUMNS: readonly Column<McpServerRecord>[] = [
  { title: 'NAME', cell: (row) => row.name },
  { title: 'OWNER', cell: (row) => row.owner },
  { title: 'MODE', cell: (row) => row.mode },
  { title: 'HEALTH', cell: healthText, style: (row) => (isTrouble(row) ? 'yellow' : null) },
  {
    title: 'CREDENTIALS',
    cell: credentialsText,
    style: (row) => (listMissingCredentials(row).length > 0 ? 'yellow' : null),
  },
  { title: 'STARTS', cell: (row) => shortenText(startText(row), SHOWN_CHARACTERS) },
  { title: 'ID', cell: (row) => row.id },
];

function healthText({ enabled, health, rule_problem: rule }: McpServerRecord): string {
  if (enabled && rule !== null) return 'stopped by a rule';
  if (!enabled) return 'disabled';
  return (health?.state ?? 'unknown').replaceAll('_', ' ');
}

function isTrouble({ enabled, health, rule_problem: rule }: McpServerRecord): boolean {
  if (enabled && rule !== null) return true;
  return enabled && health !== null && (health.state === 'failed' || health.state.startsWith('needs_'));
}

function credentialsText(server: McpServerRecord): string {
  if (server.credentials.length === 0) return '-';
  const missing = listMissingCredentials(server);
  return missing.length === 0 ? 'set' : `missing: ${missing.join(', ')}`;
}

const SHOWN_CHARACTERS = 60;

/** The command or URL of a server; arguments are quoted where needed, for display only. */
export function startText({ command, url }: Pick<McpServerRecord, 'command' | 'url'>): string {
  return url ?? commandText(command);
}

/** `svc mcp show SERVER`. */
export async function showMcpServer(call: Call<OwnerOption>): Promise<undefined> {
  const client = controlClient(call.context, call.options);
  const record = await findMcpServer(client, call.args[0] ?? '', call.options.owner);
  call.print.data(record, () =>
    linesOf(record, call.context.now())
      .map((line) => `${toPrintable(line)}\n`)
      .join(''),
  );
}

function linesOf(record: McpServerRecord, now: number): readonly string[] {
  const { name, id, owner, description, mode, version, registry_id: registryId, isolation, revision } = record;
  return [
    `${name} (${id}, ${owner}, revision ${revision})`,
    ...(description === '' ? [] : [description]),
    ...(registryId === null ? [] : [`from the registry: ${registryId}${version === null ? '' : ` ${version}`}`]),
    mode === 'remote' ? `url: ${record.url ?? ''} (${record.transport ?? ''})` : `command: ${startText(record)}`,
    ...Object.entries(record.env).map(([variable, value]) => `env ${variable}=${value}`),
    ...Object.entries(record.headers).map(([header, value]) => `header ${header}: ${value}`),
    ...(record.rule_problem === null ? [] : [`does not run: ${record.rule_problem}`]),
    ...(isolation === 'container' ? ['runs in a container'] : []),
    ...toolRules(record),
    ...record.credentials.map((credential) => credentialLine(credential, now)),
    ...authorizationLines(record),
    ...healthLines(record, now),
    ...record.warnings.map(({ message }) => `warning: ${message}`),
  ];
}

function credentialLine(
  { name, required, set, updated_at: stored }: McpServerRecord['credentials'][number],
  now: number,
): string {
  const state = set && stored !== null ? `stored ${agoText(stored, now)}` : 'missing';
  return `credential ${name}: ${state}${required ? '' : ' (nothing refers to it)'}`;
}

function authorizationLines({ authorization }: McpServerRecord): readonly string[] {
  if (authorization === null) return [];
  const until = authorization.expires_at === null ? '' : `, until ${authorization.expires_at}`;
  return [`authorization: ${authorization.state.replaceAll('_', ' ')}${until}`];
}

function healthLines(record: McpServerRecord, now: number): readonly string[] {
  const { health, enabled } = record;
  if (health === null) return [`health: ${enabled ? 'unknown (no gateway has reported)' : 'disabled'}`];
  const error = health.last_error === null ? '' : `: ${health.last_error}`;
  return [`health: ${healthText(record)}${error} (${agoText(health.checked_at, now)})`];
}
