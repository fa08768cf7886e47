import type { EntryRisk } from '../../shared/mcp/entry_risks.ts';
import type { RegistryEntry } from '../../shared/mcp/registry_entry.ts';
import type { RegistryArgument, RegistryInput } from '../../shared/mcp/registry/registry_input.ts';
import { type McpRules, NO_MCP_RULES } from '../../shared/model/mcp_rules.ts';
import type { MarketplaceItem } from '../../shared/wire/marketplace.ts';
import type { Caller } from '../kernel/caller.ts';
import { rulesOf } from '../services/mcp/apply_rules.ts';
import { mcpServersInstalledFrom } from '../services/mcp/mcp_servers.ts';
import type { MarketplaceContext } from './marketplace_context.ts';

/** Those of these names that the caller has installed; empty without a sign-in. */
export async function findInstalledNames(
  context: MarketplaceContext,
  caller: Caller | null,
  names: readonly string[],
): Promise<ReadonlySet<string>> {
  if (caller === null) return new Set();
  const rows = await mcpServersInstalledFrom(context, caller, names);
  return new Set(rows.map(({ registryId }) => registryId).filter((id) => id !== null));
}

/** What an entry is to the one who looks at it. */
interface Visit {
  /** Null without a sign-in. */
  readonly caller: Caller | null;
  readonly installed: boolean;
  /** Why the caller's enterprise does not let it run; null if it does. */
  readonly ruleProblem: string | null;
}

/** The rules of the caller's enterprise; none without a sign-in. */
export async function rulesOfVisitor(context: MarketplaceContext, caller: Caller | null): Promise<McpRules> {
  return caller === null ? NO_MCP_RULES : rulesOf(context, caller.enterpriseId);
}

/** An entry in the marketplace's format. */
export function toItem(
  entry: RegistryEntry,
  risks: readonly EntryRisk[],
  { caller, installed, ruleProblem }: Visit,
): MarketplaceItem {
  return {
    name: entry.name,
    title: entry.title,
    description: entry.description,
    version: entry.version,
    status: entry.status,
    published_at: entry.publishedAt,
    updated_at: entry.updatedAt,
    repository_url: entry.repositoryUrl,
    website_url: entry.websiteUrl,
    // The control plane calls publishers' addresses only for its own users.
    has_icon: caller !== null && entry.icons.length > 0,
    packages: entry.packages.map((each) => ({
      registry_type: each.registryType,
      registry_base_url: each.registryBaseUrl,
      identifier: each.identifier,
      version: each.version,
      transport: each.transport,
      runtime_hint: each.runtimeHint,
      runtime_arguments: each.runtimeArguments.map((argument) => toArgument(argument)),
      package_arguments: each.packageArguments.map((argument) => toArgument(argument)),
      environment_variables: each.environmentVariables.map((variable) => toInput(variable)),
    })),
    remotes: entry.remotes.map(({ transport, url, headers }) => {
      return { transport, url, headers: headers.map((header) => toInput(header)) };
    }),
    problems: [...entry.problems],
    risks: [...risks],
    installed,
    rule_problem: ruleProblem,
  };
}

type Argument = MarketplaceItem['packages'][number]['runtime_arguments'][number];

function toArgument(argument: RegistryArgument): Argument {
  const { type, value, valueHint, isRepeated, isSecret } = argument;
  const shown = { type, value: isSecret ? null : value, value_hint: valueHint, repeated: isRepeated };
  return { ...toInput(argument), ...shown };
}

function toInput(input: RegistryInput): MarketplaceItem['remotes'][number]['headers'][number] {
  const { name, description, isRequired: required, isSecret: secret, default: fallback, choices } = input;
  return { name, description, required, secret, default: secret ? null : fallback, choices: [...choices] };
}
