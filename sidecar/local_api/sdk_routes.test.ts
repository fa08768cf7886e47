import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { HostBinding } from '../../shared/model/host_binding.ts';
import { bearerBinding } from '../../shared/model/testing/sample_binding.ts';
import { AZURE_TOKEN_PATH } from '../../shared/net/sdk_endpoints.ts';
import type { Session } from '../session/session.ts';
import { HOST_TOKEN, LocalApiBench } from '../testing/local_api_bench.ts';
import { createContainerApi, createLocalApi } from './app.ts';

// Container credentials of AWS are in aws_placeholder.test.ts.

const HOUR_S = 3_600;
const ACCOUNT = '/computeMetadata/v1/instance/service-accounts/default';
const TOKEN = `${ACCOUNT}/token`;
const GOOGLE = { 'metadata-flavor': 'Google' };
const PLACEHOLDER = 'placeholder-that-the-proxy-replaces';
const MANAGEMENT = `${AZURE_TOKEN_PATH}?api-version=2019-08-01&resource=https%3A%2F%2Fmanagement.azure.com%2F`;
const google = bearerBinding('storage.googleapis.com');
const azure = bearerBinding('management.azure.com');
const swapping = (host: string, sentinel: string, more: Partial<HostBinding> = {}): HostBinding => ({
  ...bearerBinding(host),
  emit: { mechanism: 'sentinel-swap', sentinel },
  ...more,
});

let bench: LocalApiBench;
beforeEach(async () => {
  bench = await LocalApiBench.start();
});
afterEach(() => bench.stop());

interface Asked {
  readonly headers?: Readonly<Record<string, string>>;
  readonly method?: string;
  readonly host?: string;
}

function requestOf(path: string, { headers = {}, method = 'GET', host = '127.0.0.1:9100' }: Asked): Request {
  return new Request(`http://127.0.0.1:9100${path}`, { method, headers: { host, ...headers } });
}

async function read(answered: Response | Promise<Response>) {
  const response = await answered;
  return { status: response.status, headers: response.headers, text: await response.text() };
}

/** As it is asked at the session's own listener. */
const askOwn = (session: Session, path: string, asked: Asked = {}) =>
  read(createContainerApi(bench.options, { session, hostNames: [] }).request(requestOf(path, asked)));
/** As it is asked at the listener of all sessions. */
const askShared = (path: string, asked: Asked = {}) =>
  read(createLocalApi(bench.options).request(requestOf(path, asked)));
const asked = (token: string) => ({ headers: { 'x-identity-header': token } });
const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

async function open(body: object = {}) {
  const created = await bench.createSession(body);
  return { session: bench.sessions.get(created.id)!, ...created };
}

describe('Google’s metadata server', () => {
  it('gives a placeholder that ends within the hour, and no secret', async () => {
    bench.bindings = [azure, google];
    const { session } = await open();
    const reply = await askOwn(session, `${TOKEN}?scopes=https://www.googleapis.com/auth/cloud-platform`, {
      headers: GOOGLE,
    });
    expect([reply.status, JSON.parse(reply.text)]).toEqual([
      200,
      { access_token: PLACEHOLDER, expires_in: HOUR_S, token_type: 'Bearer' },
    ]);
    expect([reply.headers.get('metadata-flavor'), reply.headers.get('cache-control')]).toEqual(['Google', 'no-store']);
  });

  it('gives the sentinel of a binding that swaps one, in the order of placeholders', async () => {
    bench.bindings = [
      swapping('*.googleapis.com', 'theirs', { owner: 'enterprise' }),
      swapping('pubsub.googleapis.com', 'own'),
    ];
    const { session } = await open();
    expect(JSON.parse((await askOwn(session, TOKEN, { headers: GOOGLE })).text)).toMatchObject({ access_token: 'own' });
  });

  it.each([
    ['no Metadata-Flavor', {}],
    ['another Metadata-Flavor', { 'metadata-flavor': 'google' }],
    ['Metadata-Flavor twice', { 'metadata-flavor': 'Google, Google' }],
    ['a proxy on the way', { ...GOOGLE, 'x-forwarded-for': '10.0.0.1' }],
  ])('answers no request with %s, also with the session’s token', async (_, headers) => {
    bench.bindings = [google];
    const { session, token } = await open();
    for (const path of [TOKEN, `${ACCOUNT}/email`, '/computeMetadata/v1/', '/computeMetadata']) {
      const replies = [
        await askOwn(session, path, { headers }),
        await askShared(path, { headers: { ...headers, ...bearer(token) } }),
      ];
      expect(replies.map(({ status }) => status)).toEqual([403, 403]);
    }
  });

  it('asks for a token where other sessions are served as well', async () => {
    bench.bindings = [google];
    const { session, token } = await open();
    expect((await askShared(TOKEN, { headers: GOOGLE })).status).toBe(401);
    expect((await askShared(TOKEN, { headers: { ...GOOGLE, ...bearer(HOST_TOKEN) } })).status).toBe(401);
    expect((await askShared(TOKEN, { headers: { ...GOOGLE, ...bearer('svc_session_x') } })).status).toBe(401);
    expect((await askShared(TOKEN, { headers: { ...GOOGLE, ...bearer(token) } })).status).toBe(200);
    const gateway = createContainerApi(bench.options, { session: null, hostNames: [] });
    expect((await gateway.request(requestOf(TOKEN, { headers: GOOGLE }))).status).toBe(401);
    const other = await open();
    expect((await askOwn(session, TOKEN, { headers: { ...GOOGLE, ...bearer(other.token) } })).status).toBe(401);
  });

  it('has nothing for a session that has ended', async () => {
    bench.bindings = [google];
    const { session, id } = await open();
    await bench.sessions.end(id);
    expect((await askOwn(session, TOKEN, { headers: GOOGLE })).status).toBe(401);
  });

  it('is led to by no other name, as a browser would be', async () => {
    bench.bindings = [google];
    const { session } = await open();
    const reply = await askOwn(session, TOKEN, { headers: GOOGLE, host: 'metadata.google.internal' });
    expect(reply.status).toBe(421);
  });

  it.each([
    ['/', 'computeMetadata/\n'],
    ['/computeMetadata/v1/instance', 'service-accounts/\n'],
    [`${ACCOUNT}/email`, 'placeholder@svc.invalid'],
    [`${ACCOUNT}/?recursive=true`, '{"aliases":["default"],"email":"placeholder@svc.invalid"'],
    ['/computeMetadata/v1/instance/service-accounts/', 'default/\nplaceholder@svc.invalid/\n'],
    ['/computeMetadata/v1/instance/service-accounts/placeholder@svc.invalid/?recursive=True', '"aliases":["default"]'],
    ['/computeMetadata/v1/instance/service-accounts/placeholder%40svc.invalid/token?scopes=a', '"access_token":"'],
    ['/computeMetadata/v1/project/numeric-project-id', '0'],
    ['/computeMetadata/v1/project/project-id', ''],
    ['/computeMetadata/v1/universe/universe-domain', 'googleapis.com'],
  ])('says at %s what libraries look for', async (path, text) => {
    bench.bindings = [google];
    const { session } = await open();
    const reply = await askOwn(session, path, { headers: GOOGLE });
    expect([reply.status, reply.headers.get('metadata-flavor')]).toEqual([200, 'Google']);
    expect(reply.text).toContain(text);
  });

  it.each([
    [`${ACCOUNT}/identity?audience=a`, 404, 'access token'],
    ['/computeMetadata/v1/instance/service-accounts/other/token', 404, 'access token'],
    ['/computeMetadata/v1/instance/service-accounts/placeholder@svc.invalid.test/token', 404, 'access token'],
    ['/computeMetadata/v1/__proto__', 404, 'access token'],
  ])('has no %s', async (path, status, text) => {
    bench.bindings = [google];
    const { session } = await open();
    const reply = await askOwn(session, path, { headers: GOOGLE });
    expect([reply.status, reply.text.includes(text)]).toEqual([status, true]);
  });

  it('only reads', async () => {
    bench.bindings = [google];
    const { session } = await open();
    expect((await askOwn(session, TOKEN, { headers: GOOGLE, method: 'PUT' })).status).toBe(405);
  });

  it.each(['googleapis.com.evil.test', 'notgoogleapis.com', 'storage.googleapis.com.example.test'])(
    'is not there for %s, which is no host of Google’s',
    async (host) => {
      bench.bindings = [bearerBinding(host)];
      const { session, body } = await open();
      expect(body).not.toHaveProperty('sdk_endpoints');
      expect((await askOwn(session, TOKEN, { headers: GOOGLE })).status).toBe(404);
    },
  );

  it('is not there for a binding that puts no bearer token', async () => {
    const injection = { scheme: 'query-param', queryParam: 'key' } as const;
    bench.bindings = [{ ...bearerBinding('maps.googleapis.com'), injection }];
    expect((await open()).body).not.toHaveProperty('sdk_endpoints');
  });
});

describe('a managed identity of Azure', () => {
  it('gives a placeholder for the resource, which ends with the session', async () => {
    bench.bindings = [google, azure];
    const { session, token } = await open({ ttl_seconds: 300 });
    const reply = await askShared(MANAGEMENT, asked(token));
    expect([reply.status, JSON.parse(reply.text)]).toEqual([
      200,
      {
        access_token: PLACEHOLDER,
        expires_on: String(Math.floor(session.expiresAt / 1000)),
        resource: 'https://management.azure.com/',
        token_type: 'Bearer',
      },
    ]);
  });

  it('gives the sentinel of the binding that is for the resource', async () => {
    bench.bindings = [swapping('graph.microsoft.com', 'of graph'), swapping('*.azure.com', 'of management')];
    const { token } = await open();
    expect(JSON.parse((await askShared(MANAGEMENT, asked(token))).text)).toMatchObject({
      access_token: 'of management',
    });
    const api = `${AZURE_TOKEN_PATH}?api-version=2019-08-01&resource=api%3A%2F%2Fapp`;
    expect(JSON.parse((await askShared(api, asked(token))).text)).toMatchObject({ access_token: 'of graph' });
  });

  it('wants the session’s token in its own header', async () => {
    bench.bindings = [azure];
    const [one, two] = [await open(), await open()];
    const headers = [
      {},
      bearer(one.token),
      { secret: one.token },
      { 'x-identity-header': HOST_TOKEN },
      { 'x-identity-header': 'svc_session_x' },
      { 'x-identity-header': '' },
      { 'x-identity-header': `${one.token} x` },
    ];
    for (const each of headers) expect((await askShared(MANAGEMENT, { headers: each })).status).toBe(401);
    expect((await askOwn(one.session, MANAGEMENT, asked(two.token))).status).toBe(401);
    expect((await askOwn(one.session, MANAGEMENT, asked(one.token))).status).toBe(200);
    await bench.sessions.end(one.id);
    expect((await askShared(MANAGEMENT, asked(one.token))).status).toBe(401);
  });

  it.each([
    ['api-version=2017-09-01&resource=https://vault.azure.net', 'api-version'],
    ['resource=https://vault.azure.net', 'api-version'],
    ['api-version=2019-08-01', 'resource'],
    ['api-version=2019-08-01&resource=', 'resource'],
  ])('refuses %s', async (query, field) => {
    bench.bindings = [azure];
    const { token } = await open();
    const reply = await askShared(`${AZURE_TOKEN_PATH}?${query}`, asked(token));
    expect([reply.status, reply.text.includes(field)]).toEqual([400, true]);
  });

  it('is not there without a binding of Azure’s', async () => {
    bench.bindings = [google, bearerBinding('management.azure.com.evil.test')];
    const { token, body } = await open();
    expect(body).toMatchObject({ sdk_endpoints: ['google'] });
    expect((await askShared(MANAGEMENT, asked(token))).status).toBe(404);
  });
});

it('a session learns at its start for which clouds it has placeholders', async () => {
  bench.bindings = [google, azure];
  expect((await open()).body).toMatchObject({ sdk_endpoints: ['google', 'azure'] });
});
