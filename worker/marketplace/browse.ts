import { z } from 'zod';
import { entryRisks } from '../../shared/mcp/entry_risks.ts';
import { findEntryRuleProblem } from '../../shared/mcp/entry_rules.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import { apiError, type ApiError } from '../../shared/wire/errors.ts';
import type { MarketplacePage, MarketplaceQuery } from '../../shared/wire/marketplace.ts';
import type { Caller } from '../kernel/caller.ts';
import { decodeCursor, encodeCursor } from '../kernel/cursors.ts';
import type { MarketplaceContext } from './marketplace_context.ts';
import { findMirror, type RegistryMirrorRow } from '../store/registry_mirrors.ts';
import { findDocuments } from '../store/registry_servers.ts';
import { findInstalledNames, rulesOfVisitor, toItem } from './items.ts';
import { indexOf } from './mirror_index.ts';
import { isSyncDue, SYNC_EVERY_MS, syncMirror } from './mirror_sync.ts';
import { listUrl, type RegistryFailure } from './registry_client.ts';
import { fetchAnyPage } from './registry_pages.ts';
import { entryOf, type RegistryRecord } from './registry_record.ts';
import { ServerIndex, type ServerQuery } from './server_index.ts';

/** An older mirror has missed an update. */
const STALE_MS = SYNC_EVERY_MS + 5 * 60_000;
/** How often one worker checks the mirror, however many users browse. */
const LOOK_AFTER_MS = 2_000;

/** Where the next page starts: a position in the mirror's order, or an offset in a registry page. */
const mirrorPosition = z.strictObject({ rank: z.number().int(), at: z.number().int(), name: z.string() });
const registryPosition = z.strictObject({ cursor: z.string().nullable(), offset: z.number().int().min(0) });
const browsePosition = z.union([mirrorPosition, registryPosition]);
type BrowsePosition = z.infer<typeof browsePosition>;

/** Published entries of a page, and how reliable the reply is. */
interface Listed {
  readonly documents: readonly string[];
  readonly next: BrowsePosition | null;
  readonly fetchedAt: string;
  readonly stale: boolean;
  readonly partial: boolean;
}

/**
 * Lists or searches the servers of the registry. A complete mirror answers; until then the registry's own list does, so
 * that nobody waits for the mirror. Refuses with `invalid_cursor`, `registry_unavailable`.
 */
export async function browse(
  context: MarketplaceContext,
  caller: Caller | null,
  query: MarketplaceQuery,
): Promise<Result<MarketplacePage, ApiError>> {
  const position = decodeCursor(browsePosition, query.cursor);
  if (!position.ok) return position;
  const mirror = await findCurrentMirror(context);
  lookAfterMirror(context, mirror);
  const listed = await list(context, mirror, query, position.value);
  if (!listed.ok) return listed;
  const entries = listed.value.documents.map((document) => entryOf(document));
  const names = entries.map(({ name }) => name);
  const [installed, rules] = await Promise.all([
    findInstalledNames(context, caller, names),
    rulesOfVisitor(context, caller),
  ]);
  const { next, fetchedAt, stale, partial } = listed.value;
  return ok({
    items: entries.map((entry) => {
      const risks = entryRisks(entry, context.clock.now());
      const ruleProblem = findEntryRuleProblem(rules, entry);
      return toItem(entry, risks, { caller, installed: installed.has(entry.name), ruleProblem });
    }),
    next_cursor: next === null ? null : encodeCursor(next),
    fetched_at: fetchedAt,
    stale,
    partial,
  });
}

/** The mirror's row. For a complete mirror it is cached for a few seconds. */
async function findCurrentMirror({ registry, database, clock }: MarketplaceContext): Promise<RegistryMirrorRow | null> {
  const known = registry.known.find(clock.now());
  if (known !== null) return known;
  const mirror = await findMirror(database, registry.url);
  if (mirror !== null && mirror.syncedAt !== null) registry.known.note(mirror, clock.now());
  return mirror;
}

/** Updates the mirror after the reply, if it is due. */
export function lookAfterMirror(context: MarketplaceContext, mirror: RegistryMirrorRow | null): void {
  const { registry, clock } = context;
  if (!isSyncDue(mirror, clock.now()) || !registry.syncs.mayBegin(clock.now(), LOOK_AFTER_MS)) return;
  context.defer('the mirror of the MCP registry', () => syncMirror(context));
}

async function list(
  context: MarketplaceContext,
  mirror: RegistryMirrorRow | null,
  query: MarketplaceQuery,
  position: BrowsePosition | null,
): Promise<Result<Listed, ApiError>> {
  const isOfRegistry = position !== null && 'cursor' in position;
  if (mirror?.syncedAt && !isOfRegistry) {
    const listed = await listMirror(context, mirror, query, position);
    if (listed !== null) return ok({ ...listed, fetchedAt: mirror.syncedAt });
  }
  if (position !== null && !isOfRegistry) return err(apiError('invalid_cursor', CURSOR_OVER));
  const listed = await listRegistry(context, query, position ?? { cursor: null, offset: 0 });
  if (listed.ok) return listed;
  // An incomplete mirror is better than nothing.
  const part = mirror !== null && mirror.change > 0 ? await listMirror(context, mirror, query, null) : null;
  return part === null || position !== null ? err(registryUnavailable(listed.error)) : ok({ ...part, partial: true });
}

const CURSOR_OVER = 'the list of this cursor no longer exists: start again without it';

/** A page from the mirror; null if its copy in memory could not be loaded. */
async function listMirror(
  context: MarketplaceContext,
  mirror: RegistryMirrorRow,
  query: MarketplaceQuery,
  after: z.infer<typeof mirrorPosition> | null,
): Promise<Listed | null> {
  const index = await indexOf(context, mirror);
  if (index === null) return null;
  const found = index.search(searchOf(query), after, query.limit + 1);
  const shown = found.slice(0, query.limit);
  const names = shown.map(({ name }) => name);
  const documents = await findDocuments(context.database, mirror.id, names);
  const fetchedAt = mirror.syncedAt ?? mirror.beganAt ?? new Date(0).toISOString();
  return {
    // An entry that was just deleted may still be in the copy; it has no document.
    documents: names.map((name) => documents.get(name)).filter((document) => document !== undefined),
    next: found.length > query.limit ? (shown.at(-1) ?? null) : null,
    fetchedAt,
    stale: context.clock.now() - Date.parse(fetchedAt) > STALE_MS,
    partial: false,
  };
}

/** A page of the registry's own list or search. Its search covers only names, and some registries have none. */
async function listRegistry(
  context: MarketplaceContext,
  query: MarketplaceQuery,
  { cursor, offset }: z.infer<typeof registryPosition>,
): Promise<Result<Listed, RegistryFailure>> {
  const search = query.q === '' ? null : query.q;
  const answer = await fetchAnyPage(context, listUrl(context.registry.url, { cursor, search, updatedSince: null }));
  if (!answer.ok) return answer;
  const { page, fetchedAtMs, isStale } = answer.value;
  const found = findIn(page.records, searchOf(query));
  const end = offset + query.limit;
  const following = page.nextCursor === null ? null : { cursor: page.nextCursor, offset: 0 };
  return ok({
    documents: found.slice(offset, end).map(({ document }) => document),
    next: end < found.length ? { cursor, offset: end } : following,
    fetchedAt: new Date(fetchedAtMs).toISOString(),
    stale: isStale,
    partial: search !== null,
  });
}

/** The records that match a query, in the same order as everywhere. */
function findIn(records: readonly RegistryRecord[], query: ServerQuery): readonly RegistryRecord[] {
  const listed = new Map(
    records.filter((each) => each.isLatest && each.state !== 'deleted').map((each) => [each.name, each]),
  );
  const index = new ServerIndex();
  index.replace('', listed.values(), { change: 0, nowMs: 0 });
  const found = index.search(query, null, listed.size);
  return found.map(({ name }) => listed.get(name)).filter((record) => record !== undefined);
}

function searchOf({ q, transport, registry_type, needs_secret, publisher }: MarketplaceQuery): ServerQuery {
  return {
    text: q,
    transport: transport ?? null,
    registryType: registry_type?.toLowerCase() ?? null,
    needsSecret: needs_secret === undefined ? null : needs_secret === 'true',
    publisher: publisher ?? null,
  };
}

export function registryUnavailable({ message, retryAfterSeconds }: RegistryFailure): ApiError {
  const text = `the MCP registry is unavailable (${message}): try again`;
  return apiError('registry_unavailable', text, {
    ...(retryAfterSeconds !== null && { retry_after_seconds: retryAfterSeconds }),
  });
}
