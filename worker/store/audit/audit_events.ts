import { and, asc, desc, eq, gt, gte, inArray, lt, or, type SQL, sql, sum } from 'drizzle-orm';
import { ANSWERED_LOCALLY } from '../../../shared/model/audit_event.ts';
import type { AuditEventData } from '../../../shared/model/audit_event.ts';
import { type Database, type Statement, statement } from '../database.ts';
import { auditEvents, auditHeads, auditWriters, sidecars } from '../tables.ts';

export type AuditEventRow = typeof auditEvents.$inferSelect;
/** Events that follow each other in one chain and arrived together. */
export interface NewAuditEvents extends Pick<AuditEventRow, 'enterpriseId' | 'writer' | 'receivedAt'> {
  readonly rows: readonly NewAuditEventRow[];
}
/** What differs between them, in the order of the columns in {@link appendEvents}. */
export type NewAuditEventRow = readonly [
  sequence: number,
  id: string,
  type: AuditEventRow['type'],
  time: string,
  sidecarId: string | null,
  sessionId: string | null,
  actor: string | null,
  host: string | null,
  connector: string | null,
  data: string,
  previousHash: string,
  hash: string,
];
export type AuditHeadRow = typeof auditHeads.$inferSelect;
export type AuditWriterRow = typeof auditWriters.$inferSelect;

/** Selects events of one enterprise that match all filters. */
export interface AuditFilter {
  readonly enterpriseId: string;
  /** Types, or prefixes that end in a dot. */
  readonly types?: readonly string[];
  readonly session?: string;
  readonly connector?: string;
  /** May contain `*`. */
  readonly host?: string;
  /** There is no index on these five, so combine them with a time. */
  readonly method?: string;
  /** The lowest and the highest. */
  readonly status?: readonly [number, number];
  readonly path?: string;
  /** The actor, or the user of the sidecar that reported the event. */
  readonly person?: string;
  readonly text?: string;
  /** `mcp_…`. There is no index on it, so combine it with types or a time. */
  readonly mcpServer?: string;
  /** RFC 3339 in UTC with milliseconds, so that text order is time order. */
  readonly since?: string;
  readonly until?: string;
}

/** A position in the order of time and arrival. */
interface AuditPosition {
  readonly time: string;
  readonly position: number;
}

/** Rows per statement: 500 with 15 values each stay below SQLite's 32,766 parameters. */
const ROWS_PER_STATEMENT = 500;

export async function findHead(database: Database, writer: string): Promise<AuditHeadRow | null> {
  const rows = await database.read.select().from(auditHeads).where(eq(auditHeads.writer, writer));
  return rows[0] ?? null;
}

/** How much was recorded for an enterprise; it grows with every event. */
export type AuditMark = number;

export async function auditMark(database: Database, enterpriseId: string): Promise<AuditMark> {
  const rows = await database.read
    .select({ events: sum(auditHeads.sequence).mapWith(Number) })
    .from(auditHeads)
    .where(eq(auditHeads.enterpriseId, enterpriseId));
  return rows[0]?.events ?? 0;
}

/** The heads of all chains of an enterprise. */
export async function listHeads(database: Database, enterpriseId: string): Promise<AuditHeadRow[]> {
  return database.read
    .select()
    .from(auditHeads)
    .where(eq(auditHeads.enterpriseId, enterpriseId))
    .orderBy(asc(auditHeads.writer));
}

/** The writers of an enterprise, in the order in which their chains began. */
export async function listWriterSet(database: Database, enterpriseId: string): Promise<AuditWriterRow[]> {
  return database.read
    .select()
    .from(auditWriters)
    .where(eq(auditWriters.enterpriseId, enterpriseId))
    .orderBy(asc(auditWriters.number));
}

/** Records writers, with the heads of chains that begin in this write. A conflict if another one has the number. */
export function beginChains(
  database: Database,
  writers: readonly AuditWriterRow[],
  heads: readonly AuditHeadRow[],
): Statement[] {
  const statements: Statement[] = [];
  for (let start = 0; start < writers.length; start += ROWS_PER_STATEMENT) {
    statements.push(database.read.insert(auditWriters).values(writers.slice(start, start + ROWS_PER_STATEMENT)));
  }
  for (let start = 0; start < heads.length; start += ROWS_PER_STATEMENT) {
    statements.push(database.read.insert(auditHeads).values(heads.slice(start, start + ROWS_PER_STATEMENT)));
  }
  return statements;
}

/** The newest stored event of a chain; null if there is none. */
export async function findLast(database: Database, writer: string): Promise<AuditEventRow | null> {
  const rows = await database.read
    .select()
    .from(auditEvents)
    .where(eq(auditEvents.writer, writer))
    .orderBy(desc(auditEvents.sequence))
    .limit(1);
  return rows[0] ?? null;
}

/** Writers of events, with or without a head. */
export async function listWriters(database: Database, enterpriseId: string): Promise<string[]> {
  const rows = await database.read
    .selectDistinct({ writer: auditEvents.writer })
    .from(auditEvents)
    .where(eq(auditEvents.enterpriseId, enterpriseId));
  return rows.map((row) => row.writer);
}

/**
 * Adds chained events and moves the head. A conflict if another write used the first sequence number, or if the writer
 * has one of these events already. All events are one parameter: one for each value takes longer than the write itself.
 */
export function appendEvents(database: Database, events: NewAuditEvents, head: AuditHeadRow): Statement[] {
  const { enterpriseId, writer, receivedAt, rows } = events;
  const insert = statement(sql`INSERT INTO audit_events (enterprise_id, writer, received_at, sequence, id, type, time,
      sidecar_id, session_id, actor, host, connector, data, previous_hash, hash)
    SELECT ${enterpriseId}, ${writer}, ${receivedAt}, value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4,
      value ->> 5, value ->> 6, value ->> 7, value ->> 8, value ->> 9, value ->> 10, value ->> 11
    FROM json_each(${JSON.stringify(rows)})`);
  const { sequence, hash, seal, writers, writersHash } = head;
  const moved = database.read
    .insert(auditHeads)
    .values(head)
    .onConflictDoUpdate({ target: auditHeads.writer, set: { sequence, hash, seal, writers, writersHash } });
  return [insert, moved];
}

/** Those of these ids that a writer has in the log. */
export async function findKnownIds(database: Database, writer: string, ids: readonly string[]): Promise<Set<string>> {
  const rows = await database.read
    .select({ id: auditEvents.id })
    .from(auditEvents)
    .where(
      and(
        eq(auditEvents.writer, writer),
        sql`${auditEvents.id} IN (SELECT value FROM json_each(${JSON.stringify(ids)}))`,
      ),
    );
  return new Set(rows.map((row) => row.id));
}

/** Newest first, before a position. */
export async function listEvents(
  database: Database,
  filter: AuditFilter,
  page: { readonly before: AuditPosition | null; readonly limit: number },
): Promise<AuditEventRow[]> {
  const { before } = page;
  const earlier =
    before &&
    or(
      lt(auditEvents.time, before.time),
      and(eq(auditEvents.time, before.time), lt(auditEvents.position, before.position)),
    );
  return database.read
    .select()
    .from(auditEvents)
    .where(and(matches(filter), earlier ?? undefined))
    .orderBy(desc(auditEvents.time), desc(auditEvents.position))
    .limit(page.limit);
}

export async function findEvent(database: Database, enterpriseId: string, id: string): Promise<AuditEventRow | null> {
  const rows = await database.read
    .select()
    .from(auditEvents)
    .where(and(eq(auditEvents.enterpriseId, enterpriseId), eq(auditEvents.id, id)))
    .limit(1);
  return rows[0] ?? null;
}

/** The newest event of these types about a resource of an enterprise, found by its id. */
export async function findLatestAbout(
  database: Database,
  enterpriseId: string,
  about: { readonly types: readonly AuditEventRow['type'][]; readonly resource: string },
): Promise<AuditEventRow | null> {
  const resource = sql`json_extract(${auditEvents.data}, '$."svc.control.resource"')`;
  const rows = await database.read
    .select()
    .from(auditEvents)
    .where(
      and(
        eq(auditEvents.enterpriseId, enterpriseId),
        inArray(auditEvents.type, [...about.types]),
        sql`${resource} = ${about.resource}`,
      ),
    )
    .orderBy(desc(auditEvents.time), desc(auditEvents.position))
    .limit(1);
  return rows[0] ?? null;
}

/** How many of the newest events of a type are looked at for what each is about. */
const LATEST_LOOKED_AT = 5_000;

/** The newest time of an event of this type for each value of a key of its data, among the type's newest events. */
export async function latestBy(
  database: Database,
  enterpriseId: string,
  { type, key }: { readonly type: AuditEventRow['type']; readonly key: keyof AuditEventData },
): Promise<ReadonlyMap<string, string>> {
  const newest = database.read
    .select({ about: sql<string | null>`${dataOf(key)}`.as('about'), time: auditEvents.time })
    .from(auditEvents)
    .where(and(eq(auditEvents.enterpriseId, enterpriseId), eq(auditEvents.type, type)))
    .orderBy(desc(auditEvents.time), desc(auditEvents.position))
    .limit(LATEST_LOOKED_AT)
    .as('newest');
  const rows = await database.read
    .select({ about: newest.about, time: sql<string>`MAX(${newest.time})` })
    .from(newest)
    .groupBy(sql`1`);
  return new Map(rows.flatMap(({ about, time }) => (about === null ? [] : [[about, time] as const])));
}

/** Refusals may be summed: one event then stands for several. Only their data is read, which the index does not have. */
const SUMMED: readonly AuditEventRow['type'][] = ['sandbox.proxy.rejected', 'sandbox.proxy.trust_denied'];

/** Counts what events stand for, by type, in equal spans of time, numbered from 0. `answered`: the request was answered by svc and not sent. */
export async function countByTime(
  database: Database,
  filter: AuditFilter,
  { begins, spanSeconds }: { readonly begins: string; readonly spanSeconds: number },
): Promise<
  { readonly span: number; readonly type: AuditEventRow['type']; readonly answered: boolean; readonly events: number }[]
> {
  const sinceSeconds = Math.floor(Date.parse(begins) / 1000);
  // Numbers are bound as floating point, so the quotient must be converted to an integer here.
  const quotient = sql`(unixepoch(${auditEvents.time}) - ${sinceSeconds}) / ${spanSeconds}`;
  const span = sql<number>`CAST(${quotient} AS INTEGER)`.mapWith(Number);
  const stated = sql`COALESCE(json_extract(${auditEvents.data}, '$."svc.proxy.count"'), 1)`;
  const each = sql`CASE WHEN ${inArray(auditEvents.type, [...SUMMED])} THEN ${stated} ELSE 1 END`;
  // Only a connector's request may be one, so that the data of other events is not read.
  const reason = sql`json_extract(${auditEvents.data}, '$."svc.proxy.reason"')`;
  const isAnswered = sql`${auditEvents.type} = 'connector.proxy.proxied' AND COALESCE(${reason} = ${ANSWERED_LOCALLY}, 0)`;
  const answered = sql<boolean>`(${isAnswered})`.mapWith(Boolean);
  return database.read
    .select({ span, type: auditEvents.type, answered, events: sql<number>`SUM(${each})`.mapWith(Number) })
    .from(auditEvents)
    .where(matches(filter))
    .groupBy(sql`1`, auditEvents.type, sql`3`);
}

/** In order of arrival, after a position. */
export async function listArrivals(
  database: Database,
  filter: AuditFilter,
  page: { readonly after: number; readonly limit: number },
): Promise<AuditEventRow[]> {
  return listAfter(database, matches(filter), auditEvents.position, page);
}

/** The position before the newest `backlog` matching events; without a backlog the newest position. */
export async function arrivalStart(database: Database, filter: AuditFilter, backlog: number): Promise<number> {
  const fitting = database.read.select({ position: auditEvents.position }).from(auditEvents);
  const newest = await fitting
    .where(eq(auditEvents.enterpriseId, filter.enterpriseId))
    .orderBy(desc(auditEvents.position))
    .limit(1);
  const last = newest[0]?.position ?? 0;
  if (backlog === 0) return last;
  const rows = await database.read
    .select({ position: auditEvents.position })
    .from(auditEvents)
    .where(matches(filter))
    .orderBy(desc(auditEvents.position))
    .limit(backlog);
  const first = rows.at(-1)?.position;
  return first === undefined ? last : first - 1;
}

/** One chain in order, after a sequence number. */
export async function listChain(
  database: Database,
  writer: string,
  page: { readonly after: number; readonly limit: number },
): Promise<AuditEventRow[]> {
  return listAfter(database, eq(auditEvents.writer, writer), auditEvents.sequence, page);
}

async function listAfter(
  database: Database,
  condition: SQL | undefined,
  order: typeof auditEvents.position | typeof auditEvents.sequence,
  page: { readonly after: number; readonly limit: number },
): Promise<AuditEventRow[]> {
  return database.read
    .select()
    .from(auditEvents)
    .where(and(condition, gt(order, page.after)))
    .orderBy(asc(order))
    .limit(page.limit);
}

function matches(filter: AuditFilter): SQL | undefined {
  const types = filter.types?.map((type) => typeMatches(type));
  return and(
    eq(auditEvents.enterpriseId, filter.enterpriseId),
    types && or(...types),
    filter.session === undefined ? undefined : eq(auditEvents.sessionId, filter.session),
    filter.connector === undefined ? undefined : eq(auditEvents.connector, filter.connector),
    filter.host === undefined ? undefined : hostMatches(filter.host),
    filter.method === undefined ? undefined : sql`${dataOf('svc.proxy.method')} = ${filter.method}`,
    filter.status && sql`${dataOf('svc.proxy.upstream.status')} BETWEEN ${filter.status[0]} AND ${filter.status[1]}`,
    filter.path === undefined ? undefined : contains(dataOf('svc.proxy.upstream.path'), filter.path),
    filter.person === undefined ? undefined : isOf(filter.person),
    filter.text === undefined ? undefined : contains(wholeText(), filter.text),
    filter.mcpServer === undefined ? undefined : sql`${dataOf('svc.mcp.server_id')} = ${filter.mcpServer}`,
    filter.since === undefined ? undefined : gte(auditEvents.time, filter.since),
    filter.until === undefined ? undefined : lt(auditEvents.time, filter.until),
  );
}

function isOf(person: string): SQL {
  const machines = sql`SELECT ${sidecars.id} FROM ${sidecars} WHERE ${sidecars.userId} = ${person}`;
  return sql`(${auditEvents.actor} = ${person} OR ${auditEvents.sidecarId} IN (${machines}))`;
}

function dataOf(key: keyof AuditEventData): SQL {
  return sql`json_extract(${auditEvents.data}, ${`$."${key}"`})`;
}

function hostMatches(host: string): SQL {
  if (!host.includes('*')) return eq(auditEvents.host, host);
  const pattern = host.replaceAll(/[\\%_]/g, '\\$&').replaceAll('*', '%');
  return sql`${auditEvents.host} LIKE ${pattern} ESCAPE '\\'`;
}

function contains(text: SQL, part: string): SQL {
  return sql`instr(lower(${text}), ${part.toLowerCase()}) > 0`;
}

/** Where free text is looked for: the data, the type and the ids. */
function wholeText(): SQL {
  const { data, type, id, sessionId, sidecarId, actor } = auditEvents;
  const ids = [id, sessionId, sidecarId, actor].map((column) => sql`COALESCE(${column}, '')`);
  return sql`${data} || ' ' || ${type} || ' ' || ${sql.join(ids, sql` || ' ' || `)}`;
}

function typeMatches(type: string): SQL | undefined {
  const column = auditEvents.type;
  return type.endsWith('.') ? sql`substr(${column}, 1, ${type.length}) = ${type}` : sql`${column} = ${type}`;
}
