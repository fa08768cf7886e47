import { type AccountChoice, CHOSEN_BY, type ChosenSecret } from '../model/account_choice.ts';
import type { HostBinding } from '../model/host_binding.ts';
import { didYouMean } from '../model/near_match.ts';
import { err, ok, type Result } from '../model/result.ts';

const NONE: readonly never[] = [];

/** The bindings of one pattern that a request may use. The others are as if they did not exist, apart from their placeholders. */
export interface Accounts {
  readonly bindings: readonly HostBinding[];
  /** Used by a request that presents no placeholder; null: the binding without one, else the only one. */
  readonly byDefault: HostBinding | null;
  /** Bindings that the choice leaves out. A request with their placeholder is refused. */
  readonly others: readonly HostBinding[];
  /** The choices that decided; empty if none of them is about the host. */
  readonly chosen: readonly ChosenSecret[];
}

/**
 * Narrows the bindings of the winning pattern to those with a chosen secret. It adds none and changes none, so no choice
 * gives a host a credential, an effect or a method that it does not have without it. Null if the chosen binding is gone: then
 * no account is right. `bindings` have one pattern and one owner.
 */
export function narrowToChosen(choice: AccountChoice | null, bindings: readonly HostBinding[]): Accounts | null {
  if (choice === null) return { bindings, byDefault: null, others: NONE, chosen: NONE };
  for (const source of CHOSEN_BY) {
    const wanted = choice.secrets.filter(({ by }) => by === source);
    const chosen = wanted.filter(({ path }) => bindings.some(({ credential }) => credential.path === path));
    const [first] = chosen;
    if (first === undefined) continue;
    const isChosen = ({ credential }: HostBinding): boolean => chosen.some(({ path }) => path === credential.path);
    return {
      bindings: bindings.filter(isChosen),
      byDefault: findDefault(bindings.filter(({ credential }) => credential.path === first.path)),
      others: bindings.filter((binding) => !isChosen(binding)),
      chosen,
    };
  }
  const isGone = bindings.some(({ host }) => choice.hosts.includes(host));
  return isGone ? null : { bindings, byDefault: null, others: NONE, chosen: NONE };
}

/** The binding without a placeholder, else the only one. */
function findDefault(bindings: readonly HostBinding[]): HostBinding | null {
  const plain = bindings.find(({ emit }) => emit.mechanism === 'inject');
  return plain ?? (bindings.length === 1 ? (bindings[0] ?? null) : null);
}

/** Every pattern with the bindings that apply to it: the personal ones if there are any, else the enterprise's. */
export function groupByPattern(bindings: readonly HostBinding[]): ReadonlyMap<string, readonly HostBinding[]> {
  const groups = new Map<string, HostBinding[]>();
  for (const binding of bindings) {
    const group = groups.get(binding.host);
    const owner = group?.[0]?.owner;
    if (group === undefined || (owner === 'enterprise' && binding.owner === 'personal')) {
      groups.set(binding.host, [binding]);
    } else if (owner === binding.owner) group.push(binding);
  }
  return groups;
}

/** Makes the choice of a new session. Refuses a secret that no binding sends: it would choose nothing, unseen. */
export function chooseAccounts(
  secrets: readonly ChosenSecret[],
  all: readonly HostBinding[],
): Result<AccountChoice | null, string> {
  if (secrets.length === 0) return ok(null);
  const groups = [...groupByPattern(all)];
  const bound = new Set(groups.flatMap(([, bindings]) => bindings.map(({ credential }) => credential.path)));
  const unbound = secrets.find(({ path }) => !bound.has(path));
  if (unbound !== undefined)
    return err(`no binding uses vault://${unbound.path}${didYouMean(unbound.path, [...bound])}`);
  const isChosen = ({ credential }: HostBinding): boolean => secrets.some(({ path }) => path === credential.path);
  return ok({ secrets, hosts: groups.flatMap(([host, bindings]) => (bindings.some(isChosen) ? [host] : [])) });
}
