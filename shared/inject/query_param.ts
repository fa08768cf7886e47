import { refusal } from '../model/refusal.ts';
import { err, ok } from '../model/result.ts';
import { byteTextOf, percentEncode } from './byte_text.ts';
import { nameOf, pairsOf, spellsParameter, valueOf, withPairs } from './query_pairs.ts';
import type { Presented, SchemeAdapter } from './scheme_adapter.ts';

/**
 * A named query parameter. Only its own pair changes: every other byte of the target stays as the client sent it.
 *
 * Pairs are separated by `&`. Some servers also split at `;`, so a copy of the parameter after a `;` is removed too, but a
 * credential is never written there: to every other server it would be part of another parameter's value. Any spelling that
 * some server reads as the parameter counts as a copy of it.
 */
export const QUERY_PARAM: SchemeAdapter<'query-param'> = {
  placeHeader: () => null,
  deriveSecrets: () => [],
  findPresented: (injection, request, sentinel) =>
    findPresentedInQuery(
      request.target,
      byteTextOf(injection.queryParam),
      sentinel === null ? null : byteTextOf(sentinel),
    ),
  write(injection, { request, credential, sentinel }) {
    if (!request.target.startsWith('/') || request.target.includes('#')) {
      return err(
        refusal(
          'invalid_request',
          'The request target has no query to which a parameter can be added: send an origin-form target without a "#".',
        ),
      );
    }
    const name = byteTextOf(injection.queryParam);
    const value = percentEncode(credential);
    const target =
      sentinel === null
        ? appendPair(withoutParam(request.target, name), `${percentEncode(injection.queryParam)}=${value}`)
        : swapPair(request.target, name, value);
    return ok({ ...request, target });
  },
};

function findPresentedInQuery(target: string, name: string, sentinel: string | null): Presented {
  let found: Presented = 'absent';
  for (const pair of pairsOf(target)) {
    if (!pair.split(';').some((part) => spellsParameter(part, name))) continue;
    if (!spellsParameter(pair, name) || valueOf(pair) !== sentinel) return 'foreign';
    found = 'sentinel';
  }
  return found;
}

/** The target without any copy of the parameter, in any spelling of its name, after `&` or `;`. */
function withoutParam(target: string, name: string): string {
  const pairs = pairsOf(target);
  const kept = pairs
    .filter((pair) => !spellsParameter(pair, name))
    .map((pair) => (pair.includes(';') ? withoutParts(pair, name) : pair));
  return withPairs(target, kept);
}

function withoutParts(pair: string, name: string): string {
  return pair
    .split(';')
    .filter((part) => !spellsParameter(part, name))
    .join(';');
}

function appendPair(target: string, pair: string): string {
  const mark = target.indexOf('?');
  if (mark < 0) return `${target}?${pair}`;
  // Only the first `?` starts the query: a later one is part of a pair.
  return mark === target.length - 1 || target.endsWith('&') ? target + pair : `${target}&${pair}`;
}

/**
 * Replaces the value of the first exact copy with `value`, in the client's encoding of the name; removes further copies and
 * other spellings. If there are only other spellings, the first of them is replaced.
 */
function swapPair(target: string, name: string, value: string): string {
  const pairs = pairsOf(target);
  const exact = pairs.findIndex((pair) => nameOf(pair) === name);
  const first = exact < 0 ? pairs.findIndex((pair) => spellsParameter(pair, name)) : exact;
  const swapped = pairs.flatMap((pair, index) => {
    if (index === first) return [`${exact < 0 ? percentEncode(name) : pair.slice(0, pair.indexOf('='))}=${value}`];
    return spellsParameter(pair, name) ? [] : [pair];
  });
  return withPairs(target, swapped);
}
