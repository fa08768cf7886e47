import { createServer, type Server } from 'node:http';
import { generateKeyPairSync, verify } from 'node:crypto';
import fc from 'fast-check';
import { Provider } from 'oidc-provider';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { type InProcess, parseReply, startInProcess } from '../e2e/runtimes/in_process.ts';
import type { TestSidecar } from '../e2e/runtimes/sidecar_client.ts';
import { listen } from '../e2e/support/tls_upstream.ts';
import { parseJson } from '../shared/model/json.ts';
import { err, ok } from '../shared/model/result.ts';
import { auditEventsPage } from '../shared/wire/audit_events.ts';
import {
  CREDENTIALS_TYP,
  credentialsPayload,
  sealedCredential,
  SNAPSHOT_TYP,
  snapshotPayload,
} from '../shared/wire/channel.ts';
import { errorBody } from '../shared/wire/errors.ts';
import { hostBindingRecord } from '../shared/wire/host_binding.ts';
import { sourcePlan, sourceRecord, sourcesPage, sourceTestReply } from '../shared/wire/secret_sources.ts';
import { nodeOutbound } from './entries/node_outbound.ts';
import type { Outbound, OutboundReply, OutboundRequest } from './kernel/outbound.ts';
import { json } from './kernel/testing/json_reply.ts';
import { currentValue } from './services/sources/minted_value.ts';
import { removeEndedValues } from './services/sources/secret_sources.ts';
import { findReferredSecret } from './store/secrets.ts';

const RSA = generateKeyPairSync('rsa', { modulusLength: 2048 });
const PKCS8 = RSA.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
const PKCS1 = RSA.privateKey.export({ type: 'pkcs1', format: 'pem' }).toString();
const REF = { owner: 'personal', path: 'ci/token' } as const;
const LIFE_SECONDS = 600;

/** What a provider was asked, and how it answers; by default it issues a numbered token. */
let asked: OutboundRequest[] = [];
let answer: (request: OutboundRequest, count: number) => OutboundReply | Promise<OutboundReply>;
let control: InProcess;
let sidecar: TestSidecar;

/** A stub: it answers as RFC 6749 section 5.1 says. */
const token = (count: number) =>
  json(200, { access_token: `minted-${count}-secret`, token_type: 'Bearer', expires_in: LIFE_SECONDS });
const outbound: Outbound = {
  async call(request) {
    asked.push(request);
    return ok(await answer(request, asked.length));
  },
};

beforeEach(async () => {
  asked = [];
  answer = (_, count) => token(count);
  control = await startInProcess({ outbound });
  sidecar = await control.enrolSidecar();
});
afterEach(() => control.stop());

const CLIENT = {
  kind: 'client_credentials',
  token_url: 'https://idp.example.com/token',
  client_id: 'ci',
  scopes: ['repo:read'],
};
const put = (source: object = CLIENT, key = 'the-client-secret', path: string = REF.path) =>
  control.asUser('POST', '/v1/secret-sources', { path, source, key });
const bind = (path: string = REF.path) =>
  control.asUser('POST', '/v1/host-bindings', { host: 'a.test', scheme: 'bearer', credential_ref: `vault://${path}` });
const list = async () => (await parseReply(sourcesPage, control.asUser('GET', '/v1/secret-sources'))).items;
const tryOut = () => control.asUser('POST', '/v1/secret-sources/test', { path: REF.path });
const events = async (type: string) =>
  (await parseReply(auditEventsPage, control.asUser('GET', `/v1/audit-events?type=${type}`))).items;

async function release(ref = REF) {
  const body = { request_id: crypto.randomUUID(), credentials: [ref] };
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

async function ready() {
  await put();
  await bind();
}

describe('a minted secret', () => {
  test('is minted when it is needed, released with its end, and audited without its value', async () => {
    await ready();
    expect(asked).toEqual([]);
    const until = control.clock.now() + LIFE_SECONDS * 1000;
    expect(await released()).toMatchObject({ value: 'minted-1-secret', until });
    const [event] = await events('control.secret.minted');
    expect(event?.data).toMatchObject({
      'svc.control.credential_ref': 'vault://ci/token',
      'svc.control.source': 'client_credentials',
      'svc.control.minted_for': 'the scope repo:read at idp.example.com for the client ci',
      'svc.control.until': new Date(until).toISOString(),
    });
  });

  test('is asked for as the provider needs it', async () => {
    await put({ ...CLIENT, audience: 'https://api.example.com', client_id: 'c:i', resource: 'https://r.example.com' });
    await bind();
    await released();
    const [request] = asked;
    expect(request?.url).toBe(CLIENT.token_url);
    expect(request?.headers['authorization']).toBe(`Basic ${btoa('c%3Ai:the-client-secret')}`);
    expect(sent()).toEqual({
      grant_type: 'client_credentials',
      scope: 'repo:read',
      audience: 'https://api.example.com',
      resource: 'https://r.example.com',
    });
  });

  test('is minted once for 1,000 requests at once', async () => {
    await ready();
    const asking = Promise.withResolvers<void>();
    const answered = Promise.withResolvers<void>();
    const first = Promise.withResolvers<void>();
    answer = async (_, count) => {
      asking.resolve();
      await answered.promise;
      return token(count);
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
    expect(new Set(got.map((value) => value.ok && value.value.secret.reveal()))).toEqual(new Set(['minted-1-secret']));
    expect(asked).toHaveLength(1);
  });

  test('is renewed before its end, under the same version, and is never released at or after it', async () => {
    await ready();
    const first = await released();
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 0, max: 2 * LIFE_SECONDS * 1000 }), async (laterMs) => {
        control.clock.ms += laterMs;
        const now = control.clock.now();
        const later = await released();
        expect(later?.until).toBeGreaterThan(now);
        expect(later?.version).toBe(first?.version);
        const [count] = /\d+/.exec(later?.value ?? '') ?? [];
        expect(Number(count)).toBe(asked.length);
      }),
      { numRuns: 30 },
    );
  });

  test('is not served past its end by a provider that is down, which answers with the reason', async () => {
    await ready();
    const first = await released();
    answer = () => json(400, { error: 'invalid_client', error_description: 'the-client-secret is wrong' });
    control.clock.ms += (LIFE_SECONDS - 30) * 1000;
    expect((await released())?.value).toBe(first?.value);
    control.clock.ms += 30_000;
    expect(await release()).toMatchObject({
      credentials: [],
      unavailable: [
        {
          ...REF,
          reason: 'credential_unavailable',
          message: expect.stringContaining('idp.example.com refused: invalid_client'),
        },
      ],
    });
    expect((await list())[0]).toMatchObject({
      minted: null,
      failure: { message: expect.stringMatching(/^idp\.example\.com refused: invalid_client \(.*client_id.*key\)$/) },
    });
    const failures = await events('control.secret.mint_failed');
    expect(failures).toHaveLength(1);
    expect(JSON.stringify(failures)).not.toContain('the-client-secret');
  });

  test('is taken out of the database at its end', async () => {
    await ready();
    await released();
    const held = async () =>
      (await control.context.database.client.execute('SELECT sealed_value FROM secret_sources')).rows[0]?.[
        'sealed_value'
      ];
    control.clock.ms += LIFE_SECONDS * 1000 - 1;
    await removeEndedValues(control.context);
    expect(await held()).not.toBeNull();
    control.clock.ms += 1;
    await removeEndedValues(control.context);
    expect(await held()).toBeNull();
  });

  test('that lives shorter than its way, or longer than a day, is not believed', async () => {
    await ready();
    answer = () => json(200, { access_token: 'x-secret-value', token_type: 'Bearer', expires_in: 1 });
    expect((await release()).unavailable).toMatchObject([{ message: expect.stringContaining('already ended') }]);
    control.clock.ms += 10_000;
    answer = () => json(200, { access_token: 'x-secret-value', token_type: 'Bearer', expires_in: 10 ** 8 });
    expect((await released())?.until).toBe(control.clock.now() + 24 * 3_600_000);
    await put();
    answer = () => json(200, { access_token: 'x-secret-value', token_type: 'Bearer' });
    expect((await released())?.until).toBe(control.clock.now() + 300_000);
  });

  test('is refused at once when it is deleted, also while it is being minted', async () => {
    await put();
    const bound = await parseReply(hostBindingRecord, bind());
    await released();
    answer = async (_, count) => {
      await control.asUser('DELETE', `/v1/host-bindings/${bound.id}`);
      expect((await control.asUser('DELETE', `/v1/secrets/${REF.path}`)).status).toBe(204);
      return token(count);
    };
    control.clock.ms += LIFE_SECONDS * 1000;
    expect((await release()).credentials).toEqual([]);
    expect((await release()).missing).toEqual([REF]);
    const { rows } = await control.context.database.client.execute('SELECT * FROM secret_sources');
    expect(rows).toEqual([]);
  });

  test('that was being minted while its source changed is discarded', async () => {
    await ready();
    answer = async (_, count) => {
      answer = (_request, later) => token(later);
      expect((await put({ ...CLIENT, scopes: ['other'] })).status).toBe(200);
      return token(count);
    };
    expect((await release()).credentials).toEqual([]);
    expect((await released())?.value).toBe('minted-2-secret');
    expect(asked).toHaveLength(2);
  });

  test('is minted anew after its source changed, and its version tells sidecars to drop the old value', async () => {
    await ready();
    const first = await released();
    expect((await put({ ...CLIENT, scopes: ['other'] })).status).toBe(200);
    const second = await released();
    expect(second?.value).toBe('minted-2-secret');
    expect(second?.version).not.toBe(first?.version);
  });

  test('becomes a stored one when a value is stored in its place', async () => {
    await ready();
    await released();
    await control.asUser('POST', '/v1/secrets', { path: REF.path, value: 'a stored value' });
    expect(await released()).toMatchObject({ value: 'a stored value', until: Number.NaN });
    expect(await list()).toEqual([]);
  });

  test('is marked in the snapshot, so that a slow provider delays no other credential', async () => {
    await ready();
    const reply = await sidecar.call('GET', '/v1/sidecar/snapshot');
    const { credentials } = await sidecar.verify(await reply.text(), SNAPSHOT_TYP, snapshotPayload);
    expect(credentials).toMatchObject([{ ...REF, minted: true }]);
  });
});

const borrow = (more: object = {}) =>
  control.asUser('POST', '/v1/secret-sources', { path: REF.path, source: { kind: 'borrowed' }, ...more });

describe('a borrowed secret', () => {
  test('is a record without a key, which the snapshot tells apart and no provider is asked for', async () => {
    expect((await borrow()).status).toBe(201);
    await bind();
    const reply = await sidecar.call('GET', '/v1/sidecar/snapshot');
    const { credentials } = await sidecar.verify(await reply.text(), SNAPSHOT_TYP, snapshotPayload);
    expect(credentials).toMatchObject([{ ...REF, borrowed: true }]);
    expect(credentials[0]).not.toHaveProperty('minted');
    expect(asked).toEqual([]);
  });

  test('is not in the control plane: neither a release nor a test has a value', async () => {
    await borrow();
    await bind();
    const { credentials, unavailable } = await release();
    expect([credentials, unavailable]).toMatchObject([[], [{ reason: 'credential_unavailable' }]]);
    expect(await parseReply(errorBody, tryOut())).toMatchObject({ error: { code: 'invalid_input' } });
  });

  test('takes no key, no program and no field, so that nobody can name one from there', async () => {
    expect(await parseReply(errorBody, borrow({ key: 'planted' }))).toMatchObject({ error: { code: 'invalid_input' } });
    const source = { kind: 'borrowed', program: '/bin/sh' };
    expect(await parseReply(errorBody, borrow({ source }))).toMatchObject({ error: { code: 'invalid_input' } });
    const missing = control.asUser('POST', '/v1/secret-sources', { path: REF.path, source: CLIENT });
    expect(await parseReply(errorBody, missing)).toMatchObject({ error: { details: { fields: [{ field: 'key' }] } } });
  });
});

describe('a source', () => {
  test.each([
    'https://169.254.169.254/token',
    'https://10.0.0.7/token',
    'https://idp.example.com:8443/token',
    'http://idp.example.com/token',
  ])('with the URL %s is refused, and nothing is stored or called', async (url) => {
    const reply = await put({ ...CLIENT, token_url: url });
    expect(reply.status).toBe(400);
    expect(await reply.text()).toContain('token_url');
    expect([await list(), asked]).toEqual([[], []]);
  });

  test('shows what it is, never its key or a value', async () => {
    const stored = await parseReply(sourceRecord, put());
    expect(stored).toMatchObject({ ref: 'vault://ci/token', source: CLIENT, minted: null, failure: null });
    await bind();
    await released();
    expect((await list())[0]?.minted).toMatchObject({
      for: 'the scope repo:read at idp.example.com for the client ci',
    });
    const told = JSON.stringify([await list(), await events('control.secret.minted'), control.log]);
    expect(told).not.toMatch(/the-client-secret|minted-1-secret/);
    const bytes = await control.databaseBytes();
    for (const planted of ['the-client-secret', 'minted-1-secret']) expect(bytes.includes(planted)).toBe(false);
  });

  test('is tried without keeping the value', async () => {
    await put();
    const tried = await parseReply(sourceTestReply, tryOut());
    expect(tried).toEqual({
      left: 'ends',
      minted_for: 'the scope repo:read at idp.example.com for the client ci',
      until: new Date(control.clock.now() + LIFE_SECONDS * 1000).toISOString(),
    });
    expect((await list())[0]?.minted).toBeNull();
    expect(await events('control.secret.minted')).toMatchObject([{ data: { 'svc.proxy.reason': 'for a test' } }]);
    answer = () => json(401, { error: 'invalid_client' });
    const refused = await tryOut();
    expect([refused.status, (await parseReply(errorBody, refused)).error.code]).toEqual([
      503,
      'credential_unavailable',
    ]);
  });

  test.each([
    ['a key that is none', { ...CLIENT, client_authentication: 'private_key_jwt' }, 'not a key', 'key'],
    [
      'a key without its URL',
      { ...CLIENT, token_url: 'http://idp.example.com/token' },
      'another-key',
      'source.token_url',
    ],
    [
      'scopes and an audience',
      { kind: 'google_service_account', client_email: 'a@b', scopes: ['x'], audience: 'y' },
      PKCS8,
      'source.scopes',
    ],
  ])('is refused with %s', async (_, source, key, field) => {
    const { error } = await parseReply(errorBody, put(source, key));
    expect(error.code).toBe('invalid_input');
    expect(JSON.stringify(error)).toContain(field);
    expect(JSON.stringify(error)).not.toContain(key);
  });
});

const plan = (body: object) => control.asUser('POST', '/v1/secret-sources/dry-run', body);
const laterBy = (seconds: number) => new Date(control.clock.now() + seconds * 1000).toISOString();

test('more sources than a page has are listed page by page, and each is found by its path', async () => {
  const paths = Array.from({ length: 5 }, (_, index) => `ci/token-${index}`);
  for (const path of paths) await put(CLIENT, 'the-client-secret', path);
  const first = await parseReply(sourcesPage, control.asUser('GET', '/v1/secret-sources?limit=3'));
  const query = new URLSearchParams({ limit: '3', cursor: first.next_cursor ?? '' });
  const second = await parseReply(sourcesPage, control.asUser('GET', `/v1/secret-sources?${query.toString()}`));
  expect([...first.items, ...second.items].map(({ path }) => path)).toEqual(paths);
  expect(second.next_cursor).toBeNull();
});

describe('a dry run', () => {
  test('says what a stored source would mint, asks nobody and leaves no trace', async () => {
    await put();
    const reply = await plan({ path: REF.path });
    const text = await reply.clone().text();
    expect(await parseReply(sourcePlan, reply)).toEqual({
      kind: 'client_credentials',
      value: 'token',
      minted_for: 'the scope repo:read at idp.example.com for the client ci',
      identity: 'the client ci',
      scope: ['repo:read'],
      audience: null,
      provider_url: CLIENT.token_url,
      life_seconds: null,
      until_at_latest: laterBy(24 * 3600),
      key_checked: false,
    });
    expect(text).not.toContain('the-client-secret');
    expect([asked, await events('control.secret.minted')]).toEqual([[], []]);
    expect((await list())[0]).toMatchObject({ minted: null, failure: null });
  });

  const GITHUB = { kind: 'github_app', app_id: '1', installation_id: '9', repositories: ['one'] };
  const ACCOUNT = { kind: 'google_service_account', client_email: 'ci@p.test' };
  const ROLE = {
    role_arn: 'arn:aws:iam::123456789012:role/team/deploy',
    region: 'eu-central-1',
    duration_seconds: 900,
  };
  const WEB = { kind: 'aws_web_identity', ...ROLE, policy: '{}', issuer: 'https://id.test', subject: 'ci' };
  const SESSION = 'arn:aws:sts::123456789012:assumed-role/deploy/svc';

  test.each([
    [
      { ...GITHUB, permissions: { contents: 'read' } },
      { scope: ['repository one', 'contents=read'], life_seconds: 3600, value: 'token' },
    ],
    [
      { ...ACCOUNT, audience: 'https://a.test/' },
      { provider_url: null, audience: 'https://a.test/', scope: [] },
    ],
    [
      { ...ACCOUNT, scopes: ['s'], subject: 'ann' },
      { identity: 'ann, by ci@p.test', scope: ['s'] },
    ],
    [WEB, { identity: SESSION, scope: ['a session policy'], life_seconds: 900, value: 'key_set' }],
  ])('of %j checks its key, and stores nothing', async (source, expected) => {
    expect(await parseReply(sourcePlan, plan({ source, key: PKCS8 }))).toMatchObject({
      ...expected,
      key_checked: true,
    });
    expect(await parseReply(sourcePlan, plan({ source }))).toMatchObject({ ...expected, key_checked: false });
    const refused = await plan({ source, key: 'no-key-at-all' });
    expect([refused.status, await refused.text()]).toEqual([400, expect.stringMatching(/^(?!.*no-key-at-all).*"key"/)]);
    expect([asked, await list()]).toEqual([[], []]);
  });

  test.each([
    [CLIENT, 'the-client-secret'],
    [{ kind: 'token_exchange', token_url: CLIENT.token_url }, 'a-token'],
    [{ kind: 'aws_assume_role', ...ROLE, access_key_id: 'AKIAIOSFODNN7EXAMPLE' }, 'a-key-of-another-service'],
  ])('of %j says that its key is not checked: only the provider can tell', async (source, key) => {
    expect((await parseReply(sourcePlan, plan({ source, key }))).key_checked).toBe(false);
  });

  test.each([
    ['wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY', 200, '"key_checked":true'],
    ['AKIAIOSFODNN7EXAMPLE', 400, 'it is an access key id'],
    ['[default]\naws_secret_access_key = x', 400, 'give it alone'],
  ])('of a source of AWS checks the form of the key %j', async (key, status, words) => {
    const source = { kind: 'aws_assume_role', ...ROLE, access_key_id: 'AKIAIOSFODNN7EXAMPLE' };
    const reply = await plan({ source, key });
    expect([reply.status, await reply.text()]).toEqual([status, expect.stringContaining(words)]);
  });

  test.each([
    [{}, 400, 'source'],
    [{ path: REF.path, source: CLIENT }, 400, 'source'],
    [{ path: REF.path, key: 'the-client-secret' }, 400, 'key'],
    [{ source: { ...CLIENT, token_url: 'https://10.0.0.7/token' } }, 400, 'source.token_url'],
    [{ path: 'ci/other' }, 404, 'ci/other'],
  ])('of %j is refused', async (body, status, words) => {
    const reply = await plan(body);
    expect([reply.status, await reply.text()]).toEqual([status, expect.stringContaining(words)]);
  });
});

test.each([
  ['invalid_client', 'client_authentication'],
  ['invalid_grant', 'clock of the control plane'],
  ['invalid_scope', 'change scopes'],
  ['unauthorized_client', 'allow the grant'],
])('the refusal %s of a provider says what to do, without its text', async (error, advice) => {
  await put();
  answer = () => json(400, { error, error_description: 'the-client-secret is wrong' });
  const told = await (await tryOut()).text();
  expect(told).toContain(`refused: ${error} (`);
  expect(told).toContain(advice);
  expect(told).not.toContain('the-client-secret');
});

/** The parameters that the provider was asked with first. */
const sent = () => Object.fromEntries(new URLSearchParams(new TextDecoder().decode(asked[0]?.body ?? undefined)));

/** The header and the claims of a JWT that the key of these tests signed. */
function opened(jwt: string): { header: unknown; claims: unknown } {
  const [header = '', claims = '', signature = ''] = jwt.split('.');
  const isSigned = verify(
    'sha256',
    Buffer.from(`${header}.${claims}`),
    RSA.publicKey,
    Buffer.from(signature, 'base64url'),
  );
  expect(isSigned).toBe(true);
  return { header: parseJson(atob(header)), claims: parseJson(Buffer.from(claims, 'base64url').toString()) };
}

const issued = (more: object = {}) =>
  json(201, {
    token: 'ghs_minted_token_of_github',
    expires_at: new Date(control.clock.now() + 3_600_000).toISOString(),
    permissions: { contents: 'read', metadata: 'read' },
    repositories: [{ name: 'one' }],
    ...more,
  });

describe('a GitHub App (a stub by its reference)', () => {
  const APP = {
    kind: 'github_app',
    app_id: '1234',
    installation_id: '99',
    repositories: ['one'],
    permissions: { contents: 'read' },
  };

  test.each([PKCS8, PKCS1])('gives a token narrowed to repositories and permissions', async (key) => {
    answer = () => issued();
    await put(APP, key);
    await bind();
    const now = Math.floor(control.clock.now() / 1000);
    expect((await released())?.value).toBe('ghs_minted_token_of_github');
    const [request] = asked;
    expect(request?.url).toBe('https://api.github.com/app/installations/99/access_tokens');
    expect(parseJson(new TextDecoder().decode(request?.body ?? undefined))).toEqual({
      repositories: ['one'],
      permissions: { contents: 'read' },
    });
    const jwt = opened(String(request?.headers['authorization']).slice('Bearer '.length));
    expect(jwt).toEqual({
      header: { alg: 'RS256', typ: 'JWT' },
      claims: { iss: '1234', iat: now - 60, exp: now + 540 },
    });
  });

  test.each([
    ['other repositories', { repositories: [{ name: 'one' }, { name: 'two' }] }],
    ['no list of repositories', { repositories: undefined }],
    ['a wider permission', { permissions: { contents: 'write' } }],
    ['another permission', { permissions: { contents: 'read', issues: 'read' } }],
  ])('that answers with %s is not believed', async (_, more) => {
    answer = () => issued(more);
    await put(APP, PKCS8);
    await bind();
    expect((await release()).unavailable).toMatchObject([
      { message: expect.stringContaining('for more than was asked') },
    ]);
  });

  test('never outlives an hour, whatever the clock of GitHub says', async () => {
    answer = () => issued({ expires_at: new Date(control.clock.now() + 7_200_000).toISOString() });
    await put(APP, PKCS8);
    await bind();
    expect((await released())?.until).toBe(control.clock.now() + 3_600_000);
  });

  test.each([
    [401, 'does not accept the key'],
    [404, 'no such installation'],
    [422, 'does not have these'],
    [500, 'status 500'],
  ])('that answers %i is reported', async (status, words) => {
    answer = () => json(status, { message: 'A JSON web token could not be decoded' });
    await put(APP, PKCS8);
    await bind();
    expect((await release()).unavailable).toMatchObject([{ message: expect.stringContaining(words) }]);
  });
});

describe('a Google service account (a stub by its reference)', () => {
  const ACCOUNT = { kind: 'google_service_account', client_email: 'ci@p.iam.gserviceaccount.com', key_id: 'k1' };

  test('exchanges a signed JWT for an access token, and names no client', async () => {
    await put({ ...ACCOUNT, scopes: ['https://www.googleapis.com/auth/pubsub'], subject: 'ann@example.com' }, PKCS8);
    await bind();
    expect((await released())?.value).toBe('minted-1-secret');
    expect(Object.keys(sent()).toSorted()).toEqual(['assertion', 'grant_type']);
    const { header, claims } = opened(sent()['assertion'] ?? '');
    expect(header).toEqual({ alg: 'RS256', typ: 'JWT', kid: 'k1' });
    expect(claims).toMatchObject({
      iss: ACCOUNT.client_email,
      sub: 'ann@example.com',
      aud: 'https://oauth2.googleapis.com/token',
      scope: 'https://www.googleapis.com/auth/pubsub',
    });
  });

  test('signs a JWT for one API itself, without a call', async () => {
    await put({ ...ACCOUNT, audience: 'https://pubsub.googleapis.com/' }, PKCS8);
    await bind();
    const { claims } = opened((await released())?.value ?? '');
    expect(claims).toMatchObject({
      iss: ACCOUNT.client_email,
      sub: ACCOUNT.client_email,
      aud: 'https://pubsub.googleapis.com/',
    });
    expect(asked).toEqual([]);
  });
});

test('a JWT bearer source sends its assertion with its scope', async () => {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const pem = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
  const source = {
    kind: 'jwt_bearer',
    token_url: CLIENT.token_url,
    issuer: 'i',
    subject: 's',
    scopes: ['a', 'b'],
    algorithm: 'ES256',
  };
  await put(source, pem);
  await bind();
  expect((await released())?.value).toBe('minted-1-secret');
  expect(Object.keys(sent()).toSorted()).toEqual(['assertion', 'grant_type', 'scope']);
});

describe('a token exchange (RFC 8693)', () => {
  const EXCHANGE = { kind: 'token_exchange', token_url: CLIENT.token_url, audience: 'pool', scopes: ['a'] };
  const URN = 'urn:ietf:params:oauth:token-type';

  test('sends a JWT that the source signs', async () => {
    const assertion_audience = 'https://iam.example.com/pool';
    await put({ ...EXCHANGE, issuer: 'https://id.example.com', subject: 'ci', assertion_audience }, PKCS8);
    await bind();
    expect((await released())?.value).toBe('minted-1-secret');
    const { subject_token: jwt = '', ...rest } = sent();
    expect(rest).toEqual({
      grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
      subject_token_type: `${URN}:jwt`,
      audience: 'pool',
      scope: 'a',
    });
    expect(opened(jwt).claims).toMatchObject({ iss: 'https://id.example.com', sub: 'ci', aud: assertion_audience });
    expect(asked[0]?.headers['authorization']).toBeUndefined();
    expect((await list())[0]?.minted?.for).toBe('the scope a at idp.example.com of pool for ci');
  });

  test('sends the token that is its key, and names a client', async () => {
    const more = { requested_token_type: `${URN}:id_token`, client_id: 'ci', resource: 'https://r.example.com' };
    answer = () => json(200, { access_token: 'an-id-token', token_type: 'N_A', issued_token_type: `${URN}:id_token` });
    await put({ ...EXCHANGE, ...more }, 'the-stored-token');
    await bind();
    expect((await released())?.value).toBe('an-id-token');
    expect(sent()).toMatchObject({
      ...more,
      subject_token: 'the-stored-token',
      subject_token_type: `${URN}:access_token`,
    });
  });

  test.each([
    ['another type', { issued_token_type: `${URN}:access_token` }, 'of another type'],
    ['no token', { access_token: undefined }, 'not a token reply'],
  ])('that answers with %s is not believed', async (_, more, message) => {
    answer = () => json(200, { access_token: 'x-secret-value', token_type: 'Bearer', ...more });
    await put({ ...EXCHANGE, requested_token_type: `${URN}:id_token` }, 'the-stored-token');
    await bind();
    expect((await release()).unavailable).toMatchObject([{ message: expect.stringContaining(message) }]);
  });

  test('is not stored with an issuer and no subject', async () => {
    expect(await (await put({ ...EXCHANGE, issuer: 'i' }, PKCS8)).text()).toContain('source.subject');
  });
});

describe('a client of Microsoft Entra ID (a stub by its reference)', () => {
  const URL_OF_TENANT = 'https://login.microsoftonline.com/00000000-0000-0000-0000-000000000001/oauth2/v2.0/token';
  const APP = { ...CLIENT, token_url: URL_OF_TENANT, scopes: ['https://graph.microsoft.com/.default'] };

  test('sends its secret and one scope in the body', async () => {
    await put({ ...APP, client_authentication: 'post' });
    await bind();
    await released();
    expect([asked[0]?.url, sent()]).toEqual([
      URL_OF_TENANT,
      {
        grant_type: 'client_credentials',
        client_id: 'ci',
        client_secret: 'the-client-secret',
        scope: 'https://graph.microsoft.com/.default',
      },
    ]);
  });

  test.each([
    ['SHA-1', 'x5t', '84:E0:5C:1D:98:BC:E3:A5:42:1D:22:5B:14:0B:36:E8:6A:3D:5D:53', 'hOBcHZi846VCHSJbFAs26Go9XVM'],
    ['SHA-256', 'x5t#S256', '00'.repeat(31).concat('ff'), 'AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAP8'],
  ])('names its certificate by %s', async (_, name, certificate_thumbprint, encoded) => {
    await put({ ...APP, client_authentication: 'private_key_jwt', certificate_thumbprint }, PKCS8);
    await bind();
    await released();
    const { header, claims } = opened(sent()['client_assertion'] ?? '');
    expect(header).toEqual({ alg: 'RS256', typ: 'JWT', [name]: encoded });
    expect(claims).toMatchObject({ iss: 'ci', sub: 'ci', aud: URL_OF_TENANT });
  });
});

describe('a real OpenID provider', () => {
  let server: Server;
  let origin = '';
  beforeEach(async () => {
    server = createServer();
    origin = `http://127.0.0.1:${await listen(server)}`;
    const client = { grant_types: ['client_credentials'], redirect_uris: [], response_types: [] };
    const jwk = { ...RSA.publicKey.export({ format: 'jwk' }), use: 'sig', alg: 'RS256' };
    const clients = [
      {
        ...client,
        client_id: 'basic',
        client_secret: 'a-secret+of/basic',
        token_endpoint_auth_method: 'client_secret_basic',
      },
      {
        ...client,
        client_id: 'post',
        client_secret: 'a-secret-of-post',
        token_endpoint_auth_method: 'client_secret_post',
      },
      { ...client, client_id: 'jwt', jwks: { keys: [jwk] }, token_endpoint_auth_method: 'private_key_jwt' },
    ];
    const provider = new Provider(origin, {
      clients,
      features: { clientCredentials: { enabled: true } },
      scopes: ['repo:read'],
    });
    server.on('request', provider.callback());
    const real = nodeOutbound({ isLocal: true, pinned: new Map() });
    answer = async (request) => {
      const called = await real.call(request);
      return called.ok ? called.value : Promise.reject(new Error(called.error.message));
    };
    control.clock.ms = Date.now();
  });
  afterEach(() => new Promise((resolve) => server.close(resolve)));

  test.each([
    ['basic', 'a-secret+of/basic', {}],
    ['post', 'a-secret-of-post', { client_authentication: 'post' }],
    ['jwt', PKCS8, { client_authentication: 'private_key_jwt' }],
  ])('accepts the client %s', async (client_id, key, more) => {
    await put({ ...CLIENT, token_url: `${origin}/token`, client_id, ...more }, key);
    const tried = await tryOut();
    expect([tried.status, await tried.text()]).toEqual([200, expect.stringContaining(client_id)]);
  });

  test('refuses another secret, which is told', async () => {
    await put({ ...CLIENT, token_url: `${origin}/token`, client_id: 'basic' }, 'another secret');
    const { error } = await parseReply(errorBody, tryOut());
    expect(error.message).toContain('127.0.0.1 refused: invalid_client');
  });
});

test('a provider that cannot be reached is told by name, without the rest of its URL', async () => {
  await control.stop();
  const down: Outbound = {
    call: async () =>
      err({ reason: 'upstream_unreachable', message: 'idp.example.com could not be reached (ENOTFOUND)' }),
  };
  control = await startInProcess({ outbound: down });
  sidecar = await control.enrolSidecar();
  await ready();
  expect((await release()).unavailable).toMatchObject([{ message: expect.stringContaining('could not be reached') }]);
});
