import { MAX_REFUSED_HOSTS, mcpVaultPath, MCP_OAUTH_NAME } from '../../../shared/model/mcp_server.ts';
import { commandDangers } from '../../../shared/mcp/command_dangers.ts';
import type { Danger } from '../../../shared/mcp/dangers/danger.ts';
import { referencesOf } from '../../../shared/mcp/references.ts';
import type { McpServerRecord, SnapshotMcpServerRecord } from '../../../shared/wire/mcp/mcp_servers.ts';
import { snapshotRecord } from '../../../shared/wire/mcp/mcp_gateway.ts';
import type { ConnectorCredentialRow } from '../../store/connectors.ts';
import { mcpAuthorizationsOf } from '../../store/mcp/mcp_authorizations.ts';
import { type McpHealthRow, mcpHealthOf } from '../../store/mcp/mcp_health.ts';
import { type McpCredentialRow, mcpCredentialsOf, type McpServerRow } from '../../store/mcp/mcp_servers.ts';
import type { Caller } from '../../kernel/caller.ts';
import { findStoredClient } from '../oauth/oauth_client.ts';
import type { ServiceContext } from '../../kernel/service_context.ts';
import { applyRules, type RuledServer } from './apply_rules.ts';
import { configurationOf, type McpConfiguration, serverOf } from './mcp_configuration.ts';

/** The names of the credentials that a configuration refers to. */
export function listRequiredCredentials(row: Pick<McpServerRow, 'id' | 'revision' | 'record'>): readonly string[] {
  return referencesOf(serverOf(row)).map((path) => path.slice(mcpVaultPath(row.id, '').length));
}

/** The records of servers that the caller sees, with their stored credentials and state. */
export async function toRecords(
  context: ServiceContext,
  caller: Pick<Caller, 'userId'>,
  rows: readonly McpServerRow[],
): Promise<McpServerRecord[]> {
  const ids = rows.map(({ id }) => id);
  const ownerIds = [...new Set(rows.map(({ ownerId }) => ownerId))];
  const [stored, said, authorizations, ruled] = await Promise.all([
    mcpCredentialsOf(context.database, ownerIds, ids),
    mcpHealthOf(context.database, caller.userId, ids),
    mcpAuthorizationsOf(context.database, ids),
    applyRules(context, rows),
  ]);
  const now = context.clock.now();
  return rows.map((row) => toRecord(row, { stored, health: said, authorizations, ruled, now }));
}

export async function toRecordOf(
  context: ServiceContext,
  caller: Pick<Caller, 'userId'>,
  row: McpServerRow,
): Promise<McpServerRecord> {
  const [record] = await toRecords(context, caller, [row]);
  if (record === undefined) throw new Error('a row has no record');
  return record;
}

interface Known {
  readonly stored: readonly McpCredentialRow[];
  /** Newest first. */
  readonly health: readonly McpHealthRow[];
  readonly authorizations: readonly ConnectorCredentialRow[];
  readonly ruled: ReadonlyMap<string, RuledServer>;
  readonly now: number;
}

function toRecord(row: McpServerRow, known: Known): McpServerRecord {
  const configuration = configurationOf(row);
  return {
    id: row.id,
    ...configuration,
    revision: row.revision,
    status: 'stopped',
    health: healthOf(row.id, known),
    credentials: credentialsOf(row, known.stored),
    authorization: authorizationOf(row.id, known),
    rule_problem: known.ruled.get(row.id)?.problem ?? null,
    warnings: warningsOf(configuration),
    created_at: row.createdAt,
    updated_at: row.updatedAt,
  };
}

/** Warnings about a local server's command. A command that is refused now was accepted when it was stored. */
function warningsOf({ mode, command, env }: McpConfiguration): McpServerRecord['warnings'] {
  return mode === 'local' ? commandDangers(command, env).map((danger) => toApiDanger(danger)) : [];
}

/** A problem with a command in the format of the API. */
export function toApiDanger({ code, message }: Danger): { readonly code: string; readonly message: string } {
  return { code, message: `the server ${message}` };
}

/** A gateway reports at least once a minute what runs; an older report may be outdated. */
const HEALTH_MS = 5 * 60_000;
const PASSING_STATES: readonly string[] = ['running', 'starting'];

function healthOf(serverId: string, { health: said, now }: Known): McpServerRecord['health'] {
  const rows = said.filter((row) => row.serverId === serverId);
  const [newest] = rows;
  if (newest === undefined) return null;
  const isOld = now - Date.parse(newest.checkedAt) > HEALTH_MS;
  const state = isOld && PASSING_STATES.includes(newest.state) ? 'unknown' : newest.state;
  return { state, last_error: newest.lastError, checked_at: newest.checkedAt, refused_hosts: listRefusedHosts(rows) };
}

/** Of all machines, those of the newest report first. */
function listRefusedHosts(rows: readonly McpHealthRow[]): string[] {
  const hosts = rows.flatMap(({ refusedHosts }): readonly string[] => JSON.parse(refusedHosts));
  return [...new Set(hosts)].slice(0, MAX_REFUSED_HOSTS);
}

function credentialsOf(row: McpServerRow, stored: readonly McpCredentialRow[]): McpServerRecord['credentials'] {
  const required = listRequiredCredentials(row);
  const own = stored.filter(({ serverId, name }) => serverId === row.id && name !== MCP_OAUTH_NAME);
  const names = [...new Set([...required, ...own.map(({ name }) => name)])].toSorted();
  return names.map((name) => {
    const updatedAt = own.find((credential) => credential.name === name)?.updatedAt ?? null;
    return { name, required: required.includes(name), set: updatedAt !== null, updated_at: updatedAt };
  });
}

function authorizationOf(serverId: string, { authorizations }: Known): McpServerRecord['authorization'] {
  const found = authorizations.find(({ connectorId }) => connectorId === serverId);
  if (found === undefined) return null;
  return { state: found.state, expires_at: found.expiresAt, scopes: [...(findStoredClient(found)?.scopes ?? [])] };
}

/** Servers in the snapshot of a user's sidecar, as the rules of their enterprise let them be. What a colleague shares is the enterprise's there. */
export async function toSnapshotServers(
  context: ServiceContext,
  rows: readonly McpServerRow[],
  userId: string,
): Promise<SnapshotMcpServerRecord[]> {
  const authorizations = await mcpAuthorizationsOf(
    context.database,
    rows.map(({ id }) => id),
  );
  const states = new Map(authorizations.map(({ connectorId, state }) => [connectorId, state]));
  const ruled = await applyRules(context, rows);
  return rows.flatMap((row) => {
    const known = ruled.get(row.id);
    if (known === undefined) return [];
    const owner = row.ownerId === userId ? ('personal' as const) : ('enterprise' as const);
    return [snapshotRecord({ server: { ...known.server, owner }, authorization: states.get(row.id) ?? null })];
  });
}
