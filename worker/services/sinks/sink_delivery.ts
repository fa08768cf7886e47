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
import { freshId, nowText, type ServiceContext } from '../../kernel/service_context.ts';
import { ok } from '../../../shared/model/result.ts';
import { toStoredEvent } from '../audit/audit_log.ts';
import type { Delivery } from './sink_kind.ts';
import { typesOf } from './sink_types.ts';
import { openTarget, type SinkTarget } from './sink_target.ts';
import { sendBatch } from './send_batch.ts';

/** Longer than a call takes at most. Then the work of a worker that was killed is done again. */
export const HOLD_MS = 2 * 60_000;
const FIRST_RETRY_MS = 30_000;
const LAST_RETRY_MS = 3_600_000;
/** The longest pause that a receiver can ask for. */
const LONGEST_PAUSE_MS = 24 * 3_600_000;
/** After failures for so long, a sink is disabled. */
const GIVE_UP_MS = 3 * 24 * 3_600_000;

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
  let next: Next = await sendReplays(context, { ...held, target: held.target }, limits, isOver);
  for (let batch = 0; batch < limits.batches && next !== 'stop' && !isOver(); batch += 1) {
    next = await sendNext(context, next, limits);
  }
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

/** Sends the next batch; `stop` if there is none, or the receiver did not take it. */
async function sendNext(context: ServiceContext, held: Held, limits: DeliveryLimits): Promise<Next> {
  const { row } = held;
  const filter = filterOf(row);
  const end = await arrivalStart(context.database, { enterpriseId: row.enterpriseId }, 0);
  const page = { after: row.cursor, limit: row.batch ?? limits.eventsPerBatch };
  const rows = fittingRows(await listArrivals(context.database, filter, page), limits.bytesPerBatch);
  if (rows.length === 0) {
    await note(context, held, { cursor: Math.max(end, row.cursor), batch: null, heldUntil: nowText(context) });
    return 'stop';
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
  if (delivery.outcome === 'postponed') return postpone(context, held, delivery, { batch: null });
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

/** Who was not reached is in dead letters, of which the newest are kept: one bad address stops no mail to the others. */
async function settleMailed(
  context: ServiceContext,
  held: Held,
  rows: readonly AuditEventRow[],
  { missed, mailing }: Extract<Delivery, { outcome: 'mailed' }>,
): Promise<Next> {
  const { database } = context;
  const { id: sinkId } = held.row;
  const failedAt = nowText(context);
  const healthy = { batch: null, failures: 0, failingSince: null, problem: missed?.problem ?? null };
  const delivered = missed?.isAll === true ? {} : { deliveredAt: failedAt };
  const change = { cursor: rows.at(-1)?.position ?? held.row.cursor, ...healthy, ...delivered, mailing };
  if (missed === null) return moveOn(context, held, change);
  const recipients = missed.userIds.join(',');
  const letters = rows.slice(-MAX_DEAD_LETTERS).map(({ position, id: eventId }) => {
    return insertDeadLetter(database, { sinkId, position, eventId, problem: missed.problem, failedAt, recipients });
  });
  return moveOn(context, held, change, [...letters, keepDeadLetters(database, sinkId, MAX_DEAD_LETTERS)]);
}

async function postpone(
  context: ServiceContext,
  held: Held,
  { untilMs }: Extract<Delivery, { outcome: 'postponed' }>,
  change: SinkChange = {},
): Promise<'stop'> {
  await note(context, held, { ...change, nextTryAt: timeText(untilMs), heldUntil: nowText(context) });
  return 'stop';
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

/** The next try is after a pause that doubles, or as long as the receiver asked for. */
async function fail(context: ServiceContext, held: Held, delivery: Delivery): Promise<'stop'> {
  const now = context.clock.now();
  const failures = held.row.failures + 1;
  const failingSince = held.row.failingSince ?? timeText(now);
  const asked = 'afterMs' in delivery ? (delivery.afterMs ?? 0) : 0;
  const pause = Math.min(FIRST_RETRY_MS * 2 ** Math.min(failures - 1, 20), LAST_RETRY_MS);
  const nextTryAt = timeText(now + Math.max(pause, Math.min(asked, LONGEST_PAUSE_MS)));
  const problem = 'problem' in delivery ? (delivery.problem ?? null) : null;
  const remembered = 'mailing' in delivery ? { mailing: delivery.mailing } : {};
  const change = { failures, failingSince, nextTryAt, problem, heldUntil: timeText(now), ...remembered };
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

/** Sends dead letters that a person wants to have sent again, one at a time; `stop` if the receiver fails. */
async function sendReplays(
  context: ServiceContext,
  held: Held,
  limits: DeliveryLimits,
  isOver: () => boolean,
): Promise<Next> {
  const page = { after: 0, limit: limits.batches, onlyReplays: true };
  const letters = await listDeadLetters(context.database, held.row.id, page);
  let next: Next = held;
  for (const letter of letters) {
    if (next === 'stop' || isOver()) return next;
    next = await sendReplay(context, next, letter);
  }
  return next;
}

async function sendReplay(context: ServiceContext, held: Held, letter: DeadLetterRow): Promise<Next> {
  const { database } = context;
  const from = { after: letter.position - 1, limit: 1 };
  const [event] = await listArrivals(database, { enterpriseId: held.row.enterpriseId }, from);
  const stored: readonly StoredAuditEvent[] = event?.position === letter.position ? [toStoredEvent(event)] : [];
  const only = letter.recipients?.split(',');
  // The event was removed by the retention: there is nothing left to send.
  const delivery: Delivery =
    stored.length === 0 ? { outcome: 'accepted' } : await sendBatch(context, held, stored, only);
  if (delivery.outcome === 'failed') return fail(context, held, delivery);
  if (delivery.outcome === 'gone') return stopSink(context, held, 'gone', delivery.problem);
  if (delivery.outcome === 'postponed') return postpone(context, held, delivery);
  const missed = delivery.outcome === 'mailed' ? delivery.missed : null;
  const problem = missed?.problem ?? ('problem' in delivery ? (delivery.problem ?? '') : '');
  const again = { ...letter, problem, recipients: missed?.userIds.join(',') ?? null, failedAt: nowText(context) };
  const isDone = delivery.outcome === 'accepted' || (delivery.outcome === 'mailed' && missed === null);
  const statement = isDone ? deleteDeadLetter(database, letter) : insertDeadLetter(database, again);
  const change = delivery.outcome === 'mailed' ? { mailing: delivery.mailing } : {};
  return moveOn(context, held, change, [statement]);
}
