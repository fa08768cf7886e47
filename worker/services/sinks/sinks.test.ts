import { createHmac } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { hostedUser, PUBLIC_URL } from '../../../e2e/runtimes/hosted_users.ts';
import {
  addUser,
  type InProcess,
  parseReply,
  startInProcess,
  storeConnector,
} from '../../../e2e/runtimes/in_process.ts';
import { countOf } from '../../../e2e/support/full_counts.ts';
import type { Failure } from '../../../shared/model/failure.ts';
import { err, ok } from '../../../shared/model/result.ts';
import type { StoredAuditEvent } from '../../../shared/wire/audit_events.ts';
import {
  type AuditSinkRecord,
  auditSinksReply,
  createdAuditSink,
  deadLettersPage,
  MAX_DEAD_LETTERS,
  MAX_SINKS,
  replayReply,
  rotatedSinkSecret,
} from '../../../shared/wire/audit_sinks.ts';
import type { Outbound, OutboundFailureReason, OutboundReply, OutboundRequest } from '../../kernel/outbound.ts';
import { DELIVERY_LIMITS, HOLD_MS } from './sink_delivery.ts';
import { askApproval } from '../approvals/approvals.ts';
import { deliverToSinks } from './sink_turn.ts';
import { describeSinks } from './sinks.ts';

const URL_OF_SIEM = 'https://siem.example.com/in/hook-password-1?key=hook-password-2';
const HOUR_MS = 3_600_000;
const LOST: Failure<OutboundFailureReason> = { reason: 'upstream_unreachable', message: 'siem.example.com: no' };
type Answer = Partial<OutboundReply> | Failure<OutboundFailureReason>;

/** A receiver that answers as told and keeps what it received. */
class Receiver implements Outbound {
  answer: (request: OutboundRequest, call: number) => Answer = () => ({ status: 204 });
  readonly posts: OutboundRequest[] = [];
  /** Every call waits for this. */
  gate: Promise<void> = Promise.resolve();
  /** The host whose calls alone wait for it; null: all do. */
  slowHost: string | null = null;

  async call(request: OutboundRequest) {
    const call = this.posts.push(request);
    if (this.slowHost === null || request.url.includes(this.slowHost)) await this.gate;
    const answer = this.answer(request, call);
    if ('reason' in answer) return err(answer);
    return ok({ status: 200, contentType: 'application/json', body: new Uint8Array(), ...answer });
  }
}

let control: InProcess;
let receiver: Receiver;
beforeEach(async () => {
  receiver = new Receiver();
  control = await startInProcess({ outbound: receiver });
});
afterEach(() => control.stop());

const bodyOf = ({ body }: OutboundRequest): string => new TextDecoder().decode(body ?? undefined);
const eventsOf = (request: OutboundRequest): readonly StoredAuditEvent[] => JSON.parse(bodyOf(request)).data.events;
const idsOf = (request: OutboundRequest) => eventsOf(request).map(({ id }) => id);
const add = (fields: Readonly<Record<string, unknown>> = {}) =>
  parseReply(
    createdAuditSink,
    control.asUser('POST', '/v1/audit-sinks', { kind: 'webhook', name: 'siem', url: URL_OF_SIEM, ...fields }),
  );
const list = async (): Promise<readonly AuditSinkRecord[]> =>
  (await parseReply(auditSinksReply, control.asUser('GET', '/v1/audit-sinks'))).items;
const turn = (limits: Partial<typeof DELIVERY_LIMITS> = {}) =>
  deliverToSinks(control.context, { ...DELIVERY_LIMITS, ...limits });
const happen = async (count: number) => {
  for (let at = 0; at < count; at += 1) {
    expect((await control.asUser('POST', '/v1/secrets', { path: `user/s${at}`, value: PLANTED })).status).toBeLessThan(
      300,
    );
  }
};
const PLANTED = 'sk-planted-4f1b2c77';

/** The signature as a receiver computes it. */
function expectedSignature(secret: string, request: OutboundRequest): string {
  const { headers } = request;
  const key = Buffer.from(secret.slice('whsec_'.length), 'base64');
  const signed = `${headers['webhook-id']}.${headers['webhook-timestamp']}.${bodyOf(request)}`;
  return `v1,${createHmac('sha256', key).update(signed).digest('base64')}`;
}

describe('a webhook sink', () => {
  test('gets each event once, signed, in the order of arrival, and nothing secret', async () => {
    const sink = await add();
    await happen(5);
    await turn({ eventsPerBatch: 2 });
    await turn();
    expect(receiver.posts.map((post) => eventsOf(post).length)).toEqual([2, 2, 2]);
    const events = receiver.posts.flatMap((post) => eventsOf(post));
    expect(events.map(({ sequence }) => sequence)).toEqual(
      [3, 4, 5, 6, 7, 8].map((at) => at - 3 + events[0]!.sequence),
    );
    expect(events[0]?.type).toBe('control.audit_sink.created');
    for (const post of receiver.posts) {
      expect(post).toMatchObject({ method: 'POST', url: URL_OF_SIEM });
      expect(post.headers['webhook-id']).not.toContain('.');
      expect(post.headers['webhook-timestamp']).toBe(String(Math.floor(control.clock.ms / 1000)));
      expect(post.headers['webhook-signature']).toBe(expectedSignature(sink.signing_secret!, post));
      expect(JSON.parse(bodyOf(post))).toMatchObject({
        type: 'audit.events',
        timestamp: eventsOf(post)[0]!.received_at,
      });
    }
    const said = [
      JSON.stringify(receiver.posts.map((post) => [post.headers, bodyOf(post)])),
      JSON.stringify(await list()),
    ];
    said.push(JSON.stringify(control.log), (await control.databaseBytes()).toString('latin1'));
    for (const secret of [PLANTED, sink.signing_secret!, 'hook-password'])
      expect(said.join('\n')).not.toContain(secret);
    expect(await list()).toMatchObject([{ host: 'siem.example.com', behind: false, failures: 0, dead_letters: 0 }]);
  });

  test('starts with the oldest event if asked to, and gets only the types asked for', async () => {
    await happen(2);
    await add({ from: 'beginning', types: ['control.secret.'] });
    await turn();
    expect(receiver.posts.flatMap((post) => eventsOf(post)).map(({ type }) => type)).toEqual(
      Array(2).fill('control.secret.stored'),
    );
    await control.asUser('POST', '/v1/tokens', { name: 'ci', scopes: ['secrets:read'] });
    await turn();
    expect(receiver.posts).toHaveLength(1);
    expect(await list()).toMatchObject([{ behind: false }]);
  });

  test('is signed with both secrets for a day after a rotation', async () => {
    const before = await add();
    const after = await parseReply(rotatedSinkSecret, control.asUser('POST', `/v1/audit-sinks/${before.id}/rotate`));
    await turn();
    const [post] = receiver.posts;
    const both = [after.signing_secret, before.signing_secret!].map((secret) => expectedSignature(secret, post!));
    expect(post!.headers['webhook-signature']).toBe(both.join(' '));
    control.clock.ms += 24 * HOUR_MS;
    await happen(1);
    await turn();
    const last = receiver.posts.at(-1)!;
    expect(last.headers['webhook-signature']).toBe(expectedSignature(after.signing_secret, last));
  });
});

describe('events that were not accepted', () => {
  test('are sent again, with the same id and bytes, after growing pauses', async () => {
    await add();
    receiver.answer = () => ({ status: 503 });
    await turn();
    await happen(3);
    const waits: number[] = [];
    for (let tries = 2, waited = 0; tries <= 9;) {
      control.clock.ms += 30_000;
      waited += 30_000;
      await turn();
      if (receiver.posts.length < tries) continue;
      waits.push(waited / 1000);
      [waited, tries] = [0, tries + 1];
    }
    expect(waits).toEqual([30, 60, 120, 240, 480, 960, 1920, 3600]);
    expect(new Set(receiver.posts.map((post) => post.headers['webhook-id'] + bodyOf(post))).size).toBe(1);
    expect(await list()).toMatchObject([{ failures: 9, problem: 'status_503', behind: true, disabled_at: null }]);
    receiver.answer = () => ({ status: 200 });
    control.clock.ms += HOUR_MS;
    await turn();
    expect(receiver.posts.slice(9).flatMap((post) => idsOf(post))).toHaveLength(1 + 3);
    expect(await list()).toMatchObject([{ failures: 0, problem: null, behind: false }]);
  });

  test.each([
    ['600', 600],
    [new Date(Date.parse('2026-01-02T03:04:05.678Z') + 900_000).toUTCString(), 900],
  ])('wait as long as the receiver asks: Retry-After %s', async (retryAfter, seconds) => {
    await add();
    receiver.answer = () => ({ status: 429, retryAfter });
    await turn();
    control.clock.ms += (seconds - 2) * 1000;
    await turn();
    expect(receiver.posts).toHaveLength(1);
    control.clock.ms += 2_000;
    await turn();
    expect(receiver.posts).toHaveLength(2);
  });

  test('disable the sink after three days, with its reason and an event, and it goes on where it stopped', async () => {
    const sink = await add();
    receiver.answer = () => LOST;
    for (let hours = 0; hours <= 74; hours += 1) {
      await turn();
      control.clock.ms += HOUR_MS;
    }
    expect(await list()).toMatchObject([{ disabled_reason: 'failing', problem: 'upstream_unreachable' }]);
    const tried = receiver.posts.length;
    await happen(1);
    await turn();
    expect(receiver.posts).toHaveLength(tried);
    receiver.answer = () => ({ status: 200 });
    expect((await control.asUser('POST', `/v1/audit-sinks/${sink.id}/enable`)).status).toBe(200);
    await turn();
    const types = receiver.posts
      .slice(tried)
      .flatMap((post) => eventsOf(post))
      .map(({ type }) => type);
    expect(types).toEqual([
      'control.audit_sink.created',
      'control.audit_sink.disabled',
      'control.secret.stored',
      'control.audit_sink.enabled',
    ]);
  });

  test('disable the sink at once if the receiver says 410', async () => {
    await add();
    receiver.answer = () => ({ status: 410 });
    await turn();
    expect(await list()).toMatchObject([{ disabled_reason: 'gone', problem: 'status_410', failures: 0 }]);
  });

  test('become dead letters one by one if they are refused for good, and are sent again on request', async () => {
    const sink = await add();
    await happen(6);
    let bad = '';
    receiver.answer = (request) => {
      bad ||= idsOf(request)[3]!;
      return { status: idsOf(request).includes(bad) ? 400 : 200 };
    };
    await turn();
    const accepted = receiver.posts.filter((post) => !idsOf(post).includes(bad)).flatMap((post) => idsOf(post));
    expect(accepted).toHaveLength(6);
    const letters = () => parseReply(deadLettersPage, control.asUser('GET', `/v1/audit-sinks/${sink.id}/dead-letters`));
    const replay = () => parseReply(replayReply, control.asUser('POST', `/v1/audit-sinks/${sink.id}/replay`));
    expect((await letters()).items).toMatchObject([
      { event_id: bad, problem: 'status_400', attempts: 1, waiting: false },
    ]);
    expect(await replay()).toEqual({ waiting: 1 });
    await turn();
    expect((await letters()).items).toMatchObject([{ event_id: bad, attempts: 2, waiting: false }]);
    receiver.answer = () => ({ status: 200 });
    await replay();
    await turn();
    expect((await letters()).items).toEqual([]);
    expect(receiver.posts.some((post) => idsOf(post).length === 1 && idsOf(post)[0] === bad)).toBe(true);
  });

  test('disable a sink whose receiver refuses too many', async () => {
    await add();
    await insertEvents(MAX_DEAD_LETTERS + 5);
    receiver.answer = () => ({ status: 422 });
    for (let turns = 0; turns < 30; turns += 1) await turn();
    expect(await list()).toMatchObject([
      { disabled_reason: 'dead_letters', dead_letters: MAX_DEAD_LETTERS, behind: true },
    ]);
  });
});

describe('two workers', () => {
  test('never send to one sink at the same time', async () => {
    await add();
    const { promise, resolve: open } = Promise.withResolvers<void>();
    receiver.gate = promise;
    const turns = [turn(), turn(), turn()];
    await expect.poll(() => receiver.posts.length).toBe(1);
    await turn();
    open();
    await Promise.all(turns);
    expect(receiver.posts).toHaveLength(1);
  });

  test.each([410, 503])(
    'continue the work of one that was killed, and what that one says later changes nothing: %d',
    async (status) => {
      await add();
      const { promise, resolve: open } = Promise.withResolvers<void>();
      receiver.gate = promise;
      receiver.answer = (_, call) => ({ status: call === 1 ? status : 200 });
      const slow = turn();
      await expect.poll(() => receiver.posts.length).toBe(1);
      control.clock.ms += HOLD_MS;
      receiver.gate = Promise.resolve();
      const faster = turn();
      await expect.poll(() => receiver.posts.length).toBe(2);
      await faster;
      open();
      await slow;
      expect(new Set(receiver.posts.map((post) => post.headers['webhook-id'])).size).toBe(1);
      expect(await list()).toMatchObject([{ disabled_at: null, failures: 0, behind: false }]);
    },
  );
});

describe('a slow receiver', () => {
  test('has one batch and then leaves the turn to others', async () => {
    await add({ from: 'beginning' });
    await happen(4);
    receiver.answer = () => {
      control.clock.ms += DELIVERY_LIMITS.turnMs;
      return { status: 200 };
    };
    await turn({ eventsPerBatch: 1 });
    expect(receiver.posts).toHaveLength(1);
    expect(await list()).toMatchObject([{ behind: true, failures: 0 }]);
  });

  test('does not keep the sinks of other enterprises waiting, however many of it there are', async () => {
    await control.stop();
    control = await startInProcess({ outbound: receiver, publicUrl: PUBLIC_URL });
    const slow = await hostedUser(control);
    const asked = { kind: 'webhook', name: 'slow', url: 'https://slow.example.com/', from: 'beginning' };
    for (let at = 0; at < MAX_SINKS; at += 1)
      expect((await slow.call('POST', '/v1/audit-sinks', asked)).status).toBe(201);
    await add({ from: 'beginning' });
    const { promise, resolve: open } = Promise.withResolvers<void>();
    Object.assign(receiver, { gate: promise, slowHost: 'slow.example.com' });
    const turned = turn();
    await expect.poll(() => receiver.posts.some(({ url }) => url === URL_OF_SIEM)).toBe(true);
    expect(receiver.posts.filter(({ url }) => url !== URL_OF_SIEM).length).toBeLessThan(8);
    open();
    await turned;
    expect(receiver.posts.filter(({ url }) => url !== URL_OF_SIEM)).toHaveLength(MAX_SINKS);
  });
});

describe('an OTLP sink', () => {
  const otlp = {
    kind: 'otlp',
    url: 'https://otel.example.com/v1/logs',
    header: { name: 'x-api-key', value: 'otlp-key-1' },
  };

  test('gets a log record for each event, with the header that authenticates', async () => {
    const { signing_secret: secret } = await add(otlp);
    expect(secret).toBeNull();
    await turn();
    const [post] = receiver.posts;
    expect(post!.headers).toEqual({ 'content-type': 'application/json', 'x-api-key': 'otlp-key-1' });
    const [resource] = JSON.parse(bodyOf(post!)).resourceLogs;
    expect(resource.resource.attributes[0]).toEqual({ key: 'service.name', value: { stringValue: 'svc' } });
    const [record] = resource.scopeLogs[0].logRecords;
    expect(record).toMatchObject({ severityNumber: 9, eventName: 'control.audit_sink.created' });
    expect(record.timeUnixNano).toBe(`${control.clock.ms}000000`);
    expect(record.attributes).toContainEqual({ key: 'svc.event.sequence', value: { intValue: expect.any(String) } });
    expect(JSON.parse(record.body.stringValue)).toMatchObject({ type: record.eventName, hash: expect.any(String) });
    expect(JSON.stringify(await list())).not.toContain('otlp-key-1');
  });

  test('does not send again what a collector left out of a batch that it accepted, and counts it', async () => {
    await add(otlp);
    const partial = { partialSuccess: { rejectedLogRecords: '1', errorMessage: 'too old' } };
    receiver.answer = () => ({ body: new TextEncoder().encode(JSON.stringify(partial)) });
    await turn();
    await turn();
    expect(receiver.posts).toHaveLength(1);
    expect(await list()).toMatchObject([{ rejected: 1, problem: 'partial_success', behind: false }]);
  });

  test.each(['host', 'content-length', 'Authorization', 'proxy-authorization'])('has no header %s', async (name) => {
    const input = { ...otlp, name: 'x', header: { name, value: 'v' } };
    expect((await control.asUser('POST', '/v1/audit-sinks', input)).status).toBe(400);
  });
});

describe('a Slack sink', () => {
  const subject = {
    subject: 'connector' as const,
    subjectId: 'con_1',
    subjectName: 'acme.test/<!channel>',
    subjectVersion: '1',
    action: 'create-item',
  };
  const ask = async (context = control.context, sidecarId: string | null = null) => {
    const { rows } = await control.context.database.client.execute(
      'SELECT id AS "userId", enterprise_id AS "enterpriseId" FROM users',
    );
    const asker = z.object({ userId: z.string(), enterpriseId: z.string() }).parse({ ...rows[0] });
    const request = { requestId: 'r', fingerprint: 'f', summary: PLANTED, sessionId: null };
    const asked = { ...request, subject: { ...subject, subjectOwnerId: asker.userId } };
    await storeConnector(control, asker);
    expect(await askApproval(context, { ...asker, sidecarId }, asked)).toMatchObject({ ok: true });
    await control.settle();
  };

  test('is told at once of a request that waits, in a message that holds neither the request nor a command', async () => {
    const { signing_secret: secret } = await add({ kind: 'slack' });
    await ask();
    expect(secret).toBeNull();
    expect(receiver.posts.map((post) => JSON.parse(bodyOf(post)))).toEqual([
      {
        text: 'Approval requested: acme[.]test/&lt;!channel&gt; create-item\nDecide with svc approvals, or in the console.',
      },
    ]);
    await turn();
    expect(receiver.posts).toHaveLength(1);
  });

  test.each([
    ['that is added now', null],
    ['that an earlier version added for new requests alone', 'connector.approval.requested'],
  ])('%s is told at once of a request that was given up and waits again, once', async (_which, stored) => {
    await add({ kind: 'slack' });
    if (stored !== null) await control.context.database.client.execute(`UPDATE audit_sinks SET types = '${stored}'`);
    await ask(control.context, 'sdc_1');
    control.clock.ms += 90_000;
    await ask(control.context, 'sdc_1');
    await ask(control.context, 'sdc_1');
    expect(receiver.posts.map((post) => bodyOf(post))).toEqual([
      expect.stringContaining('Approval requested: acme'),
      expect.stringContaining('Approval requested again: acme'),
    ]);
    expect(await list()).toMatchObject([
      {
        types: ['connector.approval.requested', 'connector.approval.waits_again', 'connector.approval.partly_approved'],
        behind: false,
      },
    ]);
  });

  test('does not delay or fail the request when it cannot be reached, and is told later', async () => {
    await add({ kind: 'slack' });
    receiver.answer = () => LOST;
    await ask();
    receiver.answer = () => ({ status: 200 });
    control.clock.ms += HOUR_MS;
    await turn();
    expect(receiver.posts).toHaveLength(2);
  });

  test('has a link without authority if the control plane has a public URL', async () => {
    await add({ kind: 'slack' });
    await ask({ ...control.context, publicUrl: 'https://svc.example.com' });
    const { text } = z.object({ text: z.string() }).parse(JSON.parse(bodyOf(receiver.posts[0]!)));
    expect(text).toMatch(
      /^Approval requested: \S+ create-item https:\/\/svc\.example\.com\/approvals\/apr_\w+\nDecide at https:\/\/svc\.example\.com\/approvals$/,
    );
  });

  test('gets no other events', async () => {
    const input = { kind: 'slack', name: 'x', url: URL_OF_SIEM, types: ['control.'] };
    expect((await control.asUser('POST', '/v1/audit-sinks', input)).status).toBe(400);
  });
});

describe('who may', () => {
  test('members see no sinks', async () => {
    const { enterpriseId } = await addUser(control.context, null);
    const member = { userId: 'usr_x', enterpriseId, role: 'member' as const };
    expect(await describeSinks(control.context, member)).toMatchObject({
      ok: false,
      error: { code: 'admin_required' },
    });
  });

  test('a sink gets the events of its own enterprise only', async () => {
    const other = await addUser(control.context, null);
    await add({ from: 'beginning' });
    await turn();
    const writers = new Set(receiver.posts.flatMap((post) => eventsOf(post)).map(({ writer }) => writer));
    expect(writers).not.toContain(other.enterpriseId);
  });

  test(`an enterprise has at most ${MAX_SINKS} sinks`, async () => {
    for (let at = 0; at < MAX_SINKS; at += 1) await add();
    const reply = await control.asUser('POST', '/v1/audit-sinks', { kind: 'webhook', name: 'x', url: URL_OF_SIEM });
    expect([reply.status, await reply.text()]).toEqual([409, expect.stringContaining('too_many_sinks')]);
  });

  test.each([
    ['http://siem.example.com/in', 'only https URLs are called'],
    ['https://user:pass@siem.example.com/', 'user name or password'],
    ['https://10.0.0.1/', 'IP addresses are not called'],
  ])('%s is refused', async (url, why) => {
    const reply = await control.asUser('POST', '/v1/audit-sinks', { kind: 'webhook', name: 'x', url });
    expect([reply.status, await reply.text()]).toEqual([400, expect.stringContaining(why)]);
  });
});

/** Events of four writers, without chains: sinks do not look at hashes. */
async function insertEvents(count: number): Promise<void> {
  const { client } = control.context.database;
  await client.execute({
    sql: `WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ?)
      INSERT INTO audit_events (enterprise_id, writer, sequence, id, type, time, data, received_at, previous_hash, hash)
      SELECT (SELECT id FROM enterprises), 'sdc_' || (i % 4), i / 4 + 1, 'evt_' || i, 'sandbox.proxy.passthrough', '2026-01-02T00:00:00.000Z',
        '{}', '2026-01-02T00:00:00.000Z', '', '' FROM n`,
    args: [count],
  });
}

test(
  'no event is lost and the order is kept through a receiver that fails at random',
  async () => {
    const count = countOf(1_000_000, 20_000);
    await add({ from: 'beginning' });
    await insertEvents(count);
    let seed = 20_260_102;
    const random = () => (seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648) / 2_147_483_648;
    const received = new Map<string, number>();
    const expected = new Map<string, number>();
    const faults = { refused: 0, lost: 0, repeated: 0, disorder: 0 };
    receiver.answer = (request) => {
      receiver.posts.length = 0;
      const fate = random();
      if (fate < 0.1) {
        faults.refused += 1;
        return fate < 0.05 ? { status: 503, retryAfter: '1' } : LOST;
      }
      for (const { id, writer, sequence } of eventsOf(request)) {
        const seen = received.get(id) ?? 0;
        received.set(id, seen + 1);
        if (seen > 0) faults.repeated += 1;
        else if (sequence !== (expected.get(writer) ?? 0) + 1) faults.disorder += 1;
        expected.set(writer, Math.max(sequence, expected.get(writer) ?? 0));
      }
      // The receiver has the events, but the answer is lost.
      if (fate >= 0.2) return { status: 200 };
      faults.lost += 1;
      return LOST;
    };
    const begun = performance.now();
    while ((await list())[0]?.behind === true) {
      await Promise.all([turn(), turn()]);
      control.clock.ms += HOUR_MS;
    }
    const seconds = Math.round((performance.now() - begun) / 100) / 10;
    globalThis.console.log(JSON.stringify({ events: count, seconds, ...faults }));
    const own = Array.from({ length: count }, (_, at) => received.get(`evt_${at}`) ?? 0);
    expect(own.filter((times) => times === 0)).toHaveLength(0);
    expect(faults.disorder).toBe(0);
    expect(Math.min(faults.refused, faults.lost, faults.repeated)).toBeGreaterThan(0);
  },
  20 * 60_000,
);
