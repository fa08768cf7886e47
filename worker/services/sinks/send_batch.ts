import { parseSyslogUrl } from '../../../shared/net/syslog_url.ts';
import type { StoredAuditEvent } from '../../../shared/wire/audit_events.ts';
import type { AuditSinkRow } from '../../store/audit/audit_sinks.ts';
import { NEVER_ACCEPTED } from '../../kernel/mail.ts';
import type { Outbound, OutboundReply } from '../../kernel/outbound.ts';
import { readRetryAfter } from '../../kernel/retry_after.ts';
import type { ServiceContext } from '../../kernel/service_context.ts';
import { sendMails } from './send_mails.ts';
import type { Delivery } from './sink_kind.ts';
import { SINK_KIND_TABLE } from './sink_kinds.ts';
import type { SinkTarget } from './sink_target.ts';

/** A reply may be as long as this; a receiver has little to say. */
const LIMITS = { maxReplyBytes: 64 * 1024, timeoutMs: 30_000 };

/** Sends events to a sink's receiver in one call, and reads what it made of them. */
export async function sendBatch(
  context: Pick<ServiceContext, 'outbound' | 'clock' | 'publicUrl' | 'mail' | 'database'>,
  {
    row,
    target,
  }: {
    readonly row: Pick<AuditSinkRow, 'id' | 'kind' | 'enterpriseId' | 'cursor' | 'mailing'>;
    readonly target: SinkTarget;
  },
  events: readonly StoredAuditEvent[],
  /** The members who are to get a mail again; absent: all who are meant. */
  only?: readonly string[],
): Promise<Delivery> {
  const { outbound, clock, publicUrl } = context;
  const kind = SINK_KIND_TABLE[row.kind];
  const nowMs = clock.now();
  const approvalsUrl = publicUrl === null ? null : `${publicUrl}/approvals`;
  const { enterpriseId, cursor: after } = row;
  const batch = { id: batchId(row.id, events), enterpriseId, events, after, nowMs, approvalsUrl };
  // The URL is a tenant's: no address inside of a hosted control plane's network is called.
  if ('compose' in kind) {
    return sendMails(context, { row, to: target.to ?? {}, ...(only && { only }) }, kind.compose(batch));
  }
  if ('frame' in kind) return sendStream(outbound, target, kind.frame(batch));
  const written = await kind.write(target, batch);
  const called = await outbound.call({ method: 'POST', url: target.url, ...written, limits: LIMITS });
  if (!called.ok) return { outcome: 'failed', problem: called.error.reason };
  const { status, body } = called.value;
  if (status < 200 || status > 299) return readRefusal(called.value, nowMs, kind.judgesNothing === true);
  return kind.readAccepted?.(new TextDecoder().decode(body)) ?? { outcome: 'accepted' };
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
  if (NEVER_ACCEPTED.has(status) && !judgesNothing) return { outcome: 'refused', problem };
  const afterMs = readRetryAfter(retryAfter, nowMs);
  return { outcome: 'failed', problem, ...(afterMs !== null && { afterMs }) };
}
