import { beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { ITEMS_SPEC, itemsSpec, UPSTREAM_HOST } from '../e2e/runtimes/connector_samples.ts';
import { addUser, type InProcess, parseReply, startInProcess } from '../e2e/runtimes/in_process.ts';
import { meReply } from '../shared/wire/account.ts';
import { auditEventsPage } from '../shared/wire/audit_events.ts';
import {
  CREDENTIALS_TYP,
  credentialsPayload,
  SNAPSHOT_KNOWS_HEADER,
  SNAPSHOT_KNOWS_INACTIVE,
  SNAPSHOT_TYP,
  snapshotPayload,
} from '../shared/wire/channel.ts';
import {
  connectorRecord,
  connectorsPage,
  installReply,
  readSnapshotConnectors,
} from '../shared/wire/connectors/connectors.ts';
import { ERROR_STATUS, errorBody } from '../shared/wire/errors.ts';
import { explainReply } from '../shared/wire/host_bindings.ts';
import { secretsPage } from '../shared/wire/secrets.ts';
import { storeConnectorCredential } from './services/connectors/connector_credentials.ts';

const REF = 'vault://user/items';
let control: InProcess;
let id = '';

beforeEach(async () => {
  control = await startInProcess({});
  id = (await parseReply(installReply, control.asUser('POST', '/v1/connectors', ITEMS_SPEC))).id;
  return control.stop;
});

const store = (path = 'user/items', value = 'the-stored-value', owner = 'personal') =>
  control.asUser('POST', '/v1/secrets', { path, value, owner });
const credential = (body: object, connector = id) =>
  control.asUser('PUT', `/v1/connectors/${connector}/credential`, { kind: 'api_key', ...body });
const serve = (reference = REF) => credential({ credential_ref: reference });
const show = () => parseReply(connectorRecord, control.asUser('GET', `/v1/connectors/${id}`));
const paths = async () =>
  (await parseReply(secretsPage, control.asUser('GET', '/v1/secrets'))).items.map(({ path }) => path);
const explain = (method = 'DELETE') =>
  parseReply(
    explainReply,
    control.asUser('POST', '/v1/host-bindings/explain', { method, url: `https://${UPSTREAM_HOST}/items/7` }),
  );

async function refusal(answered: Promise<Response>) {
  const reply = await answered;
  const { error } = errorBody.parse(await reply.json());
  expect(reply.status).toBe(ERROR_STATUS[error.code]);
  return error;
}

async function bindHost(): Promise<void> {
  const binding = { host: UPSTREAM_HOST, scheme: 'bearer', credential_ref: REF, effect: 'write' };
  expect((await control.asUser('POST', '/v1/host-bindings', binding)).status).toBe(201);
}

/** The fields of a snapshot as sidecars know them that know nothing of inactive connectors. */
const EARLIER_SNAPSHOT = z.strictObject({
  sidecar_id: z.string(),
  nonce: z.string(),
  version: z.number(),
  issued_at: z.string(),
  expires_at: z.string(),
  host_bindings: z.array(z.unknown()),
  connectors: z.array(z.unknown()),
  mcp_servers: z.array(z.unknown()).default([]),
  credentials: z.array(z.unknown()),
});

/** What a sidecar gets. */
async function snapshot() {
  const sidecar = await control.enrolSidecar();
  const headers = { [SNAPSHOT_KNOWS_HEADER]: SNAPSHOT_KNOWS_INACTIVE };
  const polled = await sidecar.call('GET', '/v1/sidecar/snapshot', { headers });
  const payload = await sidecar.verify(await polled.text(), SNAPSHOT_TYP, snapshotPayload);
  const read = readSnapshotConnectors(payload.connectors, payload.inactive_connectors);
  if (!read.ok) throw new Error(read.error);
  return { sidecar, payload, connectors: read.value.map(({ connector }) => connector) };
}

describe('a connector', () => {
  test('is inactive until its first credential, and leaves requests to the binding', async () => {
    await store();
    await bindHost();
    expect(await show()).toMatchObject({ active: false, credential: { state: 'missing' } });
    expect((await snapshot()).connectors).toMatchObject([{ id, inactive: true }]);
    const before = await explain();
    expect(before).toMatchObject({ decision: 'binding', operation: null });
    expect(before.reasons[0]).toBe(
      `The personal connector acme/items is installed for ${UPSTREAM_HOST}, but inactive: it has no credential yet, so it changes nothing.`,
    );
    await serve();
    expect(await show()).toMatchObject({ active: true, credential: { state: 'ready', ref: REF } });
    const [installed] = (await snapshot()).connectors;
    expect(installed).toMatchObject({ id, credential: { owner: 'personal', path: 'user/items' } });
    expect(installed).not.toHaveProperty('inactive');
    expect(await explain()).toMatchObject({ decision: 'connector', operation: { credential_ref: REF } });
  });

  test('is left out of the snapshot of a sidecar of an earlier version, which refuses fields that it does not know', async () => {
    await store();
    await bindHost();
    const sidecar = await control.enrolSidecar();
    const poll = async () =>
      sidecar.verify(await (await sidecar.call('GET', '/v1/sidecar/snapshot')).text(), SNAPSHOT_TYP, EARLIER_SNAPSHOT);
    expect(await poll()).toMatchObject({ host_bindings: [{ host: UPSTREAM_HOST }], connectors: [] });
    await credential({ value: 'its-own-key-0123' });
    expect(await poll()).toMatchObject({ connectors: [{ id }] });
  });

  test('that has lost its credential stays active, so that no operation falls to the binding', async () => {
    await store();
    await bindHost();
    await credential({ value: 'its-own-key-0123' });
    const lose = [
      () => control.asUser('DELETE', `/v1/connectors/${id}/credential`),
      () => control.asUser('POST', '/v1/connectors', itemsSpec('2.0.0', { credential: { kind: 'oauth2' } })),
    ];
    for (const loseIt of lose) {
      await loseIt();
      expect(await show()).toMatchObject({ active: true, credential: { state: 'missing' } });
      expect((await snapshot()).connectors.map(({ inactive }) => inactive)).toEqual([undefined]);
      expect(await explain()).toMatchObject({ decision: 'refused', code: 'credential_unavailable' });
    }
    await control.asUser('DELETE', `/v1/connectors/${id}`);
    expect(await explain()).toMatchObject({ decision: 'binding' });
  });

  test('with an OAuth client that nobody has authorised is inactive; once it was authorised, it stays active', async () => {
    const oauth = {
      kind: 'oauth2',
      authorization_url: 'https://auth.example.test/authorize',
      token_url: 'https://auth.example.test/token',
    };
    await control.asUser('POST', '/v1/connectors', itemsSpec('2.0.0', { credential: oauth }));
    await credential({ kind: 'oauth2', client_id: 'one' });
    expect(await show()).toMatchObject({ active: false, credential: { state: 'authorisation_required' } });
    await credential({ kind: 'oauth2', client_id: 'one', access_token: 'an-access-token' });
    expect(await show()).toMatchObject({ active: true, credential: { state: 'ready' } });
    await credential({ kind: 'oauth2', client_id: 'two' });
    expect(await show()).toMatchObject({ active: true, credential: { state: 'authorisation_required' } });
    await control.context.database.client.execute(
      "UPDATE connector_credentials SET state = 'reauthorisation_required'",
    );
    expect(await explain()).toMatchObject({ decision: 'refused', code: 'credential_unavailable' });
  });

  test("of the user without a credential does not replace the enterprise's active one", async () => {
    const shared = await parseReply(
      installReply,
      control.asUser('POST', '/v1/connectors?owner=enterprise', itemsSpec('7')),
    );
    await credential({ value: 'enterprise-key-1' }, shared.id);
    expect(await explain()).toMatchObject({ decision: 'connector', operation: { connector_id: shared.id } });
    const run = { connector_fqn: 'acme/items', operation: 'get-item', args: {} };
    await refusal(control.asUser('POST', '/v1/connector-operations/run', run));
    const [event] = (await parseReply(auditEventsPage, control.asUser('GET', '/v1/audit-events'))).items;
    expect(event?.data).toMatchObject({ 'svc.connector.version': '7', 'svc.proxy.reason': 'invalid_args' });
  });
});

describe('a stored secret that serves a connector', () => {
  test('is released to a sidecar for both, cannot be deleted, and outlives the connector', async () => {
    await store();
    await bindHost();
    await serve();
    const { sidecar, payload } = await snapshot();
    expect(payload.credentials).toMatchObject([{ owner: 'personal', path: 'user/items' }]);
    const body = { request_id: crypto.randomUUID(), credentials: [{ owner: 'personal', path: 'user/items' }] };
    const released = await sidecar.call('POST', '/v1/sidecar/credentials', { body });
    const { credentials } = await sidecar.verify(await released.text(), CREDENTIALS_TYP, credentialsPayload);
    expect(await sidecar.unseal(credentials[0]?.sealed ?? '')).toEqual({ value: 'the-stored-value' });
    const [binding] = payload.host_bindings;
    await control.asUser('DELETE', `/v1/host-bindings/${binding?.id}`);
    expect(await refusal(control.asUser('DELETE', '/v1/secrets/user/items'))).toMatchObject({
      code: 'secret_in_use',
      message: 'the secret user/items serves acme/items: give each another credential first, or remove it',
      details: { connectors: [{ id, fqn: 'acme/items', owner: 'personal' }] },
    });
    await control.asUser('DELETE', `/v1/connectors/${id}`);
    expect(await paths()).toEqual(['user/items']);
    expect((await control.asUser('DELETE', '/v1/secrets/user/items')).status).toBe(204);
  });

  test('serves several; losing it deletes only the reference', async () => {
    await store();
    const other = itemsSpec('1.0.0', { connector: { ...ITEMS_SPEC.connector, fqn: 'me/items' } });
    const second = await parseReply(installReply, control.asUser('POST', '/v1/connectors', other));
    expect([(await serve()).status, (await credential({ credential_ref: REF }, second.id)).status]).toEqual([200, 200]);
    expect(await refusal(control.asUser('DELETE', '/v1/secrets/user/items'))).toMatchObject({
      details: { connectors: [{ fqn: 'acme/items' }, { fqn: 'me/items' }] },
    });
    await control.asUser('DELETE', `/v1/connectors/${id}/credential`);
    expect(await paths()).toEqual(['user/items']);
  });

  test('replaces a key of its own, which is deleted, and is replaced by one', async () => {
    await store();
    await credential({ value: 'its-own-key-0123' });
    expect(await paths()).toEqual(['connectors/acme/items', 'user/items']);
    await serve();
    expect(await paths()).toEqual(['user/items']);
    await credential({ value: 'another-key-0123' });
    expect(await paths()).toEqual(['connectors/acme/items', 'user/items']);
    expect(await show()).toMatchObject({ credential: { ref: 'vault://connectors/acme/items' } });
    const { items } = await parseReply(auditEventsPage, control.asUser('GET', '/v1/audit-events?connector=acme/items'));
    const changes = items.filter(({ type }) => type.startsWith('control.connector.credential_')).toReversed();
    expect(changes.map(({ type, data }) => [type.split('_')[1], data['svc.connector.credential_ref']])).toEqual([
      ['stored', 'vault://connectors/acme/items'],
      ['deleted', 'vault://connectors/acme/items'],
      ['stored', REF],
      ['deleted', REF],
      ['stored', 'vault://connectors/acme/items'],
    ]);
  });

  test.each([
    ['one that is not stored', 'vault://user/gone', 'names no stored personal secret'],
    ["the enterprise's", 'vault://team/items', 'names no stored personal secret'],
    ["another connector's", 'vault://connectors/me/items', 'begins with the reserved "connectors/"'],
    ["an MCP server's", 'vault://mcp-servers/mcp_1/TOKEN', 'begins with the reserved "mcp-servers/"'],
    ['no reference', 'the-stored-value', 'must be a reference such as vault://user/demo'],
  ])('is not %s', async (_, reference, message) => {
    await store('team/items', 'of-the-enterprise', 'enterprise');
    const other = itemsSpec('1.0.0', { connector: { ...ITEMS_SPEC.connector, fqn: 'me/items' } });
    const second = await parseReply(installReply, control.asUser('POST', '/v1/connectors', other));
    await credential({ value: 'key-of-another-one' }, second.id);
    const error = await refusal(serve(reference));
    expect([error.code, error.message]).toEqual(['invalid_input', expect.stringContaining(message)]);
    expect(await show()).toMatchObject({ active: false, credential: { state: 'missing' } });
  });

  test('is the owner’s: another user finds neither the connector nor the secret', async () => {
    await store();
    const me = await parseReply(meReply, control.asUser('GET', '/v1/me'));
    const colleague = await addUser(control.context, me.enterprise_id);
    const input = { kind: 'api_key' as const, credential_ref: REF };
    expect(await storeConnectorCredential(control.context, colleague, id, input)).toMatchObject({
      error: { code: 'not_found' },
    });
    const shared = await parseReply(
      installReply,
      control.asUser('POST', '/v1/connectors?owner=enterprise', itemsSpec('7')),
    );
    expect(await storeConnectorCredential(control.context, colleague, shared.id, input)).toMatchObject({
      error: { code: 'admin_required' },
    });
    expect((await refusal(credential({ credential_ref: REF }, shared.id))).message).toContain(
      'names no stored enterprise secret',
    );
  });

  test('is no signing key, which is never sent', async () => {
    await store();
    const signing = { access_key_id: 'AKIAEXAMPLE', region: 'eu-central-1', service: 's3' };
    const binding = { host: 's3.example.test', scheme: 'sigv4-resign', credential_ref: REF, ...signing };
    expect((await control.asUser('POST', '/v1/host-bindings', binding)).status).toBe(201);
    expect((await refusal(serve())).message).toContain('credential_ref names a signing key of a sigv4-resign binding');
  });

  test('goes to the hosts of single operations too, and the connector names them', async () => {
    const [operation, ...others] = ITEMS_SPEC.operations;
    const operations = [{ ...operation, hosts: ['elsewhere.test'] }, ...others];
    const reply = await control.asUser('POST', '/v1/connectors', itemsSpec('2.0.0', { operations }));
    const hosts = ['elsewhere.test', UPSTREAM_HOST].toSorted();
    expect(installReply.parse(await reply.json()).hosts.toSorted()).toEqual(hosts);
    const { items } = await parseReply(connectorsPage, control.asUser('GET', '/v1/connectors'));
    expect(items.map((item) => item.hosts.toSorted())).toEqual([hosts]);
  });

  test.each([[{}], [{ value: 'a-key-0123456', credential_ref: REF }]])('is given alone: %j', async (body) => {
    await store();
    expect((await refusal(credential(body))).message).toContain('value is given once: as value, or as credential_ref');
  });
});
