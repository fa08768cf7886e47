import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { ITEMS_SPEC } from '../../../e2e/runtimes/connector_samples.ts';
import { type InProcess, parseReply, startInProcess } from '../../../e2e/runtimes/in_process.ts';
import { ok } from '../../../shared/model/result.ts';
import { auditSinksReply, createdAuditSink } from '../../../shared/wire/audit_sinks.ts';
import { errorBody } from '../../../shared/wire/errors.ts';
import type { Outbound, OutboundRequest } from '../../kernel/outbound.ts';
import { otlpMetricsSink } from './otlp_metrics_sink.ts';
import { otlpTracesSink } from './otlp_traces_sink.ts';
import type { Batch } from './sink_kind.ts';
import { deliverToSinks } from './sink_turn.ts';

const COLLECTOR = 'https://otel.example.com';
const attribute = z.object({
  key: z.string(),
  value: z.object({ stringValue: z.string().optional(), intValue: z.string().optional() }),
});
const sum = z.object({
  name: z.string(),
  sum: z.object({
    aggregationTemporality: z.literal(1),
    isMonotonic: z.literal(true),
    dataPoints: z.array(
      z.object({
        attributes: z.array(attribute),
        startTimeUnixNano: z.string(),
        timeUnixNano: z.string(),
        asInt: z.string().regex(/^\d+$/),
      }),
    ),
  }),
});
const span = z.object({
  traceId: z.string().regex(/^[0-9a-f]{32}$/),
  spanId: z.string().regex(/^[0-9a-f]{16}$/),
  parentSpanId: z.string().optional(),
  name: z.string(),
  startTimeUnixNano: z.string(),
  endTimeUnixNano: z.string(),
  status: z.object({ code: z.number() }).optional(),
});
const metricsBody = z.object({
  resourceMetrics: z.tuple([z.object({ scopeMetrics: z.tuple([z.object({ metrics: z.array(sum) })]) })]),
});
const tracesBody = z.object({
  resourceSpans: z.tuple([z.object({ scopeSpans: z.tuple([z.object({ spans: z.array(span) })]) })]),
});

/** A collector, and the API that connectors call. */
class World implements Outbound {
  readonly posts: OutboundRequest[] = [];
  answer = '{}';
  async call(request: OutboundRequest) {
    if (request.url.startsWith(COLLECTOR)) this.posts.push(request);
    return ok({ status: 200, contentType: 'application/json', body: new TextEncoder().encode(this.answer) });
  }
}

let world: World;
let control: InProcess;
beforeEach(async () => {
  world = new World();
  control = await startInProcess({ outbound: world });
});
afterEach(() => control.stop());

const add = (kind: string) =>
  parseReply(
    createdAuditSink,
    control.asUser('POST', '/v1/audit-sinks', {
      kind,
      name: kind,
      url: `${COLLECTOR}/v1`,
      header: { name: 'authorization', value: 'Bearer planted-key-1' },
    }),
  );
const bodyOf = (post: Pick<OutboundRequest, 'body'> | undefined): unknown =>
  JSON.parse(new TextDecoder().decode(post?.body ?? undefined));

/** Events with these types and data, in order. */
function batchOf(...events: readonly (readonly [string, object])[]): Batch {
  const stored = events.map(([type, data], at) => ({
    id: `evt_${at}`,
    type,
    time: '2026-01-02T03:04:05.678Z',
    sidecar_id: null,
    session_id: null,
    actor: null,
    data,
    writer: 'ent_1',
    sequence: at + 1,
    previous_hash: '',
    hash: '',
    received_at: `2026-01-02T03:04:0${at}.000Z`,
  }));
  const fields = { id: 'x', enterpriseId: 'ent_1', after: 0, nowMs: 0, approvalsUrl: null };
  return { ...fields, events: z.array(z.custom<Batch['events'][number]>()).parse(stored) };
}

const TARGET = { url: COLLECTOR };
const metricsOf = async (batch: Batch) =>
  metricsBody.parse(bodyOf(await otlpMetricsSink.write(TARGET, batch))).resourceMetrics[0].scopeMetrics[0].metrics;
const spansOf = async (batch: Batch) =>
  tracesBody.parse(bodyOf(await otlpTracesSink.write(TARGET, batch))).resourceSpans[0].scopeSpans[0].spans;

describe('metrics of OpenTelemetry', () => {
  test('count the events of a batch by their type, and its requests by what people set up', async () => {
    const injected = { 'svc.proxy.mediation': 'binding', 'svc.proxy.binding.host': 'api.example.com' };
    const [events, requests] = await metricsOf(
      batchOf(
        ['control.secret.stored', {}],
        ['sandbox.proxy.binding_injected', { ...injected, 'svc.proxy.upstream.status': 200 }],
        ['sandbox.proxy.binding_injected', { ...injected, 'svc.proxy.upstream.status': 200 }],
        [
          'sandbox.proxy.passthrough',
          { 'svc.proxy.mediation': 'passthrough', 'svc.proxy.upstream.host': 'chosen.test' },
        ],
      ),
    );
    expect(events?.name).toBe('svc.audit.events');
    expect(events?.sum.dataPoints.map(({ asInt }) => asInt)).toEqual(['1', '2', '1']);
    expect(requests?.sum.dataPoints.map(({ asInt }) => asInt)).toEqual(['2', '1']);
    expect(requests?.sum.dataPoints[0]).toMatchObject({
      startTimeUnixNano: '1767323040000000000',
      timeUnixNano: '1767323043000000000',
    });
    expect(JSON.stringify(requests)).toContain('api.example.com');
    expect(JSON.stringify(requests)).not.toContain('chosen.test');
  });

  test('are the same bytes for the same batch, and have no empty list', async () => {
    const batch = batchOf(['control.secret.stored', {}]);
    expect((await metricsOf(batch)).map(({ name }) => name)).toEqual(['svc.audit.events']);
    expect((await otlpMetricsSink.write(TARGET, batch)).body).toEqual(
      (await otlpMetricsSink.write(TARGET, batch)).body,
    );
  });
});

describe('traces of OpenTelemetry', () => {
  test('are one from the question of an agent over the decision to the request', async () => {
    await add('otlp_traces');
    const { id } = await parseReply(z.object({ id: z.string() }), control.asUser('POST', '/v1/connectors', ITEMS_SPEC));
    await control.asUser('PUT', `/v1/connectors/${id}/credential`, { kind: 'api_key', value: 'key-of-a-test' });
    const call = { connector_fqn: ITEMS_SPEC.connector.fqn, operation: 'delete-item', args: { id: '1' } };
    const asked = await control.asUser('POST', '/v1/connector-operations/run', call);
    const approval = String(errorBody.parse(await asked.json()).error.details?.['approval_id']);
    await control.asUser('POST', `/v1/approvals/${approval}/decide`, { decision: 'approve' });
    expect((await control.asUser('POST', '/v1/connector-operations/run', call)).status).toBe(200);
    await deliverToSinks(control.context);
    const spans = world.posts.flatMap((post) => tracesBody.parse(bodyOf(post)).resourceSpans[0].scopeSpans[0].spans);
    const root = spans.find(({ name }) => name === 'connector.approval.requested');
    const others = spans.filter(({ traceId }) => traceId === root?.traceId).filter((each) => each !== root);
    expect(others.map(({ name }) => name)).toEqual([
      'connector.proxy.rejected',
      'connector.approval.decided',
      'connector.proxy.proxied',
    ]);
    expect(others.map(({ parentSpanId }) => parentSpanId)).toEqual(others.map(() => root?.spanId));
    expect(root?.parentSpanId).toBeUndefined();
    expect(new Set(spans.map(({ spanId }) => spanId)).size).toBe(spans.length);
  });

  test('have a span for each request and tool call, with its time, and none for other events', async () => {
    const spans = await spansOf(
      batchOf(
        ['control.secret.stored', {}],
        ['mcp.tool.called', { 'svc.mcp.duration_ms': 1500 }],
        ['sandbox.proxy.rejected', { 'svc.proxy.mediation': 'refused', 'svc.proxy.reason': 'policy' }],
      ),
    );
    expect(spans.map(({ name, status }) => [name, status?.code])).toEqual([
      ['mcp.tool.called', undefined],
      ['sandbox.proxy.rejected', 2],
    ]);
    const [tool] = spans;
    expect(BigInt(tool?.endTimeUnixNano ?? 0) - BigInt(tool?.startTimeUnixNano ?? 0)).toBe(1_500_000_000n);
    expect(new Set(spans.map(({ traceId }) => traceId)).size).toBe(2);
  });
});

test.each([
  ['otlp_metrics', 'rejectedDataPoints'],
  ['otlp_traces', 'rejectedSpans'],
  ['otlp', 'rejectedLogRecords'],
])('what a collector leaves out of %s is counted, and not sent again', async (kind, field) => {
  await add(kind);
  world.answer = JSON.stringify({ partialSuccess: { [field]: '2', errorMessage: 'x' } });
  await deliverToSinks(control.context);
  await deliverToSinks(control.context);
  const { items } = await parseReply(auditSinksReply, control.asUser('GET', '/v1/audit-sinks'));
  expect(items).toMatchObject([{ kind, rejected: 2, behind: false, problem: 'partial_success' }]);
  expect(world.posts).toMatchObject([{ headers: { authorization: 'Bearer planted-key-1' } }]);
});
