import { afterEach, beforeEach, expect, test } from 'vitest';
import { addUser, type InProcess, startInProcess } from '../e2e/runtimes/in_process.ts';
import {
  SNAPSHOT_KNOWS_ALSO_HEADER,
  SNAPSHOT_KNOWS_CERTIFICATES,
  SNAPSHOT_TYP,
  snapshotPayload,
} from '../shared/wire/channel.ts';
import {
  clientCertificateInput,
  clientCertificateRecord,
  clientCertificatesPage,
} from '../shared/wire/hosts/client_certificates.ts';
import {
  addClientCertificate,
  listClientCertificatePage,
  removeClientCertificate,
} from './services/bindings/client_certificates.ts';
import { findAccount } from './store/accounts.ts';

let control: InProcess;
beforeEach(async () => {
  control = await startInProcess();
});
afterEach(() => control.stop());

const PATH = 'user/client';
const add = (host: string, more: object = {}) =>
  control.asUser('POST', '/v1/client-certificates', { host, credential_ref: `vault://${PATH}`, ...more });
const listed = async () =>
  clientCertificatesPage.parse(await (await control.asUser('GET', '/v1/client-certificates')).json()).items;

test('a certificate is listed in canonical form, once for a host, until it is replaced or withdrawn, and each change is recorded', async () => {
  const reply = await add('Internal.Example.TEST:8443', { effect: 'read', http2: true });
  expect(reply.status).toBe(201);
  const record = clientCertificateRecord.parse(await reply.json());
  expect(record).toMatchObject({ host: 'internal.example.test:8443', effect: 'read', http2: true });
  expect(await listed()).toEqual([record]);
  const again = await add('internal.example.test:8443');
  const other = clientCertificateRecord.parse(await again.json());
  expect([again.status, other.id === record.id]).toEqual([200, false]);
  expect(await listed()).toEqual([other]);
  expect((await control.asUser('DELETE', `/v1/client-certificates/${record.id}`)).status).toBe(404);
  expect((await control.asUser('DELETE', `/v1/client-certificates/${other.id}`)).status).toBe(204);
  expect(await listed()).toEqual([]);
  const events = await (await control.asUser('GET', '/v1/audit-events?type=control.client_certificate.')).text();
  expect(events.match(/control\.client_certificate\.(added|removed)/g)).toEqual([
    'control.client_certificate.removed',
    'control.client_certificate.added',
    'control.client_certificate.removed',
    'control.client_certificate.added',
  ]);
  expect(events).toContain(`"svc.control.credential_ref":"vault://${PATH}"`);
});

test.each([
  ['*.example.test', {}],
  ['https://a.example.test', {}],
  ['a.example.test', { credential_ref: 'not a reference' }],
  ['a.example.test', { effect: 'all' }],
  ['a.example.test', { key: 'x' }],
])('%s with %o is refused', async (host, more) => {
  expect((await add(host, more)).status).toBe(400);
});

test('one that cannot be stored leaves the one that the host has', async () => {
  const before = clientCertificateRecord.parse(await (await add('a.example.test')).json());
  expect((await add('a.example.test', { credential_ref: 'vault://connectors/acme/items' })).status).toBe(400);
  expect(await listed()).toEqual([before]);
});

test('its secret says when the value ends, until another value is stored without an end', async () => {
  const end = '2030-01-01T00:00:00.000Z';
  const store = async (more: object) =>
    (await control.asUser('POST', '/v1/secrets', { path: PATH, value: 'a certificate and its key', ...more })).json();
  expect(await store({ expires_at: end })).toMatchObject({ expires_at: end });
  const page = await (await control.asUser('GET', '/v1/secrets')).json();
  expect(page).toMatchObject({ items: [{ path: PATH, expires_at: end }] });
  expect(await store({})).not.toHaveProperty('expires_at');
});

test('its secret stays while it refers to it, and the host is not tunnelled', async () => {
  await control.asUser('POST', '/v1/secrets', { path: PATH, value: 'a certificate and its key' });
  await add('a.example.test');
  const deletion = await control.asUser('DELETE', `/v1/secrets/${PATH}`);
  expect([deletion.status, await deletion.text()]).toEqual([409, expect.stringContaining('a.example.test')]);
  const preview = await control.asUser('GET', `/v1/secrets/${PATH}/deletion`);
  expect(await preview.text()).toContain('"kind":"client_certificate"');
  const tunnelled = await control.asUser('POST', '/v1/tunnel-hosts', { host: 'a.example.test' });
  expect([tunnelled.status, await tunnelled.text()]).toEqual([409, expect.stringContaining('svc cert rm')]);
});

test('a sidecar gets those of its user alone, with the version of the secret, and one that does not know them gets no field', async () => {
  const { context } = control;
  await control.asUser('POST', '/v1/secrets', { path: PATH, value: 'a certificate and its key' });
  await add('a.example.test');
  const account = await findAccount(context.database, context.local?.userId ?? '');
  for (const stranger of [await addUser(context, account?.enterprise.id ?? null), await addUser(context, null)]) {
    const input = clientCertificateInput.parse({ host: 'b.example.test', credential_ref: `vault://${PATH}` });
    const added = await addClientCertificate(context, stranger, input);
    const mine = (await listed())[0]?.id ?? '';
    expect(await removeClientCertificate(context, stranger, mine)).toMatchObject({ error: { code: 'not_found' } });
    expect(await listed()).toMatchObject([{ id: mine, host: 'a.example.test' }]);
    const own = await listClientCertificatePage(context, stranger, { limit: 9 });
    expect(own).toMatchObject({ value: { items: [{ id: added.ok ? added.value.value.record.id : '' }] } });
  }
  const sidecar = await control.enrolSidecar();
  const poll = async (headers: Record<string, string>) => {
    const reply = await sidecar.call('GET', '/v1/sidecar/snapshot', { headers });
    return sidecar.verify(await reply.text(), SNAPSHOT_TYP, snapshotPayload);
  };
  const known = await poll({ [SNAPSHOT_KNOWS_ALSO_HEADER]: SNAPSHOT_KNOWS_CERTIFICATES });
  expect(known.client_certificates).toMatchObject([{ host: 'a.example.test', credential_ref: `vault://${PATH}` }]);
  expect(known.credentials).toMatchObject([{ owner: 'personal', path: PATH }]);
  expect(await poll({})).not.toHaveProperty('client_certificates');
});
