import { and, asc, eq, gt, isNull, lt, lte, or, sql } from 'drizzle-orm';
import type { AnchorWay } from '../../../shared/wire/audit_heads.ts';
import { type Database, guard, type Statement } from '../database.ts';
import { auditAnchors, enterprises } from '../tables.ts';

type AuditAnchorRow = typeof auditAnchors.$inferSelect;

/** Whose heads are sent, and how. */
export interface AnchorKey {
  readonly enterpriseId: string;
  readonly way: AnchorWay;
}

/** RFC 3339 in UTC. Times after `nextPeriod` or `longestHold` were written by a wrong clock and are ignored. */
export interface AnchorTimes {
  readonly period: string;
  readonly nextPeriod: string;
  readonly now: string;
  readonly longestHold: string;
}

/** Enterprises whose heads of this period were not sent this way and are not being sent. */
export async function listDueAnchors(
  database: Database,
  way: AnchorWay,
  times: AnchorTimes,
  limit: number,
): Promise<string[]> {
  const { period, heldUntil } = auditAnchors;
  const isUnsent = or(lt(period, times.period), gt(period, times.nextPeriod));
  const isFree = or(lte(heldUntil, times.now), gt(heldUntil, times.longestHold));
  const rows = await database.read
    .select({ id: enterprises.id })
    .from(enterprises)
    .leftJoin(auditAnchors, and(eq(auditAnchors.enterpriseId, enterprises.id), eq(auditAnchors.way, way)))
    .where(or(isNull(auditAnchors.way), and(isUnsent, isFree)))
    .orderBy(asc(enterprises.id))
    .limit(limit);
  return rows.map(({ id }) => id);
}

export async function listAnchors(database: Database, enterpriseId: string): Promise<AuditAnchorRow[]> {
  return database.read.select().from(auditAnchors).where(eq(auditAnchors.enterpriseId, enterpriseId));
}

/** Locks what is due for one holder; a conflict if another one has it or has sent it. */
export function holdAnchor(
  database: Database,
  { enterpriseId, way }: AnchorKey,
  times: AnchorTimes,
  hold: { readonly holder: string; readonly heldUntil: string },
): Statement[] {
  const isSent = sql`(period >= ${times.period} AND period <= ${times.nextPeriod})`;
  const isHeld = sql`(held_until > ${times.now} AND held_until <= ${times.longestHold})`;
  const taken = sql`SELECT 1 FROM audit_anchors WHERE enterprise_id = ${enterpriseId} AND way = ${way}
    AND (${isSent} OR ${isHeld})`;
  const held = database.read
    .insert(auditAnchors)
    .values({ enterpriseId, way, ...hold })
    .onConflictDoUpdate({ target: [auditAnchors.enterpriseId, auditAnchors.way], set: hold });
  return [...guard(sql`NOT EXISTS (${taken})`), held];
}

/** Records the result, if the holder still has the lock. */
export function noteAnchor(
  database: Database,
  { enterpriseId, way }: AnchorKey,
  holder: string,
  change: Partial<Omit<AuditAnchorRow, keyof AnchorKey | 'holder'>>,
): Statement {
  const isOurs = and(
    eq(auditAnchors.enterpriseId, enterpriseId),
    eq(auditAnchors.way, way),
    eq(auditAnchors.holder, holder),
  );
  return database.read.update(auditAnchors).set(change).where(isOurs);
}
