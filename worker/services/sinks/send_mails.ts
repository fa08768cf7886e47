import { z } from 'zod';
import { listMailReceivers, type MailReceiver, type MailReceivers } from '../../store/people/mail_addresses.ts';
import type { AuditSinkRow } from '../../store/audit/audit_sinks.ts';
import type { Mail, MailFailure } from '../../kernel/mail.ts';
import type { ServiceContext } from '../../kernel/service_context.ts';
import type { Delivery } from './sink_kind.ts';

/** Of one mail sink. */
const MOST_RECEIVERS = 50;

/** Messages of one sink in an hour, each to every receiver. What comes then is gathered until the hour is over. */
export const MOST_MESSAGES_AN_HOUR = 30;
const HOUR_MS = 3_600_000;

/** After so many tries a member who cannot be reached does not keep the next message from those who can. */
const MOST_TRIES = 4;

/** What a sink remembers between two tries, and of this hour. */
const mailing = z.strictObject({
  /** By the member's id: null if they have the message in flight, or why they will not get it. */
  settled: z.record(z.string(), z.string().nullable()),
  hourEndsMs: z.number(),
  messages: z.number(),
});
type Mailing = z.infer<typeof mailing>;

interface Mailed {
  readonly row: Pick<AuditSinkRow, 'enterpriseId' | 'mailing' | 'failures'>;
  readonly to: MailReceivers['to'];
  /** Members who missed it before. */
  readonly only?: readonly string[];
}

interface Message {
  readonly subject: string;
  readonly text: string;
}

/**
 * One mail to each member who is meant now and has proven the address: nobody sees the others' addresses, and no stranger is written
 * to. If one cannot be sent, the next try is for those alone who have not got it. A member whose mail is refused misses it.
 */
export async function sendMails(
  { mail, database, clock }: Pick<ServiceContext, 'mail' | 'database' | 'clock'>,
  { row, to, only }: Mailed,
  message: Message,
): Promise<Delivery> {
  if (mail === null) return { outcome: 'failed', problem: 'no_mail_service' };
  const all = await listMailReceivers(database, { enterpriseId: row.enterpriseId, to }, MOST_RECEIVERS);
  const stored = readMailing(row, clock.now());
  // What is in flight is another message than one that is sent again to those who missed it.
  const inFlight = only === undefined ? {} : stored.settled;
  const before = only === undefined ? stored : { ...stored, settled: {} };
  const meant = all.filter(({ userId }) => only?.includes(userId) ?? true);
  // Of those who missed it, nobody is meant any more: there is nobody to send it to.
  if (only !== undefined && meant.length === 0) return mailed(stored, {});
  if (meant.length === 0) return { outcome: 'failed', problem: 'no_receiver' };
  const isFirstTry = Object.keys(before.settled).length === 0;
  if (isFirstTry && before.messages >= MOST_MESSAGES_AN_HOUR)
    return { outcome: 'postponed', untilMs: before.hourEndsMs };
  const number = before.messages + (isFirstTry ? 1 : 0);
  const left = meant.filter(({ userId }) => !(userId in before.settled));
  const tried = await sendToEach(mail, left, withNotice(message, { number, hourEndsMs: before.hourEndsMs }));
  const settled = { ...before.settled, ...tried.settled };
  const isSent = Object.values(settled).includes(null);
  const after = { ...before, messages: isSent ? number : before.messages };
  const isLastTry = only !== undefined || (isSent && row.failures + 1 >= MOST_TRIES);
  if (tried.failing.length === 0 || isLastTry) {
    const given = Object.fromEntries(tried.failing.map(({ userId }) => [userId, 'mail_failed']));
    return mailed({ ...after, settled: inFlight }, { ...settled, ...given });
  }
  const afterMs = Math.max(0, ...tried.failing.map((each) => each.failure.afterMs ?? 0));
  return { outcome: 'failed', problem: 'mail_failed', afterMs, mailing: JSON.stringify({ ...after, settled }) };
}

function readMailing(row: Mailed['row'], nowMs: number): Mailing {
  const stored = row.mailing === null ? null : mailing.parse(JSON.parse(row.mailing));
  const settled = stored === null ? {} : stored.settled;
  // An hour that ends later than it can was begun by a wrong clock.
  const isRunning = stored !== null && stored.hourEndsMs > nowMs && stored.hourEndsMs <= nowMs + HOUR_MS;
  return isRunning ? { ...stored, settled } : { settled, hourEndsMs: nowMs + HOUR_MS, messages: 0 };
}

interface Tried {
  readonly settled: Mailing['settled'];
  readonly failing: readonly { readonly userId: string; readonly failure: MailFailure }[];
}

async function sendToEach(mail: Mail, receivers: readonly MailReceiver[], message: Message): Promise<Tried> {
  const tried = await Promise.all(
    receivers.map(async ({ userId, address }) => ({ userId, sent: await mail.send({ to: address, ...message }) })),
  );
  const isSettled = ({ sent }: (typeof tried)[number]) => sent.ok || sent.error.reason === 'mail_refused';
  return {
    settled: Object.fromEntries(
      tried.filter(isSettled).map(({ userId, sent }) => [userId, sent.ok ? null : sent.error.reason]),
    ),
    failing: tried.flatMap((each) =>
      isSettled(each) || each.sent.ok ? [] : [{ userId: each.userId, failure: each.sent.error }],
    ),
  };
}

/** The last message of an hour says when the next one comes. */
function withNotice(message: Message, { number, hourEndsMs }: { number: number; hourEndsMs: number }): Message {
  if (number < MOST_MESSAGES_AN_HOUR) return message;
  const at = new Date(hourEndsMs).toISOString().slice(11, 16);
  const notice = `This is the ${MOST_MESSAGES_AN_HOUR}th mail in an hour. What comes now is gathered into one mail at ${at} UTC.`;
  return { ...message, text: `${message.text}\n${notice}` };
}

/** The message is done with: `settled` is who got it and who did not. `after` is remembered. */
function mailed(after: Mailing, settled: Mailing['settled']): Delivery {
  const missing = Object.entries(settled).filter(([, problem]) => problem !== null);
  const isAll = missing.length === Object.keys(settled).length;
  const userIds = missing.map(([userId]) => userId);
  const missed = missing.length === 0 ? null : { userIds, problem: missing[0]?.[1] ?? '', isAll };
  return { outcome: 'mailed', missed, mailing: JSON.stringify(after) };
}
