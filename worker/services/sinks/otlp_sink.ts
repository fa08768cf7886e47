import { z } from 'zod';
import type { StoredAuditEvent } from '../../../shared/wire/audit_events.ts';
import { isRefusalEvent } from './refusal_event.ts';
import type { Delivery, HttpSinkKind } from './sink_kind.ts';

/** OpenTelemetry logs over HTTP in JSON (OTLP 1.x, `ExportLogsServiceRequest`): one log record for each event. */
export const otlpSink: HttpSinkKind = {
  isSigned: false,
  isAlert: false,
  async write({ header }, { enterpriseId, events }) {
    const resource = { attributes: attributesOf({ 'service.name': 'svc', 'svc.enterprise.id': enterpriseId }) };
    const scopeLogs = [{ scope: { name: 'svc.audit' }, logRecords: events.map((event) => logRecord(event)) }];
    const body = JSON.stringify({ resourceLogs: [{ resource, scopeLogs }] });
    const own = header === undefined ? {} : { [header.name]: header.value };
    return { headers: { ...own, 'content-type': 'application/json' }, body: new TextEncoder().encode(body) };
  },
  readAccepted,
};

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

function nanoseconds(time: string): string {
  return `${Date.parse(time)}000000`;
}

/** Attributes in the encoding of OTLP; 64-bit integers are text there. Absent and empty values are left out. */
function attributesOf(values: Readonly<Record<string, unknown>>) {
  return Object.entries(values).flatMap(([key, value]) => {
    const encoded = anyValue(value);
    return encoded === null ? [] : [{ key, value: encoded }];
  });
}

function anyValue(value: unknown): Readonly<Record<string, unknown>> | null {
  if (value === null || value === undefined) return null;
  if (typeof value === 'string') return { stringValue: value };
  if (typeof value === 'boolean') return { boolValue: value };
  if (typeof value === 'number') return Number.isInteger(value) ? { intValue: String(value) } : { doubleValue: value };
  if (Array.isArray(value)) return { arrayValue: { values: value.map((each) => anyValue(each)) } };
  return { kvlistValue: { values: attributesOf(Object.fromEntries(Object.entries(value))) } };
}

const partialSuccess = z.object({
  partialSuccess: z.object({
    rejectedLogRecords: z.coerce.number().int().min(0).default(0),
    errorMessage: z.string().default(''),
  }),
});

/** A partial success is not sent again (OTLP, Partial Success): the receiver has the other records. */
function readAccepted(body: string): Delivery {
  const parsed = partialSuccess.safeParse(parseJson(body));
  if (!parsed.success) return { outcome: 'accepted' };
  const { rejectedLogRecords: rejected } = parsed.data.partialSuccess;
  return rejected === 0 ? { outcome: 'accepted' } : { outcome: 'accepted', rejected, problem: 'partial_success' };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
