import type { CompletedInstallation } from '../../shared/mcp/complete_installation.ts';
import type { RegistryEntry } from '../../shared/mcp/registry_entry.ts';
import { isContainerCommand } from '../../shared/mcp/server_isolation.ts';
import type { Owner } from '../../shared/model/host_binding.ts';
import type { McpRules } from '../../shared/model/mcp_rules.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import { Secret } from '../../shared/model/secret.ts';
import { type ApiError, fieldProblems } from '../../shared/wire/errors.ts';
import type { MarketplaceInstallInput, MarketplaceInstallReply } from '../../shared/wire/marketplace.ts';
import {
  mcpServerInput,
  type McpServerInput,
  listMissingCredentials,
  type ValidMcpServer,
} from '../../shared/wire/mcp/mcp_servers.ts';
import { type Caller, ownerId, writableOwner } from '../kernel/caller.ts';
import { storeMcpCredential } from '../services/mcp/mcp_credentials.ts';
import { checkRules, rulesOf } from '../services/mcp/apply_rules.ts';
import { toRecordOf } from '../services/mcp/mcp_server_records.ts';
import { createMcpServer, getMcpServer, mcpServersInstalledFrom } from '../services/mcp/mcp_servers.ts';
import { type Changed, withPolicyVersion } from '../kernel/policy_change.ts';
import type { MarketplaceContext } from './marketplace_context.ts';
import type { McpServerRow } from '../store/mcp/mcp_servers.ts';
import { completePlan, notInstallableError, planEntry } from './install_plan.ts';
import { addNumber, plainLine, serverName } from './server_names.ts';

/** The result of an install: a new server, or the existing one. */
interface Installed {
  readonly reply: MarketplaceInstallReply;
  readonly isNew: boolean;
}
type Installing = Promise<Result<Changed<Installed>, ApiError>>;

/** The limit for servers whose names differ only by a number. */
const MAX_NUMBERED = 20;
const MAX_DESCRIPTION = 1_000;

/** The owner and name of an entry's server; the default name is made from the entry's. */
interface InstallTarget {
  readonly registryId: string;
  readonly owner: Owner;
  readonly name: string | undefined;
}

/**
 * Installs an entry as the registry returns it now or returned it within the last 15 minutes. If the server is
 * installed already, it is returned unchanged. Refuses with `not_found`, `registry_unavailable`,
 * `package_not_installable`, `inputs_required`, `admin_required`, `name_taken`, `mcp_rule`.
 */
export async function install(
  context: MarketplaceContext,
  caller: Caller,
  registryId: string,
  input: MarketplaceInstallInput,
): Installing {
  const target = { registryId, owner: input.owner ?? 'personal', name: input.name };
  const mayWrite = writableOwner(caller, target.owner);
  if (!mayWrite.ok) return mayWrite;
  const before = await findInstalled(context, caller, target);
  if (before !== null) return answerAsItIs(context, caller, before);
  const rules = await rulesOf(context, caller.enterpriseId);
  const planned = await planEntry(context, registryId, { ...input, freshness: 'fresh', rules });
  if (!planned.ok) return planned;
  const complete = completePlan(planned.value.plan, input.inputs);
  if (!complete.ok) return complete;
  const isolation = input.isolation ?? leastIsolation(rules, complete.value);
  const configuration = configurationOf(planned.value.entry, complete.value, { ...target, isolation });
  if (!configuration.ok) return configuration;
  const draft = { id: '', revision: 1, enterpriseId: caller.enterpriseId, record: JSON.stringify(configuration.value) };
  const refused = await checkRules(context, draft, true);
  if (refused !== null) return err(refused);
  if (input.dry_run === true) return dryRun(context, caller, complete.value);
  return create(context, caller, { target, configuration: configuration.value, complete: complete.value });
}

/** What the rules ask for, if the caller has chosen nothing; a command that starts a container is one already. */
function leastIsolation({ isolation }: McpRules, { command }: CompletedInstallation) {
  return isolation === 'container' && !isContainerCommand(command) ? isolation : undefined;
}

/** The caller's server that an install of this entry would create again. */
async function findInstalled(
  context: MarketplaceContext,
  caller: Caller,
  target: InstallTarget,
): Promise<McpServerRow | null> {
  const rows = await mcpServersInstalledFrom(context, caller, [target.registryId]);
  const own = rows.filter((row) => row.ownerId === ownerId(caller, target.owner));
  return own.find(({ name }) => target.name === undefined || name === target.name) ?? null;
}

function configurationOf(
  entry: RegistryEntry,
  complete: CompletedInstallation,
  { registryId, owner, name, isolation }: InstallTarget & { readonly isolation: MarketplaceInstallInput['isolation'] },
): Result<ValidMcpServer, ApiError> {
  const { mode, command, env, url, transport, headers, version } = complete;
  const input: McpServerInput = {
    owner,
    name: name ?? serverName(registryId),
    description: plainLine(entry.description, MAX_DESCRIPTION),
    registry_id: registryId,
    version: version ?? entry.version,
    mode,
    command: [...command],
    env,
    url,
    transport,
    headers,
    ...(mode === 'local' && isolation !== undefined && { isolation }),
  };
  return checkConfiguration(registryId, input);
}

/** The result must be a valid configuration, like one that a user writes. */
export function checkConfiguration(registryId: string, input: McpServerInput): Result<ValidMcpServer, ApiError> {
  const valid = mcpServerInput.safeParse(input);
  if (valid.success) return ok(valid.data);
  const problems = fieldProblems(valid.error).map(({ field, message }) => `${field} ${message}`);
  const message = `Its configuration would be invalid: ${problems.join('; ')}`;
  return err(notInstallableError(registryId, { reason: 'command_refused', message }));
}

interface Creation {
  readonly target: InstallTarget;
  readonly configuration: ValidMcpServer;
  readonly complete: CompletedInstallation;
}

/** Creates the server under the requested name or the first free one. Of two concurrent installs, one creates it. */
async function create(context: MarketplaceContext, caller: Caller, creation: Creation): Installing {
  const { target, configuration } = creation;
  for (let number = 1; ; number += 1) {
    const name = number === 1 ? configuration.name : addNumber(configuration.name, number);
    const created = await createMcpServer(context, caller, { ...configuration, name }, { isDerived: true });
    if (created.ok) return withCredentials(context, caller, created.value.value.id, creation.complete);
    if (created.error.code !== 'name_taken') return err(toEntryRefusal(target.registryId, created.error));
    const meanwhile = await findInstalled(context, caller, target);
    if (meanwhile !== null) return answerAsItIs(context, caller, meanwhile);
    if (target.name !== undefined || number === MAX_NUMBERED) return created;
  }
}

/** An invalid configuration is the entry's fault here, not the caller's. */
function toEntryRefusal(registryId: string, error: ApiError): ApiError {
  if (error.code !== 'invalid_input') return error;
  return notInstallableError(registryId, {
    reason: 'command_refused',
    message: `Its command is refused: ${error.message}`,
  });
}

/** Stores the given secrets; the configuration only refers to them. */
async function withCredentials(
  context: MarketplaceContext,
  caller: Caller,
  serverId: string,
  { credentials, requiredCredentials }: CompletedInstallation,
): Installing {
  for (const { name, value } of credentials) {
    const stored = await storeMcpCredential(context, caller, serverId, { name, value: new Secret(value) });
    if (!stored.ok) return stored;
  }
  const server = await getMcpServer(context, caller, serverId);
  if (!server.ok) return server;
  const reply = { server: server.value, required_credentials: [...requiredCredentials] };
  return withPolicyVersion(context, caller, ok({ reply, isNew: true }));
}

/** The existing server; what it lacks are the credentials it refers to. */
async function answerAsItIs(context: MarketplaceContext, caller: Caller, row: McpServerRow): Installing {
  const server = await toRecordOf(context, caller, row);
  const required_credentials = listMissingCredentials(server).map((name) => {
    return { name, description: '', required: true, secret: true };
  });
  return withPolicyVersion(context, caller, ok({ reply: { server, required_credentials }, isNew: false }));
}

function dryRun(
  context: MarketplaceContext,
  caller: Caller,
  { requiredCredentials }: CompletedInstallation,
): Installing {
  const reply = { server: null, required_credentials: [...requiredCredentials] };
  return withPolicyVersion(context, caller, ok({ reply, isNew: false }));
}
