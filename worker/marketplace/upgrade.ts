import { ok, err, type Result } from '../../shared/model/result.ts';
import { Secret } from '../../shared/model/secret.ts';
import { apiError, type ApiError } from '../../shared/wire/errors.ts';
import type { MarketplaceInstallReply, UpgradeInput, UpgradeReply } from '../../shared/wire/marketplace.ts';
import { type Caller, visibleOwners } from '../kernel/caller.ts';
import { commit } from '../kernel/commit.ts';
import { storeMcpCredential } from '../services/mcp/mcp_credentials.ts';
import { configurationProblem } from '../services/mcp/mcp_server_checks.ts';
import { configurationOf, type McpConfiguration } from '../services/mcp/mcp_configuration.ts';
import { getMcpServer, planConfiguration, writableMcpServer } from '../services/mcp/mcp_servers.ts';
import { type Changed, controlChain, withPolicyVersion } from '../kernel/policy_change.ts';
import type { MarketplaceContext } from './marketplace_context.ts';
import { findMcpServer, type McpServerRow } from '../store/mcp/mcp_servers.ts';
import { findEntry, type FoundEntry, type Freshness } from './find_entry.ts';
import { checkConfiguration } from './install.ts';
import { inputsRequired, notInstallableError } from './install_plan.ts';
import { toPreview } from './install_preview.ts';
import { findFittingPlan, upgradeConfiguration, type Upgraded } from './upgrade_configuration.ts';

/** What an upgrade would change. Refuses with `not_found`, `registry_unavailable`, `package_not_installable`. */
export async function showUpgrade(
  context: MarketplaceContext,
  caller: Caller,
  id: string,
  version: string | null,
): Promise<Result<UpgradeReply, ApiError>> {
  const row = await findMcpServer(context.database, visibleOwners(caller), id);
  const found = await newerEntry(context, row, { id, version, freshness: 'any' });
  if (!found.ok) return found;
  const made = upgradeOf(found.value, {});
  if (!made.ok) return made;
  const { before, entry } = found.value;
  const after = made.value.result.ok ? made.value.result.value.configuration : null;
  return ok({
    from_version: before.version,
    to_version: made.value.plan.version ?? entry.version,
    entry_version: entry.version,
    available: after === null || JSON.stringify(after) !== JSON.stringify(before),
    customised: made.value.isCustomised,
    diff: differences(before, after, toPreview(made.value.plan)),
    preview: toPreview(made.value.plan),
    problems: made.value.result.ok ? [] : [...made.value.result.error],
    fetched_at: found.value.fetchedAt,
    stale: found.value.isStale,
  });
}

/**
 * Gives a server the configuration of another version, as a new revision that a rollback can undo. Refuses with
 * `not_found`, `admin_required`, `registry_unavailable`, `package_not_installable`, `inputs_required`.
 */
export async function upgrade(
  context: MarketplaceContext,
  caller: Caller,
  id: string,
  { version, inputs = {} }: UpgradeInput,
): Promise<Result<Changed<MarketplaceInstallReply>, ApiError>> {
  const row = await writableMcpServer(context, caller, id);
  if (!row.ok) return row;
  const found = await newerEntry(context, row.value, { id, version: version ?? null, freshness: 'fresh' });
  if (!found.ok) return found;
  const done = await commit(context, controlChain(caller), async () => {
    const current = await writableMcpServer(context, caller, id);
    if (!current.ok) return current;
    const after = makeUpgrade({ ...found.value, row: current.value }, inputs);
    if (!after.ok) return after;
    // Command and URL are made anew from the entry; only variables and headers are kept.
    return planConfiguration(context, caller, current.value, after.value.configuration, { isDerived: true });
  });
  if (!done.ok) return done;
  const complete = makeUpgrade({ ...found.value, row: row.value }, inputs);
  if (!complete.ok) return complete;
  for (const { name, value } of complete.value.complete.credentials) {
    const stored = await storeMcpCredential(context, caller, id, { name, value: new Secret(value) });
    if (!stored.ok) return stored;
  }
  const server = await getMcpServer(context, caller, id);
  if (!server.ok) return server;
  const set = new Set(server.value.credentials.filter((each) => each.set).map(({ name }) => name));
  const lacking = complete.value.complete.requiredCredentials.filter(({ name }) => !set.has(name));
  return withPolicyVersion(context, caller, ok({ server: server.value, required_credentials: lacking }));
}

/** A server, and the entry that it is upgraded to. */
interface Newer extends FoundEntry {
  readonly row: McpServerRow;
  readonly before: McpConfiguration;
  readonly registryId: string;
}

async function newerEntry(
  context: MarketplaceContext,
  row: McpServerRow | null,
  wanted: { readonly id: string; readonly version: string | null; readonly freshness: Freshness },
): Promise<Result<Newer, ApiError>> {
  if (row === null) return err(apiError('not_found', `there is no MCP server ${wanted.id}`));
  const { registryId } = row;
  if (registryId === null) return err(apiError('not_found', `${row.name} was not installed from the registry`));
  const found = await findEntry(context, { name: registryId, version: wanted.version }, wanted.freshness);
  return found.ok ? ok({ ...found.value, row, before: configurationOf(row), registryId }) : found;
}

function upgradeOf(newer: Newer, given: NonNullable<UpgradeInput['inputs']>): Result<Upgraded, ApiError> {
  const before = configurationOf(newer.row);
  const plan = findFittingPlan(newer.entry, before);
  if (plan !== null) return ok(upgradeConfiguration(newer, plan, before, { serverId: newer.row.id, given }));
  const message = `No package or remote of ${newer.entry.version} can be installed: see GET /v1/marketplace/servers/${encodeURIComponent(newer.registryId)}.`;
  return err(notInstallableError(newer.registryId, { reason: 'nothing_to_install', message }));
}

function makeUpgrade(newer: Newer, given: NonNullable<UpgradeInput['inputs']>) {
  const made = upgradeOf(newer, given);
  if (!made.ok) return made;
  if (!made.value.result.ok) return err(inputsRequired(made.value.plan, made.value.result.error));
  const { configuration, complete } = made.value.result.value;
  const checked = checkConfiguration(newer.registryId, configuration);
  if (!checked.ok) return checked;
  const problem = configurationProblem(configuration, newer.row.id);
  if (problem === null) return ok({ configuration, complete });
  return err(notInstallableError(newer.registryId, { reason: 'command_refused', message: problem.message }));
}

/** The differences; if inputs are missing, to the part of the new configuration that is known. */
function differences(
  before: McpConfiguration,
  after: McpConfiguration | null,
  preview: ReturnType<typeof toPreview>,
): UpgradeReply['diff'] {
  const { command, url, env, headers } = after ?? { ...preview, env: before.env, headers: before.headers };
  const isOtherCommand = JSON.stringify(before.command) !== JSON.stringify(command);
  return {
    command: isOtherCommand ? { before: [...before.command], after: [...command] } : null,
    url: before.url === url ? null : { before: before.url, after: url },
    env: listChangedFields(before.env, env),
    headers: listChangedFields(before.headers, headers),
  };
}

function listChangedFields(
  before: Readonly<Record<string, string>>,
  after: Readonly<Record<string, string>>,
): UpgradeReply['diff']['env'] {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  const changes = names.map((name) => [name, { before: before[name] ?? null, after: after[name] ?? null }] as const);
  return Object.fromEntries(changes.filter(([, change]) => change.before !== change.after));
}
