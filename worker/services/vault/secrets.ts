import { z } from 'zod';
import type { Owner } from '../../../shared/model/host_binding.ts';
import { mcpCredentialAt, mcpVaultPath } from '../../../shared/model/mcp_server.ts';
import { err, ok, type Result } from '../../../shared/model/result.ts';
import type { Secret } from '../../../shared/model/secret.ts';
import { formatVaultReference, parseVaultReference } from '../../../shared/model/vault_path.ts';
import { apiError, type ApiError } from '../../../shared/wire/errors.ts';
import { isId } from '../../../shared/wire/ids.ts';
import type { Page } from '../../../shared/wire/primitives.ts';
import type { SecretRecord } from '../../../shared/wire/secrets.ts';
import { bumpPolicy } from '../../store/accounts.ts';
import { type ConnectorSummaryRow, listConnectorsAt } from '../../store/connectors.ts';
import { listSentinels } from '../../store/host_bindings.ts';
import { findMcpServer, type McpServerRow } from '../../store/mcp/mcp_servers.ts';
import {
  bindingsUsing,
  deleteSecret,
  findSecret,
  findSecretById,
  insertSecret,
  listSecrets,
  replaceSecret,
  type SecretRow,
  type SecretSummary,
} from '../../store/secrets.ts';
import { revocationOfHeld } from '../sources/given_up_values.ts';
import { listAllClientCertificates } from '../bindings/client_certificates.ts';
import { type Caller, managedData, ownerName, visibleOwners, writableOwner } from '../../kernel/caller.ts';
import type { AuditDraft, Change } from '../../kernel/commit.ts';
import { type PageQuery, readPage } from '../../kernel/cursors.ts';
import type { Addition } from '../../kernel/quotas.ts';
import { growthOfSecret } from '../../store/quotas.ts';
import { type Changed, commitPolicy } from '../../kernel/policy_change.ts';
import { freshId, nowText, type ServiceContext } from '../../kernel/service_context.ts';

interface SecretToStore {
  readonly path: string;
  readonly value: Secret;
  readonly description?: string | undefined;
  /** Of this value alone: one that replaces it has its own, or none. */
  readonly expires_at?: string | undefined;
  readonly owner: Owner;
}

/** What refuses a place that has a secret already. */
export interface OnlyNew {
  /** A secret that is there is not replaced. */
  readonly onlyNew?: boolean;
}

/** Refuses a place with a secret, for what may replace none. */
export function refuseTaken(path: string): ApiError {
  return apiError('conflict', `there is a secret at ${path} already: it was not replaced`);
}

/** Creates a secret, or replaces its value. Refuses with `admin_required`, `invalid_input` for a placeholder, `conflict`, `limit_reached`. */
export async function storeSecret(
  context: ServiceContext,
  caller: Caller,
  input: SecretToStore & OnlyNew,
): Promise<Result<Changed<{ secret: SecretRecord; created: boolean }>, ApiError>> {
  const owner = writableOwner(caller, input.owner);
  if (!owner.ok) return owner;
  if (await isPlaceholder(context, caller, input.value)) return err(placeholderError());
  return commitPolicy(context, caller, async () => {
    const storing = await secretStoring(context, caller, owner.value, input);
    return input.onlyNew === true && !storing.value.created ? err(refuseTaken(input.path)) : ok(storing);
  });
}

/** What stores a secret, for a caller who may. */
export async function secretStoring(
  context: ServiceContext,
  caller: Caller,
  owner: string,
  input: SecretToStore,
): Promise<Change<{ secret: SecretRecord; created: boolean }>> {
  const before = await findSecret(context.database, { ownerId: owner, path: input.path });
  const row = await sealRow(context, caller, { ...input, ownerId: owner }, before);
  const write = before === null ? insertSecret(context.database, row) : replaceSecret(context.database, row);
  const value = { secret: toRecord(row), created: before === null };
  const afterwards = await revocationOfHeld(context, owner, before === null ? [] : [input.path]);
  const stored = change(context, caller, 'control.secret.stored', row, write, value);
  return { ...stored, adds: additionsOf(row, before), afterwards };
}

/** What storing a sealed value adds. */
export function additionsOf({ id, ownerId: holder, sealed }: SecretRow, before: SecretSummary | null): Addition[] {
  const grown: Addition = { kind: 'secret_bytes', holder, by: growthOfSecret(id, sealed) };
  return before === null ? [{ kind: 'secrets', holder }, grown] : [grown];
}

/**
 * Whether the value is the placeholder of a binding that the caller sees. Stored, it would replace a credential by a text that
 * no service accepts. The comparison is made here, because the database must not receive the value.
 */
async function isPlaceholder(context: ServiceContext, caller: Caller, value: Secret): Promise<boolean> {
  const text = value.reveal().trim();
  return (await listSentinels(context.database, visibleOwners(caller))).includes(text);
}

function placeholderError(): ApiError {
  const message = 'is the placeholder of a binding, not a credential: store the credential itself';
  return apiError('invalid_input', `value ${message}`, { fields: [{ field: 'value', message }] });
}

/** The row of a sealed value at a place: its first version, or the one after the given row. */
export async function sealRow(
  context: ServiceContext,
  caller: Pick<Caller, 'enterpriseId'>,
  input: SecretToStore & { readonly ownerId: string },
  before: SecretSummary | null,
): Promise<SecretRow> {
  const { ownerId, path } = input;
  const version = (before?.version ?? 0) + 1;
  const now = nowText(context);
  return {
    id: before?.id ?? freshId(context, 'sec'),
    enterpriseId: caller.enterpriseId,
    ownerId,
    path,
    description: input.description ?? before?.description ?? null,
    version,
    sealed: await context.vault.seal({ owner: ownerId, path, version }, input.value),
    fingerprint: await context.vault.fingerprint(ownerId, input.value),
    expiresAt: input.expires_at ?? null,
    createdAt: before?.createdAt ?? now,
    updatedAt: now,
  };
}

const secretPosition = z.strictObject({ ownerId: z.string(), path: z.string() });

/** The secrets a caller sees, never with their values. Refuses with `invalid_cursor`. */
export async function listSecretPage(
  context: ServiceContext,
  caller: Caller,
  query: PageQuery & { readonly owner?: Owner | undefined },
): Promise<Result<Page<SecretRecord>, ApiError>> {
  return readPage(query, {
    position: secretPosition,
    read: (from) => listSecrets(context.database, { ownerIds: visibleOwners(caller, query.owner), ...from }),
    toItem: toRecord,
    positionOf: ({ ownerId, path }) => ({ ownerId, path }),
  });
}

/** A secret that the caller may change, by its path or id. Refuses with `not_found`, `admin_required`. */
export async function findOwnSecret(
  context: ServiceContext,
  caller: Caller,
  target: { readonly owner: Owner; readonly pathOrId: string },
): Promise<Result<SecretSummary, ApiError>> {
  const owner = writableOwner(caller, target.owner);
  if (!owner.ok) return owner;
  const row = await findByPathOrId(context, owner.value, target.pathOrId);
  return row === null ? err(notFound(target.pathOrId, target.owner)) : ok(row);
}

/** Deletes a secret by its path or id. Refuses with `not_found`, `secret_in_use`, `admin_required`. */
export async function removeSecret(
  context: ServiceContext,
  caller: Caller,
  target: { readonly owner: Owner; readonly pathOrId: string },
): Promise<Result<Changed<null>, ApiError>> {
  const mayWrite = writableOwner(caller, target.owner);
  if (!mayWrite.ok) return mayWrite;
  return commitPolicy(context, caller, async () => {
    const found = await findOwnSecret(context, caller, target);
    if (!found.ok) return found;
    const row = found.value;
    const uses = await bindingsUsing(context.database, row);
    if (uses.length > 0) return err(inUseError(row, uses));
    const certified = (await listAllClientCertificates(context, row.ownerId)).filter(
      ({ credential_ref: reference }) => reference === formatVaultReference(row.path),
    );
    if (certified.length > 0) return err(usedByCertificatesError(row, certified));
    const connectors = await listConnectorsAt(context.database, row);
    if (connectors.length > 0) return err(usedByConnectorsError(row, connectors));
    const server = await mcpServerOf(context, row);
    if (server !== null) return err(usedByMcpServerError(row, server));
    const afterwards = await revocationOfHeld(context, row.ownerId, [row.path]);
    const write = deleteSecret(context.database, row);
    return ok({ ...change(context, caller, 'control.secret.deleted', row, write, null), afterwards });
  });
}

/** The value of a row. Throws if the vault cannot open it, because the row is then damaged. */
export async function openRow(context: ServiceContext, row: SecretRow): Promise<Secret> {
  const secret = await context.vault.open({ owner: row.ownerId, path: row.path, version: row.version }, row.sealed);
  if (secret !== null) return secret;
  throw Object.assign(new Error(`the vault cannot open ${row.id}`), { code: 'vault_entry_damaged' });
}

function findByPathOrId(context: ServiceContext, ownerId: string, pathOrId: string): Promise<SecretSummary | null> {
  return isId('sec', pathOrId)
    ? findSecretById(context.database, ownerId, pathOrId)
    : findSecret(context.database, { ownerId, path: pathOrId });
}

function notFound(pathOrId: string, owner: Owner): ApiError {
  return apiError(
    'not_found',
    `there is no ${owner} secret ${JSON.stringify(pathOrId)}: list them with GET /v1/secrets`,
  );
}

function usedByConnectorsError(
  row: SecretSummary,
  used: readonly { readonly connector: ConnectorSummaryRow }[],
): ApiError {
  const connectors = used.map(({ connector: { id, fqn } }) => ({ id, fqn, owner: ownerName(row.ownerId) }));
  const deletions = connectors.map(({ id }) => `DELETE /v1/connectors/${id}/credential`).join(' and ');
  const names = connectors.map(({ fqn }) => fqn).join(', ');
  const message = parseVaultReference(formatVaultReference(row.path)).ok
    ? `the secret ${row.path} serves ${names}: give each another credential first, or remove it`
    : `the secret ${row.path} is the credential of the connector ${names}: delete it with ${deletions}`;
  return apiError('secret_in_use', message, { bindings: [], connectors });
}

/** The MCP server that a vault entry belongs to; a server's entries are deleted with it. */
async function mcpServerOf(context: ServiceContext, { ownerId, path }: SecretSummary): Promise<McpServerRow | null> {
  const credential = mcpCredentialAt(path);
  return credential === null ? null : findMcpServer(context.database, [ownerId], credential.serverId);
}

function usedByMcpServerError(row: SecretSummary, { id, name }: McpServerRow): ApiError {
  const credential = row.path.slice(mcpVaultPath(id, '').length);
  const message = `the secret ${row.path} is a credential of the MCP server ${name}: delete it with DELETE /v1/mcp-servers/${id}/credentials/${credential}`;
  const servers = [{ id, name, owner: ownerName(row.ownerId) }];
  return apiError('secret_in_use', message, { bindings: [], connectors: [], mcp_servers: servers });
}

function usedByCertificatesError(row: SecretSummary, used: readonly { id: string; host: string }[]): ApiError {
  const hosts = used.map(({ host }) => host);
  const commands = hosts.map((host) => `svc cert rm ${host}`).join('; ');
  const message = `the secret ${row.path} is the client certificate of ${hosts.join(', ')}: withdraw it first (${commands})`;
  const certificates = used.map(({ id, host }) => ({ id, host }));
  return apiError('secret_in_use', message, { bindings: [], connectors: [], client_certificates: certificates });
}

function inUseError(row: SecretSummary, uses: readonly { id: string; host: string }[]): ApiError {
  const owner = ownerName(row.ownerId);
  const hosts = uses.map((use) => use.host).join(', ');
  const message = `the secret ${row.path} is used by the bindings of ${hosts}: delete or change these first`;
  return apiError('secret_in_use', message, {
    bindings: uses.map((use) => ({ ...use, owner })),
    connectors: [],
  });
}

function change<T>(
  context: ServiceContext,
  caller: Caller,
  type: AuditDraft['type'],
  row: SecretSummary,
  write: Change<T>['statements'],
  value: T,
): Change<T> {
  const data = {
    'svc.control.resource': row.id,
    'svc.control.credential_ref': formatVaultReference(row.path),
    'svc.control.owner': ownerName(row.ownerId),
  };
  return {
    statements: [...write, bumpPolicy(context.database, row)],
    events: [{ type, actor: caller.userId, data: { ...data, ...managedData(caller) } }],
    value,
  };
}

function toRecord(row: SecretSummary): SecretRecord {
  return {
    id: row.id,
    path: row.path,
    ref: formatVaultReference(row.path),
    owner: ownerName(row.ownerId),
    description: row.description,
    version: row.version,
    ...(row.expiresAt !== null && { expires_at: row.expiresAt }),
    created_at: row.createdAt,
    updated_at: row.updatedAt,
  };
}
