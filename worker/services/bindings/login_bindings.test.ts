import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { itemsSpec, LOGIN_BINDING, LOGIN_SPEC } from '../../../e2e/runtimes/connector_samples.ts';
import { type InProcess, parseReply, startInProcess } from '../../../e2e/runtimes/in_process.ts';
import { ok } from '../../../shared/model/result.ts';
import { CREDENTIALS_TYP, credentialsPayload } from '../../../shared/wire/channel.ts';
import { installReply } from '../../../shared/wire/connectors/connectors.ts';
import type { OutboundRequest } from '../../kernel/outbound.ts';
import { accessToken } from '../oauth/oauth_access_token.ts';

const CLIENT = LOGIN_SPEC.credential.login.client_id;

let control: InProcess;
let connectorId: string;
let reply: object;
let requests: OutboundRequest[];

beforeAll(async () => {
  requests = [];
  control = await startInProcess({
    outbound: {
      async call(request) {
        requests.push(request);
        const body = new TextEncoder().encode(JSON.stringify(reply));
        return ok({ status: 'error' in reply ? 401 : 200, contentType: 'application/json', body });
      },
    },
  });
  connectorId = (await parseReply(installReply, control.asUser('POST', '/v1/connectors?owner=personal', LOGIN_SPEC)))
    .id;
  await control.asUser('POST', '/v1/connectors?owner=personal', itemsSpec('1.0.0'));
});
afterAll(() => control.stop());

const bind = async (changes: object): Promise<string> => {
  const answered = await control.asUser('POST', '/v1/host-bindings', { ...LOGIN_BINDING, ...changes });
  return `${answered.status} ${await answered.text()}`;
};
const store = async (changes: object): Promise<string> => {
  const tokens = { access_token: 'old', refresh_token: 'first', expires_at: '2020-01-01T00:00:00.000Z' };
  const body = { kind: 'oauth2', client_id: CLIENT, ...tokens, ...changes };
  const answered = await control.asUser('PUT', `/v1/connectors/${connectorId}/credential`, body);
  return `${answered.status} ${await answered.text()}`;
};

test.each([
  ['a connector without a login', { credential_ref: 'vault://connectors/acme/items' }, 'serves its operations only'],
  [
    'a connector that is not installed',
    { credential_ref: 'vault://connectors/login/other' },
    'serves its operations only',
  ],
  ['a host that the login does not name', { host: 'evil.example.test' }, 'must be api.example.test'],
  ['a wildcard', { host: '*.example.test' }, 'must be api.example.test'],
  ['no placeholder', { emit_mechanism: 'inject', sentinel: undefined }, 'must be \\"sentinel-swap\\"'],
  ['another scheme', { scheme: 'query-param', query_param: 'token' }, 'must be \\"sentinel-swap\\"'],
  ['the place of an MCP server', { credential_ref: 'vault://mcp-servers/mcp_1/oauth' }, 'reserved'],
])('a binding gets no credential of %s', async (_what, changes, message) => {
  const answered = await bind(changes);
  expect(answered).toMatch(/^400 /);
  expect(answered).toContain(message);
});

test('a binding at a host of the login may use its access token, also when it is replaced', async () => {
  const created = await bind({});
  expect(created).toMatch(/^201 /);
  const { id } = JSON.parse(created.slice(4));
  const moved = await control.asUser('PUT', `/v1/host-bindings/${id}`, { ...LOGIN_BINDING, host: 'evil.example.test' });
  expect(moved.status).toBe(400);
});

test.each([
  [{ refresh_token: 'svc-placeholder-refresh-0123456789' }, 'is a placeholder of svc'],
  [{ client_id: 'other' }, `must be ${CLIENT}`],
  [{ token_url: 'https://evil.example.test/token' }, 'must be that of the spec'],
])(
  'the tokens of a login are refreshed by its own client at its own endpoint, not with %j',
  async (changes, message) => {
    expect(await store(changes)).toContain(message);
  },
);

test('a login is refreshed with JSON, and each refresh token is used once', async () => {
  await store({});
  reply = { access_token: 'new', refresh_token: 'second', expires_in: 1 };
  const token = await accessToken(control.context, connectorId);
  expect(token.ok && token.value.token.reveal()).toBe('new');
  control.clock.ms += 60_000;
  reply = { access_token: 'newer', refresh_token: 'third', expires_in: 3600 };
  await accessToken(control.context, connectorId);
  const bodies = requests.map(({ body }) => JSON.parse(new TextDecoder().decode(body ?? undefined)));
  expect(bodies).toEqual([
    { grant_type: 'refresh_token', refresh_token: 'first', client_id: CLIENT },
    { grant_type: 'refresh_token', refresh_token: 'second', client_id: CLIENT },
  ]);
  expect(requests.map(({ url, headers }) => [url, headers['content-type']])).toEqual(
    Array.from({ length: 2 }, () => ['https://auth.example.test/token', 'application/json']),
  );
});

test('a refused refresh whose error is an object ends the login', async () => {
  await store({});
  reply = { error: { code: 'refresh_token_reused', message: 'no' } };
  expect(await accessToken(control.context, connectorId)).toMatchObject({
    error: { code: 'reauthorisation_required' },
  });
});

const install = async (spec: object) =>
  parseReply(installReply, control.asUser('POST', '/v1/connectors?owner=personal', spec));

const version = (changes: object, login: object = {}) => ({
  ...LOGIN_SPEC,
  connector: { ...LOGIN_SPEC.connector, version: crypto.randomUUID() },
  credential: { ...LOGIN_SPEC.credential, login: { ...LOGIN_SPEC.credential.login, ...login } },
  ...changes,
});

describe('another version of a login', () => {
  beforeEach(async () => {
    await install(version({}, { paths: ['/v1'] }));
    await store({});
  });

  test('keeps the tokens if they go nowhere else', async () => {
    const { credential, warnings } = await install(version({}, { paths: ['/v1/messages'] }));
    expect({ state: credential.state, warnings }).toEqual({ state: 'ready', warnings: [] });
  });

  test.each([
    ['a further host', version({}, { hosts: ['api.example.test', 'evil.example.test'] })],
    ['a further path', version({}, { paths: ['/v1', '/admin'] })],
    ['another client', version({}, { client_id: 'other' })],
    [
      'another token URL',
      version({
        hosts: ['evil.example.test'],
        credential: { ...LOGIN_SPEC.credential, token_url: 'https://evil.example.test/token' },
      }),
    ],
  ])('with %s loses the tokens, and says so', async (_what, spec) => {
    const { credential, warnings } = await install(spec);
    expect(credential.state).toBe('missing');
    expect(warnings.join()).toContain('so they are deleted');
  });

  test.each([
    ['an ordinary connector cannot take its name', { credential: { kind: 'oauth2' } }, 'is reserved for the logins'],
    ['it cannot have another name', { connector: { ...LOGIN_SPEC.connector, fqn: 'acme/claude' } }, 'must begin with'],
  ])('%s', async (_what, changes, message) => {
    for (const route of ['/v1/connectors?owner=personal', '/v1/connectors/validate']) {
      const answered = await control.asUser('POST', route, version(changes));
      expect(answered.status).toBe(400);
      expect(await answered.text()).toContain(message);
    }
  });
});

test('the stored tokens are not released as a secret if their connector is gone', async () => {
  await store({});
  const sidecar = await control.enrolSidecar();
  await control.context.database.client.execute(`DELETE FROM connectors WHERE id = '${connectorId}'`);
  const credential = { owner: 'personal', path: 'connectors/login/claude' };
  const body = { request_id: crypto.randomUUID(), credentials: [credential] };
  const answered = await sidecar.call('POST', '/v1/sidecar/credentials', { body });
  const released = await sidecar.verify(await answered.text(), CREDENTIALS_TYP, credentialsPayload);
  expect(released).toMatchObject({ credentials: [], missing: [credential] });
});
