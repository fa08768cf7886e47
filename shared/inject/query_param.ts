import { refusal } from '../model/refusal.ts';
import { err, ok } from '../model/result.ts';
import { byteTextOf, percentEncode } from './byte_text.ts';
import { nameOf, pairsOf, valueOf, withPairs } from './query_pairs.ts';
import type { Presented, SchemeAdapter } from './scheme_adapter.ts';

/**
 * A named query parameter. Only its own pair changes: every other byte of the target stays as the client sent it.
 *
 * A pair is what `&` separates. Some servers also split at `;`, so a copy of the parameter behind a `;` is removed like any
 * other, but a credential is never written there: to every other server it would be part of another parameter's value.
 */
export const QUERY_PARAM: SchemeAdapter<'query-param'> = {
  placeHeader: () => null,
  derivedSecrets: () => [],
  presented: (injection, request, sentinel) =>
    presentedInQuery(request.target, byteTextOf(injection.queryParam), sentinel === null ? null : byteTextOf(sentinel)),
  write(injection, { request, credential, sentinel }) {
    if (!request.target.startsWith('/') || request.target.includes('#')) {
      return err(
        refusal(
          'invalid_request',
          'The request target has no query a parameter could be added to: send an origin-form target without a "#".',
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

function presentedInQuery(target: string, name: string, sentinel: string | null): Presented {
  let found: Presented = 'absent';
  for (const pair of pairsOf(target)) {
    if (!pair.split(';').some((part) => nameOf(part) === name)) continue;
    if (nameOf(pair) !== name || valueOf(pair) !== sentinel) return 'foreign';
    found = 'sentinel';
  }
  return found;
}

/** The target without any copy of the parameter, however its name is spelled, behind `&` or `;`. */
function withoutParam(target: string, name: string): string {
  const pairs = pairsOf(target);
  const kept = pairs
    .filter((pair) => nameOf(pair) !== name)
    .map((pair) => (pair.includes(';') ? withoutParts(pair, name) : pair));
  return withPairs(target, kept);
}

function withoutParts(pair: string, name: string): string {
  return pair
    .split(';')
    .filter((part) => nameOf(part) !== name)
    .join(';');
}

function appendPair(target: string, pair: string): string {
  const mark = target.indexOf('?');
  if (mark < 0) return `${target}?${pair}`;
  // Only the first `?` begins the query: one at the end of a pair is a part of that pair.
  return mark === target.length - 1 || target.endsWith('&') ? target + pair : `${target}&${pair}`;
}

/** The first copy with `value` in place of its own, further copies removed. */
function swapPair(target: string, name: string, value: string): string {
  const pairs = pairsOf(target);
  const first = pairs.findIndex((pair) => nameOf(pair) === name);
  const swapped = pairs.flatMap((pair, index) => {
    if (index === first) return [`${pair.slice(0, pair.indexOf('='))}=${value}`];
    return nameOf(pair) === name ? [] : [pair];
  });
  return withPairs(target, swapped);
}
