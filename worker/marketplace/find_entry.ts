import { readRegistryEntry, type RegistryEntry } from '../../shared/mcp/registry_entry.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import { apiError, type ApiError } from '../../shared/wire/errors.ts';
import type { MarketplaceContext } from './marketplace_context.ts';
import { findMirror } from '../store/registry_mirrors.ts';
import { findDocuments } from '../store/registry_servers.ts';
import { registryUnavailable } from './browse.ts';
import { FRESH_MS } from './registry.ts';
import { listUrl, type RegistryFailure, versionsUrl } from './registry_client.ts';
import { fetchAnyPage, freshPage, type Page } from './registry_pages.ts';
import { entryOf, type RegistryRecord } from './registry_record.ts';

/** One version of a registry entry, and the other versions. */
export interface FoundEntry {
  readonly entry: RegistryEntry;
  /** Newest first, in the registry's order, including the one that was found. */
  readonly versions: readonly RegistryEntry[];
  readonly fetchedAt: string;
  /** Older than 15 minutes, because the registry does not answer now. */
  readonly isStale: boolean;
}

interface Wanted {
  readonly name: string;
  /** Null: the newest. */
  readonly version: string | null;
}

/** `fresh`: not older than 15 minutes. `any`: also an older reply if the registry does not answer. */
export type Freshness = 'fresh' | 'any';

const MAX_VERSIONS = 200;

/** Refuses with `not_found`, `registry_unavailable`. */
export async function findEntry(
  context: MarketplaceContext,
  wanted: Wanted,
  freshness: Freshness,
): Promise<Result<FoundEntry, ApiError>> {
  if (!isEntryName(wanted.name)) return err(noEntryError(wanted.name));
  const asked = await askFor(context, wanted, freshness);
  if (asked.ok) return choose(asked.value, wanted);
  if (asked.error.reason === 'not_found') return err(noEntryError(wanted.name));
  const mirrored = await readMirroredPage(context, wanted.name);
  const isUsable = mirrored !== null && (freshness === 'any' || !mirrored.isStale);
  return isUsable ? choose(mirrored, wanted) : err(notAnsweredError(asked.error, wanted, mirrored));
}

/** Whether a registry could have an entry of this name. Other names are not looked up. */
function isEntryName(name: string): boolean {
  return name.isWellFormed() && readRegistryEntry({ name }).ok;
}

/** The versions of an entry. Registries of early 2025 have no version list, so the name is searched for. */
async function askFor(
  context: MarketplaceContext,
  { name, version }: Wanted,
  freshness: Freshness,
): Promise<Result<Page, RegistryFailure>> {
  const { url } = context.registry;
  const all = await ask(context, versionsUrl(url, name, null), freshness);
  if (all.ok || all.error.reason === 'unavailable' || all.error.reason === 'too_many_requests') return all;
  if (all.error.reason === 'bad_reply') return ask(context, versionsUrl(url, name, version ?? 'latest'), freshness);
  const listed = await ask(context, listUrl(url, { cursor: null, search: name, updatedSince: null }), freshness);
  return listed.ok && listed.value.page.records.every((record) => record.name !== name) ? all : listed;
}

async function ask(
  context: MarketplaceContext,
  url: string,
  freshness: Freshness,
): Promise<Result<Page, RegistryFailure>> {
  if (freshness === 'any') return fetchAnyPage(context, url);
  const fresh = await freshPage(context, url);
  return fresh.ok ? ok({ ...fresh.value, isStale: false }) : fresh;
}

/** What the mirror has of an entry, in the registry's format. */
async function readMirroredPage(context: MarketplaceContext, name: string): Promise<Page | null> {
  const mirror = await findMirror(context.database, context.registry.url);
  if (mirror?.syncedAt === null || mirror === null) return null;
  const document = (await findDocuments(context.database, mirror.id, [name])).get(name);
  if (document === undefined) return null;
  const fetchedAtMs = Date.parse(mirror.syncedAt);
  const { version, status } = entryOf(document);
  const record = { name, version: version ?? '', state: status, isLatest: true, document };
  const page = { records: [{ ...NOT_SEARCHED, ...record }], nextCursor: null, skipped: 0 };
  return { page, fetchedAtMs, isStale: context.clock.now() - fetchedAtMs >= FRESH_MS };
}

const NOT_SEARCHED = {
  description: '',
  title: '',
  identifiers: [],
  updatedAt: '',
  transports: [],
  registryTypes: [],
  needsSecret: null,
};

function choose({ page, fetchedAtMs, isStale }: Page, { name, version }: Wanted): Result<FoundEntry, ApiError> {
  const own = page.records.filter((record) => record.name === name).slice(0, MAX_VERSIONS);
  const chosen = version === null ? newestOf(own) : own.find((record) => record.version === version);
  if (chosen === undefined || chosen.state === 'deleted') return err(noVersionError(name, version, own));
  return ok({
    entry: entryOf(chosen.document),
    versions: own.filter(({ state }) => state !== 'deleted').map(({ document }) => entryOf(document)),
    fetchedAt: new Date(fetchedAtMs).toISOString(),
    isStale,
  });
}

/** The version that the registry marks as latest, otherwise the last one published. */
function newestOf(records: readonly RegistryRecord[]): RegistryRecord | undefined {
  const there = records.filter(({ state }) => state !== 'deleted');
  const latest = there.filter(({ isLatest }) => isLatest);
  return (latest.length > 0 ? latest : there).toSorted((a, b) => (a.updatedAt < b.updatedAt ? 1 : -1))[0];
}

function noVersionError(name: string, version: string | null, versions: readonly RegistryRecord[]): ApiError {
  if (version === null || versions.length === 0) return noEntryError(name);
  const known = versions.map((record) => record.version).slice(0, 10);
  const message = `the registry has no version ${version} of ${name}: it has ${known.join(', ')}`;
  return apiError('not_found', message, { versions: known });
}

function noEntryError(name: string): ApiError {
  const shown = isEntryName(name) ? ` ${name}` : '';
  return apiError('not_found', `the registry has no entry${shown}: search with GET /v1/marketplace/servers?q=`);
}

/** Adds an earlier known version, which is not used for an install. */
function notAnsweredError(problem: RegistryFailure, { name }: Wanted, mirrored: Page | null): ApiError {
  const refusal = registryUnavailable(problem);
  if (mirrored === null) return refusal;
  const [record] = mirrored.page.records;
  const lastSeen = { version: record?.version ?? null, fetched_at: new Date(mirrored.fetchedAtMs).toISOString() };
  const message = `${refusal.message}. The last data of ${name} is from ${lastSeen.fetched_at}, which is too old to install from`;
  return { ...refusal, message, details: { ...refusal.details, last_seen: lastSeen } };
}
