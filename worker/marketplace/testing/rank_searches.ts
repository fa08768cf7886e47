import { readRegistryRecord } from '../registry_record.ts';
import { ServerIndex } from '../server_index.ts';
import { SEARCH_SET } from './search_set.ts';

const ALL = { transport: null, registryType: null, needsSecret: null, publisher: null };
/** An expected server further down counts as not found. */
const DEPTH = 50;

/** What is asked of the ranking. */
export const LEAST_MEAN_RANK = 0.8;

/** A search whose expected server is not first. */
interface Miss {
  readonly q: string;
  /** Null if it is not found. */
  readonly place: number | null;
  readonly found: readonly string[];
}

interface Ranking {
  readonly servers: number;
  readonly searches: number;
  /** The mean reciprocal rank. */
  readonly mean: number;
  readonly misses: readonly Miss[];
}

/** How well the marketplace ranks the search set over a dump of a registry: the JSON of its list API in one page. */
export function rankSearches(dump: unknown): Ranking {
  const index = indexOf(dump);
  const misses: Miss[] = [];
  let sum = 0;
  for (const { q, first } of SEARCH_SET) {
    const found = index.search({ ...ALL, text: q }, null, DEPTH).map(({ name }) => name);
    const place = found.findIndex((name) => first.includes(name)) + 1;
    if (place > 0) sum += 1 / place;
    if (place !== 1) misses.push({ q, place: place === 0 ? null : place, found: found.slice(0, 3) });
  }
  return { servers: index.size, searches: SEARCH_SET.length, mean: sum / SEARCH_SET.length, misses };
}

function indexOf(dump: unknown): ServerIndex {
  const list = typeof dump === 'object' && dump !== null && 'servers' in dump ? dump.servers : null;
  if (!Array.isArray(list)) throw new Error('the dump is no list of servers');
  const entries: readonly unknown[] = list;
  const records = entries.map((entry) => readRegistryRecord(entry)).filter((record) => record !== null);
  const index = new ServerIndex();
  const listed = records.filter(({ isLatest, state }) => isLatest && state !== 'deleted');
  index.replace('', listed, { change: 0, nowMs: 0 });
  return index;
}
