import { entryRisks } from '../../shared/mcp/entry_risks.ts';
import { findEntryRuleProblem, findPlanRuleProblem } from '../../shared/mcp/entry_rules.ts';
import type { InstallationPlan } from '../../shared/mcp/install/plan.ts';
import { installationOptions, planInstallation } from '../../shared/mcp/installation.ts';
import type { RegistryEntry } from '../../shared/mcp/registry_entry.ts';
import { ok, type Result } from '../../shared/model/result.ts';
import type { ApiError } from '../../shared/wire/errors.ts';
import type { MarketplaceDetail } from '../../shared/wire/marketplace.ts';
import { type Caller, ownerName } from '../kernel/caller.ts';
import { configurationOf } from '../services/mcp/mcp_configuration.ts';
import { mcpServersInstalledFrom } from '../services/mcp/mcp_servers.ts';
import type { MarketplaceContext } from './marketplace_context.ts';
import { findEntry } from './find_entry.ts';
import { rulesOfVisitor, toItem } from './items.ts';
import { toOption, toPreview } from './install_preview.ts';

/**
 * An entry with its versions, the ways to install it, and the result of an install. Refuses with `not_found`,
 * `registry_unavailable`.
 */
export async function showEntry(
  context: MarketplaceContext,
  caller: Caller | null,
  wanted: { readonly name: string; readonly version: string | null },
): Promise<Result<MarketplaceDetail, ApiError>> {
  const found = await findEntry(context, wanted, 'any');
  if (!found.ok) return found;
  const { entry, versions, fetchedAt, isStale } = found.value;
  const rows = caller === null ? [] : await mcpServersInstalledFrom(context, caller, [entry.name]);
  const options = installationOptions(entry);
  const rules = await rulesOfVisitor(context, caller);
  const problemOf = (plan: InstallationPlan) => findPlanRuleProblem(rules, entry.name, plan);
  const plan = planInstallation(entry, undefined, (each) => problemOf(each) === null);
  const ruleProblem = findEntryRuleProblem(rules, entry);
  return ok({
    ...toItem(entry, entryRisks(entry, context.clock.now(), plan), { caller, installed: rows.length > 0, ruleProblem }),
    installed_servers: rows.map((row) => {
      return { id: row.id, name: row.name, owner: ownerName(row.ownerId), version: configurationOf(row).version };
    }),
    versions: versions.map((version) => toVersion(version)),
    options: options.map((option) => toOption(entry, option, option.plan.ok ? problemOf(option.plan.value) : null)),
    preview: plan.ok ? toPreview(plan.value) : null,
    fetched_at: fetchedAt,
    stale: isStale,
  });
}

function toVersion({ version, status, publishedAt, isLatest }: RegistryEntry): MarketplaceDetail['versions'][number] {
  return { version, status, published_at: publishedAt, is_latest: isLatest === true };
}
