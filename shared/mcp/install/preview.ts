import type { InstallationPlan, PlanArgument, Template } from './plan.ts';

/**
 * The command that a plan's arguments will come to, word by word, with `{input}` where a value belongs and optional words in their
 * places. It is shown; what is started is made anew of the values.
 */
export function previewWords(command: readonly PlanArgument[]): readonly string[] {
  return command.flatMap((argument) => argumentWords(argument));
}

/** The address that a plan will come to, with `{input}` where a value belongs; null for a local server. */
export function previewUrl(plan: InstallationPlan): string | null {
  if (plan.url === null) return null;
  const query = plan.url.query === null ? '' : `?${previewText(plan.url.query)}`;
  return `https://${previewText(plan.url.authority)}${previewText(plan.url.path)}${query}`;
}

/** A value with `{input}` where something belongs. */
export function previewText(template: Template): string {
  return template.map((piece) => (piece.kind === 'text' ? piece.text : `{${piece.input}}`)).join('');
}

function argumentWords({ flag, isJoined, value }: PlanArgument): readonly string[] {
  if (value === null) return flag === null ? [] : [flag];
  if (flag === null) return [previewText(value)];
  return isJoined ? [`${flag}=${previewText(value)}`] : [flag, previewText(value)];
}
