import { err } from '../../shared/model/result.ts';
import { randomToken } from '../kernel/encoding.ts';
import type { MarketplaceContext } from './marketplace_context.ts';
import { nowText } from '../kernel/service_context.ts';
import {
  changeMirror,
  deleteUnseen,
  findMirror,
  insertMirror,
  type RegistryMirrorRow,
  takeMirrorLease,
} from '../store/registry_mirrors.ts';
import { type MirroredServer, writeServers } from '../store/registry_servers.ts';
import { facetText, searchText } from './facets.ts';
import { askRegistry, listUrl, type RegistryPage, type RegistryFailure } from './registry_client.ts';
import type { RegistryRecord } from './registry_record.ts';

/** How old the mirror may get before changes are fetched. */
export const SYNC_EVERY_MS = 15 * 60_000;
/** The name that the outcome of a call is noted under. */
export const SYNC = 'sync';
/** Longer after a sync of many pages: a registry that does not know `updated_since` returns everything. */
const SYNC_LARGE_EVERY_MS = 6 * 3600_000;
const LARGE_PAGES = 50;
/** When everything is fetched again. Entries that vanished without a deletion record are then removed. */
const CRAWL_EVERY_MS = 7 * 24 * 3600_000;
/** Pause between two pages: 300 a minute, half of the public registry's limit. */
const PACE_MS = 200;
/** Longer than a page takes. After that another worker may continue. */
const LEASE_MS = 90_000;
/** More pages than any registry has: its cursors are circular. */
const MAX_PAGES = 3_000;
/** Changes are requested with an overlap, because two clocks are compared. */
const OVERLAP_MS = 5 * 60_000;
/** Delays after failures. The first retries are soon, because a sync continues where it was. */
const RETRY_MS = 30_000;
const RETRY_BROKEN_MS = 3600_000;

/** Whether the mirror seems due for an update, judged without its lease. */
export function isSyncDue(mirror: RegistryMirrorRow | null, nowMs: number): boolean {
  if (mirror === null) return true;
  return mirror.notBeforeMs <= nowMs && mirror.leaseUntilMs <= nowMs;
}

/**
 * Updates the mirror page by page until this request's time is over; the next one continues. One worker does it at a
 * time, and no caller waits for it.
 */
export async function syncMirror(context: MarketplaceContext): Promise<void> {
  const { database, registry, clock } = context;
  const ends = registry.syncMs === null ? Number.POSITIVE_INFINITY : clock.now() + registry.syncMs;
  await database.write([insertMirror(database, registry.url)]);
  const mirror = await findMirror(database, registry.url);
  if (mirror === null) return;
  const holder = randomToken();
  const nowMs = clock.now();
  const lease = { holder, untilMs: nowMs + LEASE_MS, nowMs };
  const taken = await database.write(takeMirrorLease(database, mirror.id, lease));
  if (!taken.ok) return;
  await syncAs(context, { ...beginSync(context, mirror), lease: holder }, ends);
}

/** The sync to continue, or a new one: a full one at first and once a week, otherwise of changes only. */
function beginSync(context: MarketplaceContext, mirror: RegistryMirrorRow): RegistryMirrorRow {
  if (mirror.beganAt !== null) return mirror;
  const { syncedAt, crawledAt } = mirror;
  const now = context.clock.now();
  const isWhole = syncedAt === null || crawledAt === null || now - Date.parse(crawledAt) >= CRAWL_EVERY_MS;
  const since = isWhole ? null : new Date(Date.parse(syncedAt) - OVERLAP_MS).toISOString();
  const crawl = mirror.crawl + (isWhole ? 1 : 0);
  return { ...mirror, beganAt: nowText(context), since, crawl, cursor: null, pages: 0 };
}

/** At least one page, so that every slice makes progress. */
async function syncAs(context: MarketplaceContext, first: RegistryMirrorRow, ends: number): Promise<void> {
  const seen = new Set<string>();
  let mirror: RegistryMirrorRow | null = first;
  while (mirror !== null && !context.stopping.aborted) {
    mirror = await syncPage(context, mirror, seen);
    if (mirror !== null && context.clock.now() >= ends) break;
    if (mirror !== null) await context.clock.sleep(PACE_MS, context.stopping);
  }
  if (mirror !== null) await release(context, mirror, { notBeforeMs: 0 });
}

/** Fetches and stores one page; null if the sync has ended, successfully or not. */
async function syncPage(
  context: MarketplaceContext,
  mirror: RegistryMirrorRow,
  seen: Set<string>,
): Promise<RegistryMirrorRow | null> {
  const { cursor, since } = mirror;
  const url = listUrl(context.registry.url, { cursor, search: null, updatedSince: since });
  const { responses } = context.registry;
  const paused = responses.pause(context.clock.now());
  const answer = paused === null ? await askRegistry(context.outbound, url, context.clock.now()) : err(paused);
  const { outcomes } = context.registry;
  if (paused === null) outcomes.note(SYNC, answer.ok ? null : answer.error.message, context.clock.now());
  if (!answer.ok) {
    if (paused === null) responses.note(url, answer, context.clock.now());
    return backOff(context, mirror, answer.error);
  }
  const { nextCursor } = answer.value;
  const isCircle = (nextCursor !== null && seen.has(nextCursor)) || mirror.pages >= MAX_PAGES;
  if (isCircle) return startOver(context, mirror);
  if (nextCursor !== null) seen.add(nextCursor);
  return writePage(context, mirror, answer.value);
}

async function writePage(
  context: MarketplaceContext,
  mirror: RegistryMirrorRow,
  page: RegistryPage,
): Promise<RegistryMirrorRow | null> {
  const { database } = context;
  const change = mirror.change + 1;
  const pages = mirror.pages + 1;
  const next = { ...mirror, change, pages, cursor: page.nextCursor, leaseUntilMs: context.clock.now() + LEASE_MS };
  const isLast = page.nextCursor === null;
  const finished = isLast ? finish(context, next) : next;
  // An empty list is more likely a fault than an empty registry.
  const isEmpty = pages === 1 && page.records.length === 0;
  const isWhole = isLast && mirror.since === null && !isEmpty;
  const written = await database.write([
    ...changeMirror(database, mirror.id, mirror.lease ?? '', finished),
    ...writeServers(next, newestOf(page.records)),
    ...(isWhole ? deleteUnseen(mirror.id, next) : []),
  ]);
  return written.ok && !isLast ? next : null;
}

/** The mirror now has what the registry had when the sync began. */
function finish(context: MarketplaceContext, mirror: RegistryMirrorRow): RegistryMirrorRow {
  const isWhole = mirror.since === null;
  const everyMs = !isWhole && mirror.pages > LARGE_PAGES ? SYNC_LARGE_EVERY_MS : SYNC_EVERY_MS;
  return {
    ...mirror,
    ...IDLE,
    syncedAt: mirror.beganAt,
    crawledAt: isWhole ? mirror.beganAt : mirror.crawledAt,
    notBeforeMs: context.clock.now() + everyMs,
  };
}

const NO_LEASE = { lease: null, leaseUntilMs: 0 };
const IDLE = { ...NO_LEASE, beganAt: null, since: null, cursor: null };

/** If the registry fails or asks for a pause, the sync continues later from its place. */
async function backOff(
  context: MarketplaceContext,
  mirror: RegistryMirrorRow,
  { reason, retryAfterSeconds }: RegistryFailure,
): Promise<null> {
  // Replies of a registry to a cursor that it no longer knows, or to a query it does not support.
  if (reason === 'bad_reply' || reason === 'not_found') return startOver(context, mirror);
  const waitMs = Math.max((retryAfterSeconds ?? 0) * 1000, RETRY_MS);
  await release(context, mirror, { notBeforeMs: context.clock.now() + waitMs });
  return null;
}

/** Abandons the sync. What it stored stays, and the next one fetches everything. */
async function startOver(context: MarketplaceContext, mirror: RegistryMirrorRow): Promise<null> {
  const waitMs = mirror.since === null ? RETRY_BROKEN_MS : SYNC_LARGE_EVERY_MS;
  const notBeforeMs = context.clock.now() + waitMs;
  await release(context, mirror, { ...IDLE, crawledAt: null, notBeforeMs });
  return null;
}

async function release(
  context: MarketplaceContext,
  mirror: RegistryMirrorRow,
  change: Partial<RegistryMirrorRow>,
): Promise<void> {
  const { database } = context;
  // A new holder of the lease has what it needs, so this conflict is ignored.
  await database.write(changeMirror(database, mirror.id, mirror.lease ?? '', { ...mirror, ...NO_LEASE, ...change }));
}

/** Keeps one record per name: the version marked as latest, or the one listed last. */
function newestOf(records: readonly RegistryRecord[]): MirroredServer[] {
  const newest = new Map<string, RegistryRecord>();
  for (const record of records) {
    const held = newest.get(record.name);
    if (record.isLatest && (held === undefined || record.updatedAt >= held.updatedAt)) newest.set(record.name, record);
  }
  return [...newest.values()].map((record) => toMirrored(record));
}

function toMirrored(record: RegistryRecord): MirroredServer {
  const { name, description, state, updatedAt, document } = record;
  return { name, description, searchText: searchText(record), facets: facetText(record), state, updatedAt, document };
}
