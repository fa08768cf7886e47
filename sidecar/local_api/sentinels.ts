import type { AccountChoice } from '../../shared/model/account_choice.ts';
import type { HostBinding } from '../../shared/model/host_binding.ts';
import { groupByPattern, narrowToChosen } from '../../shared/resolve/account_choice.ts';

/**
 * The environment variables with sentinels for the agent. If several bindings name a variable, the first one gets it: one with
 * a chosen account, then a personal one before the enterprise's. A binding that the choice leaves out gets none.
 */
export function sentinelsOf(
  bindings: readonly HostBinding[],
  choice: AccountChoice | null,
): { readonly env: string; readonly value: string }[] {
  const sentinels = new Map<string, string>();
  for (const { emit } of orderBindings(bindings, choice)) {
    if (emit.mechanism !== 'sentinel-swap' || emit.env === undefined || sentinels.has(emit.env)) continue;
    sentinels.set(emit.env, emit.sentinel);
  }
  return [...sentinels].map(([env, value]) => ({ env, value }));
}

/** The bindings that a session may use: those with a chosen account, then personal ones, then the enterprise's. */
export function orderBindings(bindings: readonly HostBinding[], choice: AccountChoice | null): readonly HostBinding[] {
  const groups = [...groupByPattern(bindings)].flatMap(
    ([pattern, group]) => narrowToChosen(choice, pattern, group) ?? [],
  );
  const left = new Set(groups.flatMap(({ others }) => others));
  const chosen = groups.filter((group) => group.chosen.length > 0);
  const byDefault = chosen.flatMap((group) => (typeof group.byDefault === 'string' ? [] : group.byDefault));
  const first = [...byDefault, ...chosen.flatMap((group) => group.bindings)];
  const personalFirst = bindings.filter((binding) => !left.has(binding)).toSorted((a, b) => rank(a) - rank(b));
  return [...first, ...personalFirst];
}

function rank(binding: HostBinding): number {
  return binding.owner === 'personal' ? 0 : 1;
}
