import type { StoredAuditEvent } from '../../../shared/wire/audit_events.ts';
import { MAX_DEAD_LETTERS, type SinkStop } from '../../../shared/wire/audit_sinks.ts';
import { arrivalStart, type AuditEventRow, type AuditFilter, listArrivals } from '../../store/audit/audit_events.ts';
import {
  type AuditSinkRow,
  countDeadLetters,
  type DeadLetterRow,
  deleteDeadLetter,
  findSink,
  holdSink,
  insertDeadLetter,
  keepDeadLetters,
  listDeadLetters,
  noteSink,
  type SinkChange,
} from '../../store/audit/audit_sinks.ts';
import type { Statement } from '../../store/database.ts';
import { commit } from '../../kernel/commit.ts';
import { controlChain } from '../../kernel/policy_change.ts';
import { pauseAfter } from '../../kernel/retry_after.ts';
import { freshId, nowText, type ServiceContext } from '../../kernel/service_context.ts';
import { ok } from '../../../shared/model/result.ts';
import { toStoredEvent } from '../audit/audit_log.ts';
import type { Delivery, Missed } from './sink_kind.ts';
import { typesOf } from './sink_types.ts';
import { openTarget, type SinkTarget } from './sink_target.ts';
import { sendBatch } from './send_batch.ts';

/** Longer than a call takes at most. Then the work of a worker that was killed is done again. */
export const HOLD_MS = 2 * 60_000;
const RETRY = { firstMs: 30_000, mostMs: 3_600_000 };
/** After failures for so long, a sink is disabled. */
const GIVE_UP_MS = 3 * 24 * 3_600_000;
/** A mail is sent so often to a member who cannot be reached, if others can. */
const MOST_MAIL_TRIES = 4;

/** How much is sent before other sinks get a turn. */
export interface DeliveryLimits {
  readonly eventsPerBatch: number;
  readonly bytesPerBatch: number;
  readonly batches: number;
  /** After so many milliseconds no further batch begins, so a slow receiver cannot keep the others waiting. */
  readonly turnMs: number;
}

export const DELIVERY_LIMITS: DeliveryLimits = {
  eventsPerBatch: 500,
  bytesPerBatch: 1024 * 1024,
  batches: 100,
  turnMs: 20_000,
};

/** A sink that this worker holds, as it changes with each batch. */
interface Held {
  readonly holder: string;
  readonly target: SinkTarget;
  readonly row: AuditSinkRow;
  /** Nothing new is to be sent now. */
  readonly isIdle?: true;
}

/** What to do after a batch; `stop` also if another worker has the sink now. */
type Next = Held | 'stop';

/**
 * Sends what a sink has not received, in the order of arrival, which keeps the order of each chain. A batch is sent until
 * it is accepted or refused for good, so events arrive at least once. Only one worker holds a sink.
 */
export async function runSink(context: ServiceContext, id: string, limits = DELIVERY_LIMITS): Promise<void> {
  const held = await takeSink(context, id);
  if (held === null) return;
  if (held.target === null) {
    await fail(context, { ...held, target: { url: '' } }, { outcome: 'failed', problem: 'vault_entry_damaged' });
    return;
  }
  const end = context.clock.now() + limits.turnMs;
  const isOver = () => context.stopping.aborted || context.clock.now() >= end;
  let next: Next = { ...held, target: held.target };
  for (let batch = 0; batch < limits.batches && next !== 'stop' && !next.isIdle && !isOver(); batch += 1) {
    next = await sendNext(context, next, limits);
  }
  // What people wait for now comes first.
  if (next !== 'stop') next = await sendReplays(context, next, limits, isOver);
  if (next !== 'stop') await note(context, next, { heldUntil: nowText(context) });
}

/** The times by which a sink may be held. */
export function sinkTimes({ clock }: Pick<ServiceContext, 'clock'>) {
  const now = clock.now();
  return { now: timeText(now), longestHold: timeText(now + HOLD_MS) };
}

function timeText(ms: number): string {
  return new Date(ms).toISOString();
}

async function takeSink(context: ServiceContext, id: string) {
  const { database, clock, vault } = context;
  const holder = freshId(context, 'req');
  const hold = { holder, heldUntil: timeText(clock.now() + HOLD_MS) };
  if (!(await database.write(holdSink(database, id, sinkTimes(context), hold))).ok) return null;
  const row = await findSink(database, id);
  return row === null ? null : { holder, row, target: await openTarget(vault, row) };
}

/** Records a change of a sink that is held, and holds it longer unless the change says otherwise. */
async function note(
  { database, clock }: ServiceContext,
  { row, holder }: Pick<Held, 'row' | 'holder'>,
  change: SinkChange,
  more: readonly Statement[] = [],
): Promise<boolean> {
  const whole = { heldUntil: timeText(clock.now() + HOLD_MS), ...change };
  return (await database.write([...noteSink(database, row.id, holder, whole), ...more])).ok;
}

/** Sends the next batch, if there is one; `stop` if the receiver did not take it. */
async function sendNext(context: ServiceContext, held: Held, limits: DeliveryLimits): Promise<Next> {
  const { row } = held;
  const filter = filterOf(row);
  const end = await arrivalStart(context.database, { enterpriseId: row.enterpriseId }, 0);
  const page = { after: row.cursor, limit: row.batch ?? limits.eventsPerBatch };
  const rows = fittingRows(await listArrivals(context.database, filter, page), limits.bytesPerBatch);
  if (rows.length === 0) {
    return moveOn(context, { ...held, isIdle: true }, { cursor: Math.max(end, row.cursor), batch: null });
  }
  // A retry, also by another worker, sends exactly these events with the same id.
  if (!(await note(context, held, { batch: rows.length }))) return 'stop';
  const delivery = await sendBatch(
    context,
    held,
    rows.map((each) => toStoredEvent(each)),
  );
  return settle(context, held, rows, delivery);
}

function filterOf(row: AuditSinkRow): AuditFilter {
  const types = typesOf(row);
  return { enterpriseId: row.enterpriseId, ...(types !== null && { types }) };
}

/** The first rows that fit together; at least one. */
function fittingRows(rows: readonly AuditEventRow[], mostBytes: number): readonly AuditEventRow[] {
  let bytes = 0;
  const over = rows.findIndex(({ data }) => (bytes += data.length + 600) > mostBytes);
  return over === -1 ? rows : rows.slice(0, Math.max(1, over));
}

async function settle(
  context: ServiceContext,
  held: Held,
  rows: readonly AuditEventRow[],
  delivery: Delivery,
): Promise<Next> {
  const last = rows.at(-1);
  if (last === undefined || delivery.outcome === 'failed') return fail(context, held, delivery);
  if (delivery.outcome === 'gone') return stopSink(context, held, 'gone', delivery.problem);
  // What comes until then goes out together.
  if (delivery.outcome === 'postponed')
    return moveOn(context, { ...held, isIdle: true }, { batch: null, nextTryAt: timeText(delivery.untilMs) });
  if (delivery.outcome === 'mailed') return settleMailed(context, held, rows, delivery);
  if (delivery.outcome === 'accepted') {
    return moveOn(context, held, { cursor: last.position, ...acceptedChange(context, held, delivery) });
  }
  // Half of the events at a time, until the one that it refuses is alone.
  if (rows.length > 1) return moveOn(context, held, { batch: Math.floor(rows.length / 2) });
  const { id: sinkId } = held.row;
  const letter = { sinkId, position: last.position, eventId: last.id, problem: delivery.problem };
  const dead = insertDeadLetter(context.database, { ...letter, failedAt: nowText(context) });
  const next = await moveOn(context, held, { cursor: last.position, batch: null }, [dead]);
  if (next === 'stop' || (await countDeadLetters(context.database, sinkId)) < MAX_DEAD_LETTERS) return next;
  return stopSink(context, next, 'dead_letters', delivery.problem);
}

/**
 * Who was not reached is in dead letters, of which the newest are kept, and which are tried again by themselves: one bad address stops
 * no mail to the others.
 */
async function settleMailed(
  context: ServiceContext,
  held: Held,
  rows: readonly AuditEventRow[],
  { missed, mailing }: Extract<Delivery, { outcome: 'mailed' }>,
): Promise<Next> {
  const { database } = context;
  const { id: sinkId } = held.row;
  const healthy = { batch: null, failures: 0, failingSince: null, problem: missed?.problem ?? null };
  const delivered = missed?.isAll === true ? {} : { deliveredAt: nowText(context) };
  const change = { cursor: rows.at(-1)?.position ?? held.row.cursor, ...healthy, ...delivered, mailing };
  if (missed === null) return moveOn(context, held, change);
  const letters = rows
    .slice(-MAX_DEAD_LETTERS)
    .map(({ position, id: eventId }) => missedLetter(context, { sinkId, position, eventId, attempts: 0 }, missed));
  return moveOn(context, held, change, [...letters, keepDeadLetters(database, sinkId, MAX_DEAD_LETTERS)]);
}

/** Keeps a mail for those who missed it, after `attempts` earlier ones. */
function missedLetter(
  context: ServiceContext,
  { sinkId, position, eventId, attempts }: Pick<DeadLetterRow, 'sinkId' | 'position' | 'eventId' | 'attempts'>,
  { userIds, problem, afterMs }: Missed,
): Statement {
  const tries = attempts + 1;
  const isTriedAgain = afterMs !== null && tries < MOST_MAIL_TRIES;
  const again = isTriedAgain && {
    replay: 1,
    nextTryAt: timeText(context.clock.now() + pauseAfter(tries, afterMs, RETRY)),
  };
  const letter = { sinkId, position, eventId, problem, failedAt: nowText(context), recipients: userIds.join(',') };
  return insertDeadLetter(context.database, { ...letter, ...again });
}

function acceptedChange(
  context: ServiceContext,
  { row }: Held,
  { rejected = 0, problem }: Extract<Delivery, { outcome: 'accepted' }>,
) {
  const healthy = { batch: null, failures: 0, failingSince: null, deliveredAt: nowText(context) };
  return { ...healthy, problem: problem ?? null, rejected: row.rejected + rejected };
}

async function moveOn(
  context: ServiceContext,
  held: Held,
  change: SinkChange,
  more: readonly Statement[] = [],
): Promise<Next> {
  if (!(await note(context, held, change, more))) return 'stop';
  return { ...held, row: { ...held.row, ...change } };
}

async function fail(context: ServiceContext, held: Held, delivery: Delivery): Promise<'stop'> {
  const now = context.clock.now();
  const failures = held.row.failures + 1;
  const failingSince = held.row.failingSince ?? timeText(now);
  const asked = 'afterMs' in delivery ? (delivery.afterMs ?? 0) : 0;
  const nextTryAt = timeText(now + pauseAfter(failures, asked, RETRY));
  const problem = 'problem' in delivery ? (delivery.problem ?? null) : null;
  const change = { failures, failingSince, nextTryAt, problem, heldUntil: timeText(now) };
  if (now - Date.parse(failingSince) < GIVE_UP_MS) await note(context, held, change);
  else await stopSink(context, held, 'failing', problem ?? '', change);
  return 'stop';
}

/** Disables a sink, with an event that says so. What it has not sent stays where it is. */
async function stopSink(
  context: ServiceContext,
  { row, holder }: Held,
  disabledReason: SinkStop,
  problem: string,
  change: SinkChange = {},
): Promise<'stop'> {
  const { enterpriseId, id } = row;
  const at = nowText(context);
  const stopped = { ...change, problem, disabledAt: at, disabledReason, heldUntil: at };
  const data = { 'svc.control.resource': id };
  await commit(context, controlChain({ enterpriseId }), async () => {
    const now = await findSink(context.database, id);
    if (now?.holder !== holder) return ok({ statements: [], events: [], value: null });
    const event = { type: 'control.audit_sink.disabled' as const, actor: null, data };
    return ok({ statements: noteSink(context.database, id, holder, stopped), events: [event], value: null });
  });
  return 'stop';
}

/** Sends the dead letters that are to be sent again; `stop` if the receiver fails. What the same members missed is one mail. */
async function sendReplays(
  context: ServiceContext,
  held: Held,
  limits: DeliveryLimits,
  isOver: () => boolean,
): Promise<Next> {
  const page = { after: 0, limit: limits.batches, dueAt: nowText(context) };
  const letters = await listDeadLetters(context.database, held.row.id, page);
  const together = Map.groupBy(letters, ({ recipients, position }) => recipients ?? position);
  let next: Next = held;
  for (const some of together.values()) {
    if (next === 'stop' || isOver()) return next;
    next = await sendReplay(context, next, some);
  }
  return next;
}

async function sendReplay(context: ServiceContext, held: Held, letters: readonly DeadLetterRow[]): Promise<Next> {
  const { database } = context;
  const stored: StoredAuditEvent[] = [];
  for (const { position } of letters) {
    const from = { after: position - 1, limit: 1 };
    const [event] = await listArrivals(database, { enterpriseId: held.row.enterpriseId }, from);
    if (event?.position === position) stored.push(toStoredEvent(event));
  }
  const only = letters[0]?.recipients?.split(',');
  // The events were removed by the retention: there is nothing left to send.
  const delivery: Delivery =
    stored.length === 0 ? { outcome: 'accepted' } : await sendBatch(context, held, stored, only);
  if (delivery.outcome === 'failed' || delivery.outcome === 'postponed') return fail(context, held, delivery);
  if (delivery.outcome === 'gone') return stopSink(context, held, 'gone', delivery.problem);
  const statements = letters.map((letter) => afterReplay(context, letter, delivery));
  const change = delivery.outcome === 'mailed' ? { problem: delivery.missed?.problem ?? null } : {};
  return moveOn(context, held, change, statements);
}

function afterReplay(
  context: ServiceContext,
  letter: DeadLetterRow,
  delivery: Extract<Delivery, { outcome: 'accepted' | 'mailed' | 'refused' }>,
): Statement {
  const { database } = context;
  const missed = delivery.outcome === 'mailed' ? delivery.missed : null;
  if (missed !== null) return missedLetter(context, letter, missed);
  if (delivery.outcome !== 'refused') return deleteDeadLetter(database, letter);
  const { sinkId, position, eventId } = letter;
  return insertDeadLetter(database, {
    sinkId,
    position,
    eventId,
    problem: delivery.problem,
    failedAt: nowText(context),
  });
}
