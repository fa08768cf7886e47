import { err, ok, type Result } from '../../../shared/model/result.ts';
import type { AnchorWay, AuditAnchors, AuditHeadsReply } from '../../../shared/wire/audit_heads.ts';
import {
  type AnchorKey,
  type AnchorTimes,
  holdAnchor,
  listAnchors,
  listDueAnchors,
  noteAnchor,
} from '../../store/audit/audit_anchors.ts';
import { findEnterprise } from '../../store/enterprise_settings.ts';
import { exportHeads } from './audit_heads.ts';
import type { Caller } from '../../kernel/caller.ts';
import { freshId, nowText, type ServiceContext } from '../../kernel/service_context.ts';

const HOUR_MS = 3_600_000;
/** Longer than a call takes at most. Then the work of a worker that was killed is done again. */
const HOLD_MS = 2 * 60_000;
const FIRST_RETRY_MS = 60_000;
const LAST_RETRY_MS = HOUR_MS;

/** The limits of one turn; the rest is for the next. A receiver that is down is not tried for every enterprise. */
export const TURN_LIMITS = { enterprises: 200, failures: 3 };

/** The result of a turn. */
interface AnchorTurn {
  readonly sent: number;
  readonly failed: number;
}

type Log = (entry: Readonly<Record<string, string | number>>) => void;
type Anchors = NonNullable<ServiceContext['anchors']>;

/**
 * Sends the signed heads of each enterprise that is due in this period to the configured receivers. Several workers may
 * run at once: a database row is locked by one worker while it sends. Each period is sent once, or twice with the same
 * `Idempotency-Key` if a worker ends between the receiver's answer and recording it.
 */
export async function sendAnchors(context: ServiceContext, log: Log, limits = TURN_LIMITS): Promise<AnchorTurn> {
  const turn = { sent: 0, failed: 0 };
  const { anchors } = context;
  if (anchors === null) return turn;
  for (const way of waysOf(anchors)) {
    const due = await listDueAnchors(context.database, way, timesOf(context, anchors), limits.enterprises);
    for (const enterpriseId of due) {
      if (context.stopping.aborted || turn.failed >= limits.failures) return turn;
      const came = await sendOne(context, anchors, { enterpriseId, way }, log);
      if (came !== 'not_ours') turn[came] += 1;
    }
  }
  return turn;
}

function waysOf({ url, isLogged }: Anchors): readonly AnchorWay[] {
  return [...(isLogged ? (['log'] as const) : []), ...(url === null ? [] : (['webhook'] as const))];
}

function timesOf(context: ServiceContext, { hours }: Anchors): AnchorTimes {
  const now = context.clock.now();
  const lengthMs = hours * HOUR_MS;
  const period = now - (now % lengthMs);
  return {
    period: timeText(period),
    nextPeriod: timeText(period + lengthMs),
    now: timeText(now),
    longestHold: timeText(now + LAST_RETRY_MS),
  };
}

function timeText(ms: number): string {
  return new Date(ms).toISOString();
}

async function sendOne(
  context: ServiceContext,
  anchors: Anchors,
  key: AnchorKey,
  log: Log,
): Promise<'sent' | 'failed' | 'not_ours'> {
  const { database, clock } = context;
  const times = timesOf(context, anchors);
  const holder = freshId(context, 'req');
  const hold = { holder, heldUntil: timeText(clock.now() + HOLD_MS) };
  if (!(await database.write(holdAnchor(database, key, times, hold))).ok) return 'not_ours';
  const heads = await exportHeads(context, key);
  const sent = key.way === 'log' ? printHeads(heads, log) : await postHeads(context, anchors, heads, times.period);
  const at = nowText(context);
  if (sent.ok) {
    const done = { period: times.period, sentAt: at, heldUntil: at, failures: 0, failedAt: null, problem: null };
    await database.write([noteAnchor(database, key, holder, done)]);
    return 'sent';
  }
  const rows = await listAnchors(database, key.enterpriseId);
  const failures = (rows.find(({ way }) => way === key.way)?.failures ?? 0) + 1;
  const retryAt = timeText(clock.now() + Math.min(LAST_RETRY_MS, FIRST_RETRY_MS * 2 ** (failures - 1)));
  const failed = { failures, failedAt: at, problem: sent.error.problem, heldUntil: retryAt };
  await database.write([noteAnchor(database, key, holder, failed)]);
  const message = `the audit heads of ${key.enterpriseId} were not accepted (${sent.error.message}): the next try is at ${retryAt}`;
  log({ level: 'error', message, code: 'audit_heads_unsent', failures });
  return 'failed';
}

/** Why heads were not accepted: a code for the API, and a sentence with the receiver's host for the log. */
interface Unsent {
  readonly problem: string;
  readonly message: string;
}

/** The body has the format of `svc audit heads --json`. */
async function postHeads(
  { outbound }: ServiceContext,
  { url }: Anchors,
  heads: AuditHeadsReply,
  period: string,
): Promise<Result<void, Unsent>> {
  const called = await outbound.call({
    method: 'POST',
    url: url ?? '',
    headers: { 'content-type': 'application/json', 'idempotency-key': `"${heads.enterprise_id}.${period}"` },
    body: new TextEncoder().encode(JSON.stringify(heads)),
  });
  if (!called.ok) return err({ problem: called.error.reason, message: called.error.message });
  const { status } = called.value;
  if (status >= 200 && status < 300) return ok(undefined);
  return err({ problem: `status_${status}`, message: `the receiver answered with status ${status}` });
}

function printHeads(reply: AuditHeadsReply, log: Log): Result<void, never> {
  const { enterprise_id, taken_at } = reply;
  for (const head of reply.heads) {
    log({ level: 'info', message: 'audit head', code: 'audit_head', enterprise_id, taken_at, ...head });
  }
  return ok(undefined);
}

/** The state of sending the heads of the caller's enterprise. */
export async function describeAnchors(
  context: ServiceContext,
  { enterpriseId }: Pick<Caller, 'enterpriseId'>,
): Promise<AuditAnchors> {
  const { anchors } = context;
  if (anchors === null) return { anchors: [] };
  const rows = await listAnchors(context.database, enterpriseId);
  const { createdAt = nowText(context) } = (await findEnterprise(context.database, enterpriseId)) ?? {};
  const described = waysOf(anchors).map((way) => {
    const row = rows.find((each) => each.way === way);
    const since = Date.parse(row?.sentAt ?? createdAt);
    return {
      way,
      hours: anchors.hours,
      sent_at: row?.sentAt ?? null,
      late: context.clock.now() - since > 2 * anchors.hours * HOUR_MS,
      failures: row?.failures ?? 0,
      failed_at: row?.failedAt ?? null,
      problem: row?.problem ?? null,
    };
  });
  return { anchors: described };
}
