import { percentDecode, textOfBytes } from './byte_text.ts';

/** The raw pairs of a target's query, which starts after the first `?`; none without a query. */
export function pairsOf(target: string): string[] {
  const start = target.indexOf('?');
  return start < 0 ? [] : target.slice(start + 1).split('&');
}

/** A pair's decoded name, as byte text. */
export function nameOf(pair: string): string {
  const equals = pair.indexOf('=');
  return decodePair(equals < 0 ? pair : pair.slice(0, equals));
}

/** A pair's decoded value, as byte text; empty if it has no `=`. */
export function valueOf(pair: string): string {
  const equals = pair.indexOf('=');
  return equals < 0 ? '' : decodePair(pair.slice(equals + 1));
}

/**
 * Whether some server reads a pair, or a part of one, as the named parameter: in any letter case (ASP.NET), with `.`, a
 * space or an unpaired `[` for `_` (PHP), as `name[]` or `name[x]` (PHP, Rails, qs), cut at a NUL, as `%u005f` or in
 * full-width letters (IIS), or with other punctuation. A `;` does not count: it separates pairs.
 */
export function spellsParameter(pair: string, name: string): boolean {
  const given = nameOf(pair);
  if (given === name) return true;
  const own = foldName(name);
  return own !== '' && (foldName(given) === own || foldName(withoutIndex(given)) === own);
}

function foldName(name: string): string {
  const [text = ''] = textOfBytes(name).split('\0', 1);
  const plain = text.replaceAll(/%u([\da-f]{4})/gi, (_escape, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );
  return plain
    .normalize('NFKC')
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N};]/gu, '');
}

/** The name before its first bracket pair: the part between the brackets is an index. */
function withoutIndex(name: string): string {
  const open = name.indexOf('[', 1);
  return open > 0 && name.includes(']', open) ? name.slice(0, open) : name;
}

/** A target with these pairs as its query; without its `?` if there are none. */
export function withPairs(target: string, pairs: readonly string[]): string {
  const start = target.indexOf('?');
  const path = start < 0 ? target : target.slice(0, start);
  return pairs.length === 0 ? path : `${path}?${pairs.join('&')}`;
}

function decodePair(text: string): string {
  return percentDecode(text.replaceAll('+', ' '));
}
