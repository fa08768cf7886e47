import { type ChainedEvent, chainEvents, type ChainHead, EMPTY_CHAIN } from '../../shared/audit/hash_chain.ts';
import type { AuditEvent } from '../../shared/model/audit_event.ts';
import type { StoredAuditEvent } from '../../shared/wire/audit_events.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import { countMinutes } from '../../shared/report/request_minutes.ts';
import { apiError, type ApiError } from '../../shared/wire/errors.ts';
import {
  appendEvents,
  type AuditEventRow,
  type AuditHeadRow,
  type AuditWriterRow,
  beginChains,
  findHead,
  findLast,
  type NewAuditEventRow,
} from '../store/audit/audit_events.ts';
import { addRequestMinutes } from '../store/audit/request_minutes.ts';
import type { Database, Statement } from '../store/database.ts';
import { type Actor, findLoss, hasSuspended, whileActive, whileRole } from '../store/active_users.ts';
import { BROKEN_SEAL, isSealedHead, NO_WRITERS, sealHead, withWriter } from './audit_seals.ts';
import { type Addition, findExceeded, guardQuotas } from './quotas.ts';
import { freshId, nowText, type ServiceContext } from './service_context.ts';
import { sha256Hex } from './sha256.ts';
import type { Vault } from './vault.ts';

/** An audit event of the control plane, before it gets its id and time. */
export type AuditDraft = Pick<AuditEvent, 'type' | 'actor' | 'data'>;

/** What a decision writes, and the value it returns. */
export interface Change<T> {
  readonly statements: readonly Statement[];
  readonly events: readonly (AuditDraft | AuditEvent)[];
  /** Writers whose chains begin with this change of the control plane's own chain. Nothing else begins a chain. */
  readonly begins?: readonly string[];
  /** What it adds to what somebody keeps: refused with `limit_reached` if that is too much. */
  readonly adds?: readonly Addition[];
  /** Events of the same write in the control plane's chains of other enterprises, whose members it changes. */
  readonly elsewhere?: readonly EventsElsewhere[];
  /** Runs once the change is written. */
  readonly afterwards?: () => void;
  readonly value: T;
}

/** Events in another chain than that of the change. */
interface EventsElsewhere {
  readonly chain: Chain;
  readonly events: readonly AuditDraft[];
}

/** The chain that a change's events go to. `writer` is a sidecar's id, or the enterprise's for the control plane. */
export interface Chain {
  readonly enterpriseId: string;
  readonly writer: string;
  /** Who decides: a change is written only while that user is active and has this role or a higher one. Events alone are always written. */
  readonly by?: Actor;
}

/** The error code when a write or a consistent read conflicted with other writes too often. */
export const WRITE_CONTENTION = 'write_contention';
const MAX_ATTEMPTS = 60;

/**
 * Decides, then writes the change and its audit events in one transaction. If another write conflicts, `decide` runs
 * again on the new state. It runs twice for a change with events elsewhere: the heads of those chains are read before the decision
 * that counts. If `decide` refuses, the change adds more than may be kept, or who decides has lost the role, nothing is written.
 */
export async function commit<T>(
  context: ServiceContext,
  chain: Chain,
  decide: () => Promise<Result<Change<T>, ApiError>>,
): Promise<Result<T, ApiError>> {
  const committed = await commitChained(context, chain, decide);
  return committed.ok ? ok(committed.value.value) : committed;
}

/** The value, and the chain's head before and after the write. */
interface Committed<T> {
  readonly value: T;
  readonly before: ChainHead;
  readonly after: ChainHead;
}

/** Like {@link commit}; also returns the chain's heads, for callers that report them. */
export function commitChained<T>(
  context: ServiceContext,
  chain: Chain,
  decide: () => Promise<Result<Change<T>, ApiError>>,
): Promise<Result<Committed<T>, ApiError>> {
  return context.turns.take(chain.writer, () => decideAndWrite(context, chain, decide));
}

async function decideAndWrite<T>(
  context: ServiceContext,
  chain: Chain,
  decide: () => Promise<Result<Change<T>, ApiError>>,
): Promise<Result<Committed<T>, ApiError>> {
  let others: readonly string[] = [];
  for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt += 1) {
    const head = await findHead(context.database, chain.writer);
    const otherHeads = await readHeads(context.database, others);
    const change = await decide();
    if (!change.ok) return change;
    const named = (change.value.elsewhere ?? []).map((each) => each.chain.writer);
    if (named.some((writer) => !otherHeads.has(writer))) {
      others = named;
      continue;
    }
    const { value } = change.value;
    const end = await readEnd(context, chain, head, change.value);
    const audit = await auditStatements(context, chain, end, change.value);
    const by = deciderOf(chain, change.value);
    const actors = actorsOf(change.value).filter((id) => id !== by?.userId);
    const refused = attempt > 1 ? await findRefusal(context.database, actors, by) : null;
    if (refused !== null) return err(refused);
    const { adds = [] } = change.value;
    const exceeded = attempt > 1 ? await findExceeded(context, chain.enterpriseId, adds) : null;
    if (exceeded !== null) return err(exceeded);
    const statements = [
      ...guardQuotas(context, chain.enterpriseId, adds),
      ...change.value.statements,
      ...audit.statements,
      ...(await auditElsewhere(context, change.value, otherHeads)),
    ];
    if (statements.length === 0) return ok({ value, before: end.head, after: end.head });
    const guards = [...whileActive(actors), ...(by === undefined ? [] : [whileRole(by)])];
    const written = await context.database.write([...guards, ...statements]);
    if (written.ok) {
      change.value.afterwards?.();
      return ok({ value, before: end.head, after: audit.after });
    }
    await context.clock.sleep(Math.ceil(Math.random() * Math.min(attempt * 2, 50)));
  }
  throw Object.assign(new Error('the write conflicted with another one at every attempt'), { code: WRITE_CONTENTION });
}

/** The users that a change is recorded of. Events of a sidecar are complete, and were recorded there. */
function actorsOf({ statements, events }: Change<unknown>): readonly string[] {
  if (statements.length === 0) return [];
  return [...new Set(events.flatMap((event) => ('id' in event || event.actor === null ? [] : [event.actor])))];
}

/** Who decides the change. What has happened already changes nothing: it is recorded, whoever lost a role meanwhile. */
function deciderOf({ by }: Chain, { statements }: Change<unknown>): Actor | undefined {
  return statements.length === 0 ? undefined : by;
}

async function findRefusal(
  database: Database,
  actors: readonly string[],
  by: Actor | undefined,
): Promise<ApiError | null> {
  const loss = by === undefined ? null : await findLoss(database, by);
  if (loss === 'role') return roleGone();
  return loss === 'user' || (await hasSuspended(database, actors)) ? actorGone() : null;
}

/** A call may have been authenticated before its user was suspended or left. */
function actorGone(): ApiError {
  return apiError('unauthenticated', 'the user of this call was suspended or has left meanwhile: nothing was changed');
}

/** The same for a role: the decision was made by the one that the caller had when the call was authenticated. */
function roleGone(): ApiError {
  const message =
    'your role was changed during this call: nothing was changed. Repeat it, if your role allows it still';
  return apiError('admin_required', message);
}

/** The head of a chain that is about to be continued. */
interface ChainEnd {
  readonly head: AuditHeadRow;
  /** `intact`: the head has a valid seal. `found_broken`: it does not, and this is not recorded yet. */
  readonly state: 'intact' | 'found_broken' | 'known_broken';
}

/**
 * Reads the head of a chain and checks its seal. A forged or removed head must not get a valid seal by the next write.
 * A chain with such a head still takes events, because they must be recorded, but it stays broken.
 */
async function readEnd(
  context: ServiceContext,
  { enterpriseId, writer }: Chain,
  head: AuditHeadRow | null,
  { begins = [] }: Change<unknown>,
): Promise<ChainEnd> {
  if (head !== null) {
    const isIntact = head.enterpriseId === enterpriseId && (await isSealedHead(context.vault, head));
    return { head, state: isIntact ? 'intact' : head.seal === BROKEN_SEAL ? 'known_broken' : 'found_broken' };
  }
  const isNew = begins.includes(writer);
  const last = isNew ? null : await findLast(context.database, writer);
  const { sequence, hash } = last ?? EMPTY_CHAIN;
  const none = { enterpriseId, writer, sequence, hash, seal: '', ...NO_WRITERS };
  return { head: none, state: isNew ? 'intact' : 'found_broken' };
}

async function auditStatements(
  context: ServiceContext,
  chain: Chain,
  { head, state }: ChainEnd,
  { events, begins = [] }: Change<unknown>,
): Promise<{ readonly statements: Statement[]; readonly after: ChainHead }> {
  if (events.length === 0) return { statements: [], after: head };
  const receivedAt = nowText(context);
  const drafts = state === 'found_broken' ? [brokenHeadEvent(head), ...events] : events;
  const complete = drafts.map((event) => ('id' in event ? event : completeDraft(context, event, receivedAt)));
  const {
    chained,
    dataTexts,
    head: after,
  } = chainEvents(complete, { writer: chain.writer, receivedAt, head }, sha256Hex);
  const rows = chained.map((event, index) => toRow(event, dataTexts[index] ?? ''));
  const begun = await begin(context, head, begins);
  const moved = { ...begun.head, ...after };
  const seal = state === 'intact' ? await sealHead(context.vault, moved) : BROKEN_SEAL;
  const appended = appendEvents(context.database, { ...chain, receivedAt, rows }, { ...moved, seal });
  const nowMs = Date.parse(receivedAt);
  const minutes = countMinutes(complete, nowMs);
  const counted = addRequestMinutes(context.database, chain.enterpriseId, minutes, Math.floor(nowMs / 60_000));
  return { statements: [...begun.statements, ...appended, ...counted], after };
}

async function readHeads(database: Database, writers: readonly string[]): Promise<Heads> {
  return new Map(await Promise.all(writers.map(async (writer) => [writer, await findHead(database, writer)] as const)));
}

/** The heads of other chains, by writer, as they were before the decision. */
type Heads = ReadonlyMap<string, AuditHeadRow | null>;

/** The events in other chains. A conflict, as in the change's own chain, if one of them was continued since the decision began. */
async function auditElsewhere(
  context: ServiceContext,
  { elsewhere = [] }: Pick<Change<unknown>, 'elsewhere'>,
  heads: Heads,
): Promise<Statement[]> {
  const audits = elsewhere.map(async ({ chain, events }) => {
    const change = { statements: [], events, value: null };
    const end = await readEnd(context, chain, heads.get(chain.writer) ?? null, change);
    return (await auditStatements(context, chain, end, change)).statements;
  });
  return (await Promise.all(audits)).flat();
}

function brokenHeadEvent({ writer, sequence, hash }: AuditHeadRow): AuditDraft {
  const data = { 'svc.audit.writer': writer, 'svc.audit.found_sequence': sequence, 'svc.audit.found_hash': hash };
  return { type: 'control.audit.head_broken', actor: null, data };
}

/** The control plane's head with the new writers in its set, and the first heads of their chains. */
async function begin(
  context: ServiceContext,
  head: AuditHeadRow,
  begins: readonly string[],
): Promise<{ readonly head: AuditHeadRow; readonly statements: Statement[] }> {
  const { enterpriseId } = head;
  const writers: AuditWriterRow[] = [];
  const heads: AuditHeadRow[] = [];
  let set = { writers: head.writers, writersHash: head.writersHash };
  for (const writer of begins) {
    set = await withWriter(set, writer);
    writers.push({ enterpriseId, number: set.writers, writer });
    if (writer !== head.writer) heads.push(await emptyHead(context.vault, { enterpriseId, writer }));
  }
  return { head: { ...head, ...set }, statements: beginChains(context.database, writers, heads) };
}

/** The sealed head of a chain that has no events yet. */
export async function emptyHead(vault: Vault, chain: Chain, set = NO_WRITERS): Promise<AuditHeadRow> {
  const head = { ...chain, ...EMPTY_CHAIN, ...set };
  return { ...head, seal: await sealHead(vault, head) };
}

/** The control plane's own chain of an enterprise that is created outside of a commit. It has no events yet. */
export async function beginEnterprise(database: Database, vault: Vault, enterpriseId: string): Promise<Statement[]> {
  const set = await withWriter(NO_WRITERS, enterpriseId);
  const head = await emptyHead(vault, { enterpriseId, writer: enterpriseId }, set);
  return beginChains(database, [{ enterpriseId, number: set.writers, writer: enterpriseId }], [head]);
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

function toRow(event: ChainedEvent, data: string): NewAuditEventRow {
  const { host, connector } = deriveColumns(event);
  const { sequence, id, type, time, sidecar_id: sidecar, session_id: session, actor } = event;
  return [sequence, id, type, time, sidecar, session, actor, host, connector, data, event.previous_hash, event.hash];
}

/** Columns that events are searched by. They repeat parts of what is hashed. */
export function deriveColumns({ data }: Pick<StoredAuditEvent, 'data'>): Pick<AuditEventRow, 'host' | 'connector'> {
  return { host: data['svc.proxy.upstream.host'] ?? null, connector: data['svc.connector.fqn'] ?? null };
}
