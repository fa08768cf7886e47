/** The searchable fields of a server in the registry. */
export interface IndexedServer {
  readonly name: string;
  readonly description: string;
  readonly transports: readonly string[];
  readonly registryTypes: readonly string[];
}

/** A search query; an empty text matches everything. */
export interface ServerQuery {
  readonly text: string;
  readonly transport: string | null;
  readonly registryType: string | null;
}

/** Which write of a mirror a copy has, and when it was taken. */
interface CopiedState {
  readonly change: number;
  readonly nowMs: number;
}

/** The position of a server in the order of a query's results. */
export interface SearchPosition {
  readonly rank: number;
  readonly name: string;
}

interface Entry {
  readonly name: string;
  /** Name and description, folded, with a line break between them. */
  readonly text: string;
  readonly nameLength: number;
  readonly facets: string;
}

/**
 * How well a server matches, best first: the whole name or the part after the slash; its start; the start of a word in
 * it; elsewhere in it; then the description likewise; then the namespace last, because a third of them contain
 * `github`.
 */
const RANKS = {
  exact: 0,
  prefix: 1,
  nameWord: 2,
  name: 3,
  descriptionWord: 4,
  description: 5,
  namespace: 6,
  none: 7,
} as const;

/** Folds case and Unicode composition for searching. */
function fold(text: string): string {
  return text.normalize('NFKC').toLowerCase();
}

/**
 * The names and descriptions of the registry's servers in memory: 16 MiB for 50,000. A scan takes a few milliseconds
 * for every text, which no database index promises.
 */
export class ServerIndex {
  /** The mirror that was copied, and its state; null before the first copy. */
  #copied: (CopiedState & { readonly mirror: string }) | null = null;
  #entries = new Map<string, Entry>();
  #sorted: readonly Entry[] | null = null;
  /** One shared text for servers with the same facets. */
  readonly #facets = new Map<string, string>();

  /** The state of this mirror when it was copied; null if this is a copy of another one. */
  stateOf(mirror: string): CopiedState | null {
    return this.#copied?.mirror === mirror ? this.#copied : null;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** Replaces the copy with a whole mirror. */
  replace(mirror: string, servers: Iterable<IndexedServer>, state: CopiedState): void {
    this.#entries = new Map();
    this.#facets.clear();
    this.#copied = { mirror, ...state };
    this.update(servers, [], state);
  }

  /** Applies changes. */
  update(servers: Iterable<IndexedServer>, deleted: Iterable<string>, state: CopiedState): void {
    for (const server of servers) this.#entries.set(server.name, this.#entry(server));
    for (const name of deleted) this.#entries.delete(name);
    if (this.#copied !== null) this.#copied = { ...this.#copied, ...state };
    this.#sorted = null;
  }

  /** The matches of a query after a position, best first and then by name; at most `limit`. */
  search(query: ServerQuery, after: SearchPosition | null, limit: number): readonly SearchPosition[] {
    const text = fold(query.text);
    const facets = [`t:${query.transport}|`, `r:${query.registryType}|`].filter((facet) => !facet.endsWith(':null|'));
    const byRank: string[][] = Array.from({ length: RANKS.none }, () => []);
    for (const entry of this.#inOrder()) {
      if (!facets.every((facet) => entry.facets.includes(facet))) continue;
      const rank = rankOf(entry, text);
      if (rank === RANKS.none || !isAfter(rank, entry.name, after)) continue;
      const ranked = byRank[rank];
      if (ranked !== undefined && ranked.length < limit) ranked.push(entry.name);
    }
    return byRank.flatMap((names, rank) => names.map((name) => ({ rank, name }))).slice(0, limit);
  }

  #inOrder(): readonly Entry[] {
    this.#sorted ??= [...this.#entries.values()].toSorted((one, other) => (one.name < other.name ? -1 : 1));
    return this.#sorted;
  }

  #entry({ name, description, transports, registryTypes }: IndexedServer): Entry {
    const folded = fold(name);
    const facets = [...transports.map((each) => `t:${each}|`), ...registryTypes.map((each) => `r:${each}|`)].join('');
    const known = this.#facets.get(facets) ?? facets;
    this.#facets.set(facets, known);
    return { name, text: `${folded}\n${fold(description)}`, nameLength: folded.length, facets: known };
  }
}

function isAfter(rank: number, name: string, after: SearchPosition | null): boolean {
  return after === null || rank > after.rank || (rank === after.rank && name > after.name);
}

function rankOf({ text, nameLength }: Entry, wanted: string): number {
  if (wanted === '') return RANKS.exact;
  const first = text.indexOf(wanted);
  if (first === -1) return RANKS.none;
  const tail = first < nameLength ? text.lastIndexOf('/', nameLength - 1) + 1 : 0;
  const inName = first < nameLength ? nameRank(text, wanted, { tail, nameLength, first }) : RANKS.none;
  if (inName < RANKS.namespace) return inName;
  const described = text.indexOf(wanted, nameLength + 1);
  if (described === -1) return inName;
  return startsWord(text, wanted, described, text.length) ? RANKS.descriptionWord : RANKS.description;
}

function nameRank(
  text: string,
  wanted: string,
  { tail, nameLength, first }: { readonly tail: number; readonly nameLength: number; readonly first: number },
): number {
  const isWhole = (from: number) => nameLength - from === wanted.length && text.startsWith(wanted, from);
  if (isWhole(0) || isWhole(tail)) return RANKS.exact;
  const own = text.indexOf(wanted, tail);
  const isOwn = own !== -1 && own + wanted.length <= nameLength;
  if (isOwn && own === tail) return RANKS.prefix;
  if (isOwn) return startsWord(text, wanted, own, nameLength) ? RANKS.nameWord : RANKS.name;
  if (first + wanted.length > nameLength) return RANKS.none;
  // A start of the whole name that reaches into its last part, or occurs in the part before.
  if (first + wanted.length > tail) return first === 0 ? RANKS.prefix : RANKS.name;
  return RANKS.namespace;
}

const WORD_CHARACTER = /[\p{L}\p{N}]/u;

/** Whether the text occurs at the start of a word, between two positions. */
function startsWord(text: string, wanted: string, from: number, to: number): boolean {
  for (let at = text.indexOf(wanted, from); at !== -1 && at + wanted.length <= to; at = text.indexOf(wanted, at + 1)) {
    if (at === 0 || !WORD_CHARACTER.test(text.charAt(at - 1))) return true;
  }
  return false;
}
