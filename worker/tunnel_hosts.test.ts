import { afterEach, beforeEach, expect, test } from 'vitest';
import { ITEMS_SPEC, UPSTREAM_HOST } from '../e2e/runtimes/connector_samples.ts';
import { addUser, type InProcess, startInProcess } from '../e2e/runtimes/in_process.ts';
import {
  SNAPSHOT_KNOWS_ALSO_HEADER,
  SNAPSHOT_KNOWS_TUNNELS,
  SNAPSHOT_TYP,
  snapshotPayload,
} from '../shared/wire/channel.ts';
import { tunnelHostInput, tunnelHostRecord, tunnelHostsPage } from '../shared/wire/hosts/tunnel_hosts.ts';
import type { Caller } from './kernel/caller.ts';
import { addTunnelHost, listTunnelHostPage, removeTunnelHost } from './services/bindings/tunnel_hosts.ts';
import { findAccount } from './store/accounts.ts';

let control: InProcess;
beforeEach(async () => {
  control = await startInProcess();
});
afterEach(() => control.stop());

const add = (host: string, more: object = {}) => control.asUser('POST', '/v1/tunnel-hosts', { host, ...more });
const listed = async () =>
  tunnelHostsPage.parse(await (await control.asUser('GET', '/v1/tunnel-hosts')).json()).items.map(({ host }) => host);

test('a listed host is in the list in canonical form, once, until it is removed, and each change is recorded', async () => {
  const reply = await add('Pinned.Example.TEST');
  expect(reply.status).toBe(201);
  const { id } = tunnelHostRecord.parse(await reply.json());
  expect(await listed()).toEqual(['pinned.example.test']);
  const twice = await add('pinned.example.test');
  expect([twice.status, await twice.text()]).toEqual([409, expect.stringContaining('on the list already')]);
  expect((await control.asUser('DELETE', `/v1/tunnel-hosts/${id}`)).status).toBe(204);
  expect(await listed()).toEqual([]);
  const events = await (await control.asUser('GET', '/v1/audit-events?type=control.tunnel_host.')).text();
  expect(events.match(/control\.tunnel_host\.(added|removed)/g)).toEqual([
    'control.tunnel_host.removed',
    'control.tunnel_host.added',
  ]);
  expect(events).toContain('"svc.control.host":"pinned.example.test"');
});

test.each([
  '*',
  '*.com',
  'a b',
  '10.0.0.1',
  '[::1]',
  'host:8443',
  'localhost',
  '*.localhost',
  'https://a.example.test',
])('%s is not a host for the list', async (host) => {
  expect((await add(host)).status).toBe(400);
});

test('a host that has a binding or a connector is refused with what to do, and a wildcard above it is not', async () => {
  const binding = { scheme: 'bearer', credential_ref: 'vault://user/demo' };
  await control.asUser('POST', '/v1/host-bindings', { ...binding, host: 'bound.example.test' });
  await control.asUser('POST', '/v1/host-bindings', { ...binding, host: '*.wild.example.test' });
  await control.asUser('POST', '/v1/connectors', ITEMS_SPEC);
  for (const [host, fix] of [
    ['bound.example.test', 'svc binding rm bound.example.test'],
    ['a.wild.example.test', 'svc binding rm *.wild.example.test'],
    ['*.deep.wild.example.test', 'svc binding rm *.wild.example.test'],
    [UPSTREAM_HOST, `svc connector rm ${ITEMS_SPEC.connector.fqn}`],
  ] as const) {
    const reply = await add(host);
    expect([reply.status, await reply.text()]).toEqual([409, expect.stringContaining(fix)]);
  }
  expect((await add('*.example.test')).status).toBe(201);
});

test('only admins change the list of the enterprise, which its members see and other enterprises do not', async () => {
  const { context } = control;
  const account = await findAccount(context.database, context.local?.userId ?? '');
  const owner: Caller = { userId: account!.user.id, enterpriseId: account!.enterprise.id, role: 'admin' };
  const member = await addUser(context, owner.enterpriseId);
  const stranger = await addUser(context, null);
  const input = tunnelHostInput.parse({ host: 'pinned.example.test', owner: 'enterprise' });
  expect(await addTunnelHost(context, member, input)).toMatchObject({ error: { code: 'admin_required' } });
  const added = await addTunnelHost(context, owner, input);
  const id = added.ok ? added.value.value.id : '';
  expect(await removeTunnelHost(context, member, id)).toMatchObject({ error: { code: 'admin_required' } });
  expect(await removeTunnelHost(context, stranger, id)).toMatchObject({ error: { code: 'not_found' } });
  expect(await listTunnelHostPage(context, member, { limit: 9 })).toMatchObject({ value: { items: [{ id }] } });
  expect(await listTunnelHostPage(context, stranger, { limit: 9 })).toMatchObject({ value: { items: [] } });
});

test('a sidecar that knows the field gets the lists of its user and enterprise, and one that does not gets no field', async () => {
  await add('a.example.test');
  await add('b.example.test', { owner: 'enterprise' });
  const { context } = control;
  const stranger = await addUser(context, null);
  await addTunnelHost(context, stranger, tunnelHostInput.parse({ host: 'c.example.test' }));
  const sidecar = await control.enrolSidecar();
  const poll = async (headers: Record<string, string>) => {
    const reply = await sidecar.call('GET', '/v1/sidecar/snapshot', { headers });
    return sidecar.verify(await reply.text(), SNAPSHOT_TYP, snapshotPayload);
  };
  const known = await poll({ [SNAPSHOT_KNOWS_ALSO_HEADER]: SNAPSHOT_KNOWS_TUNNELS });
  expect(known.tunnel_hosts?.toSorted()).toEqual(['a.example.test', 'b.example.test']);
  expect(await poll({})).not.toHaveProperty('tunnel_hosts');
});
