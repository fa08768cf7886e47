import { z } from 'zod';
import { AUDIT_EVENT_TYPES } from '../../../shared/model/audit_event.ts';
import { err, ok, type Result } from '../../../shared/model/result.ts';
import type {
  AuditChainQuery,
  AuditEventsQuery,
  AuditStreamQuery,
  StoredAuditEvent,
} from '../../../shared/wire/audit_events.ts';
import { apiError, type ApiError } from '../../../shared/wire/errors.ts';
import type { Page } from '../../../shared/wire/primitives.ts';
import { isStillIn } from '../../store/sign_ins.ts';
import {
  arrivalStart,
  type AuditEventRow,
  type AuditFilter,
  findEvent,
  findHead,
  listArrivals,
  listChain,
  listEvents,
} from '../../store/audit/audit_events.ts';
import type { Caller } from '../../kernel/caller.ts';
import { decodeCursor, toPage } from '../../kernel/cursors.ts';
import { nowSeconds, type ServiceContext } from '../../kernel/service_context.ts';

const auditPosition = z.strictObject({ time: z.string(), position: z.number().int() });

/** The enterprise's events, newest first. Refuses with `invalid_cursor`, `invalid_query`. */
export async function listAuditPage(
  context: ServiceContext,
  caller: Caller,
  query: AuditEventsQuery,
): Promise<Result<Page<StoredAuditEvent>, ApiError>> {
  const before = decodeCursor(auditPosition, query.cursor);
  if (!before.ok) return before;
  const filter = toFilter(caller, withPeriod(context, query));
  if (!filter.ok) return filter;
  const rows = await listEvents(context.database, filter.value, { before: before.value, limit: query.limit + 1 });
  return ok(toPage(rows, query.limit, toStoredEvent, ({ time, position }) => ({ time, position })));
}

const MCP_SERVER_TYPES = ['mcp.server.started', 'mcp.server.stopped', 'mcp.server.failed', 'mcp.server.refused'];

/** What gateways reported about an MCP server since a time: the newest `limit` starts, ends and failures. */
export async function listMcpServerEvents(
  context: ServiceContext,
  caller: Caller,
  serverId: string,
  { sinceMs, limit }: { readonly sinceMs: number; readonly limit: number },
): Promise<StoredAuditEvent[]> {
  const since = new Date(sinceMs).toISOString();
  const filter = { enterpriseId: caller.enterpriseId, types: MCP_SERVER_TYPES, mcpServer: serverId, since };
  const rows = await listEvents(context.database, filter, { before: null, limit });
  return rows.map((row) => toStoredEvent(row));
}

/** Refuses with `not_found`. */
export async function getAuditEvent(
  context: ServiceContext,
  caller: Caller,
  id: string,
): Promise<Result<StoredAuditEvent, ApiError>> {
  const row = await findEvent(context.database, caller.enterpriseId, id);
  return row === null
    ? err(apiError('not_found', 'there is no such event: it may have been removed'))
    : ok(toStoredEvent(row));
}

/** The events of one chain of the caller's enterprise, oldest first. Refuses with `not_found`. */
export async function listChainEvents(
  context: ServiceContext,
  { enterpriseId }: Pick<Caller, 'enterpriseId'>,
  writer: string,
  { after, limit }: AuditChainQuery,
): Promise<Result<{ items: StoredAuditEvent[] }, ApiError>> {
  const head = await findHead(context.database, writer);
  if (head?.enterpriseId !== enterpriseId) return err(apiError('not_found', 'there is no such chain of audit events'));
  const rows = await listChain(context.database, writer, { after, limit });
  return ok({ items: rows.map((row) => toStoredEvent(row)) });
}

/** An event as it arrived, and the stream position after it. */
export interface Arrival {
  readonly position: number;
  readonly event: StoredAuditEvent;
}

const ARRIVALS_PER_LOOK = 200;
const LOOK_MS = 1_000;
/** A stream ends after this time, so that everything else is checked again when its client reconnects. */
const STREAM_MS = 15 * 60_000;

/**
 * Events in order of arrival, as they arrive; null after a while without events (a keep-alive). Ends when the signal is
 * aborted, when the caller's user is suspended or leaves, when its sign-in or its personal token ends, or after 15 minutes.
 * Refuses with `invalid_query`.
 */
export async function followAudit(
  context: ServiceContext,
  caller: Caller,
  query: AuditStreamQuery,
  from: { readonly lastPosition: number | null; readonly signal: AbortSignal },
): Promise<Result<AsyncGenerator<Arrival | null>, ApiError>> {
  const filter = toFilter(caller, query);
  if (!filter.ok) return filter;
  const start = from.lastPosition ?? (await arrivalStart(context.database, filter.value, query.backlog));
  return ok(arrivals(context, caller, filter.value, { start, signal: from.signal }));
}

async function* arrivals(
  context: ServiceContext,
  caller: Caller,
  filter: AuditFilter,
  { start, signal }: { readonly start: number; readonly signal: AbortSignal },
): AsyncGenerator<Arrival | null> {
  const deadline = context.clock.now() + STREAM_MS;
  let after = start;
  while (!signal.aborted && context.clock.now() < deadline) {
    if (!(await isStillIn(context.database, caller, nowSeconds(context)))) return;
    const rows = await listArrivals(context.database, filter, { after, limit: ARRIVALS_PER_LOOK });
    for (const row of rows) yield { position: row.position, event: toStoredEvent(row) };
    after = rows.at(-1)?.position ?? after;
    if (rows.length === ARRIVALS_PER_LOOK) continue;
    if (rows.length === 0) yield null;
    await context.clock.sleep(LOOK_MS, signal);
  }
}

export type FilterQuery = Omit<AuditStreamQuery, 'backlog'> & Partial<Pick<AuditEventsQuery, 'since' | 'until'>>;

const WEEK_MS = 7 * 86_400_000;

/** True for filters that have no index, so that each event of the period is read. */
export function readsEachEvent({ host, method, status, path, person, q }: FilterQuery): boolean {
  return [method, status, path, person, q].some((given) => given !== undefined) || (host?.includes('*') ?? false);
}

/** The query with the period that is looked at: a week, if each event has to be read and no beginning is given. */
function withPeriod(context: ServiceContext, query: AuditEventsQuery): AuditEventsQuery {
  if (query.since !== undefined || !readsEachEvent(query)) return query;
  const end = query.until === undefined ? context.clock.now() : Date.parse(query.until);
  return { ...query, since: new Date(end - WEEK_MS).toISOString() };
}

export function toFilter(caller: Caller, query: FilterQuery): Result<AuditFilter, ApiError> {
  const types = query.type?.split(',').map((type) => type.trim());
  const unknown = types?.find((type) => !namesTypes(type));
  if (unknown !== undefined) return err(unknownType(unknown));
  return ok({
    enterpriseId: caller.enterpriseId,
    ...(types && { types }),
    ...(query.session !== undefined && { session: query.session }),
    ...(query.connector !== undefined && { connector: query.connector }),
    ...(query.host !== undefined && { host: query.host.toLowerCase() }),
    ...(query.method !== undefined && { method: query.method.toUpperCase() }),
    ...(query.status !== undefined && { status: statusRange(query.status) }),
    ...(query.path !== undefined && { path: query.path }),
    ...(query.person !== undefined && { person: query.person }),
    ...(query.q !== undefined && { text: query.q }),
    ...(query.since !== undefined && { since: utc(query.since) }),
    ...(query.until !== undefined && { until: utc(query.until) }),
  });
}

/** `404`, or `4xx`. */
function statusRange(status: string): readonly [number, number] {
  const isClass = /xx$/i.test(status);
  const first = isClass ? Number(status[0]) * 100 : Number(status);
  return [first, isClass ? first + 99 : first];
}

/** An event type, or a prefix of event types that ends in a dot. */
function namesTypes(type: string): boolean {
  return AUDIT_EVENT_TYPES.some((known) => known === type || (type.endsWith('.') && known.startsWith(type)));
}

function unknownType(type: string): ApiError {
  const message = `is ${JSON.stringify(type)}: use one of ${AUDIT_EVENT_TYPES.join(', ')}, or a prefix such as sandbox.proxy.`;
  return apiError('invalid_query', `type ${message}`, { fields: [{ field: 'type', message }] });
}

function utc(time: string): string {
  return new Date(time).toISOString();
}

/** The event that was hashed, with its position in the chain, from its row. */
export function toStoredEvent(row: AuditEventRow): StoredAuditEvent {
  return {
    id: row.id,
    type: row.type,
    time: row.time,
    sidecar_id: row.sidecarId,
    session_id: row.sessionId,
    actor: row.actor,
    data: JSON.parse(row.data),
    writer: row.writer,
    sequence: row.sequence,
    previous_hash: row.previousHash,
    hash: row.hash,
    received_at: row.receivedAt,
  };
}
