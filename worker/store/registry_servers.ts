import { and, asc, eq, gt, inArray, ne, sql } from 'drizzle-orm';
import { type Database, type Statement, statement } from './database.ts';
import { registryDocuments, registryServers } from './tables.ts';

export type RegistryServerRow = typeof registryServers.$inferSelect;

/** What a search needs of a server. */
export type ListedServerRow = Pick<
  RegistryServerRow,
  'name' | 'description' | 'searchText' | 'facets' | 'state' | 'updatedAt'
>;

/** A server from a page of the registry. */
export interface MirroredServer {
  readonly name: string;
  readonly description: string;
  /** The title and the identifiers of packages. */
  readonly searchText: string;
  readonly facets: string;
  readonly state: string;
  readonly updatedAt: string;
  readonly document: string;
}

/**
 * Writes a page into a mirror, each name once. Newer entries in the mirror stay, and count as seen. The page is a
 * single parameter, so a write has four statements for any number of servers.
 */
export function writeServers(
  mirror: { readonly id: number; readonly crawl: number; readonly change: number },
  servers: readonly MirroredServer[],
): Statement[] {
  const { id, crawl, change } = mirror;
  const rows = JSON.stringify(servers.map((server) => ({ ...server, document: undefined })));
  const names = JSON.stringify(servers.map(({ name }) => name));
  const documents = JSON.stringify(servers.map(({ name, document }) => ({ name, document })));
  return [
    statement(sql`INSERT INTO registry_servers (registry_id, name, description, search_text, facets, state,
        updated_at, crawl, change)
      SELECT ${id}, value ->> 'name', value ->> 'description', value ->> 'searchText', value ->> 'facets',
        value ->> 'state', value ->> 'updatedAt', ${crawl}, ${change} FROM json_each(${rows}) WHERE true
      ON CONFLICT (registry_id, name) DO UPDATE SET description = excluded.description,
        search_text = excluded.search_text, facets = excluded.facets, state = excluded.state, updated_at = excluded.updated_at, change = excluded.change
        WHERE excluded.updated_at >= registry_servers.updated_at`),
    statement(sql`UPDATE registry_servers SET crawl = ${crawl}
      WHERE registry_id = ${id} AND name IN (SELECT value FROM json_each(${names}))`),
    statement(sql`INSERT OR REPLACE INTO registry_documents (registry_id, name, document)
      SELECT ${id}, value ->> 'name', value ->> 'document' FROM json_each(${documents}) WHERE EXISTS (
        SELECT 1 FROM registry_servers WHERE registry_id = ${id} AND name = value ->> 'name' AND change = ${change})`),
    statement(sql`DELETE FROM registry_documents WHERE registry_id = ${id} AND name IN (
      SELECT name FROM registry_servers WHERE registry_id = ${id} AND change = ${change} AND state = 'deleted')`),
  ];
}

/** Servers that are not deleted, by name, after a name. */
export async function listServers(
  database: Database,
  registryId: number,
  page: { readonly after: string; readonly limit: number },
): Promise<ListedServerRow[]> {
  const { name, description, searchText, facets, state, updatedAt } = registryServers;
  return database.read
    .select({ name, description, searchText, facets, state, updatedAt })
    .from(registryServers)
    .where(and(eq(registryServers.registryId, registryId), gt(name, page.after), ne(registryServers.state, 'deleted')))
    .orderBy(asc(name))
    .limit(page.limit);
}

/** Entries written after a change, including deleted ones, in order of the writes. */
export async function listChanged(
  database: Database,
  registryId: number,
  page: { readonly change: number; readonly name: string; readonly limit: number },
): Promise<RegistryServerRow[]> {
  return database.read
    .select()
    .from(registryServers)
    .where(
      and(
        eq(registryServers.registryId, registryId),
        sql`(${registryServers.change}, ${registryServers.name}) > (${page.change}, ${page.name})`,
      ),
    )
    .orderBy(asc(registryServers.change), asc(registryServers.name))
    .limit(page.limit);
}

/** An entry has at most 128 KB, and a database reply at most 10 MB. */
const DOCUMENTS_PER_READ = 50;

/** The entries of these names, as published. */
export async function findDocuments(
  database: Database,
  registryId: number,
  names: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const { name, document } = registryDocuments;
  const reads: Promise<{ name: string; document: string }[]>[] = [];
  for (let at = 0; at < names.length; at += DOCUMENTS_PER_READ) {
    const some = names.slice(at, at + DOCUMENTS_PER_READ);
    const isWanted = and(eq(registryDocuments.registryId, registryId), inArray(name, some));
    reads.push(database.read.select({ name, document }).from(registryDocuments).where(isWanted).all());
  }
  const rows = (await Promise.all(reads)).flat();
  return new Map(rows.map((row) => [row.name, row.document]));
}
