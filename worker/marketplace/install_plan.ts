import { completeInstallation, type CompletedInstallation } from '../../shared/mcp/complete_installation.ts';
import type { InputProblem, InputValues } from '../../shared/mcp/install/input_values.ts';
import type { InstallationPlan, InstallChoice, NotInstallable } from '../../shared/mcp/install/plan.ts';
import { findPlanRuleProblem } from '../../shared/mcp/entry_rules.ts';
import { mcpReference } from '../../shared/mcp/references.ts';
import { planInstallation } from '../../shared/mcp/installation.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import { apiError, type ApiError } from '../../shared/wire/errors.ts';
import type { MarketplacePreviewInput, MarketplacePreviewReply } from '../../shared/wire/marketplace.ts';
import type { McpRules } from '../../shared/model/mcp_rules.ts';
import type { Caller } from '../kernel/caller.ts';
import { rulesOf } from '../services/mcp/apply_rules.ts';
import type { MarketplaceContext } from './marketplace_context.ts';
import { findEntry, type FoundEntry, type Freshness } from './find_entry.ts';
import { toMarketplaceInput, toPreview } from './install_preview.ts';

/** An id that no server has. */
const NO_SERVER = 'mcp_00000000000000000000000000';

/** An entry, and the way it is installed. */
interface Planned extends FoundEntry {
  readonly plan: InstallationPlan;
}

/** The wanted package, remote and version. */
type Wanted = Pick<MarketplacePreviewInput, 'package' | 'remote' | 'version'>;

/**
 * Without a wanted package or remote, the best one that the rules of the enterprise let run. Refuses with `not_found`,
 * `registry_unavailable`, `package_not_installable`.
 */
export async function planEntry(
  context: MarketplaceContext,
  registryId: string,
  wanted: Wanted & { readonly freshness: Freshness; readonly rules: McpRules },
): Promise<Result<Planned, ApiError>> {
  const found = await findEntry(context, { name: registryId, version: wanted.version ?? null }, wanted.freshness);
  if (!found.ok) return found;
  const { entry } = found.value;
  const plan = planInstallation(
    entry,
    choiceOf(wanted),
    (each) => findPlanRuleProblem(wanted.rules, entry.name, each) === null,
  );
  return plan.ok ? ok({ ...found.value, plan: plan.value }) : err(notInstallableError(registryId, plan.error));
}

function choiceOf(wanted: Wanted): InstallChoice | undefined {
  if (wanted.package !== undefined) return { kind: 'package', index: wanted.package };
  return wanted.remote === undefined ? undefined : { kind: 'remote', index: wanted.remote };
}

/** The configuration of a plan with the given inputs. Refuses with `inputs_required`. */
export function completePlan(
  plan: InstallationPlan,
  given: InputValues | undefined,
): Result<CompletedInstallation, ApiError> {
  const complete = completeInstallation(plan, NO_SERVER, given ?? {});
  return complete.ok ? ok(withOpenId(complete.value)) : err(inputsRequired(plan, complete.error));
}

function open(text: string): string {
  return text.replaceAll(mcpReference(NO_SERVER, ''), mcpReference('{id}', ''));
}

/** The same for a server without an id yet: references contain `{id}` in its place. */
function withOpenId(complete: CompletedInstallation): CompletedInstallation {
  const openAll = (texts: Readonly<Record<string, string>>) =>
    Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, open(text)]));
  const { command, env, url, headers } = complete;
  return {
    ...complete,
    command: command.map((word) => open(word)),
    env: openAll(env),
    url: url === null ? null : open(url),
    headers: openAll(headers),
  };
}

/**
 * What an install would create, and what is missing. Refuses with `not_found`, `registry_unavailable`,
 * `package_not_installable`.
 */
export async function previewInstall(
  context: MarketplaceContext,
  caller: Caller,
  registryId: string,
  input: MarketplacePreviewInput,
): Promise<Result<MarketplacePreviewReply, ApiError>> {
  const rules = await rulesOf(context, caller.enterpriseId);
  const planned = await planEntry(context, registryId, { ...input, freshness: 'any', rules });
  if (!planned.ok) return planned;
  const { plan, entry, fetchedAt, isStale } = planned.value;
  const ruleProblem = findPlanRuleProblem(rules, entry.name, plan);
  const shown = { preview: toPreview(plan), rule_problem: ruleProblem, fetched_at: fetchedAt, stale: isStale };
  const complete = completeInstallation(plan, NO_SERVER, input.inputs ?? {});
  if (!complete.ok) return ok({ ...shown, outcome: null, required_credentials: [], problems: [...complete.error] });
  const { command, env, url, headers, requiredCredentials } = withOpenId(complete.value);
  const outcome = { command: [...command], env, url, headers };
  return ok({ ...shown, outcome, required_credentials: [...requiredCredentials], problems: [] });
}

/** An entry that cannot be installed safely. */
export function notInstallableError(registryId: string, { reason, message }: NotInstallable): ApiError {
  return apiError('package_not_installable', `${registryId} cannot be installed. ${message}`, { reason });
}

/** Lists the missing inputs, so that the client can ask for them. */
export function inputsRequired(plan: InstallationPlan, problems: readonly InputProblem[]): ApiError {
  const named = new Set(problems.map(({ input }) => input));
  const inputs = plan.inputs.filter(({ name }) => named.has(name)).map((input) => toMarketplaceInput(input));
  const message = problems.map((problem) => `${problem.input} ${problem.message}`).join('; ');
  return apiError('inputs_required', message, { inputs, problems });
}
