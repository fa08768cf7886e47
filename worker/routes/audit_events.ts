import { ok } from '../../shared/model/result.ts';
import {
  auditEventsPage,
  auditEventsQuery,
  auditStreamQuery,
  auditVerification,
} from '../../shared/wire/audit_events.ts';
import { type Arrival, followAudit, listAuditPage } from '../services/audit_log.ts';
import { verifyAudit } from '../services/audit_verification.ts';
import { forUser } from './operation.ts';
import { json } from './replies.ts';

export const getAuditEvents = forUser({
  summary: 'List audit events, the newest first',
  query: auditEventsQuery,
  replies: { 200: auditEventsPage },
  async handle({ context, who, query }) {
    return json(await listAuditPage(context, who, query));
  },
});

export const getAuditVerification = forUser({
  summary: 'Verify the hash chains of the audit log',
  replies: { 200: auditVerification },
  async handle({ context, who }) {
    return ok({ status: 200, json: await verifyAudit(context, who) });
  },
});

export const getAuditStream = forUser({
  summary: 'Follow audit events as they arrive',
  description:
    'Server-sent events. Last-Event-ID resumes; the stream ends after a quarter of an hour, and the client asks again.',
  query: auditStreamQuery,
  replies: { 200: 'text/event-stream' },
  async handle({ context, who, query, request }) {
    const stop = new AbortController();
    const from = { lastPosition: lastPosition(request.headers.get('last-event-id')), signal: stop.signal };
    const arrivals = await followAudit(context, who, query, from);
    if (!arrivals.ok) return arrivals;
    const stream = eventStream(arrivals.value, stop);
    return ok(new Response(stream, { headers: { 'content-type': 'text/event-stream', 'cache-control': 'no-store' } }));
  },
});

function lastPosition(header: string | null): number | null {
  return header !== null && /^\d{1,15}$/.test(header) ? Number(header) : null;
}

/** The events as a body. When the client goes away, the looking stops. */
function eventStream(arrivals: AsyncGenerator<Arrival | null>, stop: AbortController): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  return new ReadableStream({
    start(controller) {
      controller.enqueue(encoder.encode('retry: 1000\n\n'));
    },
    async pull(controller) {
      const next = await arrivals.next();
      if (next.done === true) controller.close();
      else controller.enqueue(encoder.encode(next.value === null ? ':\n\n' : frame(next.value)));
    },
    async cancel() {
      stop.abort();
      await arrivals.return(undefined);
    },
  });
}

function frame(arrival: Arrival): string {
  return `id: ${arrival.position}\nevent: audit\ndata: ${JSON.stringify(arrival.event)}\n\n`;
}
