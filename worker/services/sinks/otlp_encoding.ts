import { z } from 'zod';
import type { Batch, Delivery, HttpSinkKind } from './sink_kind.ts';
import type { SinkTarget } from './sink_target.ts';

/** The signals of OTLP that a sink can be for: the names of the lists, and of the count in a partial success. */
const SIGNALS = {
  logs: { resources: 'resourceLogs', scopes: 'scopeLogs', items: 'logRecords', rejected: 'rejectedLogRecords' },
  metrics: { resources: 'resourceMetrics', scopes: 'scopeMetrics', items: 'metrics', rejected: 'rejectedDataPoints' },
  traces: { resources: 'resourceSpans', scopes: 'scopeSpans', items: 'spans', rejected: 'rejectedSpans' },
} as const;

/** A sink for one signal of OpenTelemetry over HTTP in JSON (OTLP 1.x). The items depend on the events alone, so a batch that is sent again has the same bytes. */
export function otlpSinkOf(signal: keyof typeof SIGNALS, itemsOf: (batch: Batch) => readonly object[]): HttpSinkKind {
  const { resources, scopes, items, rejected } = SIGNALS[signal];
  return {
    isSigned: false,
    isAlert: false,
    async write({ header }: SinkTarget, batch) {
      const resource = { attributes: attributesOf({ 'service.name': 'svc', 'svc.enterprise.id': batch.enterpriseId }) };
      const scoped = { scope: { name: 'svc.audit' }, [items]: itemsOf(batch) };
      const body = JSON.stringify({ [resources]: [{ resource, [scopes]: [scoped] }] });
      const own = header === undefined ? {} : { [header.name]: header.value };
      return { headers: { ...own, 'content-type': 'application/json' }, body: new TextEncoder().encode(body) };
    },
    readAccepted: (body) => readAccepted(body, rejected),
  };
}

export function nanoseconds(time: string): string {
  return `${Date.parse(time)}000000`;
}

/** Attributes in the encoding of OTLP; 64-bit integers are text there. Absent and empty values are left out. */
export function attributesOf(values: Readonly<Record<string, unknown>>) {
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
  partialSuccess: z.record(z.string(), z.unknown()),
});

/** A partial success is not sent again (OTLP, Partial Success): the receiver has the other items. */
function readAccepted(body: string, field: string): Delivery {
  const parsed = partialSuccess.safeParse(parseJson(body));
  const count = z.coerce
    .number()
    .int()
    .min(0)
    .safeParse(parsed.data?.partialSuccess[field] ?? 0);
  if (!count.success || count.data === 0) return { outcome: 'accepted' };
  return { outcome: 'accepted', rejected: count.data, problem: 'partial_success' };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
