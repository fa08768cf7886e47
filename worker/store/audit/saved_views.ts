import { and, asc, eq } from 'drizzle-orm';
import type { Database, Statement } from '../database.ts';
import { savedViews } from '../tables.ts';

/** A person's question to the audit log, by name. */
export type SavedViewRow = typeof savedViews.$inferSelect;

/** By name. */
export async function listSavedViews(database: Database, userId: string): Promise<SavedViewRow[]> {
  return database.read.select().from(savedViews).where(eq(savedViews.userId, userId)).orderBy(asc(savedViews.name));
}

/** A view of the same name is replaced. */
export function putSavedView(database: Database, row: SavedViewRow): Statement {
  const { query, createdAt } = row;
  return database.read
    .insert(savedViews)
    .values(row)
    .onConflictDoUpdate({ target: [savedViews.userId, savedViews.name], set: { query, createdAt } });
}

export function deleteSavedView(
  database: Database,
  { userId, name }: Pick<SavedViewRow, 'userId' | 'name'>,
): Statement {
  return database.read.delete(savedViews).where(and(eq(savedViews.userId, userId), eq(savedViews.name, name)));
}
