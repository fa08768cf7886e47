import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
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

const makeEvent = (data: AuditEvent['data'] = {}): AuditEvent => ({
  id: newId('evt', randomBytes(16), control.clock.now()),
  type: 'sandbox.proxy.binding_injected',
  time: '2026-01-01T00:00:00.000Z',
  sidecar_id: null,
  session_id: 'ses_1',
  actor: 'session',
  data,
});

async function send(events: readonly unknown[]) {
  const reply = await sidecar.call('POST', '/v1/sidecar/events', { body: { events } });
  expect(reply.status).toBe(200);
  return sidecar.verify(await reply.text(), EVENTS_TYP, eventsPayload);
}

const list = async () => (await parseReply(auditEventsPage, control.asUser('GET', '/v1/audit-events?limit=200'))).items;
const chainOf = async () =>
  (await list())
    .filter(({ writer }) => writer === sidecar.enrolled.sidecar_id)
    .toSorted((a, b) => a.sequence - b.sequence);
const verify = () => parseReply(auditVerification, control.asUser('GET', '/v1/audit-events/verify'));

/** The statements on the log that the control plane runs meanwhile. */
async function statementsOf(work: () => Promise<unknown>): Promise<readonly string[]> {
  const { client } = control.context.database;
  const batch = vi.spyOn(client, 'batch');
  const execute = vi.spyOn(client, 'execute');
  await work();
  const seen = [...batch.mock.calls.flatMap(([statements]) => statements), ...execute.mock.calls.map(([one]) => one)];
  return seen.map((one) => JSON.stringify(one)).filter((text) => text.includes('audit_events'));
}

describe('the events of a call', () => {
  test('are stored in their order, with one statement and without a look at the log', async () => {
    const events = Array.from({ length: 120 }, (_, index) => makeEvent({ 'svc.proxy.upstream.path': `/${index}` }));
    const statements = await statementsOf(() => send(events));
    expect(statements).toHaveLength(1);
    expect((await chainOf()).map(({ id }) => id)).toEqual(events.map(({ id }) => id));
    const { rows } = await control.context.database.client.execute('SELECT id FROM audit_events ORDER BY position');
    const ids = rows.map((row) => row['id']);
    expect(ids.filter((id) => events.some((event) => event.id === id))).toEqual(events.map(({ id }) => id));
  });

  test('are stored as they were hashed, whatever characters they contain', async () => {
    const data: AuditEvent['data'] = {
      'svc.proxy.upstream.path': `/"quoted"\\back\u0001\u007f\u2028é😀/${'%00'.repeat(3)}`,
      'svc.proxy.upstream.host': "it's.test",
      'svc.proxy.reason': '',
      'svc.proxy.bytes.sent': Number.MAX_SAFE_INTEGER,
      'svc.proxy.binding.keep_cookies': false,
      'svc.proxy.reply.withheld': ['a"b', ''],
      'svc.connector.fields': { 'body.n': 1.5, 'b"c': true, big: 1e30, '😀': 'x' },
      'svc.connector.fqn': 'null',
    };
    const event = { ...makeEvent(data), session_id: null, actor: '"null"' };
    await send([event]);
    const [stored] = await chainOf();
    expect(stored).toMatchObject({ ...event, sidecar_id: sidecar.enrolled.sidecar_id });
    expect(await verify()).toMatchObject({ ok: true });
  });

  test('are stored once, if some of them or all are in the log already', async () => {
    const [a, b, c] = [makeEvent(), makeEvent(), makeEvent()];
    await send([a, b]);
    const mixed = await send([b, c, c]);
    expect(mixed.accepted).toEqual([b.id, c.id]);
    expect(mixed.head).toMatchObject({ sequence: 3, previous: { sequence: 2 } });
    const again = await send([a, b, c]);
    expect(again.accepted).toEqual([a.id, b.id, c.id]);
    expect(again.head).toMatchObject({ sequence: 3, previous: { sequence: 3 } });
    expect((await chainOf()).map(({ id }) => id)).toEqual([a.id, b.id, c.id]);
    expect(await verify()).toMatchObject({ ok: true });
  });

  test('that can never be accepted are named, and hold up no others', async () => {
    const [good, strange, foreign] = [makeEvent(), makeEvent(), makeEvent()];
    const { accepted, rejected } = await send([
      { ...strange, data: { 'svc.proxy.secret': 'x' } },
      good,
      { ...foreign, type: 'control.user.created' },
      'no event',
    ]);
    expect(accepted).toEqual([good.id]);
    expect(rejected.map(({ index, id }) => ({ index, id }))).toEqual([
      { index: 0, id: strange.id },
      { index: 2, id: foreign.id },
      { index: 3, id: null },
    ]);
  });
});
