import { z } from 'zod';
import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { ITEMS_SPEC, itemsSpec, UPSTREAM_HOST } from '../e2e/runtimes/connector_samples.ts';
import { addUser, type InProcess, parseReply, startInProcess } from '../e2e/runtimes/in_process.ts';
import { createTestCa } from '../e2e/support/test_ca.ts';
import { reply, startTlsUpstream, type TlsUpstream } from '../e2e/support/tls_upstream.ts';
import { meReply } from '../shared/wire/account.ts';
import { auditEventsPage } from '../shared/wire/audit_events.ts';
import { CREDENTIALS_TYP, credentialsPayload, SNAPSHOT_TYP, snapshotPayload } from '../shared/wire/channel.ts';
import {
  connectorRecord,
  connectorsPage,
  installReply,
  readSnapshotConnectors,
  runReply,
} from '../shared/wire/connectors/connectors.ts';
import { connectorSpec } from '../shared/wire/connectors/connector_spec.ts';
import { ERROR_STATUS, errorBody } from '../shared/wire/errors.ts';
import { nodeOutbound } from './entries/node_outbound.ts';
import type { Caller } from './kernel/caller.ts';
import { removeConnectorCredential, storeConnectorCredential } from './services/connectors/connector_credentials.ts';
import { runOperation } from './services/connectors/run_operation.ts';
import {
  getConnector,
  installConnector,
  listConnectorPage,
  removeConnector,
} from './services/connectors/connectors.ts';

const KEY = `planted-${randomBytes(20).toString('hex')}`;
let upstream: TlsUpstream;
let outbound: ReturnType<typeof nodeOutbound>;
let control: InProcess;
let id = '';

beforeAll(async () => {
  const ca = await createTestCa();
  upstream = await startTlsUpstream(await ca.issue([UPSTREAM_HOST]));
  const pinned = new Map([[UPSTREAM_HOST, { address: '127.0.0.1', port: upstream.port }]]);
  outbound = nodeOutbound({ isLocal: true, pinned, roots: [ca.pem] });
});
afterAll(() => upstream.close());
beforeEach(async () => {
  upstream.reset();
  control = await startInProcess({ outbound });
  id = (await parseReply(installReply, control.asUser('POST', '/v1/connectors', ITEMS_SPEC))).id;
  return control.stop;
});

const bind = (value = KEY) => control.asUser('PUT', `/v1/connectors/${id}/credential`, { kind: 'api_key', value });
const run = (operation: string, args: unknown, more: object = {}) =>
  control.asUser('POST', '/v1/connector-operations/run', { connector_fqn: 'acme/items', operation, args, ...more });
const events = async () => (await parseReply(auditEventsPage, control.asUser('GET', '/v1/audit-events'))).items;

async function refusal(answered: Response | Promise<Response>) {
  const { error } = errorBody.parse(await (await answered).json());
  expect((await answered).status).toBe(ERROR_STATUS[error.code]);
  return error;
}

async function warningsOf(...operations: readonly object[]): Promise<unknown> {
  const checked = await control.asUser('POST', '/v1/connectors/validate', itemsSpec('9', { operations }));
  return z.object({ warnings: z.unknown() }).parse(await checked.json()).warnings;
}

describe('installing a connector', () => {
  test('stores its spec and reports what is in force', async () => {
    const record = await parseReply(connectorRecord, control.asUser('GET', `/v1/connectors/${id}`));
    expect(record).toMatchObject({
      fqn: 'acme/items',
      owner: 'personal',
      operation_count: 3,
      credential: { kind: 'api_key', ref: 'vault://connectors/acme/items', state: 'missing' },
      spec: { operations: [{ name: 'get-item', approval: 'none' }, {}, { approval: 'required' }] },
    });
    const { items } = await parseReply(connectorsPage, control.asUser('GET', '/v1/connectors'));
    expect(items).toMatchObject([{ id, content_hash: record.content_hash }]);
    expect(items[0]).not.toHaveProperty('spec');
  });

  test('twice with the same content changes nothing', async () => {
    const before = (await events()).length;
    const again = await control.asUser('POST', '/v1/connectors', { ...ITEMS_SPEC, hosts: ['API.example.test'] });
    expect([again.status, (await parseReply(installReply, again)).id]).toEqual([200, id]);
    expect((await events()).length).toBe(before);
  });

  test('refuses different content for a version that was installed before', async () => {
    const changed = itemsSpec('1.0.0', { hosts: ['evil.example.test'] });
    expect(await refusal(control.asUser('POST', '/v1/connectors', changed))).toMatchObject({
      code: 'connector_version_conflict',
      details: { connector_id: id },
    });
    expect((await control.asUser('POST', '/v1/connectors', itemsSpec('1.1.0'))).status).toBe(200);
    expect(await refusal(control.asUser('POST', '/v1/connectors', changed))).toMatchObject({
      code: 'connector_version_conflict',
    });
  });

  test('with another version keeps the credential, and warns of hosts that will newly receive it', async () => {
    await bind();
    const next = itemsSpec('2.0.0', { hosts: [UPSTREAM_HOST, 'eu.example.test'] });
    const installed = await parseReply(installReply, control.asUser('POST', '/v1/connectors', next));
    expect(installed).toMatchObject({ id, version: '2.0.0', credential: { state: 'ready' } });
    expect(installed.warnings).toEqual([
      'eu.example.test did not receive the credential before version 2.0.0, and may receive it from now on',
    ]);
  });

  test('with another kind of credential deletes the stored one', async () => {
    await bind();
    const next = itemsSpec('2.0.0', { credential: { kind: 'oauth2', token_url: 'https://auth.example.test/token' } });
    const installed = await parseReply(installReply, control.asUser('POST', '/v1/connectors', next));
    expect(installed.credential).toMatchObject({ kind: 'oauth2', state: 'missing' });
    expect(await (await control.asUser('GET', '/v1/secrets')).json()).toMatchObject({ items: [] });
  });

  test('names every invalid field', async () => {
    const broken = itemsSpec('3', {
      hosts: ['*.example.test'],
      operations: [{ ...ITEMS_SPEC.operations[0], effet: 'read' }],
    });
    for (const path of ['/v1/connectors', '/v1/connectors/validate']) {
      const { code, message } = await refusal(control.asUser('POST', path, broken));
      expect(code).toBe('invalid_input');
      expect(message).toContain('hosts.0 has a "*" in it');
      expect(message).toContain('did you mean "effect"?');
    }
  });

  test('can be tried without effect, and reports overlapping operations', async () => {
    const [get] = ITEMS_SPEC.operations;
    const inputs = [{ name: 'a', in: 'path', required: true }];
    const twin = { ...get, inputs, audit: [] };
    const overlapping = itemsSpec('9', {
      operations: [
        { ...twin, name: 'one', path: '/x/{a}/y/{b}', inputs: [...inputs, { name: 'b', in: 'path', required: true }] },
        { ...twin, name: 'two', path: '/x/y/{a}/z' },
        { ...twin, name: 'three', path: '/x/y/y/{a}' },
      ],
    });
    const checked = await (await control.asUser('POST', '/v1/connectors/validate', overlapping)).json();
    expect(checked).toMatchObject({
      fqn: 'acme/items',
      warnings: [
        'one and two overlap: a request that matches both /x/{a}/y/{b} and /x/y/{a}/z matches neither operation, so it is not a connector request',
        'two and three overlap: a request that matches both /x/y/{a}/z and /x/y/y/{a} matches neither operation, so it is not a connector request',
      ],
    });
  });

  test('reports rules for a JSON body that one body may satisfy twice, and none that are told apart', async () => {
    const [get] = ITEMS_SPEC.operations;
    const refund = { ...get, method: 'POST', effect: 'write', path: '/refunds', inputs: [], audit: [] };
    const withRules = (name: string, ...json: object[]) => ({ ...refund, name, ...(json.length > 0 && { json }) });
    const small = withRules('small', { pointer: '/amount', at_least: 1, at_most: 100 });
    expect(
      await warningsOf(small, withRules('large', { pointer: '/amount', at_least: 101 }), withRules('other')),
    ).toEqual([]);
    expect(await warningsOf(small, withRules('medium', { pointer: '/amount', at_least: 50 }))).toEqual([
      'small and medium overlap: a request whose JSON body satisfies the rules of both is refused',
    ]);
    expect(await warningsOf(withRules('open', { pointer: '/amount', at_most: 100 }))).toEqual([
      'open has every number up to 100 at /amount, also negative ones: add at_least',
    ]);
  });

  test('serves a JSON Schema at its URL', async () => {
    const schema = await control.send('/schemas/connector-spec-1.json');
    expect(await schema.json()).toMatchObject({
      $id: 'http://127.0.0.1:7420/schemas/connector-spec-1.json',
      additionalProperties: false,
    });
  });
});

describe('the credential of a connector', () => {
  test('is stored at a reserved place that only the connector service writes to and deletes', async () => {
    expect(await (await bind()).json()).toMatchObject({ state: 'ready', ref: 'vault://connectors/acme/items' });
    expect(await refusal(control.asUser('DELETE', '/v1/secrets/connectors%2Facme%2Fitems'))).toMatchObject({
      code: 'secret_in_use',
      details: { connectors: [{ id, fqn: 'acme/items', owner: 'personal' }] },
    });
    const value = { path: 'connectors/acme/items', value: 'other' };
    expect(await refusal(control.asUser('POST', '/v1/secrets', value))).toMatchObject({ code: 'invalid_input' });
  });

  test('is deleted with the connector', async () => {
    await bind();
    expect((await control.asUser('DELETE', `/v1/connectors/${id}`)).status).toBe(204);
    expect(await (await control.asUser('GET', '/v1/secrets')).json()).toMatchObject({ items: [] });
    expect((await events()).map(({ type }) => type).slice(0, 2)).toEqual([
      'control.connector.removed',
      'control.connector.credential_deleted',
    ]);
    expect(await refusal(run('get-item', { id: '1' }))).toMatchObject({ code: 'connector_operation_not_found' });
  });

  test("is refused if its kind differs from the spec's", async () => {
    const next = itemsSpec('2.0.0', { credential: { kind: 'oauth2', token_url: 'https://auth.example.test/token' } });
    await control.asUser('POST', '/v1/connectors', next);
    expect(await refusal(bind())).toMatchObject({ code: 'invalid_input', details: { fields: [{ field: 'kind' }] } });
  });
});

describe('a run', () => {
  test('sends the request with the credential and returns the upstream’s status, type and body', async () => {
    await bind();
    upstream.onRequest((exchange) =>
      exchange.write(reply(404, '{"no":"item"}', ['Content-Type: application/json', 'Set-Cookie: a=b'])),
    );
    const answer = await run('get-item', { id: 'a b/c', q: 'x&y' }, { tool: 'items' });
    const body = await parseReply(runReply, answer);
    expect(body).toMatchObject({
      status: 'proxied',
      connector_fqn: 'acme/items',
      upstream_status: 404,
      content_type: 'application/json',
    });
    expect(Buffer.from(body.body_base64, 'base64').toString()).toBe('{"no":"item"}');
    const seen = upstream.last();
    expect([seen.method, seen.target]).toEqual(['GET', '/items/a%20b%2Fc?q=x%26y']);
    expect(seen.headers('authorization')).toEqual([`Bearer ${KEY}`]);
    const [event] = await events();
    expect(event).toMatchObject({
      id: body.audit_id,
      type: 'connector.proxy.proxied',
      data: {
        'svc.proxy.source': 'generated_connector_shim',
        'svc.proxy.mediation': 'connector',
        'svc.proxy.upstream.host': UPSTREAM_HOST,
        'svc.proxy.upstream.path': '/items/a%20b%2Fc',
        'svc.proxy.upstream.status': 404,
        'svc.connector.operation': 'get-item',
        'svc.connector.tool': 'items',
        'svc.connector.credential_ref': 'vault://connectors/acme/items',
        'svc.connector.fields': { item: 'a b/c', searched: true, status: 404 },
      },
    });
    expect(JSON.stringify(event)).not.toContain('x&y');
    const listed = await parseReply(auditEventsPage, control.asUser('GET', '/v1/audit-events?connector=acme/items'));
    expect(listed.items.map(({ id: each }) => each)).toContain(body.audit_id);
  });

  test.each(['', ' x', 'a b', 'a\nb', 'a\u202eb', 'ä', 'x'.repeat(129), '-x', '{"a":1}', 7, null])(
    'with the tool %j is refused: a tool is a name that is logged',
    async (tool) => {
      await bind();
      const error = await refusal(run('get-item', { id: '1' }, { tool }));
      expect(error).toMatchObject({ code: 'invalid_input', details: { fields: [{ field: 'tool' }] } });
      expect(upstream.requests).toEqual([]);
    },
  );

  test("whose args produce another operation's request is refused, so an approval cannot be bypassed", async () => {
    const [read] = ITEMS_SPEC.operations;
    const latest = { ...read, name: 'latest', path: '/items/latest', approval: 'required', inputs: [], audit: [] };
    await control.asUser(
      'POST',
      '/v1/connectors',
      itemsSpec('2.0.0', { operations: [...ITEMS_SPEC.operations, latest] }),
    );
    await bind();
    for (const item of ['latest', 'latest;x']) {
      const error = await refusal(run('get-item', { id: item }));
      expect([error.code, error.message]).toEqual(['invalid_args', expect.stringContaining('another operation')]);
    }
    expect(upstream.requests).toEqual([]);
    expect((await run('get-item', { id: 'latest1' })).status).toBe(200);
  });

  test('uses the configured limits for its request, reply and time, and no others', async () => {
    await control.stop();
    const limits = { maxApiBodyBytes: 600_000, maxRunRequestBytes: 2048, maxRunReplyBytes: 1024, runTimeoutSeconds: 1 };
    control = await startInProcess({ outbound, limits });
    id = (await parseReply(installReply, control.asUser('POST', '/v1/connectors', ITEMS_SPEC))).id;
    await bind();
    upstream.onRequest((exchange) => exchange.write(reply(200, 'x'.repeat(1024))));
    expect((await run('get-item', { id: '1' })).status).toBe(200);
    expect(await refusal(run('get-item', { id: 'x'.repeat(2048) }))).toMatchObject({
      code: 'body_too_large',
      message: 'the body is larger than 2 KiB: send less at a time',
    });
    upstream.onRequest((exchange) => exchange.write(reply(200, 'x'.repeat(1025))));
    expect(await refusal(run('get-item', { id: '1' }))).toMatchObject({
      code: 'upstream_response_too_large',
      message: expect.stringContaining('larger than 1 KiB'),
    });
    upstream.onRequest(() => undefined);
    expect(await refusal(run('get-item', { id: '1' }))).toMatchObject({ code: 'upstream_unreachable' });
    const binding = { host: 'a.example.test', scheme: 'bearer', credential_ref: 'vault://a' };
    const createDescribed = (length: number) =>
      control.asUser('POST', '/v1/host-bindings', { ...binding, description: 'x'.repeat(length) });
    expect((await refusal(createDescribed(10_000))).code).toBe('invalid_input');
    expect((await refusal(createDescribed(600_001))).code).toBe('body_too_large');
  });

  test('of POST sends a JSON body, which is in no audit event', async () => {
    await bind();
    upstream.onRequest(async (exchange) => {
      await exchange.readBody();
      exchange.write(reply(201, 'ok'));
    });
    expect((await run('create-item', { title: 'Confidential' })).status).toBe(200);
    const seen = upstream.last();
    expect(seen.body.data.toString()).toBe('{"title":"Confidential"}');
    expect(JSON.stringify(await events())).not.toContain('Confidential');
  });

  test.each([
    ['as it is', (key: string) => key],
    ['in base64', (key: string) => Buffer.from(`x${key}`).toString('base64')],
    ['in hex', (key: string) => Buffer.from(key).toString('hex')],
  ])('masks the credential in a reply that echoes it %s', async (_, encode) => {
    await bind();
    upstream.onRequest((exchange) => exchange.write(reply(200, encode(KEY), [`Content-Type: text/${KEY}`])));
    const body = await parseReply(runReply, run('get-item', { id: '1' }));
    const text = Buffer.from(body.body_base64, 'base64').toString();
    expect(text).toMatch(/\*{10}/);
    expect(text).not.toContain(encode(KEY));
    expect(body.content_type).not.toContain(KEY);
  });

  test.each([
    ['get-item', {}, 'args.id is missing: a text'],
    ['get-item', { id: '../x' }, 'args.id contains a dot segment'],
    ['get-item', { id: '1', Q: 'x' }, 'did you mean "q"?'],
    ['create-item', { title: 5 }, 'args.title must be a text'],
  ])('of %s with %j is refused, and named in the audit log', async (operation, args, message) => {
    await bind();
    const error = await refusal(run(operation, args));
    expect(error.code).toBe('invalid_args');
    expect(error.message).toContain(message);
    expect((await events())[0]).toMatchObject({
      type: 'connector.proxy.rejected',
      data: {
        'svc.proxy.reason': 'invalid_args',
        'svc.connector.operation': operation,
        'svc.proxy.mediation': 'refused',
      },
    });
    expect(upstream.requests).toEqual([]);
  });

  test('of a connector that is not installed, or without a credential, is refused', async () => {
    expect(await refusal(run('get-items', {}))).toMatchObject({
      code: 'connector_operation_not_found',
      message: 'acme/items has no operation with that name: did you mean "get-item"?',
    });
    expect(await refusal(run('get-item', { id: '1' }))).toMatchObject({
      code: 'binding_required',
      details: { connector_id: id },
    });
    expect(upstream.requests).toEqual([]);
  });

  test('with a credential that would break its header is refused', async () => {
    await bind('two\nlines-of-a-key');
    expect(await refusal(run('get-item', { id: '1' }))).toMatchObject({ code: 'credential_unavailable' });
    expect(upstream.requests).toEqual([]);
  });

  test('is recorded if the platform drops the request of a client that has gone', async () => {
    await bind();
    const asked = Promise.withResolvers<void>();
    const mayAnswer = Promise.withResolvers<void>();
    upstream.onRequest(async (exchange) => {
      asked.resolve();
      await mayAnswer.promise;
      exchange.write(reply(200, '{}'));
    });
    const kept: Promise<unknown>[] = [];
    Object.assign(control.context, { defer: (_: string, work: () => Promise<unknown>) => kept.push(work()) });
    const running = run('get-item', { id: '1' });
    await asked.promise;
    const keptMeanwhile = [...kept];
    expect(keptMeanwhile).toHaveLength(1);
    mayAnswer.resolve();
    await Promise.all(keptMeanwhile);
    expect((await events())[0]).toMatchObject({ type: 'connector.proxy.proxied' });
    expect((await running).status).toBe(200);
  });

  test('whose upstream fails reports it and is audited', async () => {
    await bind();
    upstream.onRequest((exchange) => exchange.write(reply(200, Buffer.alloc(5 * 1024 * 1024))));
    expect(await refusal(run('get-item', { id: '1' }))).toMatchObject({ code: 'upstream_response_too_large' });
    upstream.onRequest((exchange) => void exchange.socket.destroy());
    expect(await refusal(run('get-item', { id: '1' }))).toMatchObject({ code: 'upstream_unreachable' });
    expect((await events()).slice(0, 2).map(({ data }) => data['svc.proxy.reason'])).toEqual([
      'upstream_unreachable',
      'upstream_response_too_large',
    ]);
  });

  test("prefers the personal connector to the enterprise's connector of the same name", async () => {
    const shared = await parseReply(
      installReply,
      control.asUser('POST', '/v1/connectors?owner=enterprise', itemsSpec('7')),
    );
    await control.asUser('PUT', `/v1/connectors/${shared.id}/credential`, {
      kind: 'api_key',
      value: 'enterprise-key-1',
    });
    await bind();
    await run('get-item', { id: '1' });
    await control.asUser('DELETE', `/v1/connectors/${id}`);
    await run('get-item', { id: '1' });
    const sent = upstream.requests.map((seen) => seen.header('authorization'));
    expect(sent).toEqual([`Bearer ${KEY}`, 'Bearer enterprise-key-1']);
  });
});

describe('a sidecar', () => {
  test('gets installed connectors in its snapshot, and their credentials encrypted to it', async () => {
    const sidecar = await control.enrolSidecar();
    const version = Number((await bind()).headers.get('svc-policy-version'));
    const snapshot = await sidecar.verify(
      await (await sidecar.call('GET', '/v1/sidecar/snapshot')).text(),
      SNAPSHOT_TYP,
      snapshotPayload,
    );
    expect(snapshot.version).toBe(version);
    expect(snapshot.credentials).toMatchObject([{ owner: 'personal', path: 'connectors/acme/items' }]);
    const read = readSnapshotConnectors(snapshot.connectors);
    expect(read).toMatchObject({
      ok: true,
      value: [
        {
          connector: { id, owner: 'personal', credential: { path: 'connectors/acme/items' } },
          credentialState: 'ready',
        },
      ],
    });
    const body = {
      request_id: crypto.randomUUID(),
      credentials: [{ owner: 'personal', path: 'connectors/acme/items' }],
    };
    const released = await sidecar.call('POST', '/v1/sidecar/credentials', { body });
    const payload = await sidecar.verify(await released.text(), CREDENTIALS_TYP, credentialsPayload);
    expect(await sidecar.unseal(payload.credentials[0]?.sealed ?? '')).toEqual({ value: KEY });
  });

  test('rejects a snapshot that has a connector it cannot read', async () => {
    await bind();
    const sidecar = await control.enrolSidecar();
    const polled = await sidecar.call('GET', '/v1/sidecar/snapshot');
    const { connectors } = await sidecar.verify(await polled.text(), SNAPSHOT_TYP, snapshotPayload);
    const [record] = connectors;
    for (const changes of [
      { extra: 1 },
      { spec: { ...ITEMS_SPEC, schema_version: 2 } },
      { credential: { owner: 'personal', path: 'connectors/acme/other', state: 'ready' } },
      { credential: { owner: 'personal', path: 'mcp-servers/mcp_1/TOKEN', state: 'ready' } },
      { credential: { owner: 'enterprise', path: 'user/shared', state: 'ready' } },
    ]) {
      expect(readSnapshotConnectors([record, Object.assign({}, record, changes)])).toMatchObject({ ok: false });
    }
    expect(readSnapshotConnectors(connectors)).toMatchObject({ ok: true });
    const unknown = Object.assign({}, record, { extra: 1 });
    expect(readSnapshotConnectors([record], [unknown])).toMatchObject({ ok: true, value: [{ connector: { id } }] });
  });
});

describe.each([
  ['a colleague', (owner: Caller) => owner.enterpriseId],
  ['a stranger', () => null],
])('%s', (_, enterpriseOf) => {
  test('finds none of a user’s own connectors', async () => {
    const { context } = control;
    await bind();
    const me = await parseReply(meReply, control.asUser('GET', '/v1/me'));
    const owner: Caller = { userId: me.id, enterpriseId: me.enterprise_id, role: 'admin' };
    const who = await addUser(context, enterpriseOf(owner));
    const notFound = { ok: false, error: { code: 'not_found' } };
    expect(await getConnector(context, who, id)).toMatchObject(notFound);
    expect(await removeConnector(context, who, id)).toMatchObject(notFound);
    expect(await removeConnectorCredential(context, who, id)).toMatchObject(notFound);
    expect(await storeConnectorCredential(context, who, id, { kind: 'api_key', value: 'x' })).toMatchObject(notFound);
    expect(await listConnectorPage(context, who, { limit: 10 })).toMatchObject({ value: { items: [] } });
    const request = { connector_fqn: 'acme/items', operation: 'get-item', args: { id: '1' } };
    expect(await runOperation(context, who, request)).toMatchObject({
      error: { code: 'connector_operation_not_found' },
    });
    expect(upstream.requests).toEqual([]);
  });
});

test('only an admin installs for the enterprise', async () => {
  const me = await parseReply(meReply, control.asUser('GET', '/v1/me'));
  const member = await addUser(control.context, me.enterprise_id);
  const spec = connectorSpec.parse(ITEMS_SPEC);
  expect(await installConnector(control.context, member, 'enterprise', spec)).toMatchObject({
    error: { code: 'admin_required' },
  });
});

test('a planted credential appears in no reply, log line, event or database file', async () => {
  const replies: string[] = [];
  const keep = async (answer: Promise<Response>) => void replies.push(await (await answer).text());
  await keep(bind());
  upstream.onRequest((exchange) => exchange.write(reply(200, exchange.request.text)));
  await keep(run('get-item', { id: '1' }));
  await keep(control.asUser('PUT', `/v1/connectors/${id}/credential`, { kind: KEY, value: KEY }));
  await keep(run('get-item', { id: 5, q: KEY }));
  for (const path of ['/v1/connectors', `/v1/connectors/${id}`, '/v1/secrets', '/v1/audit-events', '/']) {
    await keep(control.asUser('GET', path));
  }
  const encodings = [KEY, Buffer.from(KEY).toString('base64').slice(4, -4), Buffer.from(KEY).toString('hex')];
  const base64s = replies.flatMap((text) => /"body_base64":"([^"]*)"/.exec(text)?.[1] ?? []);
  const all = [
    ...replies,
    ...base64s.map((text) => Buffer.from(text, 'base64').toString()),
    JSON.stringify(control.log),
  ];
  const database = await control.databaseBytes();
  for (const encoded of encodings) {
    expect(all.filter((text) => text.includes(encoded))).toEqual([]);
    expect(database.includes(encoded)).toBe(false);
  }
});
