import type { MarketplaceContext } from './marketplace_context.ts';
import type { RegistryMirrorRow } from '../store/registry_mirrors.ts';
import { type ListedServerRow, listChanged, listServers, type RegistryServerRow } from '../store/registry_servers.ts';
import { parseFacets, parseSearchText } from './facets.ts';
import type { IndexedServer, ServerIndex } from './server_index.ts';

/** Rows of one read: about 2 MB, because a database server's reply may have at most 10. */
const PAGE = 10_000;
/** During a sync a copy may be this old. */
const BEHIND_MS = 10_000;
const PATIENCE_MS = 10_000;

/**
 * The up-to-date searchable copy of a mirror in memory. It is loaded once for all waiting callers; null if that takes
 * too long.
 */
export async function indexOf(context: MarketplaceContext, mirror: RegistryMirrorRow): Promise<ServerIndex | null> {
  const { registry, clock } = context;
  const { index } = registry;
  const look = () => {
    const state = index.stateOf(mirror.url);
    if (state === null) return null;
    return state.change >= mirror.change || clock.now() - state.nowMs < BEHIND_MS ? index : null;
  };
  const work = () => (index.stateOf(mirror.url) === null ? load(context, mirror) : update(context, mirror));
  return registry.flights.join(context, { key: 'index', patienceMs: PATIENCE_MS, look, work });
}

async function load(context: MarketplaceContext, mirror: RegistryMirrorRow): Promise<void> {
  const servers: IndexedServer[] = [];
  let rows = await listServers(context.database, mirror.id, { after: '', limit: PAGE });
  servers.push(...rows.map((row) => toIndexed(row)));
  while (rows.length === PAGE) {
    rows = await listServers(context.database, mirror.id, { after: rows.at(-1)?.name ?? '', limit: PAGE });
    servers.push(...rows.map((row) => toIndexed(row)));
  }
  const { change, url } = mirror;
  context.registry.index.replace(url, servers, { change, nowMs: context.clock.now() });
}

/** Applies the changes since the last load, all of them or none. */
async function update(context: MarketplaceContext, mirror: RegistryMirrorRow): Promise<void> {
  const { index } = context.registry;
  const rows: RegistryServerRow[] = [];
  let last = { change: index.stateOf(mirror.url)?.change ?? 0, name: LAST_NAME };
  for (let isMore = true; isMore;) {
    const page = await listChanged(context.database, mirror.id, { ...last, limit: PAGE });
    rows.push(...page);
    last = page.at(-1) ?? last;
    isMore = page.length === PAGE;
  }
  const servers = rows.filter(({ state }) => state !== 'deleted').map((row) => toIndexed(row));
  const deleted = rows.filter(({ state }) => state === 'deleted').map(({ name }) => name);
  const change = Math.max(mirror.change, last.change);
  index.update(servers, deleted, { change, nowMs: context.clock.now() });
}

/** Sorts after every name. */
const LAST_NAME = '\u{10ffff}';

function toIndexed(row: ListedServerRow): IndexedServer {
  const { name, description, state, updatedAt } = row;
  return { name, description, state, updatedAt, ...parseSearchText(row.searchText), ...parseFacets(row.facets) };
}
