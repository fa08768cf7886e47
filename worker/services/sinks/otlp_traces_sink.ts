import type { StoredAuditEvent } from '../../../shared/wire/audit_events.ts';
import { sha256Hex } from '../../kernel/sha256.ts';
import { attributesOf, nanoseconds, otlpSinkOf } from './otlp_encoding.ts';
import { isRefusalEvent } from './refusal_event.ts';

/**
 * Traces of OpenTelemetry: a span for each request, each tool call and each step of an approval. What belongs to one approval is
 * one trace: the question, the decision, and the request that it let through, whoever recorded each of them.
 */
export const otlpTracesSink = otlpSinkOf('traces', ({ events }) =>
  events.filter(isTraced).map((event) => spanOf(event)),
);

function isTraced({ type, data }: StoredAuditEvent): boolean {
  return (
    data['svc.proxy.mediation'] !== undefined || data['svc.approval.id'] !== undefined || type.startsWith('mcp.tool.')
  );
}

/** The step of an approval that is there in each case, and so is the root. */
const ROOT = 'connector.approval.requested';
const TRACE_CHARACTERS = 32;
const SPAN_CHARACTERS = 16;
/** `SPAN_KIND_INTERNAL`, `SPAN_KIND_CLIENT` and `STATUS_CODE_ERROR`. */
const INTERNAL = 1;
const CLIENT = 3;
const ERROR = 2;

/** The ids are hashes of the events' own: the same in each try, and from whatever worker. */
function spanOf(event: StoredAuditEvent) {
  const { id, type, data } = event;
  const approval = data['svc.approval.id'];
  const root = approval === undefined ? null : idOf('root', approval, SPAN_CHARACTERS);
  const isRoot = type === ROOT && root !== null;
  const reason = data['svc.proxy.reason'] ?? data['svc.mcp.reason'];
  return {
    traceId: idOf('trace', approval ?? id, TRACE_CHARACTERS),
    spanId: isRoot ? root : idOf('span', id, SPAN_CHARACTERS),
    ...(root !== null && !isRoot && { parentSpanId: root }),
    name: type,
    kind: data['svc.proxy.upstream.host'] === undefined ? INTERNAL : CLIENT,
    ...timesOf(event),
    attributes: attributesOf({
      'svc.event.id': id,
      'svc.event.actor': event.actor,
      'svc.event.writer': event.writer,
      'svc.sidecar.id': event.sidecar_id,
      'svc.session.id': event.session_id,
      ...data,
    }),
    ...(isRefusalEvent(type) && { status: { code: ERROR, ...(reason !== undefined && { message: reason }) } }),
  };
}

/** An event says when something happened. Only of a tool call it says how long it took, too. */
function timesOf({ time, data }: StoredAuditEvent) {
  const end = Date.parse(time);
  const start = new Date(end - (data['svc.mcp.duration_ms'] ?? 0)).toISOString();
  return { startTimeUnixNano: nanoseconds(start), endTimeUnixNano: nanoseconds(time) };
}

/** All zeros would be no id; a hash is not. */
function idOf(what: string, id: string, characters: number): string {
  return sha256Hex(`svc otlp ${what} ${id}`).slice(0, characters);
}
