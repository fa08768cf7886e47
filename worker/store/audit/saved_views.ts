import { and, asc, eq, sql } from 'drizzle-orm';
import { type Database, guard, type Statement } from '../database.ts';
import { savedViews } from '../tables.ts';

/** A person's question to the audit log, by name. */
export type SavedViewRow = typeof savedViews.$inferSelect;

/** By name. */
export async function listSavedViews(database: Database, userId: string): Promise<SavedViewRow[]> {
  return database.read.select().from(savedViews).where(eq(savedViews.userId, userId)).orderBy(asc(savedViews.name));
}

/** A view of the same name is replaced; a conflict if the person has `most` others. */
export function putSavedView(database: Database, row: SavedViewRow, most: number): Statement[] {
  const { userId, name, query, createdAt } = row;
  const put = database.read
    .insert(savedViews)
    .values(row)
    .onConflictDoUpdate({ target: [savedViews.userId, savedViews.name], set: { query, createdAt } });
  const others = sql`SELECT count(*) FROM saved_views WHERE user_id = ${userId} AND name <> ${name}`;
  return [...guard(sql`(${others}) < ${most}`), put];
}

export function deleteSavedView(
  database: Database,
  { userId, name }: Pick<SavedViewRow, 'userId' | 'name'>,
): Statement {
  return database.read.delete(savedViews).where(and(eq(savedViews.userId, userId), eq(savedViews.name, name)));
}
