import { and, asc, eq, gt, isNull, lte, or, type SQL } from 'drizzle-orm';
import type { Database, Statement } from './database.ts';
import { approvalViews } from './tables.ts';

export type ViewRow = typeof approvalViews.$inferSelect;

/** The views of an approval that are newer than `since`, the oldest first. */
export function listViews(database: Database, approvalId: string, since: string): Promise<ViewRow[]> {
  return database.read.select().from(approvalViews).where(ofApproval(approvalId, since)).orderBy(asc(approvalViews.id));
}

/** Those that no sidecar has answered. */
export function listOpenViews(database: Database, approvalId: string, since: string): Promise<ViewRow[]> {
  return database.read
    .select()
    .from(approvalViews)
    .where(and(ofApproval(approvalId, since), isNull(approvalViews.sealed)))
    .orderBy(asc(approvalViews.id));
}

function ofApproval(approvalId: string, since: string): SQL | undefined {
  return and(eq(approvalViews.approvalId, approvalId), gt(approvalViews.createdAt, since));
}

/** Adds a view, and removes every one that is older than `since`. */
export function insertView(database: Database, row: ViewRow, since: string): Statement[] {
  return [
    database.read.delete(approvalViews).where(lte(approvalViews.createdAt, since)),
    database.read.insert(approvalViews).values(row),
  ];
}

/** An answered view keeps its first answer. */
export function sealView(database: Database, { id }: Pick<ViewRow, 'id'>, sealed: string): Statement[] {
  return [
    database.read
      .update(approvalViews)
      .set({ sealed })
      .where(and(eq(approvalViews.id, id), isNull(approvalViews.sealed))),
  ];
}

/** Once a request no longer waits, nothing of it is kept. */
export function deleteViews(database: Database, approvalIds: readonly string[]): Statement[] {
  if (approvalIds.length === 0) return [];
  return [database.read.delete(approvalViews).where(or(...approvalIds.map((id) => eq(approvalViews.approvalId, id))))];
}
