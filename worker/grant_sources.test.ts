import { generateKeyPairSync } from 'node:crypto';
import { decodeJwt, importSPKI, jwtVerify } from 'jose';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type InProcess, parseReply, startInProcess } from '../e2e/runtimes/in_process.ts';
import type { TestSidecar } from '../e2e/runtimes/sidecar_client.ts';
import { parseJson } from '../shared/model/json.ts';
import { ok } from '../shared/model/result.ts';
import { auditEventsPage } from '../shared/wire/audit_events.ts';
import { CREDENTIALS_TYP, credentialsPayload, sealedCredential } from '../shared/wire/channel.ts';
import { errorBody } from '../shared/wire/errors.ts';
import { sourcePlan, sourcesPage } from '../shared/wire/secret_sources.ts';
import type { OutboundReply, OutboundRequest } from './kernel/outbound.ts';
import { json } from './kernel/testing/json_reply.ts';

// Google's IAM Credentials API (generateAccessToken, v1) and token endpoints are stubs, written from their references.

const PAIR = generateKeyPairSync('rsa', { modulusLength: 2048 });
const SMALL_PAIR = generateKeyPairSync('rsa', { modulusLength: 1024 });
const SMALL_KEY = SMALL_PAIR.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
const PKCS8 = PAIR.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
const SPKI = PAIR.publicKey.export({ type: 'spki', format: 'pem' }).toString();
const REF = { owner: 'personal', path: 'ci/token' } as const;
const TOKEN_URL = 'https://idp.example.com/token';
const SECRETS = ['minted-secret', 'own-token-secret', 'the-client-secret', 'the-subject-token', 'the-actor-token'];

let asked: OutboundRequest[];
let iamAnswer: () => OutboundReply;
let control: InProcess;
let sidecar: TestSidecar;

const textOf = ({ body }: OutboundRequest): string => new TextDecoder().decode(body ?? undefined);
const formOf = (request: OutboundRequest): Record<string, string> =>
  Object.fromEntries(new URLSearchParams(textOf(request)));
const timeIn = (seconds: number): string => new Date(control.clock.now() + seconds * 1000).toISOString();

beforeEach(async () => {
  asked = [];
  iamAnswer = () => json(200, { accessToken: 'minted-secret', expireTime: timeIn(600) });
  control = await startInProcess({
    outbound: {
      call(request) {
        asked.push(request);
        const { hostname } = new URL(request.url);
        if (hostname === 'iamcredentials.googleapis.com') return Promise.resolve(ok(iamAnswer()));
        const token = hostname === 'oauth2.googleapis.com' ? 'own-token-secret' : 'minted-secret';
        return Promise.resolve(ok(json(200, { access_token: token, token_type: 'Bearer', expires_in: 3600 })));
      },
    },
  });
  sidecar = await control.enrolSidecar();
});
afterEach(() => control.stop());

const put = (source: object, key = PKCS8) =>
  control.asUser('POST', '/v1/secret-sources', { path: REF.path, source, key });
const plan = (source: object, key?: string) => control.asUser('POST', '/v1/secret-sources/dry-run', { source, key });
const messageOf = async (reply: Promise<Response>) => (await parseReply(errorBody, reply)).error.message;
const refusal = () => messageOf(control.asUser('POST', '/v1/secret-sources/test', { path: REF.path }));

async function released(narrowing?: object) {
  const binding = { host: 'a.test', scheme: 'bearer', credential_ref: `vault://${REF.path}` };
  await control.asUser('POST', '/v1/host-bindings', binding);
  const credentials = [{ ...REF, ...(narrowing && { narrowing }) }];
  const body = { request_id: crypto.randomUUID(), credentials };
  const reply = await sidecar.call('POST', '/v1/sidecar/credentials', { body });
  const payload = await sidecar.verify(await reply.text(), CREDENTIALS_TYP, credentialsPayload);
  const [credential] = payload.credentials;
  if (credential === undefined) return payload.unavailable;
  const { value } = sealedCredential.parse(await sidecar.unseal(credential.sealed));
  return { value, seconds: (Date.parse(credential.expires_at ?? '') - control.clock.now()) / 1000 };
}

async function expectNoSecret() {
  const { items: sources } = await parseReply(sourcesPage, control.asUser('GET', '/v1/secret-sources'));
  const { items: events } = await parseReply(auditEventsPage, control.asUser('GET', '/v1/audit-events'));
  const told = JSON.stringify([sources, events, control.log]);
  const bytes = await control.databaseBytes();
  for (const planted of [...SECRETS, PKCS8.split('\n')[1] ?? '']) {
    expect([planted, told.includes(planted), bytes.includes(planted)]).toEqual([planted, false, false]);
  }
}

describe('a Google account that impersonates another one (a stub by its reference)', () => {
  const SCOPES = ['https://www.googleapis.com/auth/pubsub', 'https://www.googleapis.com/auth/bigquery'];
  const DEPLOY = 'deploy@p.iam.gserviceaccount.com';
  const BETWEEN = 'between@p.iam.gserviceaccount.com';
  const SOURCE = {
    kind: 'google_service_account',
    client_email: 'ci@p.iam.gserviceaccount.com',
    impersonate: DEPLOY,
    scopes: SCOPES,
  };

  test('asks with its own token for the scopes, the delegates and the lifetime', async () => {
    await put({ ...SOURCE, delegates: [BETWEEN], duration_seconds: 900 });
    expect(await released()).toEqual({ value: 'minted-secret', seconds: 600 });
    const [own, impersonated] = asked;
    expect(decodeJwt(formOf(own!)['assertion'] ?? '')).toMatchObject({
      iss: SOURCE.client_email,
      scope: 'https://www.googleapis.com/auth/iam',
    });
    expect(impersonated).toMatchObject({
      method: 'POST',
      url: `https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/${encodeURIComponent(DEPLOY)}:generateAccessToken`,
      headers: { authorization: 'Bearer own-token-secret' },
    });
    expect(parseJson(textOf(impersonated!))).toEqual({
      delegates: [`projects/-/serviceAccounts/${BETWEEN}`],
      scope: SCOPES,
      lifetime: '900s',
    });
    await expectNoSecret();
  });

  test('is not believed past the lifetime that was asked for', async () => {
    iamAnswer = () => json(200, { accessToken: 'minted-secret', expireTime: timeIn(7200) });
    await put(SOURCE);
    expect(await released()).toEqual({ value: 'minted-secret', seconds: 3600 });
  });

  test('is narrowed to fewer scopes and a shorter life, and to no more', async () => {
    await put(SOURCE);
    const [scope = ''] = SCOPES;
    expect(await released({ scopes: [scope], duration_seconds: 300 })).toEqual({
      value: 'minted-secret',
      seconds: 300,
    });
    expect(parseJson(textOf(asked[1]!))).toEqual({ scope: [scope], lifetime: '300s' });
    expect(await released({ duration_seconds: 7200 })).toMatchObject([
      { message: expect.stringContaining('more than the 3600 of the source') },
    ]);
    expect(await released({ scopes: ['other'] })).toMatchObject([
      { message: expect.stringContaining('is not one of') },
    ]);
  });

  test.each([
    [403, 'PERMISSION_DENIED', 'roles/iam.serviceAccountTokenCreator'],
    [404, 'NOT_FOUND', 'compare impersonate and delegates'],
    [400, 'INVALID_ARGUMENT', 'more than 3600 seconds needs the policy'],
    [401, 'UNAUTHENTICATED', 'does not accept the token of the account'],
    [429, 'RESOURCE_EXHAUSTED', 'try again later'],
  ])('says what to change at status %i, without the text of Google', async (status, code, words) => {
    iamAnswer = () => json(status, { error: { code: status, message: 'a text of Google', status: code } });
    await put(SOURCE);
    const message = await refusal();
    expect(message).toContain(words);
    expect(message).not.toContain('a text of Google');
  });

  test.each([{ accessToken: 'minted-secret' }, { accessToken: 'a b', expireTime: '2030-01-01T00:00:00Z' }, {}])(
    'is not read from %j',
    async (body) => {
      iamAnswer = () => json(200, body);
      await put(SOURCE);
      expect(await refusal()).toContain('is not that of this service');
      await expectNoSecret();
    },
  );

  test.each([
    [{ impersonate: undefined, delegates: [BETWEEN] }, 'source.delegates'],
    [{ impersonate: undefined, duration_seconds: 900 }, 'source.duration_seconds'],
    [{ scopes: [], audience: 'https://a.test/' }, 'source.audience'],
    [{ subject: 'ann@example.com' }, 'source.subject'],
    [{ impersonate: '../../x@p' }, 'source.impersonate'],
    [{ iam_credentials_url: 'https://10.0.0.7' }, 'source.iam_credentials_url'],
  ])('with %j is refused', async (more, field) => {
    expect(JSON.stringify(await (await put({ ...SOURCE, ...more })).json())).toContain(`"${field}"`);
    expect(asked).toEqual([]);
  });

  test('has a dry run that asks nobody', async () => {
    expect(await parseReply(sourcePlan, plan({ ...SOURCE, duration_seconds: 900 }, PKCS8))).toMatchObject({
      identity: `${DEPLOY}, impersonated by ${SOURCE.client_email}`,
      scope: SCOPES,
      life_seconds: 900,
      provider_url: expect.stringContaining(':generateAccessToken'),
      key_checked: true,
    });
    expect(asked).toEqual([]);
  });
});

const BEARER = { kind: 'jwt_bearer', token_url: TOKEN_URL, issuer: 'i', subject: 's', client_id: 'ci' };
const SIGNED = { kind: 'token_exchange', token_url: TOKEN_URL, issuer: 'i', subject: 's', client_id: 'ci' };
const STORED = { kind: 'token_exchange', token_url: TOKEN_URL, client_id: 'ci' };
const CLIENT_SECRET = { client_secret: 'the-client-secret' };
const ofKey = (parts: object) => JSON.stringify(parts);

describe('the client of a grant', () => {
  test.each([
    ['a JWT bearer', BEARER, { private_key: PKCS8, ...CLIENT_SECRET }],
    ['an exchange of a JWT', SIGNED, { private_key: PKCS8, ...CLIENT_SECRET }],
    ['an exchange of a stored token', STORED, { token: 'the-subject-token', ...CLIENT_SECRET }],
  ])('of %s authenticates by its secret', async (_what, source, key) => {
    await put({ ...source, client_authentication: 'basic' }, ofKey(key));
    expect(await released()).toMatchObject({ value: 'minted-secret' });
    expect(asked[0]?.headers['authorization']).toBe(`Basic ${btoa('ci:the-client-secret')}`);
    expect(formOf(asked[0]!)).not.toHaveProperty('client_secret');
    await put({ ...source, client_authentication: 'post' }, ofKey(key));
    await released();
    expect(formOf(asked[1]!)).toMatchObject({ client_id: 'ci', client_secret: 'the-client-secret' });
    await expectNoSecret();
  });

  test.each([
    ['a JWT bearer', BEARER, PKCS8],
    ['an exchange of a JWT', SIGNED, PKCS8],
    ['an exchange of a stored token', STORED, ofKey({ token: 'the-subject-token', private_key: PKCS8 })],
  ])('of %s authenticates by an assertion that its key signs', async (_what, source, key) => {
    await put({ ...source, client_authentication: 'private_key_jwt', key_id: 'k1' }, key);
    expect(await released()).toMatchObject({ value: 'minted-secret' });
    const form = formOf(asked[0]!);
    expect(form).toMatchObject({
      client_id: 'ci',
      client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
    });
    const publicKey = await importSPKI(SPKI, 'RS256');
    const how = { issuer: 'ci', subject: 'ci', audience: TOKEN_URL, currentDate: new Date(control.clock.now()) };
    const { protectedHeader } = await jwtVerify(form['client_assertion'] ?? '', publicKey, how);
    expect(protectedHeader).toMatchObject({ alg: 'RS256', kid: 'k1' });
    await expectNoSecret();
  });

  test('is named without a proof, as before, or not at all', async () => {
    await put({ ...BEARER, client_id: undefined });
    await released();
    expect(Object.keys(formOf(asked[0]!)).toSorted()).toEqual(['assertion', 'grant_type']);
    await put(BEARER);
    await released();
    expect(Object.keys(formOf(asked[1]!)).toSorted()).toEqual(['assertion', 'client_id', 'grant_type']);
  });

  test.each([
    [{ ...BEARER, client_authentication: 'basic' }, PKCS8, 'private_key and client_secret'],
    [{ ...STORED, client_authentication: 'post' }, 'the-subject-token', 'token and client_secret'],
    [{ ...STORED, client_authentication: 'post' }, ofKey({ token: 'the-subject-token' }), 'token and client_secret'],
    [{ ...STORED, client_authentication: 'post' }, ofKey({ token: 't', ...CLIENT_SECRET, more: 'x' }), 'token and'],
    [
      { ...BEARER, client_authentication: 'basic' },
      ofKey({ private_key: 'none', ...CLIENT_SECRET }),
      'no key for RS256',
    ],
    [BEARER, SMALL_KEY, 'an RSA key of 1024 bits: give one of 2048 to 8192 bits'],
    [{ ...BEARER, client_authentication: 'basic', client_id: undefined }, PKCS8, 'source.client_id is needed'],
  ])('of %j with another key is refused', async (source, key, words) => {
    const message = await messageOf(put(source, key));
    expect(message).toContain(words);
    expect(message).not.toMatch(/the-subject-token|the-client-secret/);
    expect(asked).toEqual([]);
  });
});

describe('a token exchange with an actor', () => {
  const ACTING = { ...STORED, client_id: undefined, actor_token_type: 'urn:ietf:params:oauth:token-type:access_token' };

  test('sends the token of who acts, and its type', async () => {
    await put(ACTING, ofKey({ token: 'the-subject-token', actor_token: 'the-actor-token' }));
    expect(await released()).toMatchObject({ value: 'minted-secret' });
    expect(formOf(asked[0]!)).toMatchObject({
      subject_token: 'the-subject-token',
      actor_token: 'the-actor-token',
      actor_token_type: ACTING.actor_token_type,
    });
    await expectNoSecret();
  });

  test('is told that its key has two parts, which nobody can check', async () => {
    expect(await messageOf(put(ACTING, 'the-subject-token'))).toContain('token and actor_token');
    const key = ofKey({ token: 'the-subject-token', actor_token: 'the-actor-token' });
    expect((await parseReply(sourcePlan, plan(ACTING, key))).key_checked).toBe(false);
  });
});
