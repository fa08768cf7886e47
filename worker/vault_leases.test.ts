import { exportPKCS8, exportSPKI, generateKeyPair, importSPKI, jwtVerify } from 'jose';
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { type InProcess, parseReply, startInProcess } from '../e2e/runtimes/in_process.ts';
import type { TestSidecar } from '../e2e/runtimes/sidecar_client.ts';
import { parseJson } from '../shared/model/json.ts';
import { err, ok } from '../shared/model/result.ts';
import { auditEventsPage } from '../shared/wire/audit_events.ts';
import { CREDENTIALS_TYP, credentialsPayload, sealedCredential } from '../shared/wire/channel.ts';
import { errorBody } from '../shared/wire/errors.ts';
import { sourcePlan, sourcesPage } from '../shared/wire/secret_sources.ts';
import { LEASE_MS } from './kernel/leased_renewal.ts';
import type { Outbound, OutboundReply, OutboundRequest } from './kernel/outbound.ts';
import { json } from './kernel/testing/json_reply.ts';

// Vault is a stub, written from the reference of its HTTP API (leases, tokens, the auth method jwt), which OpenBao shares.

const REF = { owner: 'personal', path: 'ci/nomad' } as const;
const TOKEN = 'hvs.the-token-of-the-source';
const LOGIN_TOKEN = 'hvs.the-token-of-a-login';
const LEASE_ID = 'nomad/creds/ci/the-id-of-the-lease';
const URL_OF_VAULT = 'https://vault.example.com';
const LEASE = { kind: 'vault_lease', vault_url: URL_OF_VAULT, lease_path: 'nomad/creds/ci', field: 'secret_id' };
const JWT = { authentication: 'jwt', issuer: 'https://svc.example.com', subject: 'ci', audience: 'vault', role: 'ci' };
const login = z.object({ role: z.string().optional(), jwt: z.string() });

let privateKey: string;
let publicKey: string;
let asked: OutboundRequest[];
let made: number;
let leaseSeconds: number;
let tokenTtl: number;
let loginSeconds: number;
/** How long each call takes. */
let takesMs: number;
let instead: (request: OutboundRequest) => OutboundReply | null;
let control: InProcess;
let sidecar: TestSidecar;

const refused = (status: number) => json(status, { errors: ['a text of Vault'] });
const bodyOf = ({ body }: OutboundRequest): unknown => parseJson(new TextDecoder().decode(body ?? undefined));

async function vault(request: OutboundRequest): Promise<OutboundReply> {
  const { pathname } = new URL(request.url);
  if (pathname === '/v1/auth/jwt/login') {
    const { jwt } = login.parse(bodyOf(request));
    const key = await importSPKI(publicKey, 'ES256');
    const { issuer, audience } = JWT;
    const now = new Date(control.clock.now());
    const isValid = await jwtVerify(jwt, key, { issuer, audience, currentDate: now }).then(
      ({ payload }) => payload.sub === JWT.subject,
      () => false,
    );
    return isValid
      ? json(200, { auth: { client_token: LOGIN_TOKEN, lease_duration: loginSeconds, renewable: true } })
      : refused(400);
  }
  if (![TOKEN, LOGIN_TOKEN].includes(request.headers['x-vault-token'] ?? '')) return refused(403);
  if (pathname === '/v1/auth/token/lookup-self') return json(200, { data: { ttl: tokenTtl, policies: ['ci'] } });
  if (pathname.endsWith('/revoke-self') || pathname === '/v1/sys/leases/revoke') return json(204, '');
  if (pathname !== '/v1/nomad/creds/ci') return refused(404);
  made += 1;
  const data = { accessor_id: 'a', secret_id: `the-value-${made}` };
  return json(200, { lease_id: LEASE_ID, lease_duration: leaseSeconds, renewable: true, data });
}

const outbound: Outbound = {
  async call(request) {
    asked.push(request);
    control.clock.ms += Math.min(takesMs, request.limits?.timeoutMs ?? Infinity);
    if (takesMs > (request.limits?.timeoutMs ?? Infinity)) {
      return err({ reason: 'upstream_unreachable', message: 'vault.example.com did not answer in time' });
    }
    return ok(instead(request) ?? (await vault(request)));
  },
};

beforeAll(async () => {
  const pair = await generateKeyPair('ES256', { extractable: true });
  [privateKey, publicKey] = [await exportPKCS8(pair.privateKey), await exportSPKI(pair.publicKey)];
});
beforeEach(async () => {
  [asked, made] = [[], 0];
  [leaseSeconds, tokenTtl, loginSeconds] = [3600, 0, 7200];
  takesMs = 0;
  instead = () => null;
  control = await startInProcess({ outbound });
  sidecar = await control.enrolSidecar();
});
afterEach(() => control.stop());

const put = (source: object = LEASE, key = TOKEN) =>
  control.asUser('POST', '/v1/secret-sources', { path: REF.path, source, key });
const withJwt = (more: object = {}) => put({ ...LEASE, ...JWT, algorithm: 'ES256', ...more }, privateKey);
const paths = () => asked.map(({ method, url }) => `${method} ${new URL(url).pathname.replace('/v1/', '')}`);
const refusal = async () => {
  const reply = control.asUser('POST', '/v1/secret-sources/test', { path: REF.path });
  return (await parseReply(errorBody, reply)).error.message;
};

async function bind(): Promise<void> {
  const binding = { host: 'a.test', scheme: 'bearer', credential_ref: `vault://${REF.path}` };
  expect((await control.asUser('POST', '/v1/host-bindings', binding)).status).toBe(201);
}

async function released() {
  const body = { request_id: crypto.randomUUID(), credentials: [REF] };
  const reply = await sidecar.call('POST', '/v1/sidecar/credentials', { body });
  const { credentials } = await sidecar.verify(await reply.text(), CREDENTIALS_TYP, credentialsPayload);
  const [credential] = credentials;
  if (credential === undefined) return null;
  const { value } = sealedCredential.parse(await sidecar.unseal(credential.sealed));
  return { value, seconds: (Date.parse(credential.expires_at ?? '') - control.clock.now()) / 1000 };
}

async function expectNoSecret() {
  const { items: sources } = await parseReply(sourcesPage, control.asUser('GET', '/v1/secret-sources'));
  const { items: events } = await parseReply(auditEventsPage, control.asUser('GET', '/v1/audit-events'));
  const told = JSON.stringify([sources, events, control.log]);
  const bytes = await control.databaseBytes();
  for (const planted of [TOKEN, LOGIN_TOKEN, 'the-value-', privateKey.split('\n')[1] ?? '']) {
    expect([planted, told.includes(planted), bytes.includes(planted)]).toEqual([planted, false, false]);
  }
}

describe('a leased secret of Vault (a stub by its reference)', () => {
  test('is made when it is needed, once, until its lease ends', async () => {
    await put();
    await bind();
    expect(asked).toEqual([]);
    expect(await released()).toEqual({ value: 'the-value-1', seconds: 3600 });
    control.clock.ms += 3_000_000;
    expect(await released()).toEqual({ value: 'the-value-1', seconds: 600 });
    expect(paths()).toEqual(['GET auth/token/lookup-self', 'GET nomad/creds/ci']);
    control.clock.ms += 600_000;
    expect(await released()).toEqual({ value: 'the-value-2', seconds: 3600 });
    await expectNoSecret();
  });

  test.each([
    ['the token of the source', 900, () => put()],
    ['the token of a login', 1800, () => withJwt()],
  ])('ends with %s, if that is sooner', async (_what, seconds, store) => {
    [tokenTtl, loginSeconds] = [900, 1800];
    await store();
    await bind();
    expect((await released())?.seconds).toBe(seconds);
  });

  test('is believed to its end if the token may not ask for its own', async () => {
    instead = ({ url }) => (url.endsWith('/lookup-self') ? refused(403) : null);
    await put();
    await bind();
    expect((await released())?.seconds).toBe(3600);
  });

  test('that cannot be used is taken back, and with it the token of the login', async () => {
    await withJwt({ field: 'password' });
    expect(await refusal()).toContain('the field password at vault.example.com is not in the secret');
    expect(paths()).toEqual([
      'POST auth/jwt/login',
      'GET nomad/creds/ci',
      'POST sys/leases/revoke',
      'POST auth/token/revoke-self',
    ]);
    expect(bodyOf(asked[2]!)).toEqual({ lease_id: LEASE_ID });
    await expectNoSecret();
  });

  test('that can be used keeps the token of its login, which would take it along', async () => {
    await withJwt();
    await bind();
    expect((await released())?.value).toBe('the-value-1');
    expect(paths()).toEqual(['POST auth/jwt/login', 'GET nomad/creds/ci']);
  });

  test.each([
    [11_000, ['POST auth/jwt/login', 'GET nomad/creds/ci', 'POST sys/leases/revoke', 'POST auth/token/revoke-self']],
    [12_000, ['POST auth/jwt/login', 'GET nomad/creds/ci', 'POST sys/leases/revoke']],
  ])('whose calls take %i ms each ends before another worker may ask', async (each, calls) => {
    await withJwt({ field: 'password' });
    const begun = control.clock.now();
    takesMs = each;
    expect(await refusal()).toContain('the field password at vault.example.com is not in the secret');
    expect(paths()).toEqual(calls);
    expect(control.clock.now() - begun).toBeLessThan(LEASE_MS);
  });

  test.each([
    ['{"lease_id":"","lease_duration":0,"data":{"secret_id":"the-value-0"}}', 'use the kind vault_kv'],
    ['{"lease_id":"a","lease_duration":0,"data":{"secret_id":"the-value-0"}}', 'gives no lease'],
    ['{"lease_id":"a","lease_duration":-5,"data":{"secret_id":"the-value-0"}}', 'gives no lease'],
    ['{"lease_id":"a","lease_duration":60,"data":null}', 'gives no lease'],
    ['{"lease_id":"a","lease_duration":2,"data":{"secret_id":"the-value-0"}}', 'ends at once'],
    ['{"lease_id":"a","lease_duration":60,"data":{"secret_id":7}}', 'is not a text'],
    ['not json', 'gives no lease'],
  ])('is not read from %s', async (body, words) => {
    await put();
    instead = ({ url }) => (url.endsWith('/creds/ci') ? json(200, body) : null);
    expect(await refusal()).toContain(words);
    await expectNoSecret();
  });

  test.each([
    [400, '"vault read", which says why'],
    [403, 'no policy of it allows "read" on lease_path'],
    [404, 'no such role or engine'],
    [503, 'unseal it'],
  ])('says what to change at status %i, without the text of Vault', async (status, words) => {
    await put();
    instead = ({ url }) => (url.endsWith('/creds/ci') ? refused(status) : null);
    const message = await refusal();
    expect(message).toContain(words);
    expect(message).not.toContain('a text of Vault');
  });

  test('has a dry run that asks nobody', async () => {
    await withJwt();
    const reply = control.asUser('POST', '/v1/secret-sources/dry-run', { path: REF.path });
    expect(await parseReply(sourcePlan, reply)).toMatchObject({
      kind: 'vault_lease',
      value: 'token',
      minted_for: 'the field secret_id of a lease of nomad/creds/ci at vault.example.com',
      identity: 'ci of https://svc.example.com, which logs in at auth/jwt as the role ci',
      provider_url: 'https://vault.example.com/v1/nomad/creds/ci',
    });
    expect(asked).toEqual([]);
  });
});

describe('a login at Vault by a JWT that the source signs', () => {
  test('is for a KV engine, too; its token is revoked after the read', async () => {
    const data = { data: { password: 'a-value' }, metadata: { version: 1 } };
    instead = ({ url }) => (url.endsWith('/secret/data/ci') ? json(200, { data }) : null);
    const kv = { kind: 'vault_kv', vault_url: URL_OF_VAULT, secret_path: 'ci', field: 'password' };
    await put({ ...kv, ...JWT, algorithm: 'ES256' }, privateKey);
    await bind();
    expect((await released())?.value).toBe('a-value');
    expect(paths()).toEqual(['POST auth/jwt/login', 'GET secret/data/ci', 'POST auth/token/revoke-self']);
    expect(login.parse(bodyOf(asked[0]!)).role).toBe('ci');
    await expectNoSecret();
  });

  test('that Vault does not accept says what to compare', async () => {
    await withJwt({ subject: 'other' });
    expect(await refusal()).toContain('compare issuer, subject, audience, role and key_id with the auth method');
    expect(asked).toHaveLength(1);
  });

  test.each([
    [{ authentication: 'jwt', subject: 'a' }, 'source.issuer'],
    [{ authentication: 'jwt', issuer: 'a' }, 'source.subject'],
    [{ authentication: 'jwt', issuer: 'a', subject: 'b', role_id: 'c' }, 'source.role_id'],
    [{ authentication: 'approle', role_id: 'a', issuer: 'b' }, 'source.issuer'],
    [{ issuer: 'a' }, 'source.issuer'],
    [{ role: 'a' }, 'source.role'],
    [{ lease_path: '../sys/seal' }, 'source.lease_path'],
    [{ lease_path: 'nomad/creds/ci?a=b' }, 'source.lease_path'],
  ])('with %j is refused', async (more, field) => {
    const { error } = await parseReply(errorBody, put({ ...LEASE, ...more }, privateKey));
    expect(JSON.stringify(error)).toContain(`"${field}"`);
    expect(asked).toEqual([]);
  });

  test('with a key that signs nothing is refused', async () => {
    const { error } = await parseReply(errorBody, put({ ...LEASE, ...JWT }, 'no key'));
    expect(error).toMatchObject({ code: 'invalid_input', details: { fields: [{ field: 'key' }] } });
  });
});
