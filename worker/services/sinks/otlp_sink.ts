import type { StoredAuditEvent } from '../../../shared/wire/audit_events.ts';
import { attributesOf, nanoseconds, otlpSinkOf } from './otlp_encoding.ts';
import { isRefusalEvent } from './refusal_event.ts';

/** Logs of OpenTelemetry: one log record for each event. */
export const otlpSink = otlpSinkOf('logs', ({ events }) => events.map((event) => logRecord(event)));

/** `SEVERITY_NUMBER_INFO` and `SEVERITY_NUMBER_WARN` of the data model. */
const INFO = { severityNumber: 9, severityText: 'INFO' };
const WARN = { severityNumber: 13, severityText: 'WARN' };

function logRecord(event: StoredAuditEvent) {
  const { type, time, received_at: receivedAt, data, ...rest } = event;
  return {
    timeUnixNano: nanoseconds(time),
    observedTimeUnixNano: nanoseconds(receivedAt),
    ...(isRefusalEvent(type) ? WARN : INFO),
    eventName: type,
    body: { stringValue: JSON.stringify(event) },
    attributes: attributesOf({
      'svc.event.id': rest.id,
      'svc.event.type': type,
      'svc.event.actor': rest.actor,
      'svc.event.writer': rest.writer,
      'svc.event.sequence': rest.sequence,
      'svc.sidecar.id': rest.sidecar_id,
      'svc.session.id': rest.session_id,
      ...data,
    }),
  };
}
