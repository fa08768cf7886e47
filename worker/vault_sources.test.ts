import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { type InProcess, parseReply, startInProcess } from '../e2e/runtimes/in_process.ts';
import type { TestSidecar } from '../e2e/runtimes/sidecar_client.ts';
import { listen } from '../e2e/support/tls_upstream.ts';
import { parseJson } from '../shared/model/json.ts';
import { ok } from '../shared/model/result.ts';
import { Secret } from '../shared/model/secret.ts';
import { auditEventsPage } from '../shared/wire/audit_events.ts';
import { CREDENTIALS_TYP, credentialsPayload, sealedCredential } from '../shared/wire/channel.ts';
import { errorBody } from '../shared/wire/errors.ts';
import { hostBindingRecord } from '../shared/wire/host_binding.ts';
import { sourcePlan, sourceRecord, sourcesPage } from '../shared/wire/secret_sources.ts';
import { SOURCE_TABLE, type SourceOf } from '../shared/wire/sources/source_table.ts';
import { narrowSource } from '../shared/wire/sources/narrow_source.ts';
import { nodeOutbound } from './entries/node_outbound.ts';
import type { Outbound, OutboundReply, OutboundRequest } from './kernel/outbound.ts';
import { json } from './kernel/testing/json_reply.ts';
import { VAULT_KV } from './services/sources/kinds/vault_kv.ts';
import { currentValue } from './services/sources/minted_value.ts';
import { findReferredSecret } from './store/secrets.ts';

// Vault is a stub, written from the reference of its HTTP API (KV version 2, AppRole, tokens, status codes), which OpenBao shares.

const REF = { owner: 'personal', path: 'ci/token' } as const;
const TOKEN = 'hvs.the-token-of-the-source';
const LOGIN_TOKEN = 'hvs.the-token-of-a-login';
const SECRET_ID = 'the-secret-id-of-the-role';
const VALUE = 'the-value-in-vault';
const VAULT_SCHEMA = SOURCE_TABLE.vault_kv.schema;
const KV = { kind: 'vault_kv', vault_url: 'https://vault.example.com', secret_path: 'ci/database', field: 'password' };
const ROLE = { ...KV, authentication: 'approle', role_id: 'the-role' };
const LIFE_MS = 300_000;

let asked: OutboundRequest[] = [];
/** What replaces an answer of the stub. */
let instead: (request: OutboundRequest) => Promise<OutboundReply | null>;
let secret: unknown;
let metadata: Record<string, unknown>;
let control: InProcess;
let sidecar: TestSidecar;

const errors = (status: number, ...texts: string[]) => json(status, { errors: texts });
const kv = () =>
  json(secret === null ? 404 : 200, { lease_id: '', lease_duration: 0, data: { data: secret, metadata }, auth: null });

function vault({ method, url, headers, body }: OutboundRequest): OutboundReply {
  const { pathname } = new URL(url);
  if (pathname === '/v1/auth/approle/login') {
    const sent = parseJson(new TextDecoder().decode(body ?? undefined));
    const isKnown = JSON.stringify(sent) === JSON.stringify({ role_id: 'the-role', secret_id: SECRET_ID });
    if (method !== 'POST' || !isKnown) return errors(400, 'invalid role or secret ID');
    return json(200, { auth: { client_token: LOGIN_TOKEN, lease_duration: 1200, renewable: true } });
  }
  if (![TOKEN, LOGIN_TOKEN].includes(headers['x-vault-token'] ?? '')) return errors(403, 'permission denied');
  if (pathname === '/v1/auth/token/revoke-self') return { ...json(204, ''), contentType: '' };
  if (method === 'GET' && pathname === '/v1/first/ci/database')
    return json(200, { lease_duration: 2_764_800, data: secret });
  return method === 'GET' && pathname === '/v1/secret/data/ci/database' ? kv() : errors(404);
}

const outbound: Outbound = {
  async call(request) {
    asked.push(request);
    return ok((await instead(request)) ?? vault(request));
  },
};

beforeEach(async () => {
  asked = [];
  instead = async () => null;
  secret = { password: VALUE, other: 'another-value' };
  metadata = { version: 3, created_time: '2026-01-01T00:00:00Z', deletion_time: '', destroyed: false };
  control = await startInProcess({ outbound });
  sidecar = await control.enrolSidecar();
});
afterEach(() => control.stop());

const put = (source: object = KV, key = TOKEN) =>
  control.asUser('POST', '/v1/secret-sources', { path: REF.path, source, key });
const bind = () =>
  control.asUser('POST', '/v1/host-bindings', {
    host: 'a.test',
    scheme: 'bearer',
    credential_ref: `vault://${REF.path}`,
  });
const list = async () => (await parseReply(sourcesPage, control.asUser('GET', '/v1/secret-sources'))).items;
const events = async () => (await parseReply(auditEventsPage, control.asUser('GET', '/v1/audit-events'))).items;
const tryOut = () => control.asUser('POST', '/v1/secret-sources/test', { path: REF.path });
const refusal = async () => (await parseReply(errorBody, tryOut())).error.message;

async function release() {
  const body = { request_id: crypto.randomUUID(), credentials: [REF] };
  const reply = await sidecar.call('POST', '/v1/sidecar/credentials', { body });
  return sidecar.verify(await reply.text(), CREDENTIALS_TYP, credentialsPayload);
}

async function released() {
  const { credentials } = await release();
  const [credential] = credentials;
  if (credential === undefined) return null;
  const { value } = sealedCredential.parse(await sidecar.unseal(credential.sealed));
  return { value, until: Date.parse(credential.expires_at ?? ''), version: credential.version };
}

async function ready(source: object = KV, key = TOKEN) {
  expect((await put(source, key)).status).toBe(201);
  await bind();
}

/** Nothing that is told, logged or at rest has a secret of these tests. */
async function expectNoSecret() {
  const told = JSON.stringify([await list(), await events(), control.log]);
  const bytes = await control.databaseBytes();
  for (const planted of [TOKEN, LOGIN_TOKEN, SECRET_ID, VALUE]) {
    expect([planted, told.includes(planted), bytes.includes(planted)]).toEqual([planted, false, false]);
  }
}

describe('a field of a secret in Vault (a stub by its reference)', () => {
  test('is read when it is needed, with the token and the namespace, for five minutes', async () => {
    await ready({ ...KV, namespace: 'teams/web', vault_url: 'https://vault.example.com:8200' });
    expect(asked).toEqual([]);
    expect(await released()).toMatchObject({ value: VALUE, until: control.clock.now() + LIFE_MS });
    expect(asked).toMatchObject([
      {
        method: 'GET',
        url: 'https://vault.example.com:8200/v1/secret/data/ci/database',
        anyPort: true,
        headers: { 'x-vault-token': TOKEN, 'x-vault-namespace': 'teams/web', 'x-vault-request': 'true' },
        body: null,
      },
    ]);
    expect((await list())[0]?.minted?.for).toBe(
      'the field password of secret/ci/database at vault.example.com:8200 in the namespace teams/web',
    );
    await expectNoSecret();
  });

  test('is read by an AppRole, whose token is revoked after the read', async () => {
    await ready(ROLE, SECRET_ID);
    expect((await released())?.value).toBe(VALUE);
    expect(asked.map(({ method, url }) => [method, new URL(url).pathname])).toEqual([
      ['POST', '/v1/auth/approle/login'],
      ['GET', '/v1/secret/data/ci/database'],
      ['POST', '/v1/auth/token/revoke-self'],
    ]);
    expect(asked.map(({ headers }) => headers['x-vault-token'])).toEqual([undefined, LOGIN_TOKEN, LOGIN_TOKEN]);
    await expectNoSecret();
  });

  test.each([
    ['that cannot be read', '/data/', 403],
    ['whose token cannot be revoked', '/revoke-self', 400],
  ])('by an AppRole %s leaves no token in what is told', async (_, part, status) => {
    instead = async ({ url }) => (url.includes(part) ? errors(status, `${LOGIN_TOKEN} ${VALUE}`) : null);
    await ready(ROLE, SECRET_ID);
    expect((await released())?.value).toBe(status === 403 ? undefined : VALUE);
    expect(asked.at(-1)?.url).toContain('/revoke-self');
    await expectNoSecret();
  });

  test('is read once for 1,000 requests at once', { timeout: 60_000 }, async () => {
    await ready(ROLE, SECRET_ID);
    const asking = Promise.withResolvers<void>();
    const answered = Promise.withResolvers<void>();
    const first = Promise.withResolvers<void>();
    instead = async () => {
      asking.resolve();
      await answered.promise;
      return null;
    };
    const { rows } = await control.context.database.client.execute('SELECT owner_id FROM secrets');
    const place = { ownerId: z.string().parse(rows[0]?.['owner_id']), path: REF.path };
    const row = await findReferredSecret(control.context.database, place);
    const clock = { now: () => control.clock.now(), sleep: () => first.promise };
    const values = Array.from({ length: 1_000 }, () => currentValue({ ...control.context, clock }, row!));
    for (const value of values) void value.then(() => first.resolve());
    await asking.promise;
    answered.resolve();
    const got = await Promise.all(values);
    expect(new Set(got.map((value) => value.ok && value.value.secret.reveal()))).toEqual(new Set([VALUE]));
    expect(asked).toHaveLength(3);
  });

  test('is never released at or after its end, and a change there is seen within five minutes', async () => {
    await ready();
    const first = await released();
    let current = VALUE;
    /** When each value was last in Vault. */
    const replacedAt = new Map<string, number>();
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 0, max: 2 * LIFE_MS }), async (laterMs) => {
        replacedAt.set(current, control.clock.now());
        current = `${VALUE}-${replacedAt.size}`;
        secret = { password: current };
        control.clock.ms += laterMs;
        const now = control.clock.now();
        const later = await released();
        expect(later?.until).toBeGreaterThan(now);
        expect(later?.until).toBeLessThanOrEqual(now + LIFE_MS);
        expect(later?.version).toBe(first?.version);
        expect(replacedAt.get(later?.value ?? '') ?? now).toBeGreaterThan(now - LIFE_MS);
      }),
      { numRuns: 20 },
    );
  });

  test('is not served past its end by a Vault that is sealed', async () => {
    await ready();
    await released();
    instead = async () => errors(503, 'Vault is sealed');
    control.clock.ms += LIFE_MS - 30_000;
    expect((await released())?.value).toBe(VALUE);
    control.clock.ms += 30_000;
    expect(await release()).toMatchObject({
      credentials: [],
      unavailable: [
        { ...REF, message: expect.stringContaining('status 503: it is sealed or in maintenance: unseal it') },
      ],
    });
  });

  test('ends when Vault deletes its version, if that is sooner', async () => {
    metadata['deletion_time'] = new Date(control.clock.now() + 60_000).toISOString();
    await ready();
    expect((await released())?.until).toBe(control.clock.now() + 60_000);
  });

  test('is refused at once when it is deleted here, also while it is being read', async () => {
    await put();
    const bound = await parseReply(hostBindingRecord, bind());
    await released();
    instead = async () => {
      await control.asUser('DELETE', `/v1/host-bindings/${bound.id}`);
      expect((await control.asUser('DELETE', `/v1/secrets/${REF.path}`)).status).toBe(204);
      return null;
    };
    control.clock.ms += LIFE_MS;
    expect((await release()).credentials).toEqual([]);
    expect((await release()).missing).toEqual([REF]);
    const { rows } = await control.context.database.client.execute('SELECT * FROM secret_sources');
    expect(rows).toEqual([]);
  });

  test('of one version is asked for by its number, and another version is discarded', async () => {
    await ready({ ...KV, version: 3 });
    expect((await released())?.value).toBe(VALUE);
    expect(asked[0]?.url).toBe('https://vault.example.com/v1/secret/data/ci/database?version=3');
    metadata['version'] = 4;
    expect(await refusal()).toContain('another version than was asked for, which was discarded');
  });
});

describe('a refusal of Vault says what to change, without its text', () => {
  test.each([
    [400, 'compare mount, secret_path and namespace'],
    [403, 'no policy of it allows "read" on this path'],
    [404, 'without "data/"'],
    [412, 'try again'],
    [429, 'a quota is used up'],
    [472, 'give the vault_url of the primary'],
    [473, 'performance standby'],
    [500, 'its log says which'],
    [501, 'not initialised'],
    [503, 'unseal it'],
    [418, 'vault.example.com answered with status 418'],
    [307, 'a standby answers so: give the vault_url of the active node'],
  ])('status %i', async (status, words) => {
    await put();
    instead = async () => errors(status, `${VALUE} of ${TOKEN}`);
    expect(await refusal()).toContain(words);
    await expectNoSecret();
  });

  test.each([
    [400, 'the secret id has ended or is used up'],
    [403, 'bound addresses'],
    [404, 'no AppRole at auth_mount'],
    [503, 'unseal it'],
  ])('status %i of a login', async (status, words) => {
    await put(ROLE, SECRET_ID);
    instead = async () => errors(status, SECRET_ID);
    expect(await refusal()).toContain(words);
    expect(asked).toHaveLength(1);
    await expectNoSecret();
  });

  test.each([
    ['deleted', { deletion_time: '2026-01-01T00:00:00Z' }, 'version 3 is deleted at vault.example.com: undelete it'],
    ['destroyed', { destroyed: true }, 'has destroyed version 3'],
  ])('a version that is %s', async (_, more, words) => {
    await put();
    secret = null;
    Object.assign(metadata, more);
    expect(await refusal()).toContain(words);
  });

  test.each([
    'not json',
    '[]',
    'null',
    '{"data":{"password":"the-value-in-vault"}}',
    '{"data":{"data":["the-value-in-vault"],"metadata":{"version":3}}}',
    '{"data":{"data":"the-value-in-vault","metadata":{"version":3}}}',
    '{"data":{"data":{"password":"the-value-in-vault"},"metadata":{"version":"3"}}}',
  ])('the answer %s', async (body) => {
    await put();
    instead = async () => json(200, body);
    expect(await refusal()).toContain('not that of a KV engine of version 2');
    await expectNoSecret();
  });

  test.each(['not json', '{"auth":null}', '{"auth":{"client_token":""}}', '{"auth":{"client_token":"a\\r\\nb: c"}}'])(
    'the login %s, of which nothing is sent on',
    async (body) => {
      await put(ROLE, SECRET_ID);
      instead = async () => json(200, body);
      expect(await refusal()).toContain('not that of a login');
      expect(asked).toHaveLength(1);
    },
  );

  test.each([
    [{ other: VALUE }, 'is not in the secret'],
    [{ password: 7 }, 'is not a text'],
    [{ password: { a: VALUE } }, 'is not a text'],
    [{ password: '' }, 'is empty'],
    [{ password: `${VALUE}\0` }, 'NUL'],
    [{ password: VALUE.repeat(10_000) }, 'larger than'],
  ])('the fields %#', async (fields, words) => {
    await put();
    secret = fields;
    expect(await refusal()).toContain(words);
    await expectNoSecret();
  });

  test.each(['__proto__', 'constructor', 'toString', 'hasOwnProperty'])(
    'the field %s, unless it is there',
    async (field) => {
      await put({ ...KV, field });
      expect(await refusal()).toContain('is not in the secret');
      instead = async () =>
        json(200, `{"data":{"data":{${JSON.stringify(field)}:"a-value"},"metadata":{"version":3}}}`);
      expect((await tryOut()).status).toBe(200);
    },
  );
});

describe('a source of Vault', () => {
  test.each([
    [{ vault_url: 'http://vault.example.com' }, 'source.vault_url'],
    [{ vault_url: 'https://10.0.0.7' }, 'source.vault_url'],
    [{ vault_url: 'https://169.254.169.254' }, 'source.vault_url'],
    [{ vault_url: 'https://10.0.0.7:8200' }, 'source.vault_url'],
    [{ vault_url: 'https://vault.example.com:80' }, 'source.vault_url'],
    [{ vault_url: 'https://vault.example.com:0' }, 'source.vault_url'],
    [{ vault_url: 'https://root@vault.example.com:8200' }, 'source.vault_url'],
    [{ vault_url: 'https://vault.example.com/v1' }, 'source.vault_url'],
    [{ vault_url: 'https://vault.example.com/?a=' }, 'source.vault_url'],
    [{ secret_path: '../../sys/seal' }, 'source.secret_path'],
    [{ secret_path: 'ci/./database' }, 'source.secret_path'],
    [{ secret_path: 'ci/%2e%2e/%2e%2e/sys' }, 'source.secret_path'],
    [{ secret_path: 'ci?version=1' }, 'source.secret_path'],
    [{ secret_path: '/ci' }, 'source.secret_path'],
    [{ mount: 'secret/' }, 'source.mount'],
    [{ namespace: 'a\r\nx-vault-token: b' }, 'source.namespace'],
    [{ field: 'a\nb' }, 'source.field'],
    [{ field: '' }, 'source.field'],
    [{ version: 0 }, 'source.version'],
    [{ authentication: 'approle' }, 'source.role_id'],
    [{ role_id: 'a' }, 'source.role_id'],
    [{ auth_mount: 'a' }, 'source.auth_mount'],
    [{ authentication: 'userpass' }, 'source.authentication'],
  ])('with %j is refused, and nothing is stored or called', async (more, field) => {
    const { error } = await parseReply(errorBody, put({ ...KV, ...more }));
    expect(error.code).toBe('invalid_input');
    expect(JSON.stringify(error)).toContain(field);
    expect([await list(), asked]).toEqual([[], []]);
  });

  test.each(['two words', 'a\r\nx-vault-namespace: b', 'tökén'])('with the key %j is refused', async (key) => {
    const { error } = await parseReply(errorBody, put(KV, key));
    expect(error).toMatchObject({ code: 'invalid_input', details: { fields: [{ field: 'key' }] } });
    expect(JSON.stringify(error)).not.toContain(key);
  });

  test('keeps a path in one place, whatever its characters', () => {
    const segment = fc.stringMatching(/^[ -~]{1,12}$/);
    fc.assert(
      fc.property(fc.array(segment, { minLength: 1, maxLength: 4 }), (segments) => {
        const path = segments.join('/');
        const read = VAULT_SCHEMA.safeParse({ ...KV, secret_path: path });
        if (!read.success) return;
        const url = new URL(VAULT_KV.plan(read.data).providerUrl ?? '');
        expect([url.search, url.hash]).toEqual(['', '']);
        expect(decodeURIComponent(url.pathname)).toBe(`/v1/secret/data/${path}`);
      }),
    );
  });

  test('shows what it is, and a dry run by which call and until when, without asking', async () => {
    const stored = await parseReply(sourceRecord, put(ROLE, SECRET_ID));
    expect(stored).toMatchObject({ source: { ...ROLE, mount: 'secret' }, minted: null, failure: null });
    const reply = control.asUser('POST', '/v1/secret-sources/dry-run', { path: REF.path });
    expect(await parseReply(sourcePlan, reply)).toEqual({
      kind: 'vault_kv',
      value: 'kept_value',
      minted_for: 'the field password of secret/ci/database at vault.example.com',
      identity: 'the role id the-role, which logs in at auth/approle',
      scope: ['field password'],
      audience: null,
      provider_url: 'https://vault.example.com/v1/secret/data/ci/database',
      life_seconds: 300,
      until_at_latest: new Date(control.clock.now() + LIFE_MS).toISOString(),
      key_checked: false,
    });
    expect(asked).toEqual([]);
  });

  test('cannot be narrowed', () => {
    const narrowed = narrowSource(VAULT_SCHEMA.parse(KV), { scopes: ['a'] });
    expect(narrowed).toEqual({ ok: false, error: expect.stringContaining('which cannot be narrowed') });
  });
});

/** A resolver for which every name is of a private network. */
const toPrivate = (
  _: string,
  __: object,
  done: (error: null, found: { address: string; family: number }[]) => void,
): void => done(null, [{ address: '10.0.0.7', family: 4 }]);

describe('over real HTTP', () => {
  let server: Server;
  let source: SourceOf<'vault_kv'>;
  let paths: string[];
  let serve: (request: IncomingMessage, reply: ServerResponse) => void;
  beforeEach(async () => {
    paths = [];
    server = createServer((request, reply) => {
      paths.push([request.headers['x-vault-token'], request.url].join(' '));
      serve(request, reply);
    });
    source = VAULT_SCHEMA.parse({ ...KV, vault_url: `http://127.0.0.1:${await listen(server)}` });
  });
  afterEach(() => new Promise((resolve) => server.close(resolve)));

  const mint = (of: Outbound) => VAULT_KV.mint({ source, key: new Secret(TOKEN), outbound: of, nowMs: 0 });
  const local = nodeOutbound({ isLocal: true, pinned: new Map() });

  test('a value is read', async () => {
    serve = (_, reply) => reply.end(JSON.stringify({ data: { data: secret, metadata } }));
    const minted = await mint(local);
    expect(minted.ok && [minted.value.value.reveal(), minted.value.expiresAtMs]).toEqual([VALUE, LIFE_MS]);
  });

  test('a redirect is not followed, so that the token goes nowhere else', async () => {
    serve = (_, reply) => reply.writeHead(307, { location: '/elsewhere' }).end();
    expect(await mint(local)).toMatchObject({ error: { message: expect.stringContaining('is not followed') } });
    expect(paths).toEqual([`${TOKEN} /v1/secret/data/ci/database`]);
  });

  test('a reply that is too large is not read to its end', async () => {
    serve = (_, reply) => reply.end(Buffer.alloc(3 * 1024 * 1024, 32));
    expect(await mint(local)).toMatchObject({ error: { message: expect.stringContaining('is larger than 2 MiB') } });
  });

  test('a hosted control plane calls no loopback and no name with a private address', async () => {
    const hosted = nodeOutbound({ isLocal: false, pinned: new Map(), resolve: toPrivate });
    expect(await mint(hosted)).toMatchObject({ error: { message: expect.stringContaining('https URLs only') } });
    for (const port of ['', ':8200']) {
      source = { ...source, vault_url: `https://vault.example.com${port}` };
      expect(await mint(hosted)).toMatchObject({ error: { message: expect.stringContaining('a private address') } });
    }
    expect(paths).toEqual([]);
  });
});

describe('a KV engine of version 1', () => {
  const FIRST = { ...KV, mount: 'first', kv_version: 1 };

  test('is read at the path itself, again every five minutes', async () => {
    await ready(FIRST);
    expect(await released()).toMatchObject({ value: VALUE, until: control.clock.now() + LIFE_MS });
    expect(asked.map(({ url }) => url)).toEqual(['https://vault.example.com/v1/first/ci/database']);
  });

  test.each([
    [{ ...FIRST, mount: 'secret' }, 'compare mount, secret_path'],
    [{ ...FIRST, field: 'none' }, 'is not in the secret'],
    [{ ...KV, mount: 'first' }, 'compare mount, secret_path'],
  ])('is told apart from one of version 2: %j', async (source, words) => {
    await put(source);
    expect(await refusal()).toContain(words);
  });

  test('keeps no earlier versions', async () => {
    const { error } = await parseReply(errorBody, put({ ...FIRST, version: 2 }));
    expect(error.message).toContain('source.version is not for an engine of version 1');
  });
});
