import type { JsonRule, JsonScalar } from '../model/connector.ts';

/** Whether no body satisfies both lists of rules: some pointer has a rule in each, and no value satisfies both of these. */
export function areDisjoint(one: readonly JsonRule[], other: readonly JsonRule[]): boolean {
  return one.some((rule) => other.some((each) => each.pointer === rule.pointer && !haveCommonValue(rule, each)));
}

function haveCommonValue(one: JsonRule, other: JsonRule): boolean {
  if (one.equals !== undefined) return one.equals.some((value) => satisfies(other, value));
  if (other.equals !== undefined) return other.equals.some((value) => satisfies(one, value));
  const least = Math.max(one.atLeast ?? -Infinity, other.atLeast ?? -Infinity);
  return least <= Math.min(one.atMost ?? Infinity, other.atMost ?? Infinity);
}

/** Whether a value is one of a rule's. */
export function satisfies({ equals, atLeast, atMost }: JsonRule, value: JsonScalar): boolean {
  if (equals !== undefined) return equals.includes(value);
  return typeof value === 'number' && value >= (atLeast ?? -Infinity) && value <= (atMost ?? Infinity);
}
