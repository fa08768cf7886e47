import { type AccountChoice, CHOSEN_BY, type ChosenSecret, type HostDecision } from '../model/account_choice.ts';
import type { CredentialRef, HostBinding } from '../model/host_binding.ts';
import { didYouMean } from '../model/near_match.ts';
import { err, ok, type Result } from '../model/result.ts';
import { covers } from '../net/host_pattern.ts';

const NONE: readonly never[] = [];

/** The bindings of one pattern that a request may use. The others are as if they did not exist, apart from their placeholders. */
export interface Accounts {
  readonly bindings: readonly HostBinding[];
  /** Used by a request that presents no placeholder. `as_ever`: the binding without one, else the only one. */
  readonly byDefault: HostBinding | 'none' | 'as_ever';
  /** Bindings that the choice leaves out. A request with their placeholder is refused. */
  readonly others: readonly HostBinding[];
  /** The chosen secrets that decided; empty if the choice is not about the host. */
  readonly chosen: readonly (ChosenSecret & CredentialRef)[];
}

/**
 * Narrows the bindings of the winning pattern to those with a chosen secret. It adds none and changes none, so no choice
 * gives a host a credential, an effect or a method that it does not have without it. Null if the binding of the first secret
 * that was chosen for the host is gone, whichever pattern wins now: then no account is right. `bindings` have one pattern and
 * one owner, and may be none. `host` is a host, or one of the patterns at the start.
 */
export function narrowToChosen(
  choice: AccountChoice | null,
  host: string,
  bindings: readonly HostBinding[],
): Accounts | null {
  const decision = choice === null ? null : findDecision(choice, host, bindings);
  if (choice === null || decision === null) return { bindings, byDefault: 'as_ever', others: NONE, chosen: NONE };
  const { owner, paths, by } = decision;
  const isOf = (path: string | undefined, { credential }: HostBinding): boolean =>
    credential.owner === owner && credential.path === path;
  const firsts = bindings.filter((binding) => isOf(paths[0], binding));
  if (firsts.length === 0) return null;
  const isChosen = (binding: HostBinding): boolean => paths.some((path) => isOf(path, binding));
  const named = choice.secrets.filter((secret) => secret.by === by && paths.includes(secret.path));
  return {
    bindings: bindings.filter(isChosen),
    byDefault: findDefault(firsts) ?? 'none',
    others: bindings.filter((binding) => !isChosen(binding)),
    chosen: named.map((secret) => ({ ...secret, owner })),
  };
}

/** The decision of the most specific pattern that covers the host, unless the pattern that wins is an exception from it. */
function findDecision(
  { decisions, exceptions }: AccountChoice,
  host: string,
  [winning]: readonly HostBinding[],
): HostDecision | null {
  const covering = decisions.filter(({ pattern }) => covers(pattern, host));
  const [nearest] = covering.toSorted((a, b) => rank(b.pattern, host) - rank(a.pattern, host));
  if (nearest === undefined) return null;
  const isException =
    winning !== undefined &&
    exceptions.includes(winning.host) &&
    rank(winning.host, host) > rank(nearest.pattern, host);
  return isException ? null : nearest;
}

/** Among patterns that cover a host: the exact one, then the longer suffix. */
function rank(pattern: string, host: string): number {
  return pattern === host ? Number.POSITIVE_INFINITY : pattern.length;
}

/** The binding without a placeholder, else the only one. */
export function findDefault(bindings: readonly HostBinding[]): HostBinding | null {
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
  return ok(decideAccounts(secrets, all));
}

/** What a choice means now, for every pattern with a chosen secret: the first of option, profile and folder that names one decides. */
export function decideAccounts(secrets: readonly ChosenSecret[], all: readonly HostBinding[]): AccountChoice {
  const groups = [...groupByPattern(all)];
  const decisions = groups.flatMap(([pattern, bindings]) => decide(secrets, pattern, bindings) ?? []);
  const decided = decisions.map(({ pattern }) => pattern);
  const exceptions = groups.flatMap(([pattern]) =>
    !decided.includes(pattern) && decided.some((each) => covers(each, pattern)) ? [pattern] : [],
  );
  return { secrets, decisions, exceptions };
}

function decide(
  secrets: readonly ChosenSecret[],
  pattern: string,
  bindings: readonly HostBinding[],
): HostDecision | null {
  const isBound = ({ path }: ChosenSecret): boolean => bindings.some(({ credential }) => credential.path === path);
  const named = secrets.filter(isBound);
  const by = CHOSEN_BY.find((source) => named.some((secret) => secret.by === source));
  const owner = bindings[0]?.credential.owner;
  if (by === undefined || owner === undefined) return null;
  return { pattern, owner, paths: named.filter((secret) => secret.by === by).map(({ path }) => path), by };
}
