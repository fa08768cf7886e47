import { eq } from 'drizzle-orm';
import { facetText, searchText } from '../../worker/marketplace/facets.ts';
import { readRegistryRecord } from '../../worker/marketplace/registry_record.ts';
import type { Database } from '../../worker/store/database.ts';
import { findMirror, insertMirror, type RegistryMirrorRow } from '../../worker/store/registry_mirrors.ts';
import { type MirroredServer, writeServers } from '../../worker/store/registry_servers.ts';
import { registryMirrors } from '../../worker/store/tables.ts';
import type { PublishedEntry } from '../marketplace/registry_entries.ts';

const ROWS_PER_WRITE = 5_000;
/** More than the replaced crawl has written. */
const CHANGE = 100_000;
const FAR_MS = 24 * 3600_000;

/** Gives a control plane the mirror of a registry that a full crawl would produce. Ends a running crawl. */
export async function seedMirror(database: Database, url: string, entries: readonly PublishedEntry[]): Promise<void> {
  await write(database, [insertMirror(database, url)]);
  const mirror = await findMirror(database, url);
  if (mirror === null) throw new Error('the mirror was not made');
  const idle = { lease: null, leaseUntilMs: 0, notBeforeMs: Date.now() + FAR_MS, beganAt: null, cursor: null };
  await change(database, mirror.id, idle);
  const servers = entries.map((entry) => toMirrored(entry));
  for (let at = 0; at < servers.length; at += ROWS_PER_WRITE) {
    const rows = servers.slice(at, at + ROWS_PER_WRITE);
    await write(database, writeServers({ id: mirror.id, crawl: 1, change: CHANGE }, rows));
  }
  const now = new Date().toISOString();
  await change(database, mirror.id, { crawl: 1, change: CHANGE, syncedAt: now, crawledAt: now });
}

function change(database: Database, id: number, fields: Partial<RegistryMirrorRow>): Promise<void> {
  return write(database, [database.read.update(registryMirrors).set(fields).where(eq(registryMirrors.id, id))]);
}

async function write(database: Database, statements: Parameters<Database['write']>[0]): Promise<void> {
  const written = await database.write(statements);
  if (!written.ok) throw new Error(`the mirror was not written: ${written.error}`);
}

function toMirrored({ server, status, updatedAt }: PublishedEntry): MirroredServer {
  const official = { status, publishedAt: updatedAt, updatedAt, isLatest: true };
  const record = readRegistryRecord({ server, _meta: { 'io.modelcontextprotocol.registry/official': official } });
  if (record === null) throw new Error(`${server.name} is no entry`);
  const { name, description, state, document } = record;
  const texts = { description, searchText: searchText(record), facets: facetText(record) };
  return { name, ...texts, state, updatedAt: record.updatedAt, document };
}
