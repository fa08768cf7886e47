import type { InstallationPlan, PlanArgument, Template } from './plan.ts';

/**
 * The command that a plan's arguments will give, word by word, with `{input}` for values and including optional words. For
 * display only: the command that is started is made from the values.
 */
export function previewWords(command: readonly PlanArgument[]): readonly string[] {
  return command.flatMap((argument) => argumentWords(argument));
}

/** The address that a plan will give, with `{input}` for values; null for a local server. */
export function previewUrl(plan: InstallationPlan): string | null {
  if (plan.url === null) return null;
  const query = plan.url.query === null ? '' : `?${previewText(plan.url.query)}`;
  return `https://${previewText(plan.url.authority)}${previewText(plan.url.path)}${query}`;
}

/** A value with `{input}` in the place of each input. */
export function previewText(template: Template): string {
  return template.map((piece) => (piece.kind === 'text' ? piece.text : `{${piece.input}}`)).join('');
}

function argumentWords({ flag, isJoined, value }: PlanArgument): readonly string[] {
  if (value === null) return flag === null ? [] : [flag];
  if (flag === null) return [previewText(value)];
  return isJoined ? [`${flag}=${previewText(value)}`] : [flag, previewText(value)];
}
