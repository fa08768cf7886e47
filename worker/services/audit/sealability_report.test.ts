import { afterAll, beforeAll, expect, test } from 'vitest';
import { ITEMS_SPEC, UPSTREAM_HOST } from '../../../e2e/runtimes/connector_samples.ts';
import { addUser, type InProcess, parseReply, startInProcess } from '../../../e2e/runtimes/in_process.ts';
import type { TestSidecar } from '../../../e2e/runtimes/sidecar_client.ts';
import { newId } from '../../../shared/wire/ids.ts';
import { meReply } from '../../../shared/wire/account.ts';
import type { Caller } from '../../kernel/caller.ts';
import { countHandedOut, reportSealability } from './sealability_report.ts';

let control: InProcess;
let sidecar: TestSidecar;
let caller: Caller;
beforeAll(async () => {
  control = await startInProcess();
  sidecar = await control.enrolSidecar();
  const { userId = '' } = control.context.local ?? {};
  const me = await parseReply(meReply, control.asUser('GET', '/v1/me'));
  caller = { userId, enterpriseId: me.enterprise_id, role: 'owner' };
  for (const path of ['user/a', 'user/b']) await control.asUser('POST', '/v1/secrets', { path, value: 'v' });
  await control.asUser('POST', '/v1/connectors', ITEMS_SPEC);
  control.clock.ms += 1_000;
});
afterAll(() => control.stop());

async function handOut(ref: string, host: string): Promise<void> {
  const event = {
    id: newId('evt', crypto.getRandomValues(new Uint8Array(16))),
    type: 'sandbox.proxy.credential_unsealed',
    time: new Date(control.clock.now()).toISOString(),
    sidecar_id: sidecar.enrolled.sidecar_id,
    session_id: 'ses_1',
    actor: 'session',
    data: { 'svc.proxy.credential_ref': ref, 'svc.proxy.upstream.host': host, 'svc.proxy.reason': 'r' },
  };
  expect((await sidecar.call('POST', '/v1/sidecar/events', { body: { events: [event] } })).status).toBe(200);
}

test('lists released credentials first, with the connectors of their host, and each stored value once', async () => {
  expect(await countHandedOut(control.context, caller)).toBe(0);
  await handOut('vault://user/b', UPSTREAM_HOST);
  await handOut('vault://user/b', 'other.test');
  await handOut('vault://user/b', UPSTREAM_HOST);
  const report = await reportSealability(control.context, caller, []);
  expect(report.open.map(({ path, connectors }) => [path, connectors.map(({ fqn }) => fqn)])).toEqual([
    ['user/b', ['acme/items']],
    ['user/a', []],
  ]);
  expect(report.releases).toHaveLength(3);
  expect(report.isWhole).toBe(true);
  expect(await countHandedOut(control.context, caller)).toBe(1);
});

test('shows a colleague none of it, though the log covers both', async () => {
  const colleague = await addUser(control.context, caller.enterpriseId);
  const report = await reportSealability(control.context, colleague, []);
  expect([report.open, report.sealed, report.releases]).toEqual([[], [], []]);
  expect(await countHandedOut(control.context, colleague)).toBe(0);
});
