import { chainEvents, type ChainHead, EMPTY_CHAIN } from '../../shared/audit/hash_chain.ts';
import type { AuditEvent } from '../../shared/model/audit_event.ts';
import { ok, type Result } from '../../shared/model/result.ts';
import type { ApiError } from '../../shared/wire/errors.ts';
import { appendEvents, findHead, type NewAuditEventRow } from '../store/audit_events.ts';
import type { Database, Statement } from '../store/database.ts';
import { freshId, nowText, type ServiceContext } from './service_context.ts';

/** An event of the control plane, before it has its id and time. */
export type AuditDraft = Pick<AuditEvent, 'type' | 'actor' | 'data'>;

/** What a decision wants written, and what it answers. */
export interface Change<T> {
  readonly statements: readonly Statement[];
  readonly events: readonly (AuditDraft | AuditEvent)[];
  readonly value: T;
}

/** Whose chain the events of a change go to: a sidecar's id, or the enterprise's for the control plane. */
export interface Chain {
  readonly enterpriseId: string;
  readonly writer: string;
}

/** The code of what is thrown when a write or a consistent reading failed for others' writes, again and again. */
export const WRITE_CONTENTION = 'write_contention';
const MAX_ATTEMPTS = 60;

/**
 * Decides and writes: the change and its audit events happen together or not at all. When another write came between
 * the reading and the writing, `decide` looks at the world again; it refuses with a value, and writes nothing then.
 */
export function commit<T>(
  context: ServiceContext,
  chain: Chain,
  decide: () => Promise<Result<Change<T>, ApiError>>,
): Promise<Result<T, ApiError>> {
  return context.turns.take(chain.writer, () => decideAndWrite(context, chain, decide));
}

async function decideAndWrite<T>(
  context: ServiceContext,
  chain: Chain,
  decide: () => Promise<Result<Change<T>, ApiError>>,
): Promise<Result<T, ApiError>> {
  for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt += 1) {
    const head = await readHead(context.database, chain.writer);
    const change = await decide();
    if (!change.ok) return change;
    const audit = await auditStatements(context, chain, head, change.value.events);
    const statements = [...change.value.statements, ...audit];
    if (statements.length === 0) return ok(change.value.value);
    const written = await context.database.write(statements);
    if (written.ok) return ok(change.value.value);
    await context.clock.sleep(Math.ceil(Math.random() * Math.min(attempt * 2, 50)));
  }
  throw Object.assign(new Error('a write met another one each time it was tried'), { code: WRITE_CONTENTION });
}

async function readHead(database: Database, writer: string): Promise<ChainHead> {
  const row = await findHead(database, writer);
  return row === null ? EMPTY_CHAIN : { sequence: row.sequence, hash: row.hash };
}

async function auditStatements(
  context: ServiceContext,
  chain: Chain,
  head: ChainHead,
  events: Change<unknown>['events'],
): Promise<Statement[]> {
  if (events.length === 0) return [];
  const receivedAt = nowText(context);
  const complete = events.map((event) => ('id' in event ? event : completeDraft(context, event, receivedAt)));
  const { chained, head: next } = await chainEvents(complete, { writer: chain.writer, receivedAt, head });
  const rows = chained.map((event) => toRow(chain.enterpriseId, event));
  const seal = await headSeal(context, chain.writer, next);
  return appendEvents(context.database, rows, { ...chain, sequence: next.sequence, hash: next.hash, seal });
}

/** The seal of a chain's head: without the master key nobody can cut events off the end and make it look right. */
export function headSeal(context: ServiceContext, writer: string, head: ChainHead): Promise<string> {
  return context.vault.mac(headText(writer, head));
}

/** What the seal of a head is over. */
export function headText(writer: string, head: ChainHead): string {
  return JSON.stringify(['svc audit head', writer, head.sequence, head.hash]);
}

function completeDraft(context: ServiceContext, draft: AuditDraft, time: string): AuditEvent {
  return {
    id: freshId(context, 'evt'),
    type: draft.type,
    time,
    sidecar_id: null,
    session_id: null,
    actor: draft.actor,
    data: draft.data,
  };
}

type Chained = Awaited<ReturnType<typeof chainEvents>>['chained'][number];

function toRow(enterpriseId: string, event: Chained): NewAuditEventRow {
  return {
    enterpriseId,
    writer: event.writer,
    sequence: event.sequence,
    id: event.id,
    type: event.type,
    time: event.time,
    sidecarId: event.sidecar_id,
    sessionId: event.session_id,
    actor: event.actor,
    host: event.data['svc.proxy.upstream.host'] ?? null,
    connector: event.data['svc.connector.fqn'] ?? null,
    data: JSON.stringify(event.data),
    receivedAt: event.received_at,
    previousHash: event.previous_hash,
    hash: event.hash,
  };
}
