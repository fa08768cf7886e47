import { publisherOf, type PublisherProof } from '../../shared/mcp/publisher.ts';
import { RANKS, type SearchedServer, SearchRanking } from './search_rank.ts';
import { fold, nameText, readSearchText, wordsOfNameText } from './search_text.ts';
import { Signatures } from './signatures.ts';
import { Vocabulary } from './spelling.ts';

/** The searchable fields of a server in the registry. */
export interface IndexedServer {
  readonly name: string;
  readonly description: string;
  readonly title: string;
  /** Of its packages. */
  readonly identifiers: readonly string[];
  readonly transports: readonly string[];
  readonly registryTypes: readonly string[];
  /** Null: unknown, or it cannot be installed. */
  readonly needsSecret: boolean | null;
  readonly state: string;
  /** RFC 3339 in UTC, or empty. */
  readonly updatedAt: string;
}

/** A search query; an empty text matches everything, and null does not filter. */
export interface ServerQuery {
  readonly text: string;
  readonly transport: string | null;
  readonly registryType: string | null;
  readonly needsSecret: boolean | null;
  /** A whole namespace, in any case. */
  readonly publisher: string | null;
}

/** Which write of a mirror a copy has, and when it was taken. */
interface CopiedState {
  readonly change: number;
  readonly nowMs: number;
}

/** The position of a server in the order of a query's results. */
export interface SearchPosition {
  readonly rank: number;
  /** Seconds since 1970 of its newest release; 0 if unknown or deprecated. */
  readonly at: number;
  readonly name: string;
}

interface Entry extends SearchedServer {
  readonly name: string;
  readonly at: number;
  readonly facets: string;
}

/**
 * The texts of the registry's servers in memory. A scan takes some milliseconds for every text, which no database index
 * promises.
 */
export class ServerIndex {
  /** The mirror that was copied, and its state; null before the first copy. */
  #copied: (CopiedState & { readonly mirror: string }) | null = null;
  #entries = new Map<string, Entry>();
  /** In the order of the results, with the slot of each in an array of its own, which is read faster. */
  #sorted: { readonly entries: readonly Entry[]; readonly slots: Uint32Array } | null = null;
  #vocabulary = new Vocabulary();
  #signatures = new Signatures();
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
    this.#vocabulary = new Vocabulary();
    this.#signatures = new Signatures();
    this.#facets.clear();
    this.#copied = { mirror, ...state };
    this.update(servers, [], state);
  }

  /** Applies changes. */
  update(servers: Iterable<IndexedServer>, deleted: Iterable<string>, state: CopiedState): void {
    for (const server of servers) {
      this.#delete(server.name);
      const entry = this.#entry(server);
      this.#entries.set(server.name, entry);
      this.#vocabulary.count(wordsOf(entry), 1);
    }
    for (const name of deleted) this.#delete(name);
    if (this.#copied !== null) this.#copied = { ...this.#copied, ...state };
    this.#sorted = null;
  }

  /** The matches of a query after a position, best first, then the newest, then by name; at most `limit`. */
  search(query: ServerQuery, after: SearchPosition | null, limit: number): readonly SearchPosition[] {
    const similarTo = (word: string) => this.#vocabulary.similarTo(word);
    const ranking = new SearchRanking(readSearchText(query.text), similarTo, this.#signatures);
    const facets = facetsOf(query);
    const namespace = query.publisher === null ? null : `${fold(query.publisher)}/`;
    const byRank: SearchPosition[][] = Array.from({ length: RANKS.none }, () => []);
    const { entries, slots } = this.#inOrder();
    // The best rank of which there are enough: no more of this rank are needed, and none of a worse one.
    let enough: number = RANKS.none;
    for (let at = 0; at < slots.length; at += 1) {
      if (!ranking.mayMatch(slots[at] ?? 0)) continue;
      const entry = entries[at];
      if (entry === undefined || !facets.every((facet) => entry.facets.includes(facet))) continue;
      if (namespace !== null && !entry.text.startsWith(namespace)) continue;
      const rank = ranking.rank(entry, enough);
      const ranked = byRank[rank];
      if (ranked === undefined || rank >= enough || !isAfter(rank, entry, after)) continue;
      ranked.push({ rank, at: entry.at, name: entry.name });
      if (ranked.length >= limit) enough = rank;
    }
    return byRank.flat().slice(0, limit);
  }

  #delete(name: string): void {
    const entry = this.#entries.get(name);
    if (entry === undefined) return;
    this.#vocabulary.count(wordsOf(entry), -1);
    this.#signatures.remove(entry.slot);
    this.#entries.delete(name);
  }

  #inOrder(): { readonly entries: readonly Entry[]; readonly slots: Uint32Array } {
    if (this.#sorted !== null) return this.#sorted;
    const entries = [...this.#entries.values()].toSorted(
      (one, other) => other.at - one.at || (one.name < other.name ? -1 : 1),
    );
    this.#sorted = { entries, slots: Uint32Array.from(entries, ({ slot }) => slot) };
    return this.#sorted;
  }

  #entry(server: IndexedServer): Entry {
    const { name, title, identifiers } = server;
    const folded = fold(name);
    const described = `${folded}\n${fold(server.description)}`;
    const before = [described, ...[title, ...identifiers].map((text) => fold(text)), ''].join('\n');
    const seconds = Math.floor(Date.parse(server.updatedAt) / 1000);
    // Joined, so that the text is flat before it is first searched.
    const text = [before, nameText(name, title)].join('');
    const { label, proof } = labelOf(name);
    return {
      name,
      at: server.state === 'deprecated' || !Number.isSafeInteger(seconds) ? 0 : seconds,
      text,
      slot: this.#signatures.add(`${text}${label ?? ''}`),
      nameLength: folded.length,
      titleAt: described.length,
      nearAt: before.length,
      facets: this.#shared(facetsOf(server)),
      label,
      proof,
    };
  }

  #shared(facets: readonly string[]): string {
    const text = facets.join('');
    const known = this.#facets.get(text) ?? text;
    this.#facets.set(text, known);
    return known;
  }
}

function labelOf(name: string): { readonly label: string | null; readonly proof: PublisherProof | null } {
  const { label, proof } = publisherOf(name);
  return { label: label?.replaceAll('-', '') ?? null, proof };
}

function* wordsOf({ text, nearAt, label }: Entry): Iterable<string> {
  yield* wordsOfNameText(text.slice(nearAt));
  if (label !== null) yield label;
}

/** What a server is filtered by, and what a query asks for; each ends with a bar, so that only whole words match. */
function facetsOf(of: IndexedServer | ServerQuery): readonly string[] {
  const transports = 'transports' in of ? of.transports : [of.transport];
  const registryTypes = 'registryTypes' in of ? of.registryTypes : [of.registryType];
  return [
    ...transports.filter((each) => each !== null).map((each) => `t:${each}|`),
    ...registryTypes.filter((each) => each !== null).map((each) => `r:${each}|`),
    ...(of.needsSecret === null ? [] : [`s:${of.needsSecret}|`]),
  ];
}

function isAfter(rank: number, { at, name }: Entry, after: SearchPosition | null): boolean {
  if (after === null || rank !== after.rank) return after === null || rank > after.rank;
  return at < after.at || (at === after.at && name > after.name);
}
