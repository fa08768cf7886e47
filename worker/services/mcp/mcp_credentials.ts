import { hasReference, mcpReference } from '../../../shared/mcp/references.ts';
import { MCP_OAUTH_NAME, mcpVaultPath } from '../../../shared/model/mcp_server.ts';
import { err, ok, type Result } from '../../../shared/model/result.ts';
import type { Secret } from '../../../shared/model/secret.ts';
import { apiError, type ApiError } from '../../../shared/wire/errors.ts';
import type { McpCredentialReply } from '../../../shared/wire/mcp/mcp_servers.ts';
import type { Statement } from '../../store/database.ts';
import {
  deleteMcpCredential,
  isStill,
  listMcpRevisions,
  type McpServerRow,
  rewriteMcpRevision,
} from '../../store/mcp/mcp_servers.ts';
import { findSecret } from '../../store/secrets.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { Change } from '../../kernel/commit.ts';
import { configurationProblem, invalidFields } from './mcp_server_checks.ts';
import { listRequiredCredentials } from './mcp_server_records.ts';
import { configurationOf } from './mcp_configuration.ts';
import { change, planConfiguration, writableMcpServer } from './mcp_servers.ts';
import { type Changed, commitPolicy } from '../../kernel/policy_change.ts';
import type { ServiceContext } from '../../kernel/service_context.ts';
import { revocationOfHeld } from '../sources/given_up_values.ts';
import { refuseTaken } from '../vault/secrets.ts';
import { planVaultWrite, type ReservedPlace } from '../vault/vault_write.ts';

/**
 * Stores a credential of a server. The `env` entry of a local server becomes a reference, unless another value already
 * refers to the credential. The configuration of a remote server must refer to it already. With `onlyNew`, no value is
 * replaced. Refuses with `not_found`, `admin_required`, `invalid_input`, `conflict`, `limit_reached`.
 */
export async function storeMcpCredential(
  context: ServiceContext,
  caller: Caller,
  id: string,
  { name, value, onlyNew = false }: { readonly name: string; readonly value: Secret; readonly onlyNew?: boolean },
): Promise<Result<Changed<McpCredentialReply>, ApiError>> {
  return commitPolicy(context, caller, async () => {
    const row = await writableMcpServer(context, caller, id);
    if (!row.ok) return row;
    const place = vaultPlace(row.value, name);
    // Of two that store the first value at once, the write of the second conflicts, and is decided again here.
    if (onlyNew && (await findSecret(context.database, place)) !== null) return err(refuseTaken(place.path));
    const referring = await planReference(context, caller, row.value, name);
    if (!referring.ok) return referring;
    const stored = await planVaultWrite(context, place, value);
    // This condition comes first: the vault must not get entries of a deleted server.
    const write = [
      ...isStill(id, row.value.revision),
      ...stored.statements,
      ...referring.value.statements,
      ...(await withoutPlainValue(context, row.value, name)),
    ];
    const reply: McpCredentialReply = { env_var_name: name, stored: true };
    const type = 'control.mcp_server.credential_stored' as const;
    const made = change(context, caller, { type, row: row.value, write, value: reply, credential: name });
    const adds = [...stored.adds, ...(referring.value.adds ?? [])];
    const afterwards = await revocationOfHeld(context, place.ownerId, [place.path]);
    return ok({ ...made, events: [...referring.value.events, ...made.events], adds, afterwards });
  });
}

/** Makes the configuration refer to a credential; no statements if it does already. */
async function planReference(
  context: ServiceContext,
  caller: Caller,
  row: McpServerRow,
  name: string,
): Promise<Result<Change<McpServerRow>, ApiError>> {
  const referred = listRequiredCredentials(row);
  if (referred.includes(name)) return ok({ statements: [], events: [], value: row });
  const before = configurationOf(row);
  if (before.mode === 'remote') return err(referredByNothingError(row, name, referred));
  const configuration = { ...before, env: { ...before.env, [name]: mcpReference(row.id, name) } };
  const problem = configurationProblem(configuration, row.id);
  return problem === null ? planConfiguration(context, caller, row, configuration) : err(problem);
}

/** Deletes the stored value. The configuration still refers to it. Refuses with `not_found`, `admin_required`. */
export async function removeMcpCredential(
  context: ServiceContext,
  caller: Caller,
  id: string,
  name: string,
): Promise<Result<Changed<null>, ApiError>> {
  return commitPolicy(context, caller, async () => {
    const found = await writableMcpServer(context, caller, id);
    if (!found.ok) return found;
    const row = found.value;
    const place = { ownerId: row.ownerId, path: mcpVaultPath(id, name) };
    const secret = name === MCP_OAUTH_NAME ? null : await findSecret(context.database, place);
    if (secret === null) return err(notStoredError(row, name));
    const write = deleteMcpCredential(context.database, place.ownerId, place.path);
    const type = 'control.mcp_server.credential_deleted' as const;
    const afterwards = await revocationOfHeld(context, place.ownerId, [place.path]);
    return ok({ ...change(context, caller, { type, row, write, value: null, credential: name }), afterwards });
  });
}

/** Removes a value that was typed into the configuration before it was stored in the vault from earlier revisions. */
async function withoutPlainValue(context: ServiceContext, row: McpServerRow, name: string): Promise<Statement[]> {
  const revisions = await listMcpRevisions(context.database, row.id);
  return revisions.flatMap((revision) => {
    const configuration = configurationOf(revision);
    if (!isPlain(configuration.env[name])) return [];
    const env = { ...configuration.env, [name]: mcpReference(row.id, name) };
    return rewriteMcpRevision(context.database, revision, JSON.stringify({ ...configuration, env }));
  });
}

function isPlain(value: string | undefined): boolean {
  return value !== undefined && !hasReference(value);
}

/** The vault place of a server's credential. */
function vaultPlace({ id, enterpriseId, ownerId, name: server }: McpServerRow, name: string): ReservedPlace {
  return { enterpriseId, ownerId, path: mcpVaultPath(id, name), description: `credential of the MCP server ${server}` };
}

function referredByNothingError(row: McpServerRow, name: string, referred: readonly string[]): ApiError {
  const known = referred.length === 0 ? 'it refers to none' : `it refers to ${referred.join(', ')}`;
  const message = `is not used: no header and no query of ${row.name} refers to it (${known}); write ${mcpReference(row.id, name)} into one of them first`;
  return invalidFields([{ field: 'env_var_name', message }]);
}

function notStoredError(row: McpServerRow, name: string): ApiError {
  const shown = /^\w{1,128}$/.test(name) ? name : 'that';
  return apiError(
    'not_found',
    `${row.name} has no stored credential ${shown}: GET /v1/mcp-servers/${row.id} lists them`,
  );
}
