import { randomBytes } from 'node:crypto';
import { z } from 'zod';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type InProcess, parseReply, startInProcess } from '../e2e/runtimes/in_process.ts';
import { signInLinkReply, meReply } from '../shared/wire/account.ts';
import { ERROR_STATUS, errorBody } from '../shared/wire/errors.ts';
import { hostBindingRecord } from '../shared/wire/host_binding.ts';
import { secretsPage } from '../shared/wire/secrets.ts';
import { createApp } from './app.ts';
import { fileAssets } from './entries/file_assets.ts';
import { pageTable } from './routes/console/page_table.ts';
import { VERSION } from './services/people/account.ts';
import packageJson from '../package.json' with { type: 'json' };

let control: InProcess;
beforeAll(async () => {
  control = await startInProcess();
});
afterAll(() => control.stop());

const described = z.object({ security: z.array(z.unknown()) });
const openApi = z.object({ paths: z.record(z.string(), z.record(z.string(), described)) });
const BINDING = { host: 'api.example.test', scheme: 'bearer', credential_ref: 'vault://user/demo' };

async function refusal(reply: Response | Promise<Response>) {
  const answered = await reply;
  const { error } = errorBody.parse(await answered.json());
  expect(answered.status).toBe(ERROR_STATUS[error.code]);
  expect(error.request_id).toBe(answered.headers.get('svc-request-id'));
  return error;
}

/** No sign-in is listed, or one of the alternatives is empty. */
const needsNoSignIn = (security: readonly unknown[]) =>
  security.length === 0 || JSON.stringify(security).startsWith('[{},');

/** Operations that need no credentials, apart from signing in. */
const OPEN = /^\/v1\/(health|ready|marketplace\/servers)(\/|$)/;

describe('the API refuses', () => {
  test.each([
    ['a field it does not know', { path: 'a', value: 'v', ttl: 1 }, 'ttl', 'is not a field here'],
    ['a missing field', { path: 'a' }, 'value', 'is missing'],
    ['a field of another type', { path: 'a', value: 5 }, 'value', 'must be a string'],
    ['a value outside a closed set', { path: 'a', value: 'v', owner: 'me' }, 'owner', 'personal, enterprise'],
    [
      'a text that is too long',
      { path: 'a', value: 'v', description: 'x'.repeat(501) },
      'description',
      'at most 500 characters',
    ],
  ])('%s and names it', async (_, body, field, problem) => {
    const error = await refusal(control.asUser('POST', '/v1/secrets', body));
    expect(error).toMatchObject({ code: 'invalid_input', details: { fields: [{ field }] } });
    expect(error.message).toContain(problem);
  });

  test('an unknown query parameter', async () => {
    expect(await refusal(control.asUser('GET', '/v1/secrets?sort=path'))).toMatchObject({ code: 'invalid_query' });
    expect(await refusal(control.asUser('GET', '/v1/secrets?limit=501'))).toMatchObject({ code: 'invalid_query' });
    expect(await refusal(control.asUser('GET', '/v1/audit-events?type=nonsense'))).toMatchObject({
      code: 'invalid_query',
    });
    expect(await refusal(control.asUser('GET', '/v1/secrets?cursor=bm90IG91cnM'))).toMatchObject({
      code: 'invalid_cursor',
    });
  });

  test('a body that is not JSON, is not declared as JSON, or is over 1 MiB', async () => {
    const headers = { authorization: `Bearer ${control.localKey}` };
    const post = (type: string, body: string) =>
      control.send('/v1/secrets', { method: 'POST', headers: { ...headers, 'content-type': type }, body });
    expect(await refusal(post('application/json', '{'))).toMatchObject({ code: 'invalid_json' });
    expect(await refusal(post('text/plain', '{}'))).toMatchObject({ code: 'unsupported_media_type' });
    const large = JSON.stringify({ path: 'a', value: 'v'.repeat(1024 * 1024) });
    expect(await refusal(post('application/json', large))).toMatchObject({ code: 'body_too_large' });
    const { readable, writable } = new TransformStream();
    void new Blob([large])
      .stream()
      .pipeTo(writable)
      .catch(() => undefined);
    const streamed = {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json' },
      body: readable,
      duplex: 'half' as const,
    };
    expect(await refusal(control.send('/v1/secrets', streamed))).toMatchObject({ code: 'body_too_large' });
  });

  test('an unknown path', async () => {
    expect(await refusal(control.asUser('GET', '/v1/nothing'))).toMatchObject({ code: 'not_found' });
    expect(await refusal(control.asUser('GET', '/v1/host-bindings/bnd_00000000000000000000000000'))).toMatchObject({
      code: 'not_found',
    });
  });

  test.each(['evil.test', '127.0.0.1.evil.test', 'localhost.evil.test', '10.0.0.1', '[::2]'])(
    'a call to the host name %s',
    async (name) => {
      const url = `http://${name}:7420/v1/health`;
      const app = createApp({ context: () => control.context, assets: fileAssets(), log: () => undefined });
      expect(await refusal(app.fetch(new Request(url)))).toMatchObject({ code: 'misdirected_host' });
    },
  );

  test('every path without credentials, except those declared public', async () => {
    const document = await parseReply(openApi, control.send('/openapi.json'));
    const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, { security }]) => ({
        path,
        method,
        isOpen: needsNoSignIn(security),
        isOfBrowser: JSON.stringify(security) === '[{"browser":[]}]',
      })),
    );
    expect(operations.length).toBeGreaterThan(20);
    expect(operations.filter(({ path, isOpen }) => isOpen && path.startsWith('/v1/') && !OPEN.test(path))).toEqual([]);
    for (const { path, method } of operations.filter(({ isOfBrowser }) => isOfBrowser)) {
      const reply = await control.send(path.replace(/\{\w+\}/, 'x'), { method: method.toUpperCase() });
      const isSentToSignIn = reply.headers.get('location')?.startsWith('/sign-in?') === true;
      expect([path, reply.status === 303 ? isSentToSignIn : [401, 403].includes(reply.status)]).toEqual([path, true]);
    }
    const ofScim = operations.filter(({ path }) => path.startsWith('/scim/'));
    expect(ofScim.length).toBeGreaterThan(15);
    for (const { path, method } of ofScim) {
      const reply = await control.send(path.replace(/\{\w+\}/, 'x'), { method: method.toUpperCase() });
      expect([path, reply.status, await reply.json()]).toMatchObject([path, 401, { status: '401' }]);
    }
    const others = operations.filter(
      ({ isOpen, isOfBrowser, path }) => !isOpen && !isOfBrowser && !path.startsWith('/scim/'),
    );
    for (const { path, method } of others) {
      const error = await refusal(control.send(path.replace(/\{\w+\}/, 'x'), { method: method.toUpperCase() }));
      expect([path, error.code]).toEqual([path, 'unauthenticated']);
    }
  });
});

async function cookie(): Promise<string> {
  const { url } = await parseReply(signInLinkReply, control.asUser('POST', '/v1/sign-in-links'));
  const opened = await control.send(url);
  const set = opened.headers.get('set-cookie') ?? '';
  expect(set).toMatch(/; HttpOnly; SameSite=Lax/);
  return set.split(';')[0] ?? '';
}
const remove = (headers: Record<string, string>) =>
  control.inBrowser('/v1/secrets/none', { method: 'DELETE', headers });

describe('a signed-in browser', () => {
  test.each([
    ['another origin', { origin: 'https://evil.test' }],
    ['another port of this machine', { origin: 'http://127.0.0.1:9999', 'sec-fetch-site': 'same-site' }],
    ['a cross-site page', { 'sec-fetch-site': 'cross-site' }],
    ['a page that does not say where it is from', {}],
  ])('cannot change anything from %s', async (_, headers) => {
    expect(await refusal(remove({ cookie: await cookie(), ...headers }))).toMatchObject({ code: 'cross_site_request' });
  });

  test.each([
    [(): string => control.consoleOrigin, undefined],
    [undefined, 'same-origin'],
  ])('can change things from our own pages: %#', async (origin, site) => {
    const headers = { ...(origin && { origin: origin() }), ...(site && { 'sec-fetch-site': site }) };
    expect(await refusal(remove({ cookie: await cookie(), ...headers }))).toMatchObject({ code: 'not_found' });
  });

  test('is signed in for twelve hours by a link that is valid for ten minutes', async () => {
    const { url } = await parseReply(signInLinkReply, control.asUser('POST', '/v1/sign-in-links'));
    const held = await cookie();
    control.clock.ms += 10 * 60_000 + 1_000;
    expect((await control.send(url)).status).toBe(410);
    expect((await control.inBrowser('/', { headers: { cookie: held } })).status).toBe(200);
    control.clock.ms += 12 * 3_600_000;
    expect((await control.inBrowser('/', { headers: { cookie: held } })).status).toBe(401);
  });

  test('gets pages that run only our own scripts and load nothing from elsewhere', async () => {
    for (const path of ['/', '/docs']) {
      const page = await control.inBrowser(path, { headers: { cookie: await cookie() } });
      expect(page.headers.get('content-security-policy')).toMatch(
        /^default-src 'none'; script-src 'self'; .*require-trusted-types-for 'script'; trusted-types 'none'$/,
      );
      const html = await page.text();
      expect(html).not.toMatch(/<script(?! type="module" src="\/assets\/console\.[0-9a-f]{16}\.js"><\/script>)/);
      expect(html).not.toMatch(/style=|(?:src|href|action)="(?:https?:)?\/\/|\son\w+=/i);
    }
  });
});

const swap = (value: string) => ({
  ...BINDING,
  host: 'two.example.test',
  emit_mechanism: 'sentinel-swap',
  sentinel: { value },
});

describe('bindings and secrets', () => {
  test('paging returns each item once', async () => {
    for (const n of [1, 2, 3, 4, 5]) await control.asUser('POST', '/v1/secrets', { path: `page/${n}`, value: 'v' });
    const seen: string[] = [];
    let cursor = '';
    for (;;) {
      const { items, next_cursor: next } = await parseReply(
        secretsPage,
        control.asUser('GET', `/v1/secrets?limit=2${cursor}`),
      );
      seen.push(...items.map(({ path }) => path));
      if (next === null) break;
      cursor = `&cursor=${next}`;
    }
    expect(seen).toEqual(['page/1', 'page/2', 'page/3', 'page/4', 'page/5']);
  });

  test('the placeholder of a binding is not stored as a credential, and replaces none', async () => {
    const placeholder = 'sk-proj-0123456789abcdefghijklmnopqrstuvwxyz0123456789AB';
    const binding = { ...swap(placeholder), credential_ref: 'vault://user/openai' };
    expect((await control.asUser('POST', '/v1/host-bindings', binding)).status).toBe(201);
    const store = (value: string) => control.asUser('POST', '/v1/secrets', { path: 'user/openai', value });
    expect((await store('the real key')).status).toBe(201);
    for (const value of [placeholder, `${placeholder}\n`]) {
      const error = await refusal(store(value));
      expect(error).toMatchObject({ code: 'invalid_input', details: { fields: [{ field: 'value' }] } });
      expect(error.message).not.toContain(placeholder);
    }
    const { items } = await parseReply(secretsPage, control.asUser('GET', '/v1/secrets'));
    expect(items.filter(({ path }) => path === 'user/openai')).toMatchObject([{ version: 1 }]);
  });

  test('replacing a binding replaces all fields, keeps its id and owner, and releases the secrets it used', async () => {
    await control.asUser('POST', '/v1/secrets', { path: 'user/old', value: 'v' });
    const created = await parseReply(
      hostBindingRecord,
      control.asUser('POST', '/v1/host-bindings', {
        ...BINDING,
        credential_ref: 'vault://user/old',
        effect: 'read',
      }),
    );
    const replaced = await control.asUser('PUT', `/v1/host-bindings/${created.id}`, BINDING);
    expect(await replaced.json()).toMatchObject({
      id: created.id,
      credential_ref: 'vault://user/demo',
      created_at: created.created_at,
    });
    expect((await control.asUser('DELETE', '/v1/secrets/user%2Fold')).status).toBe(204);
    expect(
      await refusal(
        control.asUser('PUT', `/v1/host-bindings/${created.id}`, { ...BINDING, revision: created.updated_at }),
      ),
    ).toMatchObject({ code: 'conflict', message: expect.stringContaining('read it again') });
    const putIfMatch = (value: string) =>
      control.asUser('PUT', `/v1/host-bindings/${created.id}`, BINDING, { 'if-match': value });
    expect(await refusal(putIfMatch(`"${created.updated_at}"`))).toMatchObject({ code: 'conflict' });
    expect(await refusal(putIfMatch(created.updated_at))).toMatchObject({
      code: 'invalid_input',
      details: { fields: [{ field: 'If-Match', message: expect.stringContaining('in double quotes') }] },
    });
    const { updated_at: current } = await parseReply(
      hostBindingRecord,
      control.asUser('GET', `/v1/host-bindings/${created.id}`),
    );
    expect((await putIfMatch(`"${current}"`)).status).toBe(200);
    expect(
      await refusal(control.asUser('PUT', `/v1/host-bindings/${created.id}`, { ...BINDING, owner: 'enterprise' })),
    ).toMatchObject({
      code: 'invalid_input',
      details: { fields: [{ field: 'owner' }] },
    });
    expect((await control.asUser('DELETE', `/v1/host-bindings/${created.id}`)).status).toBe(204);
  });

  test('a host pattern takes one binding for each sentinel and owner', async () => {
    const statuses = [];
    for (const body of [
      swap('sentinel-value-0001'),
      swap('sentinel-value-0002'),
      swap('sentinel-value-0001'),
      { ...BINDING, host: 'two.example.test' },
      { ...BINDING, host: 'two.example.test', owner: 'enterprise' },
    ]) {
      statuses.push((await control.asUser('POST', '/v1/host-bindings', body)).status);
    }
    expect(statuses).toEqual([201, 201, 409, 201, 201]);
  });

  test('concurrent writes all succeed, each with its audit event', async () => {
    const paths = Array.from({ length: 20 }, (_, n) => `many/${n}`);
    const replies = await Promise.all(paths.map((path) => control.asUser('POST', '/v1/secrets', { path, value: 'v' })));
    expect(new Set(replies.map((reply) => reply.status))).toEqual(new Set([201]));
    const versions = replies.map((reply) => Number(reply.headers.get('svc-policy-version')));
    expect(Math.max(...versions)).toBe((await parseReply(meReply, control.asUser('GET', '/v1/me'))).policy_version);
    expect(await (await control.asUser('GET', '/v1/audit-events/verify')).json()).toMatchObject({ ok: true });
  });

  test('of two concurrent creations of the same binding, one succeeds', async () => {
    const body = { ...BINDING, host: 'race.example.test' };
    const replies = await Promise.all([1, 2, 3].map(() => control.asUser('POST', '/v1/host-bindings', body)));
    expect(replies.map((reply) => reply.status).toSorted((a, b) => a - b)).toEqual([201, 409, 409]);
  });
});

test('the OpenAPI document defines every schema it references', async () => {
  const text = await (await control.send('/openapi.json')).text();
  const document = z
    .object({ components: z.record(z.string(), z.record(z.string(), z.unknown())) })
    .parse(JSON.parse(text));
  const references = [...text.matchAll(/"\$ref":"#\/components\/(\w+)\/(\w+)"/g)];
  expect(references.length).toBeGreaterThan(20);
  for (const [, kind, name] of references) expect(document.components[kind ?? '']).toHaveProperty(name ?? '');
  expect(Object.keys(document.components['securitySchemes'] ?? {})).toEqual(['user', 'sidecar', 'browser', 'scim']);
});

test('no pattern of the OpenAPI document has a flag, which JSON Schema lacks', async () => {
  const text = await (await control.send('/openapi.json')).text();
  const patterns = Array.from(text.matchAll(/"pattern":("(?:[^"\\]|\\.)*")/g), ([, quoted = '""']) =>
    String(JSON.parse(quoted)),
  );
  expect(patterns.length).toBeGreaterThan(50);
  expect(patterns.filter((pattern) => /\$\/\w*$/.test(pattern))).toEqual([]);
});

test('the OpenAPI document lists If-Match where a revision is taken', async () => {
  const parameter = z.object({ name: z.string(), in: z.string(), required: z.boolean().optional() });
  const put = z.object({ parameters: z.array(parameter) });
  const { paths } = z
    .object({ paths: z.record(z.string(), z.looseObject({ put: put.optional().catch(undefined) })) })
    .parse(await (await control.send('/openapi.json')).json());
  const taking = Object.entries(paths).flatMap(([path, methods]) =>
    (methods.put?.parameters ?? [])
      .filter((each) => each.in === 'header' && !path.startsWith('/scim/'))
      .map(({ name, required }) => [path, name, required === true]),
  );
  expect(taking).toEqual([
    ['/v1/enterprise', 'If-Match', false],
    ['/v1/members/{id}', 'If-Match', false],
    ['/v1/groups/{id}', 'If-Match', false],
    ['/v1/service-accounts/{id}', 'If-Match', false],
    ['/v1/host-bindings/{id}', 'If-Match', false],
    ['/v1/mcp-rules', 'If-Match', false],
    ['/v1/mcp-servers/{id}', 'If-Match', false],
  ]);
});

test('the OpenAPI document lists every way to sign in and every path of it that browsers use', async () => {
  const text = await (await control.send('/openapi.json')).text();
  const { paths } = z
    .object({ paths: z.record(z.string(), z.record(z.string(), z.unknown())) })
    .parse(JSON.parse(text));
  const listed = Object.entries(paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method} ${path}`),
  );
  expect(listed).toEqual(
    expect.arrayContaining([
      'get /auth/providers',
      'get /auth/{provider}/login',
      'get /auth/{provider}/callback',
      'post /auth/{provider}/acs',
      'get /auth/{provider}/metadata',
      'get /auth/sso',
      'post /auth/signup',
      'post /auth/verify',
      'post /auth/login',
      'post /auth/logout',
      'post /auth/refresh',
      'post /auth/device/code',
      'post /auth/device/token',
      'get /.well-known/jwks.json',
    ]),
  );
  const app = createApp({ context: () => control.context, assets: fileAssets(), log: () => undefined });
  const ofBrowsers = pageTable(app).filter(([, path]) => path.startsWith('/auth/'));
  expect(ofBrowsers.length).toBeGreaterThan(5);
  expect(ofBrowsers.map(([method, path]) => `${method} ${path}`).filter((name) => !listed.includes(name))).toEqual([]);
  const docs = await (await control.send('/docs')).text();
  for (const name of listed) expect(docs).toContain(`<code>${name.split(' ')[1]}</code>`);
});

test("the API reports the package's version", () => {
  expect(VERSION).toBe(packageJson.version);
});

test('a planted secret appears in no reply, log line or database file', async () => {
  const secret = `planted-${randomBytes(24).toString('hex')}`;
  const own = await startInProcess();
  const replies: string[] = [];
  const keep = async (reply: Promise<Response>) => replies.push(await (await reply).text());
  await keep(own.asUser('POST', '/v1/secrets', { path: 'user/demo', value: secret, description: 'of a test' }));
  await keep(own.asUser('POST', '/v1/host-bindings', BINDING));
  // Places where people put a secret by mistake.
  await keep(own.asUser('POST', '/v1/secrets', { path: secret.toUpperCase(), value: secret }));
  await keep(own.asUser('POST', '/v1/host-bindings', { ...BINDING, host: 'b.example.test', credential_ref: secret }));
  await keep(own.asUser('POST', '/v1/host-bindings', { ...BINDING, host: 'c.example.test', scheme: secret }));
  await keep(
    own.asUser('POST', '/v1/host-bindings/explain', {
      method: 'GET',
      url: `https://api.example.test/?token=${secret}`,
    }),
  );
  await keep(own.send('/v1/me', { headers: { authorization: `Bearer ${secret}` } }));
  await keep(own.asUser('GET', `/v1/secrets?value=${secret}`));
  await keep(
    own.send('/v1/secrets', {
      method: 'POST',
      headers: { authorization: `Bearer ${own.localKey}`, 'content-type': 'application/json' },
      body: `{"value":"${secret}"`,
    }),
  );
  const sidecar = await own.enrolSidecar();
  await keep(sidecar.call('GET', '/v1/sidecar/snapshot'));
  const credentials = [{ owner: 'personal', path: 'user/demo' }];
  await keep(
    sidecar.call('POST', '/v1/sidecar/credentials', { body: { request_id: 'request-of-the-test', credentials } }),
  );
  for (const path of [
    '/v1/secrets',
    '/v1/host-bindings',
    '/v1/audit-events',
    '/v1/sidecars',
    '/openapi.json',
    '/docs',
  ]) {
    await keep(own.asUser('GET', path));
  }
  const encodings = [secret, Buffer.from(secret).toString('base64').slice(4, -4), Buffer.from(secret).toString('hex')];
  const database = await own.databaseBytes();
  for (const encoded of encodings) {
    expect(replies.filter((reply) => reply.toLowerCase().includes(encoded.toLowerCase()))).toEqual([]);
    expect(JSON.stringify(own.log)).not.toContain(encoded);
    expect(database.includes(encoded)).toBe(false);
  }
  expect(database.includes(own.localKey)).toBe(false);
  await own.stop();
});
