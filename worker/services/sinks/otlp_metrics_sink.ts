import type { StoredAuditEvent } from '../../../shared/wire/audit_events.ts';
import { attributesOf, nanoseconds, otlpSinkOf } from './otlp_encoding.ts';
import type { Batch } from './sink_kind.ts';

/** Metrics of OpenTelemetry: how many events, and how many requests, each batch has. */
export const otlpMetricsSink = otlpSinkOf('metrics', (batch) =>
  [
    sumOf(batch, { name: 'svc.audit.events', unit: '{event}' }, ({ type }) => ({ 'svc.event.type': type })),
    sumOf(batch, { name: 'svc.proxy.requests', unit: '{request}' }, requestOf),
  ].filter(({ sum }) => sum.dataPoints.length > 0),
);

type Labels = Readonly<Record<string, string | number | undefined>>;

/**
 * What a request is counted by. Hosts, paths and operations that an agent can choose at will are left out, because each value
 * would be a time series of its own; the binding and the connector are what people set up.
 */
function requestOf({ data }: StoredAuditEvent): Labels | null {
  if (data['svc.proxy.mediation'] === undefined) return null;
  return {
    'svc.proxy.mediation': data['svc.proxy.mediation'],
    'svc.proxy.reason': data['svc.proxy.reason'],
    'svc.proxy.binding.host': data['svc.proxy.binding.host'],
    'svc.connector.fqn': data['svc.connector.fqn'],
    'http.response.status_code': data['svc.proxy.upstream.status'],
  };
}

/** `AGGREGATION_TEMPORALITY_DELTA`: a batch counts its own events, so that no worker has to remember a total. */
const DELTA = 1;

function sumOf(
  { events }: Batch,
  what: { readonly name: string; readonly unit: string },
  labelsOf: (event: StoredAuditEvent) => Labels | null,
) {
  const counts = new Map<string, { readonly labels: Labels; count: number }>();
  for (const event of events) {
    const labels = labelsOf(event);
    if (labels === null) continue;
    const key = JSON.stringify(labels);
    const known = counts.get(key) ?? { labels, count: 0 };
    known.count += 1;
    counts.set(key, known);
  }
  const times = {
    startTimeUnixNano: nanoseconds(events[0]?.received_at ?? ''),
    timeUnixNano: nanoseconds(events.at(-1)?.received_at ?? ''),
  };
  const dataPoints = Array.from(counts.values(), ({ labels, count }) => ({
    attributes: attributesOf(labels),
    ...times,
    asInt: String(count),
  }));
  return { ...what, sum: { aggregationTemporality: DELTA, isMonotonic: true, dataPoints } };
}
