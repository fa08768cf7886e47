import { parseSyslogUrl } from '../../../shared/net/syslog_url.ts';
import type { StoredAuditEvent } from '../../../shared/wire/audit_events.ts';
import type { AuditSinkRow } from '../../store/audit/audit_sinks.ts';
import { listMailAddresses, type MailReceivers } from '../../store/people/mail_addresses.ts';
import type { Outbound, OutboundReply } from '../../kernel/outbound.ts';
import type { ServiceContext } from '../../kernel/service_context.ts';
import type { Delivery } from './sink_kind.ts';
import { SINK_KIND_TABLE } from './sink_kinds.ts';
import type { SinkTarget } from './sink_target.ts';

/** A reply may be as long as this; a receiver has little to say. */
const LIMITS = { maxReplyBytes: 64 * 1024, timeoutMs: 30_000 };

/** Of one mail sink. */
const MOST_RECEIVERS = 50;

/** Statuses that say that these events will never be accepted: sending them again would not help. */
const REFUSED = new Set([400, 413, 414, 415, 422]);

/** Sends events to a sink's receiver in one call, and reads what it made of them. */
export async function sendBatch(
  context: Pick<ServiceContext, 'outbound' | 'clock' | 'publicUrl' | 'mail' | 'database'>,
  {
    row,
    target,
  }: { readonly row: Pick<AuditSinkRow, 'id' | 'kind' | 'enterpriseId' | 'cursor'>; readonly target: SinkTarget },
  events: readonly StoredAuditEvent[],
): Promise<Delivery> {
  const { outbound, clock, publicUrl } = context;
  const kind = SINK_KIND_TABLE[row.kind];
  const nowMs = clock.now();
  const approvalsUrl = publicUrl === null ? null : `${publicUrl}/approvals`;
  const { enterpriseId, cursor: after } = row;
  const batch = { id: batchId(row.id, events), enterpriseId, events, after, nowMs, approvalsUrl };
  // The URL is a tenant's: no address inside of a hosted control plane's network is called.
  if ('compose' in kind) return sendMails(context, { enterpriseId, to: target.to ?? {} }, kind.compose(batch));
  if ('frame' in kind) return sendStream(outbound, target, kind.frame(batch));
  const written = await kind.write(target, batch);
  const called = await outbound.call({ method: 'POST', url: target.url, ...written, limits: LIMITS });
  if (!called.ok) return { outcome: 'failed', problem: called.error.reason };
  const { status, body } = called.value;
  if (status < 200 || status > 299) return readRefusal(called.value, nowMs, kind.judgesNothing === true);
  return kind.readAccepted?.(new TextDecoder().decode(body)) ?? { outcome: 'accepted' };
}

/**
 * One mail to each member who is meant now and has proven the address: nobody sees the others' addresses, and no stranger is written
 * to. If one cannot be sent, all are sent again, so that some come twice.
 */
async function sendMails(
  { mail, database }: Pick<ServiceContext, 'mail' | 'database'>,
  receivers: MailReceivers,
  message: { readonly subject: string; readonly text: string },
): Promise<Delivery> {
  if (mail === null) return { outcome: 'failed', problem: 'no_mail_service' };
  const addresses = await listMailAddresses(database, receivers, MOST_RECEIVERS);
  if (addresses.length === 0) return { outcome: 'failed', problem: 'no_receiver' };
  const sent = await Promise.all(addresses.map((to) => mail.send({ to, ...message })));
  return sent.every(({ ok }) => ok) ? { outcome: 'accepted' } : { outcome: 'failed', problem: 'mail_failed' };
}

/** Accepted once the receiver has closed the connection after the last byte: syslog has no other answer. */
async function sendStream(
  { stream }: Outbound,
  { url, acceptsPlainClose = false }: SinkTarget,
  bytes: Uint8Array<ArrayBuffer>,
): Promise<Delivery> {
  const receiver = parseSyslogUrl(url);
  if (!receiver.ok || stream === undefined) return { outcome: 'failed', problem: 'upstream_unreachable' };
  const sent = await stream({ ...receiver.value, bytes, timeoutMs: LIMITS.timeoutMs });
  if (!sent.ok) return { outcome: 'failed', problem: sent.error.reason };
  const isAccepted = sent.value === 'tls' || acceptsPlainClose;
  return isAccepted ? { outcome: 'accepted' } : { outcome: 'failed', problem: 'closed_without_tls' };
}

/** The same for the same events of a sink, without a full stop (Standard Webhooks, Webhook identifier). */
function batchId(sinkId: string, events: readonly StoredAuditEvent[]): string {
  return `${sinkId}-${events[0]?.id ?? ''}-${events.length}`;
}

function readRefusal({ status, retryAfter }: OutboundReply, nowMs: number, judgesNothing: boolean): Delivery {
  const problem = `status_${status}`;
  if (status === 410 && !judgesNothing) return { outcome: 'gone', problem };
  if (REFUSED.has(status) && !judgesNothing) return { outcome: 'refused', problem };
  const afterMs = retryAfter === undefined ? null : readRetryAfter(retryAfter, nowMs);
  return { outcome: 'failed', problem, ...(afterMs !== null && { afterMs }) };
}

/** `Retry-After` as seconds or a date (RFC 9110 section 10.2.3); null if it is neither. */
function readRetryAfter(text: string, nowMs: number): number | null {
  if (/^\d{1,9}$/.test(text.trim())) return Number(text) * 1000;
  const at = Date.parse(text);
  return Number.isNaN(at) ? null : Math.max(0, at - nowMs);
}
