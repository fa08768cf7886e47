import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { addUser, type InProcess, parseReply, startInProcess } from '../../../e2e/runtimes/in_process.ts';
import type { TestSidecar } from '../../../e2e/runtimes/sidecar_client.ts';
import type { AuditEvent } from '../../../shared/model/audit_event.ts';
import { KEPT_MINUTES } from '../../../shared/report/request_minutes.ts';
import { meReply } from '../../../shared/wire/account.ts';
import { newId } from '../../../shared/wire/ids.ts';
import type { Caller } from '../../kernel/caller.ts';
import { MIGRATIONS } from '../../store/migrations.ts';
import { describeActivity } from './activity.ts';

let control: InProcess;
let sidecar: TestSidecar;
let caller: Caller;
beforeEach(async () => {
  control = await startInProcess();
  sidecar = await control.enrolSidecar();
  const { id: userId, enterprise_id: enterpriseId } = await parseReply(meReply, control.asUser('GET', '/v1/me'));
  caller = { userId, enterpriseId, role: 'owner' };
});
afterEach(() => control.stop());

const MINUTE_MS = 60_000;
const ago = (minutes: number) => new Date(control.clock.now() - minutes * MINUTE_MS).toISOString();
const request = (change: Partial<AuditEvent> = {}, host = 'a.example.test'): AuditEvent => ({
  id: newId('evt', randomBytes(16), control.clock.now()),
  type: 'sandbox.proxy.binding_injected',
  time: ago(0),
  sidecar_id: null,
  session_id: 'ses_1',
  actor: 'session',
  ...change,
  data: { 'svc.proxy.upstream.host': host, ...change.data },
});
async function send(events: readonly AuditEvent[]): Promise<void> {
  expect((await sidecar.call('POST', '/v1/sidecar/events', { body: { events } })).status).toBe(200);
}
const describeNow = (who = caller) => describeActivity(control.context, who);

test('of nothing has a day of empty minutes', async () => {
  const { minutes, hosts, agents, newest } = await describeNow();
  expect(minutes).toHaveLength(KEPT_MINUTES);
  expect(minutes.every(({ added, passed, refused }) => added + passed + refused === 0)).toBe(true);
  expect([hosts, agents, newest]).toEqual([[], [], null]);
});

describe('minutes', () => {
  test('have their requests by outcome, also those that arrive late', async () => {
    await send([request(), request({ type: 'sandbox.proxy.passthrough' })]);
    await send([
      request({ time: ago(90) }),
      request({ type: 'sandbox.proxy.rejected', data: { 'svc.proxy.count': 7 } }),
    ]);
    const { minutes } = await describeNow();
    expect(minutes.at(-1)).toEqual({ added: 1, connector: 0, passed: 1, refused: 7 });
    expect(minutes.at(-91)).toMatchObject({ added: 1 });
  });

  test('count an event once, also if the sidecar sends it again', async () => {
    const event = request();
    await send([event]);
    await send([event, request({ time: ago(1) })]);
    expect((await describeNow()).minutes.slice(-2).map(({ added }) => added)).toEqual([1, 1]);
  });

  test('leave the picture after a day, and the database after two', async () => {
    await send([request()]);
    control.clock.ms += (KEPT_MINUTES + 1) * MINUTE_MS;
    expect((await describeNow()).minutes.some(({ added }) => added > 0)).toBe(false);
    control.clock.ms += KEPT_MINUTES * MINUTE_MS;
    await send([request()]);
    const { rows } = await control.context.database.client.execute('SELECT COUNT(*) AS n FROM request_minutes');
    expect(rows[0]?.['n']).toBe(1);
  });

  test('of a database of an earlier version begin with its events of the last day', async () => {
    control.clock.ms = Date.now();
    await send([
      request(),
      request({ type: 'sandbox.proxy.rejected', data: { 'svc.proxy.count': 3 } }),
      request({ time: ago(30) }),
    ]);
    await send([request({ type: 'connector.proxy.proxied', data: { 'svc.proxy.reason': 'answered_locally' } })]);
    const before = await describeNow();
    const { client } = control.context.database;
    await client.execute('DELETE FROM request_minutes');
    const [, fill] = MIGRATIONS.find(({ name }) => name === 'requests by minute')?.statements ?? [];
    await client.execute(String(fill));
    expect((await describeNow()).minutes).toEqual(before.minutes);
  });
});

test('hosts are ordered by their requests, and agents are those of the last minutes', async () => {
  await send([
    request({ time: ago(20), session_id: 'ses_old' }),
    request({ time: ago(3) }),
    request({ type: 'sandbox.proxy.rejected' }, 'b.example.test'),
    request({ time: ago(2) }, 'b.example.test'),
    request({ time: ago(4) }, 'b.example.test'),
  ]);
  const { hosts, agents, newest, counted } = await describeNow();
  expect(hosts).toEqual([
    { host: 'b.example.test', requests: 3, refused: 1 },
    { host: 'a.example.test', requests: 2, refused: 0 },
  ]);
  expect(agents).toMatchObject([{ session: 'ses_1', requests: 4, lastHost: 'b.example.test' }]);
  expect([counted, newest?.type]).toEqual([5, 'sandbox.proxy.rejected']);
});

test('another enterprise sees none of it', async () => {
  await send([request()]);
  const stranger = await addUser(control.context, null);
  const { minutes, newest } = await describeNow(stranger);
  expect([minutes.some(({ added }) => added > 0), newest]).toEqual([false, null]);
});
