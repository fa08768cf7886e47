import type { McpRules } from '../model/mcp_rules.ts';
import { fixedText, type InstallationPlan } from './install/plan.ts';
import { previewText, previewWords } from './install/preview.ts';
import { installationOptions } from './installation.ts';
import type { RegistryEntry } from './registry_entry.ts';
import { areNoRules, findRuleProblem } from './server_rules.ts';

/**
 * Why the rules of an enterprise do not let run what an install of this plan would create; null if they do, or if that depends
 * on a value that is not given yet. The install judges the whole configuration. It can choose the isolation, so that is no problem here.
 */
export function findPlanRuleProblem(rules: McpRules, name: string, plan: InstallationPlan): string | null {
  if (plan.url !== null && fixedText(plan.url.authority) === null) return null;
  // Words that contain a value are judged once the value is known.
  const known = plan.command.filter(({ value }) => value === null || fixedText(value) !== null);
  const server = {
    name: 'NAME',
    mode: plan.mode,
    command: previewWords(known),
    env: Object.fromEntries(plan.env.map((field) => [field.name, fixedText(field.value) ?? ''])),
    url: plan.url === null ? null : `https://${previewText(plan.url.authority)}/`,
    isolation: 'container' as const,
  };
  return findRuleProblem(rules, server, name);
}

/** Why the rules let nothing of an entry run that could be installed; null if they let something run, or if nothing can be installed. */
export function findEntryRuleProblem(rules: McpRules, entry: RegistryEntry): string | null {
  if (areNoRules(rules)) return null;
  const plans = installationOptions(entry).flatMap(({ plan }) => (plan.ok ? [plan.value] : []));
  const problems = plans.map((plan) => findPlanRuleProblem(rules, entry.name, plan));
  return problems.includes(null) ? null : (problems[0] ?? null);
}
