import { and, asc, eq, gt, notExists } from 'drizzle-orm';
import type { AuditBeginningRow } from './audit_beginnings.ts';
import { type AuditHeadRow, listHeads, listWriters } from './audit_events.ts';
import type { Database } from '../database.ts';
import { auditBeginnings, auditWriters, enterprises, sidecars } from '../tables.ts';

const ENTERPRISES_AT_A_TIME = 100;

/** Enterprises without recorded writers, after one. */
export async function listTakeovers(database: Database, after: string): Promise<string[]> {
  const noted = database.read.select().from(auditWriters).where(eq(auditWriters.enterpriseId, enterprises.id));
  const rows = await database.read
    .select({ id: enterprises.id })
    .from(enterprises)
    .where(and(gt(enterprises.id, after), notExists(noted)))
    .orderBy(asc(enterprises.id))
    .limit(ENTERPRISES_AT_A_TIME);
  return rows.map((row) => row.id);
}

/** The audit chains of an enterprise. */
export interface Takeover {
  readonly heads: readonly AuditHeadRow[];
  readonly beginnings: readonly AuditBeginningRow[];
  /** Writers of events. */
  readonly writers: readonly string[];
  readonly sidecars: readonly string[];
}

export async function readTakeover(database: Database, enterpriseId: string): Promise<Takeover> {
  const of = eq(auditBeginnings.enterpriseId, enterpriseId);
  const enrolled = database.read.select({ id: sidecars.id }).from(sidecars);
  const rows = await enrolled.where(eq(sidecars.enterpriseId, enterpriseId)).orderBy(asc(sidecars.id));
  return {
    heads: await listHeads(database, enterpriseId),
    beginnings: await database.read.select().from(auditBeginnings).where(of),
    writers: await listWriters(database, enterpriseId),
    sidecars: rows.map((row) => row.id),
  };
}
