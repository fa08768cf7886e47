import { completeInstallation } from '../../shared/mcp/complete_installation.ts';
import type { InputProblem, InputValues } from '../../shared/mcp/install/input_values.ts';
import { installationOptions } from '../../shared/mcp/installation.ts';
import type { InstallationPlan, PlanField } from '../../shared/mcp/install/plan.ts';
import type { CompletedInstallation } from '../../shared/mcp/complete_installation.ts';
import { previewUrl, previewWords } from '../../shared/mcp/install/preview.ts';
import type { RegistryEntry } from '../../shared/mcp/registry_entry.ts';
import type { Result } from '../../shared/model/result.ts';
import type { McpConfiguration } from '../services/mcp/mcp_configuration.ts';
import type { FoundEntry } from './find_entry.ts';
import { recoverInputs } from './recover_inputs.ts';

/** The entry's plan that makes the same kind of server as the configuration; null if none can be installed. */
export function findFittingPlan(entry: RegistryEntry, configuration: McpConfiguration): InstallationPlan | null {
  const plans = installationOptions(entry).flatMap(({ plan }) => (plan.ok ? [plan.value] : []));
  const alike = plans.filter((plan) => isAlike(plan, configuration));
  return alike.find((plan) => isSamePackage(plan, configuration)) ?? alike[0] ?? plans[0] ?? null;
}

function isAlike(plan: InstallationPlan, { mode, command, transport }: McpConfiguration): boolean {
  if (plan.mode !== mode) return false;
  return mode === 'remote' ? plan.transport === transport : previewWords(plan.command)[0] === command[0];
}

/** The same words apart from versions, or the same address. */
function isSamePackage(plan: InstallationPlan, { command, url }: McpConfiguration): boolean {
  if (plan.mode === 'remote') return url === previewUrl(plan);
  const own = new Set(command.map((word) => dropVersion(word)));
  return previewWords(plan.command).every((word) => word.startsWith('{') || own.has(dropVersion(word)));
}

/** A word without the version after a package or image name. */
function dropVersion(word: string): string {
  return word.replace(/(?<=.)[@:].*$/, '');
}

/** A configuration for a newer version of its entry. */
export interface Upgraded {
  readonly plan: InstallationPlan;
  /** The configuration was changed since it was installed. */
  readonly isCustomised: boolean;
  readonly result: Result<
    { readonly configuration: McpConfiguration; readonly complete: CompletedInstallation },
    readonly InputProblem[]
  >;
}

/** The configuration after an upgrade, from the inputs of the install and the inputs given now. */
export function upgradeConfiguration(
  found: FoundEntry,
  plan: InstallationPlan,
  before: McpConfiguration,
  { serverId, given }: { readonly serverId: string; readonly given: InputValues },
): Upgraded {
  const old = planOfVersion(found, before);
  const recovered = recoverInputs(old ?? plan, before);
  const known = new Set(plan.inputs.map(({ name }) => name));
  const kept = Object.fromEntries(Object.entries(recovered.values).filter(([name]) => known.has(name)));
  const made = completeInstallation(plan, serverId, { ...kept, ...given });
  const isCustomised = old !== null && !recovered.isOfPlan;
  if (!made.ok) return { plan, isCustomised, result: made };
  const keep = (fields: readonly PlanField[], oldFields: readonly PlanField[]) => ({ fields, oldFields, given });
  const configuration: McpConfiguration = {
    ...before,
    mode: made.value.mode,
    version: made.value.version ?? found.entry.version,
    command: [...made.value.command],
    url: made.value.url,
    transport: made.value.transport,
    env: keepFields(before.env, made.value.env, keep(plan.env, old?.env ?? [])),
    headers: keepFields(before.headers, made.value.headers, keep(plan.headers, old?.headers ?? [])),
  };
  return { plan, isCustomised, result: { ok: true, value: { configuration, complete: made.value } } };
}

/** The plan that a configuration was installed by; null if its version no longer exists. */
function planOfVersion({ versions }: FoundEntry, before: McpConfiguration): InstallationPlan | null {
  const plans = versions.map((entry) => ({ entry, plan: findFittingPlan(entry, before) }));
  const own = plans.filter(({ plan }) => plan !== null && isAlike(plan, before));
  const isOwn = ({ entry, plan }: (typeof plans)[number]) => (plan?.version ?? entry.version) === before.version;
  return own.find(isOwn)?.plan ?? null;
}

/**
 * Variables or headers after an upgrade: the publisher's new ones, the earlier values of inputs unless they are given
 * again, and what users have added.
 */
function keepFields(
  before: Readonly<Record<string, string>>,
  made: Readonly<Record<string, string>>,
  { fields, oldFields, given }: { fields: readonly PlanField[]; oldFields: readonly PlanField[]; given: InputValues },
): Record<string, string> {
  const isGone = (name: string) =>
    oldFields.some((field) => field.name === name) && !fields.some((field) => field.name === name);
  const isTyped = ({ value }: PlanField) => {
    const inputs = value.flatMap((piece) => (piece.kind === 'input' ? [piece.input] : []));
    return inputs.length > 0 && !inputs.some((input) => Object.hasOwn(given, input));
  };
  const typed = new Set(fields.filter((field) => isTyped(field)).map(({ name }) => name));
  const added = Object.entries(before).filter(
    ([name]) => !isGone(name) && (typed.has(name) || !Object.hasOwn(made, name)),
  );
  return { ...made, ...Object.fromEntries(added) };
}
