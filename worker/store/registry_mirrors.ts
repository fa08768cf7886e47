import { eq, sql } from 'drizzle-orm';
import { type Database, guard, type Statement, statement } from './database.ts';
import { registryMirrors } from './tables.ts';

/** The mirror of a registry: its state, and the progress of a running sync. */
export type RegistryMirrorRow = typeof registryMirrors.$inferSelect;

export async function findMirror(database: Database, url: string): Promise<RegistryMirrorRow | null> {
  const rows = await database.read.select().from(registryMirrors).where(eq(registryMirrors.url, url));
  return rows[0] ?? null;
}

/** Creates the row of a mirror if it does not exist. */
export function insertMirror(database: Database, url: string): Statement {
  return database.read.insert(registryMirrors).values({ url }).onConflictDoNothing();
}

/** Takes the lease of a mirror if nobody holds it: only one worker syncs. */
export function takeMirrorLease(
  database: Database,
  id: number,
  lease: { readonly holder: string; readonly untilMs: number; readonly nowMs: number },
): Statement[] {
  const free = sql`SELECT 1 FROM registry_mirrors WHERE id = ${id} AND lease_until_ms <= ${lease.nowMs}
    AND not_before_ms <= ${lease.nowMs}`;
  return [
    ...guard(sql`EXISTS (${free})`),
    database.read
      .update(registryMirrors)
      .set({ lease: lease.holder, leaseUntilMs: lease.untilMs })
      .where(eq(registryMirrors.id, id)),
  ];
}

/** Changes a mirror if the holder still has its lease; otherwise the whole write is a conflict. */
export function changeMirror(
  database: Database,
  id: number,
  holder: string,
  change: Partial<RegistryMirrorRow>,
): Statement[] {
  return [
    ...guard(sql`EXISTS (SELECT 1 FROM registry_mirrors WHERE id = ${id} AND lease = ${holder})`),
    database.read.update(registryMirrors).set(change).where(eq(registryMirrors.id, id)),
  ];
}

/** Marks entries as deleted that a full sync has not seen. */
export function deleteUnseen(id: number, seen: { crawl: number; change: number }): Statement[] {
  return [
    statement(sql`DELETE FROM registry_documents WHERE registry_id = ${id} AND name IN (
      SELECT name FROM registry_servers WHERE registry_id = ${id} AND crawl < ${seen.crawl})`),
    statement(sql`UPDATE registry_servers SET state = 'deleted', change = ${seen.change}
      WHERE registry_id = ${id} AND crawl < ${seen.crawl} AND state <> 'deleted'`),
  ];
}
