/** Something that a search can lead to. */
export interface Place {
  readonly kind: 'page' | 'secret' | 'binding' | 'connector' | 'mcp_server';
  readonly name: string;
  /** Searched too, but the name counts more. */
  readonly also: string;
  /** A path of the console. */
  readonly path: string;
}

/** How well a word fits, best last. */
const FITS = { no: 0, also: 1, inName: 2, startsWord: 3, startsName: 4, isName: 5 } as const;

/** The places that have every word of the text, the best first, and of equals in their given order. */
export function findPlaces(text: string, places: readonly Place[], limit: number): readonly Place[] {
  const words = wordsOf(text);
  return places
    .map((place) => ({ place, fit: fitOf(words, place) }))
    .filter(({ fit }) => fit > 0)
    .toSorted((a, b) => b.fit - a.fit)
    .slice(0, limit)
    .map(({ place }) => place);
}

function wordsOf(text: string): string[] {
  return text
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== '');
}

/** The sum of the words' fits; 0 if one of them is nowhere. Without words, everything fits alike. */
function fitOf(words: readonly string[], { name, also }: Place): number {
  const fits = words.map((word) => fitOfWord(word, name.toLowerCase(), also.toLowerCase()));
  if (fits.some((fit) => fit === FITS.no)) return 0;
  return fits.reduce<number>((sum, fit) => sum + fit, 1);
}

function fitOfWord(word: string, name: string, also: string): number {
  if (name === word) return FITS.isName;
  if (name.startsWith(word)) return FITS.startsName;
  const at = name.indexOf(word);
  if (at < 0) return also.includes(word) ? FITS.also : FITS.no;
  return name.split(/[^\p{L}\p{N}]+/u).some((part) => part.startsWith(word)) ? FITS.startsWord : FITS.inName;
}

/** A request that a pasted text names, as the explanation takes it; null if it is no URL. */
export function findRequest(text: string): { readonly method: string; readonly url: string } | null {
  const match = /^\s*(?:(get|head|post|put|patch|delete|options)\s+)?(https:\/\/[^\s]+)\s*$/i.exec(text);
  const url = match?.[2];
  if (url === undefined || !URL.canParse(url)) return null;
  const { origin, pathname } = new URL(url);
  // A query and user information may hold a credential, and an address is kept in the browser's history.
  return { method: (match?.[1] ?? 'GET').toUpperCase(), url: origin + pathname };
}
