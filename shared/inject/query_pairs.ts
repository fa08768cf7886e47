import { percentDecode } from './byte_text.ts';

/** The raw pairs of a target's query, which is what follows its first `?`; none when it has no query. */
export function pairsOf(target: string): string[] {
  const start = target.indexOf('?');
  return start < 0 ? [] : target.slice(start + 1).split('&');
}

/** A pair's decoded name, as byte text. */
export function nameOf(pair: string): string {
  const equals = pair.indexOf('=');
  return decoded(equals < 0 ? pair : pair.slice(0, equals));
}

/** A pair's decoded value, as byte text; empty when it has no `=`. */
export function valueOf(pair: string): string {
  const equals = pair.indexOf('=');
  return equals < 0 ? '' : decoded(pair.slice(equals + 1));
}

/** A target with other pairs for its query; without its `?` when there are none. */
export function withPairs(target: string, pairs: readonly string[]): string {
  const start = target.indexOf('?');
  const path = start < 0 ? target : target.slice(0, start);
  return pairs.length === 0 ? path : `${path}?${pairs.join('&')}`;
}

function decoded(text: string): string {
  return percentDecode(text.replaceAll('+', ' '));
}
