/** What is searched of one server of the registry. */
export interface IndexedServer {
  readonly name: string;
  readonly description: string;
  readonly transports: readonly string[];
  readonly registryTypes: readonly string[];
}

/** What somebody looks for; an empty text finds everything. */
export interface ServerQuery {
  readonly text: string;
  readonly transport: string | null;
  readonly registryType: string | null;
}

/** Which write of a mirror a copy has, and when it was taken. */
export interface CopiedState {
  readonly change: number;
  readonly nowMs: number;
}

/** The place of a server in the order of what a query finds. */
export interface FoundPlace {
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
 * How well a server fits, best first: all of its name or of the part after the slash, a start of them, a word's start in that
 * part, the rest of it; then the description the same way; then the namespace, for `github` stands in a third of those.
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

/** Two texts that differ in case or in how their characters are composed are the same to a search. */
export function fold(text: string): string {
  return text.normalize('NFKC').toLowerCase();
}

/**
 * The servers of the registry in memory, for searching: names and descriptions alone, 16 MiB for 50,000. A scan of
 * them takes some milliseconds whatever is looked for, which no index of the database promises for every text.
 */
export class ServerIndex {
  /** The mirror that this is a copy of, and the state of it; null while it is a copy of none. */
  #copied: (CopiedState & { readonly mirror: string }) | null = null;
  #entries = new Map<string, Entry>();
  #sorted: readonly Entry[] | null = null;
  /** One text for all that have the same facets. */
  readonly #facets = new Map<string, string>();

  /** How this mirror was when it was copied; null when this is no copy of it. */
  stateOf(mirror: string): CopiedState | null {
    return this.#copied?.mirror === mirror ? this.#copied : null;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** Takes a whole mirror in place of what there was. */
  replace(mirror: string, servers: Iterable<IndexedServer>, state: CopiedState): void {
    this.#entries = new Map();
    this.#facets.clear();
    this.#copied = { mirror, ...state };
    this.update(servers, [], state);
  }

  /** Takes what changed. */
  update(servers: Iterable<IndexedServer>, deleted: Iterable<string>, state: CopiedState): void {
    for (const server of servers) this.#entries.set(server.name, this.#entry(server));
    for (const name of deleted) this.#entries.delete(name);
    if (this.#copied !== null) this.#copied = { ...this.#copied, ...state };
    this.#sorted = null;
  }

  /** The places of what a query finds, the best first and then by name, after a place; at most `limit`. */
  search(query: ServerQuery, after: FoundPlace | null, limit: number): readonly FoundPlace[] {
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

function isAfter(rank: number, name: string, after: FoundPlace | null): boolean {
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
  // A start of the whole name that reaches into its last part, or stands in the part before.
  if (first + wanted.length > tail) return first === 0 ? RANKS.prefix : RANKS.name;
  return RANKS.namespace;
}

const WORD_CHARACTER = /[\p{L}\p{N}]/u;

/** Whether the text is found at the start of a word, between two places. */
function startsWord(text: string, wanted: string, from: number, to: number): boolean {
  for (let at = text.indexOf(wanted, from); at !== -1 && at + wanted.length <= to; at = text.indexOf(wanted, at + 1)) {
    if (at === 0 || !WORD_CHARACTER.test(text.charAt(at - 1))) return true;
  }
  return false;
}
