import { ok } from '../../../shared/model/result.ts';
import {
  auditChainPage,
  auditChainParams,
  auditChainQuery,
  auditEventsPage,
  auditEventsQuery,
  auditPruneInput,
  auditPruneReply,
  auditStreamQuery,
  auditVerification,
} from '../../../shared/wire/audit_events.ts';
import {
  auditAnchors,
  auditHeadsCheck,
  auditHeadsChecked,
  auditHeadsReply,
  auditStatementReply,
} from '../../../shared/wire/audit_heads.ts';
import { describeAnchors } from '../../services/audit/audit_anchors.ts';
import { checkHeads, exportHeads, stateChains } from '../../services/audit/audit_heads.ts';
import { pruneInTurn } from '../../services/audit/audit_pruning.ts';
import { type Arrival, followAudit, listAuditPage, listChainEvents } from '../../services/audit/audit_log.ts';
import { isWorthRetrying } from '../../kernel/is_worth_retrying.ts';
import type { Leave } from '../../kernel/open_calls.ts';
import { verifyAudit } from '../../services/audit/audit_verification.ts';
import { forUser } from '../http/operation.ts';
import { jsonReply } from '../http/replies.ts';

export const getAuditEvents = forUser({
  summary: 'List audit events, newest first',
  query: auditEventsQuery,
  replies: { 200: auditEventsPage },
  async handle({ context, who, query }) {
    return jsonReply(await listAuditPage(context, who, query));
  },
});

export const getAuditVerification = forUser({
  summary: 'Verify the hash chains of the audit log',
  replies: { 200: auditVerification },
  async handle({ context, who }) {
    const verify = async () => ok(await verifyAudit(context, who));
    return jsonReply(await context.openCalls.holdWhile('audit verification', who.enterpriseId, verify));
  },
});

export const getAuditHeads = forUser({
  summary: 'Export the signed heads of the audit log',
  description:
    'If you keep them outside of the control plane, they show later whether events were removed or rolled back.',
  replies: { 200: auditHeadsReply },
  async handle({ context, who }) {
    return ok({ status: 200, json: await exportHeads(context, who) });
  },
});

export const getAuditStatement = forUser({
  summary: 'Get a signed statement of every chain of the audit log',
  description:
    'It says where each chain begins and ends. With it, exported events are verified without the control plane: svc audit export.',
  replies: { 200: auditStatementReply },
  async handle({ context, who }) {
    const stated = await stateChains(context, who);
    return stated.ok ? ok({ status: 200, json: stated.value.statement }) : stated;
  },
});

export const getAuditChain = forUser({
  summary: 'List the events of one chain of the audit log, oldest first',
  description: 'The writer is a sidecar, or for the chain of the control plane the enterprise.',
  params: auditChainParams,
  query: auditChainQuery,
  replies: { 200: auditChainPage },
  async handle({ context, who, params, query }) {
    return jsonReply(await listChainEvents(context, who, params.id, query));
  },
});

export const getAuditAnchors = forUser({
  summary: 'Get the state of sending the heads of the audit log',
  description: 'For SVC_AUDIT_HEADS_URL and SVC_AUDIT_HEADS_LOG. The reply does not contain the URL.',
  replies: { 200: auditAnchors },
  async handle({ context, who }) {
    return ok({ status: 200, json: await describeAnchors(context, who) });
  },
});

export const postAuditHeadsCheck = forUser({
  summary: 'Compare the audit log with heads that were exported before',
  body: auditHeadsCheck,
  replies: { 200: auditHeadsChecked },
  async handle({ context, who, body }) {
    return ok({ status: 200, json: await checkHeads(context, who, body.heads) });
  },
});

export const postAuditPrune = forUser({
  summary: 'Remove the audit events that were received before a time',
  description:
    'For admins. The time must be at least a day ago. The beginning of each chain is removed, and the new beginning is recorded with a seal, so the rest still verifies. A call removes some thousand events; while finished is false, repeat it.',
  body: auditPruneInput,
  replies: { 200: auditPruneReply },
  async handle({ context, who, body }) {
    return jsonReply(await pruneInTurn(context, who, body));
  },
});

export const getAuditStream = forUser({
  summary: 'Follow audit events as they arrive',
  description:
    'Server-sent events. Last-Event-ID resumes. The stream ends when the sign-in, the personal token or the user ends that opened it, and after 15 minutes; the client reconnects.',
  query: auditStreamQuery,
  replies: { 200: 'text/event-stream' },
  async handle({ context, who, query, request }) {
    const stop = new AbortController();
    const signal = AbortSignal.any([stop.signal, context.stopping]);
    const from = { lastPosition: lastPosition(request.headers.get('last-event-id')), signal };
    const arrivals = await followAudit(context, who, query, from);
    if (!arrivals.ok) return arrivals;
    if (request.method === 'HEAD') return ok(new Response(null, EVENT_STREAM));
    const leave = context.openCalls.enter('audit stream', who.userId);
    if (!leave.ok) return leave;
    return ok(new Response(eventStream(arrivals.value, stop, leave.value), EVENT_STREAM));
  },
});

const EVENT_STREAM = { headers: { 'content-type': 'text/event-stream', 'cache-control': 'no-store' } };

function lastPosition(header: string | null): number | null {
  return header !== null && /^\d{1,15}$/.test(header) ? Number(header) : null;
}

/**
 * The events as a body. Reading stops when the client disconnects. The stream ends if the database fails, so that the
 * client reconnects and gets the error.
 */
function eventStream(
  arrivals: AsyncGenerator<Arrival | null>,
  stop: AbortController,
  leave: Leave,
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  return new ReadableStream({
    start(controller) {
      controller.enqueue(encoder.encode('retry: 1000\n\n'));
    },
    async pull(controller) {
      const next = await takeArrival(arrivals, leave);
      if (next !== 'end') return controller.enqueue(encoder.encode(next === null ? ':\n\n' : frame(next)));
      leave();
      controller.close();
    },
    async cancel() {
      leave();
      stop.abort();
      await arrivals.return(undefined);
    },
  });
}

async function takeArrival(arrivals: AsyncGenerator<Arrival | null>, leave: Leave): Promise<Arrival | null | 'end'> {
  try {
    const next = await arrivals.next();
    return next.done === true ? 'end' : next.value;
  } catch (error) {
    leave();
    if (isWorthRetrying(error)) return 'end';
    throw error;
  }
}

function frame(arrival: Arrival): string {
  return `id: ${arrival.position}\nevent: audit\ndata: ${JSON.stringify(arrival.event)}\n\n`;
}
