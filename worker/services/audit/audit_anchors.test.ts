import { compactVerify, importJWK } from 'jose';
import { afterEach, describe, expect, test } from 'vitest';
import { addUser, type InProcess, parseReply, startInProcess } from '../../../e2e/runtimes/in_process.ts';
import type { AnchorSettings } from '../../../shared/model/anchor_settings.ts';
import { err, ok } from '../../../shared/model/result.ts';
import { auditAnchors, auditHeadsReply, type AuditHeadsReply } from '../../../shared/wire/audit_heads.ts';
import { sendAnchors, TURN_LIMITS } from './audit_anchors.ts';
import type { Outbound, OutboundRequest, OutboundFailureReason } from '../../kernel/outbound.ts';
import type { Failure } from '../../../shared/model/failure.ts';

const URL_OF_RECEIVER = 'https://anchors.example.com/in/9f3c?key=hook-password-1';
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** A receiver that answers as told and keeps what it received. */
class Receiver implements Outbound {
  status: number | Failure<OutboundFailureReason> = 200;
  readonly posts: OutboundRequest[] = [];
  /** Every call waits for this. */
  gate: Promise<void> = Promise.resolve();

  async call(request: OutboundRequest) {
    this.posts.push(request);
    await this.gate;
    if (typeof this.status !== 'number') return err(this.status);
    return ok({ status: this.status, contentType: 'text/plain', body: new Uint8Array() });
  }

  bodies(): AuditHeadsReply[] {
    return this.posts.map(({ body }) => auditHeadsReply.parse(JSON.parse(new TextDecoder().decode(body ?? undefined))));
  }
}

let control: InProcess;
let receiver: Receiver;
let logged: Readonly<Record<string, string | number>>[];
afterEach(() => control.stop());

async function begin(anchors: Partial<AnchorSettings> = {}): Promise<void> {
  receiver = new Receiver();
  logged = [];
  control = await startInProcess({
    outbound: receiver,
    anchors: { url: URL_OF_RECEIVER, isLogged: false, hours: 24, ...anchors },
  });
  control.clock.ms = Date.parse('2026-01-02T03:00:00.000Z');
}

const turn = (limits = TURN_LIMITS) => sendAnchors(control.context, (entry) => logged.push(entry), limits);
const asAsked = () => parseReply(auditAnchors, control.asUser('GET', '/v1/audit-events/heads/anchors'));
const enterpriseId = async () =>
  (await parseReply(auditHeadsReply, control.asUser('GET', '/v1/audit-events/heads'))).enterprise_id;

describe('heads sent by POST', () => {
  test('are an export of the enterprise: signed by the control plane, without secrets', async () => {
    await begin();
    const value = 'sk-planted-4f1b2c77';
    await control.asUser('POST', '/v1/secrets', { path: 'user/api', value });
    expect(await turn()).toEqual({ sent: 1, failed: 0 });
    const [request] = receiver.posts;
    expect(request).toMatchObject({ method: 'POST', url: URL_OF_RECEIVER });
    expect(request?.headers).toEqual({
      'content-type': 'application/json',
      'idempotency-key': `"${await enterpriseId()}.2026-01-02T00:00:00.000Z"`,
    });
    const [body] = receiver.bodies();
    expect(body).toEqual(await parseReply(auditHeadsReply, control.asUser('GET', '/v1/audit-events/heads')));
    const key = await importJWK(body!.control_plane_key, 'EdDSA');
    for (const { signed, ...head } of body!.heads) {
      expect(JSON.parse(new TextDecoder().decode((await compactVerify(signed, key)).payload))).toMatchObject(head);
    }
    expect(JSON.stringify(request?.headers) + new TextDecoder().decode(request?.body ?? undefined)).not.toContain(
      value,
    );
    expect(logged).toEqual([]);
  });

  test("are sent once a day, with the log's state at that time", async () => {
    await begin();
    expect(await turn()).toEqual({ sent: 1, failed: 0 });
    control.clock.ms += 20 * HOUR_MS + 59 * 60_000;
    expect(await turn()).toEqual({ sent: 0, failed: 0 });
    await control.asUser('POST', '/v1/secrets', { path: 'user/api', value: 'v' });
    control.clock.ms += 60_000;
    expect(await turn()).toEqual({ sent: 1, failed: 0 });
    const [first, second] = receiver.bodies();
    expect(second!.heads[0]!.sequence).toBe(first!.heads[0]!.sequence + 1);
    expect(new Set(receiver.posts.map(({ headers }) => headers['idempotency-key'])).size).toBe(2);
  });

  test('are sent as often as configured', async () => {
    await begin({ hours: 1 });
    await turn();
    control.clock.ms += HOUR_MS;
    await turn();
    expect(receiver.posts).toHaveLength(2);
  });

  test('are sent separately for each enterprise', async () => {
    await begin();
    const other = await addUser(control.context, null);
    expect(await turn()).toEqual({ sent: 2, failed: 0 });
    const bodies = receiver.bodies();
    expect(new Set(bodies.map((body) => body.enterprise_id))).toEqual(
      new Set([other.enterpriseId, await enterpriseId()]),
    );
    for (const { heads, enterprise_id: id } of bodies) expect(heads.map(({ writer }) => writer)).toEqual([id]);
  });

  test('are sent once, however many workers run at the same time', async () => {
    await begin();
    const others = await Promise.all(Array.from({ length: 5 }, () => addUser(control.context, null)));
    const turns = await Promise.all(Array.from({ length: 8 }, () => turn()));
    expect(turns.reduce((sum, { sent }) => sum + sent, 0)).toBe(others.length + 1);
    expect(new Set(receiver.bodies().map((body) => body.enterprise_id)).size).toBe(others.length + 1);
    expect(receiver.posts).toHaveLength(others.length + 1);
  });

  test('are left to the worker that is sending them', async () => {
    await begin();
    const { promise, resolve: open } = Promise.withResolvers<void>();
    receiver.gate = promise;
    const slow = turn();
    await expect.poll(() => receiver.posts.length).toBe(1);
    expect(await turn()).toEqual({ sent: 0, failed: 0 });
    open();
    expect(await slow).toEqual({ sent: 1, failed: 0 });
    expect(receiver.posts).toHaveLength(1);
  });

  test('are sent again with the same key if a worker ended while it sent them', async () => {
    await begin();
    const killed = sendAnchors(
      { ...control.context, outbound: { call: (request) => (receiver.posts.push(request), new Promise(() => {})) } },
      () => undefined,
    );
    void killed;
    await expect.poll(() => receiver.posts.length).toBe(1);
    control.clock.ms += 2 * 60_000;
    expect(await turn()).toEqual({ sent: 1, failed: 0 });
    const keys = receiver.posts.map(({ headers }) => headers['idempotency-key']);
    expect(keys).toEqual([keys[0], keys[0]]);
  });

  test('are not delayed by a row that a wrong clock wrote', async () => {
    await begin();
    const rows = `INSERT INTO audit_anchors (enterprise_id, way, period, holder, held_until) VALUES (?, 'webhook', ?, 'x', ?)`;
    const inYears = '2031-01-01T00:00:00.000Z';
    await control.context.database.client.execute({ sql: rows, args: [await enterpriseId(), inYears, inYears] });
    expect(await turn()).toEqual({ sent: 1, failed: 0 });
    expect(await turn()).toEqual({ sent: 0, failed: 0 });
  });
});

describe('heads that were not accepted', () => {
  const DOWN: Failure<OutboundFailureReason> = {
    reason: 'upstream_unreachable',
    message: 'anchors.example.com could not be reached (ECONNREFUSED)',
  };

  test.each([
    ['the receiver cannot be reached', DOWN, 'upstream_unreachable'],
    ['the receiver fails', 503, 'status_503'],
    ['the receiver sends them elsewhere', 302, 'status_302'],
  ] as const)('because %s are retried with growing delays, and this is reported', async (_, status, problem) => {
    await begin();
    receiver.status = status;
    expect(await turn()).toEqual({ sent: 0, failed: 1 });
    expect(await turn()).toEqual({ sent: 0, failed: 0 });
    expect(await asAsked()).toEqual({
      anchors: [
        {
          way: 'webhook',
          hours: 24,
          sent_at: null,
          late: false,
          failures: 1,
          failed_at: '2026-01-02T03:00:00.000Z',
          problem,
        },
      ],
    });
    const waits: number[] = [];
    for (let tries = 2, waited = 0; tries <= 9;) {
      control.clock.ms += 60_000;
      waited += 1;
      if ((await turn()).failed === 0) continue;
      waits.push(waited);
      waited = 0;
      tries += 1;
    }
    expect(waits).toEqual([1, 2, 4, 8, 16, 32, 60, 60]);
    receiver.status = 204;
    control.clock.ms += HOUR_MS;
    expect(await turn()).toEqual({ sent: 1, failed: 0 });
    expect(await asAsked()).toMatchObject({ anchors: [{ failures: 0, failed_at: null, problem: null, late: false }] });
    expect(logged[0]).toEqual({
      level: 'error',
      code: 'audit_heads_unsent',
      failures: 1,
      message: expect.stringContaining('the next try is at 2026-01-02T03:01:00.000Z'),
    });
  });

  test("name the receiver's host only in the log, and its URL nowhere", async () => {
    await begin();
    receiver.status = DOWN;
    await turn();
    const told = JSON.stringify(await asAsked());
    expect(told).not.toContain('example.com');
    const everything = JSON.stringify(logged) + told + (await control.databaseBytes()).toString('latin1');
    expect(JSON.stringify(logged)).toContain('anchors.example.com');
    expect(everything).not.toContain('hook-password-1');
    expect(everything).not.toContain('9f3c');
  });

  test('are not tried for every enterprise in each turn while a receiver is down', async () => {
    await begin();
    for (let at = 0; at < 9; at += 1) await addUser(control.context, null);
    receiver.status = 500;
    expect(await turn()).toEqual({ sent: 0, failed: 3 });
    receiver.status = 200;
    expect(await turn()).toEqual({ sent: 7, failed: 0 });
    control.clock.ms += 60_000;
    expect(await turn()).toEqual({ sent: 3, failed: 0 });
  });

  test('are reported as late after two intervals', async () => {
    await begin();
    await turn();
    receiver.status = 500;
    control.clock.ms += 2 * DAY_MS;
    expect(await asAsked()).toMatchObject({ anchors: [{ late: false }] });
    control.clock.ms += 1;
    expect(await asAsked()).toMatchObject({ anchors: [{ late: true, sent_at: '2026-01-02T03:00:00.000Z' }] });
  });
});

describe('heads written to the log', () => {
  test('are one line each, once a day, without a network call', async () => {
    await begin({ url: null, isLogged: true });
    await control.enrolSidecar();
    expect(await turn()).toEqual({ sent: 1, failed: 0 });
    expect(await turn()).toEqual({ sent: 0, failed: 0 });
    const { heads, enterprise_id, taken_at } = await parseReply(
      auditHeadsReply,
      control.asUser('GET', '/v1/audit-events/heads'),
    );
    expect(heads).toHaveLength(2);
    expect(logged).toEqual(
      heads.map((head) => ({
        level: 'info',
        message: 'audit head',
        code: 'audit_head',
        enterprise_id,
        taken_at,
        ...head,
      })),
    );
    expect(receiver.posts).toEqual([]);
  });

  test('are written once if sending them fails', async () => {
    await begin({ isLogged: true });
    receiver.status = 500;
    expect(await turn()).toEqual({ sent: 1, failed: 1 });
    control.clock.ms += 60_000;
    expect(await turn()).toEqual({ sent: 0, failed: 1 });
    expect(logged.filter(({ code }) => code === 'audit_head')).toHaveLength(1);
  });
});

test('without the setting the control plane sends nothing and reports that', async () => {
  control = await startInProcess();
  expect(await turn()).toEqual({ sent: 0, failed: 0 });
  expect(await asAsked()).toEqual({ anchors: [] });
});
