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

/** What a sink remembers of this hour. */
const mailing = z.strictObject({ hourEndsMs: z.number(), messages: z.number() });
type Mailing = z.infer<typeof mailing>;

interface Mailed {
  readonly row: Pick<AuditSinkRow, 'enterpriseId' | 'mailing'>;
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
 * to. It fails only if none of them could be reached: otherwise those who could not miss it, and are written to again by themselves.
 * That is none of the hour's messages.
 */
export async function sendMails(
  { mail, database, clock }: Pick<ServiceContext, 'mail' | 'database' | 'clock'>,
  { row, to, only }: Mailed,
  message: Message,
): Promise<Delivery> {
  if (mail === null) return { outcome: 'failed', problem: 'no_mail_service' };
  const all = await listMailReceivers(database, { enterpriseId: row.enterpriseId, to }, MOST_RECEIVERS);
  const before = readMailing(row, clock.now());
  if (only !== undefined) {
    // If nobody of them is meant any more, there is nobody to send it to.
    const meant = all.filter(({ userId }) => only.includes(userId));
    return mailed(before, await sendToEach(mail, meant, message));
  }
  if (all.length === 0) return { outcome: 'failed', problem: 'no_receiver' };
  if (before.messages >= MOST_MESSAGES_AN_HOUR) return { outcome: 'postponed', untilMs: before.hourEndsMs };
  const number = before.messages + 1;
  const tried = await sendToEach(mail, all, withNotice(message, { number, hourEndsMs: before.hourEndsMs }));
  if (tried.failing.length === all.length)
    return { outcome: 'failed', problem: 'mail_failed', afterMs: shortestPause(tried.failing) };
  return mailed(tried.reached.length > 0 ? { ...before, messages: number } : before, tried);
}

function readMailing(row: Mailed['row'], nowMs: number): Mailing {
  const stored = row.mailing === null ? null : mailing.parse(JSON.parse(row.mailing));
  // An hour that ends later than it can was begun by a wrong clock.
  const isRunning = stored !== null && stored.hourEndsMs > nowMs && stored.hourEndsMs <= nowMs + HOUR_MS;
  return isRunning ? stored : { hourEndsMs: nowMs + HOUR_MS, messages: 0 };
}

interface Unsent {
  readonly userId: string;
  readonly failure: MailFailure;
}

interface Tried {
  /** The ids of those who have got it. */
  readonly reached: readonly string[];
  /** Those whom the service never sends it. */
  readonly refused: readonly Unsent[];
  /** Those whom it may send it later. */
  readonly failing: readonly Unsent[];
}

async function sendToEach(mail: Mail, receivers: readonly MailReceiver[], message: Message): Promise<Tried> {
  const tried = await Promise.all(
    receivers.map(async ({ userId, address }) => ({ userId, sent: await mail.send({ to: address, ...message }) })),
  );
  const unsent = tried.flatMap(({ userId, sent }) => (sent.ok ? [] : [{ userId, failure: sent.error }]));
  return {
    reached: tried.filter(({ sent }) => sent.ok).map(({ userId }) => userId),
    refused: unsent.filter(({ failure }) => failure.reason === 'mail_refused'),
    failing: unsent.filter(({ failure }) => failure.reason === 'mail_failed'),
  };
}

/** Nobody waits for as long as the service asks because of somebody else's address. */
function shortestPause(failing: readonly Unsent[]): number {
  return Math.min(...failing.map(({ failure }) => failure.afterMs ?? 0));
}

/** The last message of an hour says when the next one comes. */
function withNotice(message: Message, { number, hourEndsMs }: { number: number; hourEndsMs: number }): Message {
  if (number < MOST_MESSAGES_AN_HOUR) return message;
  const at = new Date(hourEndsMs).toISOString().slice(11, 16);
  const notice = `This is the ${MOST_MESSAGES_AN_HOUR}th mail in an hour. What comes now is gathered into one mail at ${at} UTC.`;
  return { ...message, text: `${message.text}\n${notice}` };
}

/** The message is done with, but for those who miss it. `after` is remembered. */
function mailed(after: Mailing, { reached, refused, failing }: Tried): Delivery {
  const userIds = [...refused, ...failing].map(({ userId }) => userId);
  const isAll = reached.length === 0;
  const why =
    failing.length > 0
      ? { problem: 'mail_failed', afterMs: shortestPause(failing) }
      : { problem: 'mail_refused', afterMs: null };
  return {
    outcome: 'mailed',
    missed: userIds.length === 0 ? null : { userIds, isAll, ...why },
    mailing: JSON.stringify(after),
  };
}
