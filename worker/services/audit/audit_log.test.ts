import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type InProcess, parseReply, startInProcess } from '../../../e2e/runtimes/in_process.ts';
import type { TestSidecar } from '../../../e2e/runtimes/sidecar_client.ts';
import type { AuditEvent } from '../../../shared/model/audit_event.ts';
import { auditEventsPage, auditVerification } from '../../../shared/wire/audit_events.ts';
import { EVENTS_TYP, eventsPayload } from '../../../shared/wire/channel.ts';
import { newId } from '../../../shared/wire/ids.ts';

let control: InProcess;
let sidecar: TestSidecar;
beforeEach(async () => {
  control = await startInProcess();
  sidecar = await control.enrolSidecar();
});
afterEach(() => control.stop());

function event(n: number, change: Partial<AuditEvent> = {}): AuditEvent {
  return {
    id: newId('evt', new Uint8Array(16).fill(n)),
    type: 'sandbox.proxy.passthrough',
    time: `2026-01-01T00:00:0${n}.000Z`,
    sidecar_id: null,
    session_id: 'ses_1',
    actor: 'session',
    data: { 'svc.proxy.upstream.host': `h${n}.test` },
    ...change,
  };
}
async function send(...events: unknown[]) {
  const reply = await sidecar.call('POST', '/v1/sidecar/events', { body: { events } });
  return sidecar.verify(await reply.text(), EVENTS_TYP, eventsPayload);
}
async function list(query: string) {
  const page = auditEventsPage.parse(await (await control.asUser('GET', `/v1/audit-events?${query}`)).json());
  return page.items;
}
const hosts = async (query: string) => (await list(query)).map((each) => each.data['svc.proxy.upstream.host']);
const verify = async () =>
  auditVerification.parse(await (await control.asUser('GET', '/v1/audit-events/verify')).json());

const writer = () => sidecar.enrolled.sidecar_id;
const sql = (text: string, ...args: (string | number)[]) =>
  control.context.database.client.execute({ sql: text, args });

describe('the intake', () => {
  test('writes an id once, within a batch and across batches', async () => {
    await send(event(1), event(2), event(1));
    expect(await send(event(2), event(3))).toMatchObject({ accepted: [event(2).id, event(3).id], rejected: [] });
    expect(await hosts('type=sandbox.proxy.')).toEqual(['h3.test', 'h2.test', 'h1.test']);
  });

  test('signs its reply over the sidecar, the call and the ids', async () => {
    const claims = { jti: 'nonce-of-the-events-call' };
    const reply = await sidecar.call('POST', '/v1/sidecar/events', { body: { events: [event(1)] }, claims });
    expect(reply.headers.get('content-type')).toBe('application/jose');
    expect(await sidecar.verify(await reply.text(), EVENTS_TYP, eventsPayload)).toEqual({
      sidecar_id: writer(),
      nonce: claims.jti,
      accepted: [event(1).id],
      rejected: [],
      head: {
        writer: writer(),
        sequence: 1,
        hash: expect.stringMatching(/^[0-9a-f]{64}$/),
        previous: { sequence: 0, hash: '0'.repeat(64) },
      },
    });
  });

  test('reports the head before and after, also for events that are there already', async () => {
    const first = await send(event(1), event(2));
    const again = await send(event(2));
    const { writer: of, ...end } = first.head!;
    expect(again.head).toEqual({ writer: of, ...end, previous: { sequence: 2, hash: end.hash } });
    expect((await send(event(3))).head).toMatchObject({ sequence: 3, previous: { sequence: 2, hash: end.hash } });
  });

  test('does not let one sidecar take the id of another one’s event', async () => {
    await send(event(1));
    const other = await control.enrolSidecar();
    await other.call('POST', '/v1/sidecar/events', { body: { events: [event(1, { session_id: 'ses_2' })] } });
    expect((await list('type=sandbox.proxy.')).map((each) => each.session_id)).toEqual(['ses_2', 'ses_1']);
  });

  test('stamps the event with the sidecar that sent it, whatever the event claims', async () => {
    await send(event(1, { sidecar_id: newId('sdc', new Uint8Array(16)) }));
    expect(await list('host=h1.test')).toMatchObject([{ sidecar_id: sidecar.enrolled.sidecar_id }]);
  });

  test.each([
    ['a type of the control plane', event(1, { type: 'control.secret.stored' })],
    ['an unknown type', { ...event(1), type: 'sandbox.proxy.nonsense' }],
    ['a key that is not in the table', { ...event(1), data: { 'http.authorization': 'x' } }],
    ['a query string in the path', event(1, { data: { 'svc.proxy.upstream.path': '/a?token=b' } })],
    ['an empty event', 'x'],
  ])('rejects %s and accepts the rest', async (_, bad) => {
    const reply = await send(bad, event(2));
    expect(reply).toMatchObject({ accepted: [event(2).id], rejected: [{ index: 0 }] });
    expect(await hosts('type=sandbox.proxy.')).toEqual(['h2.test']);
  });

  test.each<[AuditEvent['type'], AuditEvent['data']]>([
    [
      'sandbox.proxy.disabled',
      { 'svc.proxy.reason': 'preflight_failed', 'svc.sandbox.mode': 'docker', 'svc.sandbox.image': 'img:1' },
    ],
    [
      'sandbox.proxy.credential_unsealed',
      {
        'svc.proxy.credential_ref': 'vault://user/demo',
        'svc.proxy.upstream.host': 'db.test',
        'svc.proxy.reason': 'not HTTP',
      },
    ],
    [
      'flightplan.launch.reach',
      {
        'svc.step.id': 'fetch',
        'svc.reach.effect': 'read',
        'svc.reach.hosts': ['b.test', 'a.test'],
        'svc.reach.enforced': true,
      },
    ],
    ['flightplan.launch.reach', { 'svc.step.id': 'think', 'svc.reach.hosts': [], 'svc.reach.enforced': false }],
    ['sandbox.proxy.trust_denied', { 'svc.proxy.reason': 'step_scope_host_denied', 'svc.step.id': 'fetch' }],
  ])('accepts %s unchanged, and its chain verifies', async (type, data) => {
    expect(await send(event(1, { type, data }))).toMatchObject({ accepted: [event(1).id], rejected: [] });
    expect(await list(`type=${type}`)).toMatchObject([{ type, data }]);
    expect(await verify()).toMatchObject({ ok: true });
    await sql(`UPDATE audit_events SET data = replace(data, '"a.test"', '"evil.test"') WHERE type = ?`, type);
    const isAltered = data['svc.reach.hosts']?.includes('a.test') === true;
    expect(await verify()).toMatchObject({ ok: !isAltered });
  });

  test.each([
    ['hosts that are not a list', { 'svc.reach.hosts': 'a.test' }],
    ['hosts that are not texts', { 'svc.reach.hosts': [['a.test']] }],
    ['a text where true or false belongs', { 'svc.reach.enforced': 'true' }],
  ])('rejects %s', async (_, data) => {
    const bad = { ...event(1), type: 'flightplan.launch.reach', data };
    expect(await send(bad)).toMatchObject({ accepted: [], rejected: [{ index: 0, id: event(1).id }] });
  });

  test('shortens a very long list of hosts, and says how many are left out', async () => {
    const all = Array.from({ length: 1_000 }, (_, n) => `${n}.${'a'.repeat(60)}.test`);
    await send(event(1, { type: 'flightplan.launch.reach', data: { 'svc.reach.hosts': all } }));
    const kept = (await list('type=flightplan.'))[0]?.data['svc.reach.hosts'] ?? [];
    expect(kept.join('').length).toBeLessThan(8_300);
    expect(kept.at(-1)).toBe(`… and ${1_000 - kept.length + 1} more`);
    expect(await verify()).toMatchObject({ ok: true });
  });

  test('shortens a path of 60 KiB to keep the log readable', async () => {
    await send(
      event(1, { data: { 'svc.proxy.upstream.path': `/${'a'.repeat(60_000)}`, 'svc.proxy.upstream.host': 'h1.test' } }),
    );
    expect((await list('host=h1.test'))[0]?.data['svc.proxy.upstream.path']).toHaveLength(4_097);
  });
});

describe('the list', () => {
  beforeEach(() => send(event(1), event(2, { session_id: 'ses_2' }), event(3, { type: 'sandbox.proxy.rejected' })));

  test.each([
    ['type=sandbox.proxy.rejected', ['h3.test']],
    ['type=sandbox.proxy.rejected,sandbox.proxy.passthrough', ['h3.test', 'h2.test', 'h1.test']],
    ['session=ses_2', ['h2.test']],
    ['host=H1.test', ['h1.test']],
    ['since=2026-01-01T00:00:02Z&until=2026-01-01T00:00:03Z', ['h2.test']],
    ['since=2026-01-01T01:00:03%2B01:00&until=2026-01-01T00:00:04Z', ['h3.test']],
    ['connector=a/b', []],
  ])('filters by %s', async (query, expected) => {
    expect(await hosts(query)).toEqual(expected);
  });

  test('pages through events of the same time without losing one', async () => {
    const same = { time: '2026-01-01T00:00:09.000Z' };
    await send(event(4, same), event(5, same), event(6, same));
    const first = await parseReply(
      auditEventsPage,
      control.asUser('GET', '/v1/audit-events?type=sandbox.proxy.&limit=4'),
    );
    const second = await parseReply(
      auditEventsPage,
      control.asUser('GET', `/v1/audit-events?type=sandbox.proxy.&limit=4&cursor=${first.next_cursor}`),
    );
    const seen = [...first.items, ...second.items].map(({ data }) => data['svc.proxy.upstream.host']);
    expect(seen).toEqual(['h6.test', 'h5.test', 'h4.test', 'h3.test', 'h2.test', 'h1.test']);
    expect(second.next_cursor).toBeNull();
  });
});

describe('verification', () => {
  beforeEach(() => send(event(1), event(2), event(3)));

  test('finds nothing in an unmodified log', async () => {
    expect(await verify()).toMatchObject({ ok: true, events: 4, first_break: null });
  });

  test.each([
    ['an altered event', `UPDATE audit_events SET actor = 'x' WHERE writer = ? AND sequence = 2`, 2, 'wrong_hash'],
    ['altered data', `UPDATE audit_events SET data = '{}' WHERE writer = ? AND sequence = 2`, 2, 'wrong_hash'],
    ['a removed event', `DELETE FROM audit_events WHERE writer = ? AND sequence = 2`, 2, 'missing_event'],
    ['the last event cut off', `DELETE FROM audit_events WHERE writer = ? AND sequence = 3`, 3, 'missing_event'],
    ['a removed chain', `DELETE FROM audit_events WHERE writer = ?`, 1, 'missing_event'],
    ['a lost head', `DELETE FROM audit_heads WHERE writer = ?`, 0, 'wrong_head'],
  ])('finds %s', async (_, statement, sequence, reason) => {
    await sql(statement, writer());
    expect(await verify()).toMatchObject({ ok: false, first_break: { writer: writer(), sequence, reason } });
  });

  test('finds a truncated chain with a matching head, because the head is sealed', async () => {
    await sql(`DELETE FROM audit_events WHERE writer = ? AND sequence = 3`, writer());
    await sql(
      `UPDATE audit_heads SET sequence = 2, hash = (SELECT hash FROM audit_events WHERE writer = audit_heads.writer AND sequence = 2)
       WHERE writer = ?`,
      writer(),
    );
    expect(await verify()).toMatchObject({ ok: false, first_break: { reason: 'wrong_head' } });
  });
});
