import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type InProcess, parseReply, startInProcess } from '../../../e2e/runtimes/in_process.ts';
import { startS3Upstream, type S3Upstream } from '../../../e2e/support/s3_upstream.ts';
import { verifySigV4 } from '../../../e2e/support/sigv4_verifier.ts';
import { createTestCa, type TestCa } from '../../../e2e/support/test_ca.ts';
import { err, ok } from '../../../shared/model/result.ts';
import { auditSinksReply, createdAuditSink } from '../../../shared/wire/audit_sinks.ts';
import { errorBody } from '../../../shared/wire/errors.ts';
import { nodeOutbound } from '../../entries/node_outbound.ts';
import type { Outbound, OutboundRequest } from '../../kernel/outbound.ts';
import { DELIVERY_LIMITS } from './sink_delivery.ts';
import { deliverToSinks } from './sink_turn.ts';

const KEYS = { accessKeyId: 'AKIAEXAMPLE', secretAccessKey: 'planted-secret-key-1' };
const INPUT = {
  kind: 's3',
  name: 'archive',
  url: 'https://s3.example.com/audit/svc/',
  region: 'eu-central-1',
  access_key_id: KEYS.accessKeyId,
  secret_access_key: KEYS.secretAccessKey,
};

/** A store in memory: it checks signatures, and fails as told, before or after it stored. */
class Bucket implements Outbound {
  readonly objects = new Map<string, string>();
  fails: (call: number) => 'no' | 'before' | 'after' | number = () => 'no';
  clock = () => 0;
  calls = 0;

  async call(request: OutboundRequest) {
    const url = new URL(request.url);
    const body = Buffer.from(request.body ?? []);
    const headers = (name: string) => (name === 'host' ? [url.host] : [request.headers[name] ?? []].flat());
    const signed = { method: request.method, target: url.pathname, headers, body };
    const verdict = verifySigV4(signed, new Map([[KEYS.accessKeyId, KEYS.secretAccessKey]]), this.clock());
    const how = this.fails((this.calls += 1));
    if (how === 'before') return err({ reason: 'upstream_unreachable' as const, message: 'lost' });
    if (typeof how === 'number') return ok(reply(how));
    if (!verdict.ok) return ok(reply(403));
    this.objects.set(url.pathname, body.toString());
    return how === 'after' ? err({ reason: 'upstream_unreachable' as const, message: 'lost' }) : ok(reply(200));
  }
}
const reply = (status: number) => ({ status, contentType: '', body: new Uint8Array() });

let control: InProcess;
let bucket: Bucket;
beforeEach(async () => {
  bucket = new Bucket();
  control = await startInProcess({ outbound: bucket });
  bucket.clock = () => control.clock.now();
});
afterEach(() => control.stop());

const add = (fields: object = {}) => control.asUser('POST', '/v1/audit-sinks', { ...INPUT, ...fields });
const turn = (eventsPerBatch = 3) => deliverToSinks(control.context, { ...DELIVERY_LIMITS, eventsPerBatch });
const happen = async (count: number): Promise<void> => {
  for (let at = 0; at < count; at += 1)
    await control.asUser('POST', '/v1/secrets', { path: `user/s${at}`, value: 'v' });
};
const problem = async (fields: object) => errorBody.parse(await (await add(fields)).json()).error.message;
const linesOf = (objects: ReadonlyMap<string, string>) =>
  [...objects]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .flatMap(([, text]) => text.trimEnd().split('\n'))
    .map((line): { sequence: number } => JSON.parse(line));

describe('a sink to a bucket', () => {
  test('writes signed objects of JSON lines, whose names sort in the order of arrival', async () => {
    await parseReply(createdAuditSink, add());
    await happen(12);
    await turn();
    expect([...bucket.objects.keys()][0]).toMatch(/^\/audit\/svc\/2026\/01\/02\/\d{16}-evt_[0-9a-z]{26}-3\.jsonl$/);
    const numbers = linesOf(bucket.objects).map(({ sequence }) => sequence);
    expect(numbers).toEqual(numbers.map((_, at) => (numbers[0] ?? 0) + at));
    expect(numbers.length).toBe(13);
  });

  test('has every event exactly once, whatever fails, also if an answer is lost after the store wrote it', async () => {
    await add();
    await happen(20);
    bucket.fails = (call) => (call % 5 === 0 ? 'no' : call % 2 === 0 ? 'after' : call % 3 === 0 ? 503 : 'before');
    for (let turns = 0; turns < 60; turns += 1) {
      await turn();
      control.clock.ms += 3_600_000;
    }
    const numbers = linesOf(bucket.objects).map(({ sequence }) => sequence);
    expect(numbers).toEqual(numbers.map((_, at) => (numbers[0] ?? 0) + at));
    expect(numbers.length).toBeGreaterThan(20);
  });

  test('makes no dead letter of a refusal, which is never about events: it tries again', async () => {
    await add();
    await happen(1);
    for (const status of [400, 403, 404, 410, 413]) {
      bucket.fails = () => status;
      await turn();
      control.clock.ms += 3_600_000;
      const { items } = await parseReply(auditSinksReply, control.asUser('GET', '/v1/audit-sinks'));
      expect(items).toMatchObject([{ problem: `status_${status}`, dead_letters: 0, disabled_at: null, behind: true }]);
    }
  });

  test('keeps its key out of every reply, log and file', async () => {
    const said = [await (await add()).text(), await (await control.asUser('GET', '/v1/audit-sinks')).text()];
    await turn();
    said.push(JSON.stringify(control.log), (await control.databaseBytes()).toString('latin1'));
    expect(said.join('\n')).not.toContain(KEYS.secretAccessKey);
  });

  test('is refused with what is wrong', async () => {
    expect(await problem({ url: 'https://s3.example.com/audit?x=1' })).toContain('no query');
    expect(await problem({ url: 'https://s3.example.com/a%20b/' })).toContain('digits and _./-');
    expect(await problem({ region: undefined })).toContain('region');
    expect(await problem({ secret_access_key: '' })).toContain('secret_access_key');
    expect(await problem({ header: { name: 'authorization', value: 'x' } })).toContain('header');
  });
});

describe('a sink to a real store', () => {
  let ca: TestCa;
  let store: S3Upstream;
  beforeAll(async () => {
    ca = await createTestCa();
    store = await startS3Upstream(await ca.issue(['s3.example.com']), KEYS, 'audit');
  });
  afterAll(() => store.close());

  test('is accepted with its signature, and the object can be read', async () => {
    const pinned = new Map([['s3.example.com', { address: '127.0.0.1', port: store.port }]]);
    const real = await startInProcess({ outbound: nodeOutbound({ isLocal: true, pinned, roots: [ca.pem] }) });
    real.clock.ms = Date.now();
    await real.asUser('POST', '/v1/audit-sinks', INPUT);
    await deliverToSinks(real.context);
    const { items } = await parseReply(auditSinksReply, real.asUser('GET', '/v1/audit-sinks'));
    await real.stop();
    expect(items).toMatchObject([{ problem: null, failures: 0, behind: false }]);
    expect(store.verdicts).toEqual([
      { ok: true, accessKeyId: KEYS.accessKeyId, region: 'eu-central-1', service: 's3' },
    ]);
  });
});
