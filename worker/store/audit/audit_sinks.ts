import { and, asc, count, eq, gt, isNull, lte, or, type SQL, sql } from 'drizzle-orm';
import { type Database, guard, type Statement } from '../database.ts';
import { auditDeadLetters, auditEvents, auditSinks } from '../tables.ts';

export type AuditSinkRow = typeof auditSinks.$inferSelect;
export type DeadLetterRow = typeof auditDeadLetters.$inferSelect;

/** What changes while a sink delivers. */
export type SinkChange = Partial<
  Omit<AuditSinkRow, 'id' | 'enterpriseId' | 'kind' | 'name' | 'host' | 'types' | 'createdAt' | 'holder'>
>;

/** Stores a sink; a conflict if the enterprise has `most` already. */
export function insertSink(
  database: Database,
  row: Pick<
    AuditSinkRow,
    'id' | 'enterpriseId' | 'kind' | 'name' | 'host' | 'types' | 'sealed' | 'createdAt' | 'cursor'
  >,
  most: number,
): Statement[] {
  const held = sql`SELECT count(*) FROM audit_sinks WHERE enterprise_id = ${row.enterpriseId}`;
  return [...guard(sql`(${held}) < ${most}`), database.read.insert(auditSinks).values(row)];
}

export function deleteSink(database: Database, id: string): Statement[] {
  return [
    database.read.delete(auditDeadLetters).where(eq(auditDeadLetters.sinkId, id)),
    database.read.delete(auditSinks).where(eq(auditSinks.id, id)),
  ];
}

export async function findSink(database: Database, id: string): Promise<AuditSinkRow | null> {
  const rows = await database.read.select().from(auditSinks).where(eq(auditSinks.id, id));
  return rows[0] ?? null;
}

/** The sinks of an enterprise, oldest first. */
export async function listSinks(database: Database, enterpriseId: string): Promise<AuditSinkRow[]> {
  const ofEnterprise = eq(auditSinks.enterpriseId, enterpriseId);
  return database.read.select().from(auditSinks).where(ofEnterprise).orderBy(asc(auditSinks.id));
}

/** How many events the receiver of a sink refused. */
export async function countDeadLetters(database: Database, sinkId: string): Promise<number> {
  const ofSink = eq(auditDeadLetters.sinkId, sinkId);
  return (await database.read.select({ n: count() }).from(auditDeadLetters).where(ofSink))[0]?.n ?? 0;
}

/** RFC 3339 in UTC. A hold that ends after `longestHold` was written by a wrong clock and is ignored. */
export interface SinkTimes {
  readonly now: string;
  readonly longestHold: string;
}

const EVENTS_WAIT = sql`EXISTS (SELECT 1 FROM ${auditEvents} WHERE ${auditEvents.enterpriseId} = ${auditSinks.enterpriseId}
  AND ${auditEvents.position} > ${auditSinks.cursor})`;
const replaysWait = (now: string) => sql`EXISTS (SELECT 1 FROM ${auditDeadLetters}
  WHERE ${auditDeadLetters.sinkId} = ${auditSinks.id} AND ${auditDeadLetters.replay} = 1 AND ${auditDeadLetters.nextTryAt} <= ${now})`;

function isFree({ now, longestHold }: SinkTimes): SQL | undefined {
  // One that has not failed and waits only gathers what is new, which keeps back no replay.
  const isDue = or(lte(auditSinks.nextTryAt, now), and(eq(auditSinks.failures, 0), replaysWait(now)));
  const isUnheld = or(lte(auditSinks.heldUntil, now), gt(auditSinks.heldUntil, longestHold));
  return and(isNull(auditSinks.disabledAt), isDue, isUnheld);
}

export type DueSink = Pick<AuditSinkRow, 'id' | 'enterpriseId'>;

/** Sinks with something to send that no worker holds; those that waited longest come first. */
export function listDueSinks(database: Database, times: SinkTimes, limit: number): Promise<DueSink[]> {
  return database.read
    .select({ id: auditSinks.id, enterpriseId: auditSinks.enterpriseId })
    .from(auditSinks)
    .where(and(isFree(times), or(EVENTS_WAIT, replaysWait(times.now))))
    .orderBy(asc(auditSinks.heldUntil), asc(auditSinks.id))
    .limit(limit);
}

/** The sinks of an enterprise that have events to send, also if none of them has one of a sink's types. */
export async function listBehind(database: Database, enterpriseId: string): Promise<Set<string>> {
  const rows = await database.read
    .select({ id: auditSinks.id })
    .from(auditSinks)
    .where(and(eq(auditSinks.enterpriseId, enterpriseId), EVENTS_WAIT));
  return new Set(rows.map(({ id }) => id));
}

/** Gives a sink to one worker; a conflict if it is not due or another worker holds it. */
export function holdSink(
  database: Database,
  id: string,
  times: SinkTimes,
  hold: { readonly holder: string; readonly heldUntil: string },
): Statement[] {
  const free = database.read
    .select({ one: sql`1` })
    .from(auditSinks)
    .where(and(eq(auditSinks.id, id), isFree(times)));
  return [...guard(sql`EXISTS ${free}`), database.read.update(auditSinks).set(hold).where(eq(auditSinks.id, id))];
}

/** Changes a sink that this worker holds; a conflict if it no longer does, so that nothing else is written either. */
export function noteSink(database: Database, id: string, holder: string, change: SinkChange): Statement[] {
  return [
    ...guard(sql`EXISTS (SELECT 1 FROM audit_sinks WHERE id = ${id} AND holder = ${holder})`),
    database.read.update(auditSinks).set(change).where(eq(auditSinks.id, id)),
  ];
}

/** Changes a sink whoever holds it, unless it was changed in the same place meanwhile. */
export function changeSink(database: Database, { id, sealed }: AuditSinkRow, change: SinkChange): Statement[] {
  return [
    ...guard(sql`EXISTS (SELECT 1 FROM audit_sinks WHERE id = ${id} AND sealed = ${sealed})`),
    database.read.update(auditSinks).set(change).where(eq(auditSinks.id, id)),
  ];
}

type Failed = Pick<DeadLetterRow, 'problem' | 'failedAt'> &
  Partial<Pick<DeadLetterRow, 'recipients' | 'replay' | 'nextTryAt'>>;

export function insertDeadLetter(
  database: Database,
  row: Pick<DeadLetterRow, 'sinkId' | 'position' | 'eventId'> & Failed,
): Statement {
  return database.read
    .insert(auditDeadLetters)
    .values(row)
    .onConflictDoUpdate({ target: [auditDeadLetters.sinkId, auditDeadLetters.position], set: again(row) });
}

function again({ problem, failedAt, recipients = null, replay = 0, nextTryAt = '' }: Failed) {
  return { problem, failedAt, recipients, replay, nextTryAt, attempts: sql`${auditDeadLetters.attempts} + 1` };
}

/** Forgets the oldest dead letters of a sink beyond the newest ones. */
export function keepDeadLetters(database: Database, sinkId: string, most: number): Statement {
  const newest = sql`SELECT position FROM audit_dead_letters WHERE sink_id = ${sinkId} ORDER BY position DESC LIMIT ${most}`;
  const { sinkId: sink, position } = auditDeadLetters;
  return database.read.delete(auditDeadLetters).where(and(eq(sink, sinkId), sql`${position} NOT IN (${newest})`));
}

export function deleteDeadLetter(
  database: Database,
  { sinkId, position }: Pick<DeadLetterRow, 'sinkId' | 'position'>,
): Statement {
  const isOne = and(eq(auditDeadLetters.sinkId, sinkId), eq(auditDeadLetters.position, position));
  return database.read.delete(auditDeadLetters).where(isOne);
}

/** In the order in which the events arrived, after a position; with `dueAt`, those alone that are to be sent again by then. */
export async function listDeadLetters(
  database: Database,
  sinkId: string,
  page: { readonly after: number; readonly limit: number; readonly dueAt?: string },
): Promise<DeadLetterRow[]> {
  const { sinkId: sink, position, replay, nextTryAt } = auditDeadLetters;
  const isDue = page.dueAt === undefined ? undefined : and(eq(replay, 1), lte(nextTryAt, page.dueAt));
  return database.read
    .select()
    .from(auditDeadLetters)
    .where(and(eq(sink, sinkId), gt(position, page.after), isDue))
    .orderBy(asc(position))
    .limit(page.limit);
}

/** Has every dead letter of a sink sent again, and now. */
export function replayDeadLetters(database: Database, sinkId: string): Statement {
  return database.read
    .update(auditDeadLetters)
    .set({ replay: 1, nextTryAt: '' })
    .where(eq(auditDeadLetters.sinkId, sinkId));
}
