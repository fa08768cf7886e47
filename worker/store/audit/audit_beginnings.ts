import { and, asc, eq, gt, lte, type SQL, sql } from 'drizzle-orm';
import { type Database, guard, type Statement } from '../database.ts';
import { auditBeginnings, auditEvents, auditHeads } from '../tables.ts';

export type AuditBeginningRow = typeof auditBeginnings.$inferSelect;

/** Where a chain begins; null if none of its events was removed. */
export async function findBeginning(database: Database, writer: string): Promise<AuditBeginningRow | null> {
  const rows = await database.read.select().from(auditBeginnings).where(eq(auditBeginnings.writer, writer));
  return rows[0] ?? null;
}

/** How many events an enterprise's chains have, how many were removed, and when the oldest was received. */
export async function summarizeLog(
  database: Database,
  enterpriseId: string,
): Promise<{ readonly events: number; readonly removed: number; readonly oldest: string | null }> {
  const begun = sql`coalesce(${auditBeginnings.sequence}, 0)`;
  const rows = await database.read
    .select({
      events: sql<number>`coalesce(sum(${auditHeads.sequence} - ${begun}), 0)`,
      removed: sql<number>`coalesce(sum(${begun}), 0)`,
      oldest: sql<string | null>`min(${auditEvents.receivedAt})`,
    })
    .from(auditHeads)
    .leftJoin(auditBeginnings, eq(auditBeginnings.writer, auditHeads.writer))
    .leftJoin(auditEvents, and(eq(auditEvents.writer, auditHeads.writer), eq(auditEvents.sequence, sql`1 + ${begun}`)))
    .where(eq(auditHeads.enterpriseId, enterpriseId));
  return rows[0] ?? { events: 0, removed: 0, oldest: null };
}

/** Writers whose chains had events removed. */
export async function listBegunWriters(database: Database, enterpriseId: string): Promise<string[]> {
  const rows = await database.read
    .select({ writer: auditBeginnings.writer })
    .from(auditBeginnings)
    .where(eq(auditBeginnings.enterpriseId, enterpriseId));
  return rows.map((row) => row.writer);
}

/** Removes the events up to a new beginning, if the chain still begins where it did when it was read. */
export function cutChain(database: Database, to: AuditBeginningRow, from: AuditBeginningRow | null): Statement[] {
  const { writer, sequence, hash, seal } = to;
  return [
    ...guard(beginsAt(writer, from)),
    database.read.delete(auditEvents).where(and(eq(auditEvents.writer, writer), lte(auditEvents.sequence, sequence))),
    database.read
      .insert(auditBeginnings)
      .values(to)
      .onConflictDoUpdate({ target: auditBeginnings.writer, set: { sequence, hash, seal } }),
  ];
}

function beginsAt(writer: string, from: AuditBeginningRow | null): SQL {
  if (from === null) return sql`NOT EXISTS (SELECT 1 FROM audit_beginnings WHERE writer = ${writer})`;
  return sql`EXISTS (SELECT 1 FROM audit_beginnings
    WHERE writer = ${writer} AND sequence = ${from.sequence} AND hash = ${from.hash})`;
}

/** Heads of chains whose first stored event was received before a time. */
const isDue = (
  before: string,
) => sql`EXISTS (SELECT 1 FROM audit_events AS first WHERE first.writer = ${auditHeads.writer}
  AND first.sequence = 1 + coalesce((SELECT begun.sequence FROM audit_beginnings AS begun
    WHERE begun.writer = ${auditHeads.writer}), 0)
  AND first.received_at < ${before})`;

/** Chains of an enterprise that have events from before a time, after a writer. */
export async function dueChains(
  database: Database,
  enterpriseId: string,
  before: string,
  page: { readonly after: string; readonly limit: number },
): Promise<string[]> {
  const rows = await database.read
    .select({ writer: auditHeads.writer })
    .from(auditHeads)
    .where(and(eq(auditHeads.enterpriseId, enterpriseId), gt(auditHeads.writer, page.after), isDue(before)))
    .orderBy(asc(auditHeads.writer))
    .limit(page.limit);
  return rows.map((row) => row.writer);
}

/** The next enterprise that has events from before a time; null if none has. */
export async function findNextDueEnterprise(database: Database, before: string, after: string): Promise<string | null> {
  const rows = await database.read
    .select({ enterpriseId: auditHeads.enterpriseId })
    .from(auditHeads)
    .where(and(gt(auditHeads.enterpriseId, after), isDue(before)))
    .orderBy(asc(auditHeads.enterpriseId))
    .limit(1);
  return rows[0]?.enterpriseId ?? null;
}

/** The sequence number of the first event of a chain that was received at or after a time; null if there is none. */
export async function findFirstReceived(database: Database, writer: string, time: string): Promise<number | null> {
  const rows = await database.read
    .select({ sequence: auditEvents.sequence })
    .from(auditEvents)
    .where(and(eq(auditEvents.writer, writer), sql`${auditEvents.receivedAt} >= ${time}`))
    .orderBy(asc(auditEvents.sequence))
    .limit(1);
  return rows[0]?.sequence ?? null;
}
