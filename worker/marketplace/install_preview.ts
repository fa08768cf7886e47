import type { InstallationOption } from '../../shared/mcp/installation.ts';
import type { InstallationPlan, PlanField, PlanInput } from '../../shared/mcp/install/plan.ts';
import { previewText, previewUrl, previewWords } from '../../shared/mcp/install/preview.ts';
import { toSentence } from '../../shared/model/sentence.ts';
import type { RegistryEntry } from '../../shared/mcp/registry_entry.ts';
import type { InstallPreview, MarketplaceDetail, MarketplaceInput } from '../../shared/wire/marketplace.ts';

/** What an install with this plan creates, before its inputs have values. */
export function toPreview(plan: InstallationPlan): InstallPreview {
  return {
    choice: plan.choice,
    mode: plan.mode,
    version: plan.version,
    command: [...previewWords(plan.command)],
    env: fieldTexts(plan.env),
    url: previewUrl(plan),
    transport: plan.transport,
    headers: fieldTexts(plan.headers),
    inputs: plan.inputs.map((input) => toMarketplaceInput(input)),
    warnings: plan.warnings.map(({ code, message }) => ({ code, message })),
  };
}

function fieldTexts(fields: readonly PlanField[]): Record<string, string> {
  return Object.fromEntries(fields.map(({ name, value }) => [name, previewText(value)]));
}

/** An input that a user is asked for. */
export function toMarketplaceInput(input: PlanInput): MarketplaceInput {
  const { isRepeated: repeated, goesTo, choices, targets: _targets, ...rest } = input;
  return { ...rest, choices: [...choices], repeated, goes_to: [...goesTo] };
}

type OptionView = MarketplaceDetail['options'][number];

/** A way to install an entry, in the list's format. `ruleProblem`: why the enterprise does not let it run. */
export function toOption(
  entry: RegistryEntry,
  { choice, plan }: InstallationOption,
  ruleProblem: string | null,
): OptionView {
  const rule = ruleProblem === null ? null : { reason: 'mcp_rule', message: toSentence(ruleProblem) };
  const problem = plan.ok ? rule : { reason: plan.error.reason, message: plan.error.message };
  return { ...choice, ...labelOf(entry, choice), installable: problem === null, problem };
}

function labelOf(entry: RegistryEntry, { kind, index }: OptionView | InstallationOption['choice']) {
  if (kind === 'remote') return { ecosystem: 'remote', label: entry.remotes[index]?.url ?? '' };
  const item = entry.packages[index];
  const version = item?.version === null ? '' : ` ${item?.version}`;
  return { ecosystem: item?.registryType ?? '', label: `${item?.identifier ?? ''}${version}` };
}
