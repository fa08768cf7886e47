import { findUncheckedCode } from '../../../shared/mcp/consent_hash.ts';
import { z } from 'zod';
import { canonicalJson } from '../../../shared/audit/canonical_json.ts';
import type { AuditEventType } from '../../../shared/model/audit_event.ts';
import type { Owner } from '../../../shared/model/host_binding.ts';
import { MCP_OAUTH_NAME, mcpVaultPath } from '../../../shared/model/mcp_server.ts';
import { err, ok, type Result } from '../../../shared/model/result.ts';
import { formatVaultReference } from '../../../shared/model/vault_path.ts';
import { apiError, type ApiError } from '../../../shared/wire/errors.ts';
import type { McpRevisionsReply, McpServerRecord, ValidMcpServer } from '../../../shared/wire/mcp/mcp_servers.ts';
import type { Page } from '../../../shared/wire/primitives.ts';
import { bumpPolicy } from '../../store/accounts.ts';
import { deleteMcpAuthorization, findMcpAuthorization } from '../../store/mcp/mcp_authorizations.ts';
import {
  deleteMcpCredentials,
  deleteMcpServer,
  findMcpRevision,
  findMcpServer,
  findMcpServerNamed,
  findMcpServersFrom,
  insertMcpServer,
  isStill,
  listMcpRevisions,
  listMcpServers,
  mcpCredentialsOf,
  type McpServerRow,
  replaceMcpServer,
} from '../../store/mcp/mcp_servers.ts';
import { noteMcpDerivation } from '../../store/mcp/mcp_rules.ts';
import { findSealedSecret } from '../../store/secrets.ts';
import { type Caller, ownerName, visibleOwners, writableOwner } from '../../kernel/caller.ts';
import { type AuditDraft, type Change, commit } from '../../kernel/commit.ts';
import { type PageQuery, readPage } from '../../kernel/cursors.ts';
import { checkRules, derivationHash } from './apply_rules.ts';
import { configurationProblem, invalidFields, settleConfiguration } from './mcp_server_checks.ts';
import { listRequiredCredentials, toRecordOf, toRecords } from './mcp_server_records.ts';
import { configurationOf, type McpConfiguration } from './mcp_configuration.ts';
import { type Changed, controlChain, commitPolicy, withPolicyVersion } from '../../kernel/policy_change.ts';
import { definitionGrowth } from '../../kernel/quotas.ts';
import { freshId, timeAfter, nowText, type ServiceContext } from '../../kernel/service_context.ts';
import { revokeGivenUp } from '../oauth/given_up_tokens.ts';
import { readBundle } from '../oauth/oauth_bundle.ts';
import { findStoredClient } from '../oauth/oauth_client.ts';
import { revocationOfHeld } from '../sources/given_up_values.ts';
import { openRow } from '../vault/secrets.ts';

type ChangedServer = Promise<Result<Changed<McpServerRecord>, ApiError>>;

/** Whether the configuration was derived from its registry entry just now. */
export interface Derivation {
  readonly isDerived: boolean;
}

const WRITTEN: Derivation = { isDerived: false };

/** Refuses with `admin_required`, `name_taken`, `invalid_input`, `mcp_rule`. */
export async function createMcpServer(
  context: ServiceContext,
  caller: Caller,
  input: ValidMcpServer,
  { isDerived }: Derivation = WRITTEN,
): ChangedServer {
  const owner = writableOwner(caller, input.owner);
  if (!owner.ok) return owner;
  const id = freshId(context, 'mcp');
  const configuration = settleConfiguration(input, { id, registryId: null }, null);
  if (!configuration.ok) return configuration;
  const now = nowText(context);
  const row = rowOf(configuration.value, {
    id,
    enterpriseId: caller.enterpriseId,
    ownerId: owner.value,
    revision: 1,
    createdAt: now,
    updatedAt: now,
  });
  const created = await commit(context, controlChain(caller), async () => {
    const twin = await findMcpServerNamed(context.database, row);
    if (twin !== null) return err(nameTaken(twin));
    const refused = await checkRules(context, row, isDerived);
    if (refused !== null) return err(refused);
    const write = [
      ...insertMcpServer(context.database, { row, changedBy: caller.userId, paths: pathsOf(row) }),
      ...(await derivationOf(context, row, isDerived)),
    ];
    const made = change(context, caller, { type: 'control.mcp_server.created', row, write, value: row });
    return ok({
      ...made,
      adds: [{ kind: 'mcp_servers', holder: row.ownerId }, definitionGrowth(row.ownerId, row.record)],
    });
  });
  return answerChanged(context, caller, created);
}

/**
 * Replaces every field of a server except its owner. An equal configuration changes nothing. With `revision`, only if
 * that is still the current one. Refuses with `not_found`, `admin_required`, `conflict`, `name_taken`, `invalid_input`.
 */
export async function putMcpServer(
  context: ServiceContext,
  caller: Caller,
  id: string,
  input: ValidMcpServer,
  revision: number | null = null,
): ChangedServer {
  const replaced = await commit(context, controlChain(caller), async () => {
    const before = await writableMcpServer(context, caller, id);
    if (!before.ok) return before;
    if (revision !== null && before.value.revision !== revision) return err(changedMeanwhileError(before.value));
    if (ownerName(before.value.ownerId) !== input.owner) return err(ownerChange(before.value));
    const configuration = settleConfiguration(input, before.value, configurationOf(before.value));
    return configuration.ok ? planConfiguration(context, caller, before.value, configuration.value) : configuration;
  });
  return answerChanged(context, caller, replaced);
}

/**
 * Restores the configuration of an earlier revision as the newest one. Refuses with `not_found`, `admin_required`,
 * `name_taken`, `invalid_input`.
 */
export async function rollbackMcpServer(
  context: ServiceContext,
  caller: Caller,
  id: string,
  revision: number,
): ChangedServer {
  const replaced = await commit(context, controlChain(caller), async () => {
    const before = await writableMcpServer(context, caller, id);
    if (!before.ok) return before;
    const earlier = await findMcpRevision(context.database, id, revision);
    if (earlier === null) return err(noRevision(before.value, revision));
    // The owner is not a part of what is restored.
    const configuration = { ...configurationOf(earlier), owner: ownerName(before.value.ownerId) };
    const problem = configurationProblem(configuration, id);
    return problem === null ? planConfiguration(context, caller, before.value, configuration) : err(problem);
  });
  return answerChanged(context, caller, replaced);
}

/** The statements that remember a configuration as its registry entry's. */
async function derivationOf(context: ServiceContext, row: McpServerRow, isDerived: boolean) {
  return isDerived ? [noteMcpDerivation(context.database, row.id, derivationHash(row))] : [];
}

/** Gives a server another configuration; no change if it is equal. Refuses with `name_taken`, `mcp_rule`. */
export async function planConfiguration(
  context: ServiceContext,
  caller: Caller,
  before: McpServerRow,
  configuration: McpConfiguration,
  { isDerived }: Derivation = WRITTEN,
): Promise<Result<Change<McpServerRow>, ApiError>> {
  const { id, enterpriseId, ownerId, createdAt, revision } = before;
  const updatedAt = timeAfter(nowText(context), before.updatedAt);
  const columns = { id, enterpriseId, ownerId, createdAt, updatedAt, revision: revision + 1 };
  const row = rowOf(configuration, columns);
  if (row.record === before.record) return ok({ statements: [], events: [], value: before });
  const twin = await findMcpServerNamed(context.database, row);
  if (twin !== null) return err(nameTaken(twin));
  const refused = await checkRules(context, row, isDerived);
  if (refused !== null) return err(refused);
  const isMoved = !isSameResource(configurationOf(before).url, configuration.url);
  const ended = isMoved ? await endOfCredentials(context, caller, before) : NOTHING_ENDS;
  const write = [
    ...replaceMcpServer(context.database, { row, changedBy: caller.userId, paths: pathsOf(row) }),
    ...(await derivationOf(context, row, isDerived)),
    ...ended.statements,
  ];
  const updated = change(context, caller, { type: 'control.mcp_server.updated', row, write, value: row });
  const adds = [definitionGrowth(ownerId, row.record, before.record)];
  return ok({ ...updated, events: [...ended.events, ...updated.events], adds, afterwards: ended.afterwards });
}

const NOTHING_ENDS = { statements: [], events: [], afterwards: () => undefined };

/**
 * A credential that was stored or authorised for one URL is never sent to another, and one for a program is never sent
 * to a URL. A remote server needs no consent on a machine, so otherwise anyone who can edit the configuration could
 * redirect the credentials to themselves.
 */
function isSameResource(before: string | null, after: string | null): boolean {
  return withoutQuery(before) === withoutQuery(after);
}

function withoutQuery(url: string | null): string | null {
  return url?.split('?')[0] ?? null;
}

/** Removes a server with its credentials. Refuses with `not_found`, `admin_required`. */
export async function removeMcpServer(
  context: ServiceContext,
  caller: Caller,
  id: string,
): Promise<Result<Changed<null>, ApiError>> {
  return commitPolicy(context, caller, async () => {
    const found = await writableMcpServer(context, caller, id);
    if (!found.ok) return found;
    const row = found.value;
    const ended = await endOfCredentials(context, caller, row);
    const write = [...isStill(id, row.revision), ...ended.statements, ...deleteMcpServer(context.database, row)];
    const deleted = change(context, caller, { type: 'control.mcp_server.deleted', row, write, value: null });
    return ok({ ...deleted, events: [...ended.events, ...deleted.events], afterwards: ended.afterwards });
  });
}

/** Deletes everything stored for a server, including its authorisation, whose tokens are then revoked. */
async function endOfCredentials(
  context: ServiceContext,
  caller: Caller,
  row: McpServerRow,
): Promise<Required<Pick<Change<null>, 'statements' | 'events' | 'afterwards'>>> {
  const stored = await mcpCredentialsOf(context.database, [row.ownerId], [row.id]);
  const revokeTokens = await revocationOf(context, caller, row);
  const paths = stored.map(({ name }) => mcpVaultPath(row.id, name));
  const revokeHeld = await revocationOfHeld(context, row.ownerId, paths);
  return {
    statements: [...deleteMcpAuthorization(context.database, row), ...deleteMcpCredentials(context.database, row)],
    events: stored.map(({ name }) => mcpServerEvent('control.mcp_server.credential_deleted', caller.userId, row, name)),
    afterwards: () => {
      revokeTokens();
      revokeHeld();
    },
  };
}

/** Has the tokens of a server revoked at their provider, once its authorisation is deleted. */
export async function revocationOf(
  context: ServiceContext,
  caller: Caller,
  row: McpServerRow,
): Promise<NonNullable<Change<null>['afterwards']>> {
  const credential = (await findMcpAuthorization(context.database, row.id))?.credential ?? null;
  const client = credential === null ? null : findStoredClient(credential);
  const secret = credential === null ? null : await findSealedSecret(context.database, credential);
  if (client === null || secret === null) return NOTHING_ENDS.afterwards;
  const bundle = readBundle(await openRow(context, secret));
  const event = (type: AuditEventType): AuditDraft => mcpServerEvent(type, caller.userId, row, MCP_OAUTH_NAME);
  const events = {
    revoked: event('control.mcp_server.tokens_revoked'),
    notRevoked: event('control.mcp_server.tokens_not_revoked'),
  };
  return () => revokeGivenUp(context, { client, bundle, enterpriseId: row.enterpriseId, ownerId: row.ownerId, events });
}

/** Refuses with `not_found`. */
export async function getMcpServer(
  context: ServiceContext,
  caller: Caller,
  id: string,
): Promise<Result<McpServerRecord, ApiError>> {
  const row = await visibleMcpServer(context, caller, id);
  return row.ok ? ok(await toRecordOf(context, caller, row.value)) : row;
}

const serverPosition = z.strictObject({ ownerId: z.string(), name: z.string() });

/** Refuses with `invalid_cursor`. */
export async function listMcpServerPage(
  context: ServiceContext,
  caller: Caller,
  query: PageQuery & { readonly owner?: Owner | undefined; readonly name?: string | undefined },
): Promise<Result<Page<McpServerRecord>, ApiError>> {
  const ownerIds = visibleOwners(caller, query.owner);
  const page = await readPage(query, {
    position: serverPosition,
    read: (from) => listMcpServers(context.database, { ownerIds, name: query.name, ...from }),
    toItem: (row) => row,
    positionOf: ({ ownerId, name }) => ({ ownerId, name }),
  });
  return page.ok ? ok({ ...page.value, items: await toRecords(context, caller, page.value.items) }) : page;
}

/** The revisions of a server's configuration, newest first. Refuses with `not_found`. */
export async function listMcpServerRevisions(
  context: ServiceContext,
  caller: Caller,
  id: string,
): Promise<Result<McpRevisionsReply, ApiError>> {
  const row = await visibleMcpServer(context, caller, id);
  if (!row.ok) return row;
  const revisions = await listMcpRevisions(context.database, id);
  return ok({
    items: revisions.map((each) => ({
      revision: each.revision,
      created_at: each.createdAt,
      changed_by: each.changedBy,
      configuration: configurationOf(each),
    })),
  });
}

const ROWS_PER_READ = 200;

/** All servers of these owners, read in pages because a database reply is limited in size. */
export async function listAllMcpServers(context: ServiceContext, ownerIds: readonly string[]): Promise<McpServerRow[]> {
  const found: McpServerRow[] = [];
  let after: McpServerRow | null = null;
  for (;;) {
    const rows: McpServerRow[] = await listMcpServers(context.database, { ownerIds, after, limit: ROWS_PER_READ });
    found.push(...rows);
    after = rows.at(-1) ?? null;
    if (rows.length < ROWS_PER_READ) return found;
  }
}

/** The caller's servers that were installed from one of these registry entries, oldest first. */
export function mcpServersInstalledFrom(
  context: ServiceContext,
  caller: Pick<Caller, 'userId' | 'enterpriseId'>,
  registryIds: readonly string[],
): Promise<McpServerRow[]> {
  return findMcpServersFrom(context.database, visibleOwners(caller), registryIds);
}

/** Refuses with `not_found`. */
export async function visibleMcpServer(
  context: ServiceContext,
  caller: Caller,
  id: string,
): Promise<Result<McpServerRow, ApiError>> {
  const row = await findMcpServer(context.database, visibleOwners(caller), id);
  return row === null ? err(notFound(id)) : ok(row);
}

/** Refuses with `not_found`, `admin_required`. */
export async function writableMcpServer(
  context: ServiceContext,
  caller: Caller,
  id: string,
): Promise<Result<McpServerRow, ApiError>> {
  const row = await visibleMcpServer(context, caller, id);
  if (!row.ok) return row;
  const owner = writableOwner(caller, ownerName(row.value.ownerId));
  return owner.ok ? row : owner;
}

/** The record of a changed row, with the first policy version that includes it. */
async function answerChanged(
  context: ServiceContext,
  caller: Caller,
  changed: Result<McpServerRow, ApiError>,
): Promise<Result<Changed<McpServerRecord>, ApiError>> {
  if (!changed.ok) return changed;
  return withPolicyVersion(context, caller, ok(await toRecordOf(context, caller, changed.value)));
}

function rowOf(
  configuration: McpConfiguration,
  columns: Omit<McpServerRow, 'name' | 'registryId' | 'record'>,
): McpServerRow {
  const { name, registry_id: registryId } = configuration;
  return { ...columns, name, registryId, record: canonicalJson(configuration) };
}

/** The vault paths that a server refers to. */
function pathsOf(row: McpServerRow): string[] {
  return listRequiredCredentials(row).map((name) => mcpVaultPath(row.id, name));
}

/** A change of a server with its event; gateways see it from the next policy version on. */
export function change<T>(
  context: ServiceContext,
  caller: Caller,
  what: {
    readonly type: AuditEventType;
    readonly row: McpServerRow;
    readonly write: Change<T>['statements'];
    readonly value: T;
    /** The name of the credential. */
    readonly credential?: string;
  },
): Change<T> {
  const { type, row, write, value, credential } = what;
  return {
    statements: [...write, bumpPolicy(context.database, row)],
    events: [mcpServerEvent(type, caller.userId, row, credential)],
    value,
  };
}

/** An event about a server and, if given, its credential. */
export function mcpServerEvent(
  type: AuditEventType,
  actor: string | null,
  row: McpServerRow,
  credential?: string,
): AuditDraft {
  const configuration = configurationOf(row);
  const { version } = configuration;
  const data = {
    'svc.control.resource': row.id,
    'svc.control.owner': ownerName(row.ownerId),
    'svc.mcp.server': row.name,
    'svc.mcp.server_id': row.id,
    ...(row.registryId !== null && { 'svc.mcp.registry_id': row.registryId }),
    ...(version !== null && { 'svc.mcp.version': version }),
    ...(findUncheckedCode(configuration).length > 0 && { 'svc.mcp.unchecked': true }),
    ...(credential !== undefined && {
      'svc.control.credential_ref': formatVaultReference(mcpVaultPath(row.id, credential)),
    }),
  };
  return { type, actor, data };
}

function nameTaken(twin: McpServerRow): ApiError {
  const message = `name: the ${ownerName(twin.ownerId)} server ${twin.id} is already called ${twin.name}: choose another name, or change that server with PUT /v1/mcp-servers/${twin.id}`;
  return apiError('name_taken', message, { server_id: twin.id });
}

function changedMeanwhileError({ name, revision }: McpServerRow): ApiError {
  return apiError(
    'conflict',
    `${name} was changed after you read it: it is at revision ${revision} now. Read it again, then apply your change`,
  );
}

function ownerChange(row: McpServerRow): ApiError {
  const owner = ownerName(row.ownerId);
  const message = `must stay "${owner}": the owner of a server cannot change; delete the server and create one for the other owner`;
  return invalidFields([{ field: 'owner', message }]);
}

function notFound(id: string): ApiError {
  return apiError('not_found', `there is no MCP server ${id}: list them with GET /v1/mcp-servers`);
}

function noRevision(row: McpServerRow, revision: number): ApiError {
  const message = `${row.name} has no revision ${revision}: list them with GET /v1/mcp-servers/${row.id}/revisions`;
  return apiError('not_found', message);
}
