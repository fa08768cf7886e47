import { createHmac } from 'node:crypto';
import { exportJWK, exportSPKI, generateKeyPair, type JWK, type JWTHeaderParameters, SignJWT } from 'jose';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type HostedUser, ownerWithMember, outcome, PUBLIC_URL } from '../../../e2e/runtimes/hosted_users.ts';
import { type InProcess, parseReply, startInProcess } from '../../../e2e/runtimes/in_process.ts';
import { TestSidecar } from '../../../e2e/runtimes/sidecar_client.ts';
import { err, ok } from '../../../shared/model/result.ts';
import { auditEventsPage } from '../../../shared/wire/audit_events.ts';
import { CREDENTIALS_TYP, credentialsPayload, SNAPSHOT_TYP, snapshotPayload } from '../../../shared/wire/channel.ts';
import { deletionReply } from '../../../shared/wire/enterprise.ts';
import { errorBody } from '../../../shared/wire/errors.ts';
import { hostBindingsPage } from '../../../shared/wire/host_bindings.ts';
import { joinReply, serviceAccountRecord, serviceAccountsPage } from '../../../shared/wire/service_accounts.ts';
import { type Outbound, targetProblem } from '../../kernel/outbound.ts';

const ISSUER = 'https://id.ci.test';
type Pair = Awaited<ReturnType<typeof generateKeyPair>>;
let own: Pair;
let other: Pair;
let ecdsa: Pair;
let ownJwk: JWK;
let ecdsaJwk: JWK;
beforeAll(async () => {
  [own, other] = await Promise.all([
    generateKeyPair('RS256', { extractable: true }),
    generateKeyPair('RS256', { extractable: true }),
  ]);
  ecdsa = await generateKeyPair('ES256', { extractable: true });
  ownJwk = { ...(await exportJWK(own.publicKey)), kid: 'one', use: 'sig', alg: 'RS256' };
  ecdsaJwk = { ...(await exportJWK(ecdsa.publicKey)), kid: 'two', use: 'sig' };
});

/** What the issuer answers, by path; a status for another answer. */
let answers: Record<string, object | number>;
let calls: string[];
let control: InProcess;
let owner: HostedUser;
let member: HostedUser;
let accountId: string;
let sidecar: TestSidecar;

const outbound: Outbound = {
  async call({ url }) {
    const problem = targetProblem(new URL(url), false);
    if (problem !== null) return err(problem);
    calls.push(url);
    const answer = answers[url.replace(ISSUER, '')] ?? 404;
    const body = new TextEncoder().encode(typeof answer === 'number' ? '' : JSON.stringify(answer));
    return ok({ status: typeof answer === 'number' ? answer : 200, contentType: 'application/json', body });
  },
};

const POLICY = {
  name: 'deploy',
  issuer: ISSUER,
  claims: { repository: 'acme/app', ref: 'refs/heads/release/*' },
};

beforeEach(async () => {
  calls = [];
  answers = {
    '/.well-known/openid-configuration': { issuer: ISSUER, jwks_uri: `${ISSUER}/keys` },
    '/keys': { keys: [ownJwk, ecdsaJwk] },
  };
  control = await startInProcess({ localKey: null, publicUrl: PUBLIC_URL, outbound });
  ({ owner, member } = await ownerWithMember(control));
  accountId = await addAccount();
  sidecar = await TestSidecar.make(control.send, 'X25519', () => control.clock.now());
});
afterEach(() => control.stop());

async function addAccount(change: object = {}): Promise<string> {
  const made = owner.call('POST', '/v1/service-accounts', { ...POLICY, ...change });
  return (await parseReply(serviceAccountRecord, made)).id;
}

const seconds = () => Math.floor(control.clock.now() / 1000);
function claimsOf(change: object = {}): Record<string, unknown> {
  const times = { iat: seconds(), nbf: seconds() - 5, exp: seconds() + 300 };
  const job = { sub: 'repo:acme/app:ref:refs/heads/release/1', repository: 'acme/app', ref: 'refs/heads/release/1' };
  return { iss: ISSUER, aud: PUBLIC_URL, jti: crypto.randomUUID(), ...times, ...job, ...change };
}
function signed(change: object = {}, header: object = {}, pair = own): Promise<string> {
  const protectedHeader: JWTHeaderParameters = { alg: 'RS256', kid: 'one', typ: 'JWT', ...header };
  return new SignJWT(claimsOf(change)).setProtectedHeader(protectedHeader).sign(pair.privateKey);
}
const encoded = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');

async function join(token: string, change: object = {}): Promise<Response> {
  const body = { service_account: accountId, token, name: 'job 1', ...(await sidecar.publicKeys()), ...change };
  const reply = await control.send('/auth/join', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  if (reply.status === 201) sidecar.enrolled = joinReply.parse(await reply.clone().json());
  return reply;
}

/** Why a token was refused; or the status. */
async function refusal(reply: Promise<Response>): Promise<unknown> {
  const answer = await reply;
  if (answer.ok) return answer.status;
  const { code, details } = errorBody.parse(await answer.json()).error;
  return code === 'join_refused' ? details?.['reason'] : code;
}

async function events(type: string) {
  return (await parseReply(auditEventsPage, owner.call('GET', `/v1/audit-events?type=${type}`))).items;
}

const sidecarsThatLeave = async () =>
  (await parseReply(deletionReply, owner.call('GET', '/v1/enterprise/deletion'))).sidecars;
const endOf = async (minutes: number) => (await parseReply(joinReply, join(await signed(), { minutes }))).expires_at;

function sharedSecret(secret: string): string {
  const text = `${encoded({ alg: 'HS256', kid: 'one' })}.${encoded(claimsOf())}`;
  return `${text}.${createHmac('sha256', secret).update(text).digest('base64url')}`;
}

const setDocument = (change: object) =>
  (answers['/.well-known/openid-configuration'] = { issuer: ISSUER, jwks_uri: `${ISSUER}/keys`, ...change });

const isLive = async () => (await sidecar.call('GET', '/v1/sidecar/snapshot')).status === 200;

async function boundHosts(): Promise<string[]> {
  const jws = await (await sidecar.call('GET', '/v1/sidecar/snapshot')).text();
  const { host_bindings: bindings } = await sidecar.verify(jws, SNAPSHOT_TYP, snapshotPayload);
  return bindings.map(({ host }) => host).toSorted();
}

async function released(...credentials: { owner: string; path: string }[]): Promise<unknown[]> {
  const body = { request_id: crypto.randomUUID(), credentials };
  const jws = await (await sidecar.call('POST', '/v1/sidecar/credentials', { body })).text();
  const payload = await sidecar.verify(jws, CREDENTIALS_TYP, credentialsPayload);
  return Promise.all(payload.credentials.map(({ sealed }) => sidecar.unseal(sealed)));
}

describe('a job with a token of the issuer', () => {
  it('gets a sidecar that ends by itself, and the audit log says whose job it is', async () => {
    const token = await signed();
    const reply = await parseReply(joinReply, join(token));
    expect(reply.expires_at).toBe(new Date(control.clock.now() + 60 * 60_000).toISOString());
    expect((await sidecar.call('GET', '/v1/sidecar/snapshot')).status).toBe(200);
    const [event] = await events('control.sidecar.joined');
    expect(event).toMatchObject({
      actor: accountId,
      data: {
        'svc.control.resource': reply.sidecar_id,
        'svc.control.issuer': ISSUER,
        'svc.control.subject': 'repo:acme/app:ref:refs/heads/release/1',
      },
    });
    const bytes = await control.databaseBytes();
    expect([bytes.includes(token), bytes.includes(token.split('.')[2] ?? '')]).toEqual([false, false]);
    control.clock.ms = Date.parse(reply.expires_at);
    expect(await outcome(sidecar.call('GET', '/v1/sidecar/snapshot'))).toBe('sidecar_revoked');
  });

  it('need not name its key, if the issuer has several of the kind', async () => {
    const [first, second] = await Promise.all([exportJWK(other.publicKey), exportJWK(own.publicKey)]);
    answers['/keys'] = { keys: [first, second] };
    expect(await refusal(join(await signed({}, { kid: undefined })))).toBe(201);
    const stranger = await generateKeyPair('RS256', { extractable: true });
    expect(await refusal(join(await signed({}, { kid: undefined }, stranger)))).toBe('signature');
    const expired = { iat: seconds() - 600, exp: seconds() - 60 };
    expect(await refusal(join(await signed(expired, { kid: undefined })))).toBe('expired');
  });

  it('is counted as what goes with the enterprise only until it ends', async () => {
    const before = await sidecarsThatLeave();
    const end = await endOf(5);
    expect(await sidecarsThatLeave()).toBe(before + 1);
    control.clock.ms = Date.parse(end) + 1000;
    expect(await sidecarsThatLeave()).toBe(before);
  });

  it('ends its sidecar itself', async () => {
    await join(await signed());
    expect((await sidecar.call('POST', '/v1/sidecar/leave', { body: {} })).status).toBe(204);
    expect(await outcome(sidecar.call('GET', '/v1/sidecar/snapshot'))).toBe('sidecar_revoked');
    expect(await events('control.sidecar.left')).toHaveLength(1);
  });

  it('may ask for less time, and gets no more', async () => {
    expect(await endOf(5)).toBe(new Date(control.clock.now() + 5 * 60_000).toISOString());
    expect(await endOf(600)).toBe(new Date(control.clock.now() + 60 * 60_000).toISOString());
  });

  it.each(['RS256', 'ES256'])('may sign with %s', async (alg) => {
    const header = alg === 'ES256' ? { alg, kid: 'two' } : {};
    expect(await refusal(join(await signed({}, header, alg === 'ES256' ? ecdsa : own)))).toBe(201);
  });

  it('may have a token without an id, once', async () => {
    const token = await signed({ jti: undefined });
    expect(await refusal(join(token))).toBe(201);
    expect(await refusal(join(token))).toBe('used_before');
  });
});

describe('a token is refused', () => {
  it.each<[string, string, () => Promise<string> | string]>([
    ['without a signature', 'algorithm', () => `${encoded({ alg: 'none' })}.${encoded(claimsOf())}.`],
    ['without a signature, in other case', 'algorithm', () => `${encoded({ alg: 'nOnE' })}.${encoded(claimsOf())}.`],
    [
      'signed with the public key as a shared secret',
      'algorithm',
      async () => sharedSecret(await exportSPKI(own.publicKey)),
    ],
    ['signed with the modulus as a shared secret', 'algorithm', () => sharedSecret(ownJwk.n ?? '')],
    ['of another key', 'signature', () => signed({}, {}, other)],
    ['of another key with its own kid', 'signature', () => signed({}, { kid: 'three' }, other)],
    [
      'of another key that is in the header',
      'signature',
      async () => signed({}, { jwk: await exportJWK(other.publicKey) }, other),
    ],
    ['whose header names where its key is', 'signature', () => signed({}, { jku: `${ISSUER}/other`, kid: 'x' }, other)],
    ['with the kid of a key of another type', 'signature', () => signed({}, { kid: 'two' })],
    ['whose kid is a path', 'signature', () => signed({}, { kid: '../../keys' }, other)],
    [
      'with an extension that must be understood',
      'signature',
      async () => {
        const [, payload, signature] = (await signed()).split('.');
        return `${encoded({ alg: 'RS256', kid: 'one', crit: ['x'], x: 1 })}.${payload}.${signature}`;
      },
    ],
    [
      'with other claims than were signed',
      'signature',
      async () => {
        const [header, , signature] = (await signed()).split('.');
        return `${header}.${encoded(claimsOf())}.${signature}`;
      },
    ],
    ['of another issuer', 'issuer', () => signed({ iss: 'https://id.evil.test' })],
    ['of an issuer that only ends with a slash', 'issuer', () => signed({ iss: `${ISSUER}/` })],
    ['without an issuer', 'issuer', () => signed({ iss: undefined })],
    ['for another audience', 'audience', () => signed({ aud: 'https://other.example.test' })],
    ['for this audience and another', 'audience', () => signed({ aud: [PUBLIC_URL, 'https://other.example.test'] })],
    ['without an audience', 'audience', () => signed({ aud: undefined })],
    ['that has expired', 'expired', () => signed({ iat: seconds() - 600, exp: seconds() - 60 })],
    ['that never expires', 'not_a_token', () => signed({ exp: undefined })],
    ['without the time of its making', 'not_a_token', () => signed({ iat: undefined })],
    ['whose end is a text', 'not_a_token', () => signed({ exp: '9999999999' })],
    ['that is not valid yet', 'not_yet_valid', () => signed({ nbf: seconds() + 120 })],
    ['made in the future', 'not_yet_valid', () => signed({ iat: seconds() + 120 })],
    ['that lives for a week', 'lives_too_long', () => signed({ exp: seconds() + 7 * 86_400 })],
    ['of an old job', 'expired', () => signed({ iat: seconds() - 2 * 86_400 })],
    ['of another repository', 'claims', () => signed({ repository: 'evil/app' })],
    ['of another branch', 'claims', () => signed({ ref: 'refs/heads/main' })],
    ['of three words', 'not_a_token', () => 'a.b.c'],
    ['of one word', 'not_a_token', () => 'token'],
    ['with five parts', 'not_a_token', async () => `${await signed()}.a.b`],
  ])('%s', async (_, reason, make) => {
    expect(await refusal(join(await make()))).toBe(reason);
  });

  it('the second time, also in another spelling, and by two at once', async () => {
    const jti = crypto.randomUUID();
    const replies = await Promise.all(
      [signed({ jti }), signed({ jti })].map(async (token) => refusal(join(await token))),
    );
    expect(new Set(replies)).toEqual(new Set([201, 'used_before']));
    expect(await refusal(join(await signed({ jti })))).toBe('used_before');
    const anew = await signed({ jti: undefined }, { alg: 'ES256', kid: 'two' }, ecdsa);
    expect(await refusal(join(anew))).toBe(201);
    const [header, payload] = anew.split('.');
    const again = await new SignJWT(JSON.parse(Buffer.from(payload ?? '', 'base64url').toString()))
      .setProtectedHeader({ alg: 'ES256', kid: 'two', typ: 'JWT' })
      .sign(ecdsa.privateKey);
    expect([again.split('.')[0], again === anew]).toEqual([header, false]);
    expect(await refusal(join(again))).toBe('used_before');
  });

  it('the second time, while the clock of another worker is ahead', async () => {
    const token = await signed({ exp: seconds() + 300 });
    expect(await refusal(join(token))).toBe(201);
    // The worker that is ahead deletes expired rows.
    control.clock.ms += (300 + 80) * 1000;
    expect(await refusal(join(await signed()))).toBe(201);
    control.clock.ms -= 55_000;
    expect(await refusal(join(token))).toBe('used_before');
  });

  it('the second time, whatever another enterprise that has keys of its own for this issuer has used', async () => {
    const strangers = await ownerWithMember(control);
    const keys = [{ ...(await exportJWK(other.publicKey)), kid: 'one' }];
    const made = strangers.owner.call('POST', '/v1/service-accounts', { ...POLICY, keys });
    const { id } = await parseReply(serviceAccountRecord, made);
    const jti = crypto.randomUUID();
    expect(await refusal(join(await signed({ jti }, {}, other), { service_account: id }))).toBe(201);
    expect(await refusal(join(await signed({ jti })))).toBe(201);
    expect(await refusal(join(await signed({ jti })))).toBe('used_before');
  });

  it('too often, and then the jobs that may join still do', async () => {
    const token = await signed({ repository: 'evil/app' });
    for (let count = 0; count < 60; count += 1) expect(await refusal(join(token))).toBe('claims');
    expect(await refusal(join(token))).toBe('too_many_attempts');
    expect(await events('control.service_account.join_refused')).toHaveLength(60);
    expect(await refusal(join(await signed()))).toBe(201);
  });

  it('with a small key', async () => {
    const { publicKey, privateKey } = await crypto.subtle.generateKey(
      { name: 'RSASSA-PKCS1-v1_5', modulusLength: 1024, publicExponent: new Uint8Array([1, 0, 1]), hash: 'SHA-256' },
      true,
      ['sign', 'verify'],
    );
    answers['/keys'] = { keys: [{ ...(await exportJWK(publicKey)), kid: 'small' }] };
    const text = `${encoded({ alg: 'RS256', kid: 'small' })}.${encoded(claimsOf())}`;
    const bytes = await crypto.subtle.sign('RSASSA-PKCS1-v1_5', privateKey, new TextEncoder().encode(text));
    expect(await refusal(join(`${text}.${Buffer.from(bytes).toString('base64url')}`))).toBe('signature');
  });

  it('with a shared secret among the issuer’s keys', async () => {
    const k = Buffer.from('a secret that everybody can read here').toString('base64url');
    answers['/keys'] = { keys: [{ kty: 'oct', k, kid: 'one', alg: 'HS256' }] };
    expect(await refusal(join(sharedSecret(Buffer.from(k, 'base64url').toString())))).toBe('algorithm');
  });

  it('before the issuer is asked, if it does not name the issuer', async () => {
    await join(await signed({ iss: 'https://id.evil.test' }));
    await join(`${encoded({ alg: 'none' })}.${encoded(claimsOf())}.`);
    expect(calls).toEqual([]);
  });

  it('and the audit log says so, only if the issuer signed it, without its rules', async () => {
    await join(await signed({ ref: 'refs/heads/main' }));
    await join(await signed({}, {}, other));
    const refusals = await events('control.service_account.join_refused');
    expect(
      refusals.map(({ actor, data }) => [actor, data['svc.control.reason'], data['svc.control.resource']]),
    ).toEqual([[null, 'claims', accountId]]);
    const reply = await join(await signed({ ref: 'refs/heads/main' }));
    const text = await reply.text();
    expect(errorBody.parse(JSON.parse(text)).error.details).toEqual({ reason: 'claims', claims: ['ref'] });
    expect(text).not.toContain('release');
  });
});

describe('the keys of an issuer', () => {
  it.each<[string, () => void]>([
    ['a redirect instead of the document', () => (answers['/.well-known/openid-configuration'] = 302)],
    ['a redirect instead of the keys', () => (answers['/keys'] = 302)],
    ['a document of another issuer', () => setDocument({ issuer: 'https://id.evil.test' })],
    ['keys at an address', () => setDocument({ jwks_uri: 'https://169.254.169.254/keys' })],
    ['keys without TLS', () => setDocument({ jwks_uri: 'http://id.ci.test/keys' })],
    ['keys at a name of this network', () => setDocument({ jwks_uri: 'https://internal/keys' })],
    ['keys at another port', () => setDocument({ jwks_uri: 'https://id.ci.test:8443/keys' })],
    ['no key set', () => (answers['/keys'] = { keys: 'none' })],
  ])('are not taken from %s', async (_, change) => {
    change();
    expect(await refusal(join(await signed()))).toBe('issuer_failed');
  });

  it('are asked for each time, so that a key that is withdrawn is of no use', async () => {
    expect(await refusal(join(await signed()))).toBe(201);
    answers['/keys'] = { keys: [ecdsaJwk] };
    expect(await refusal(join(await signed()))).toBe('signature');
  });

  it('may be given, for an issuer that is not reachable', async () => {
    const issuer = 'https://kubernetes.default.svc.cluster.local';
    const claims = { 'kubernetes.io/namespace': 'ci', 'kubernetes.io/serviceaccount/name': 'runner' };
    accountId = await addAccount({ issuer, claims, keys: [ownJwk] });
    const pod = { namespace: 'ci', serviceaccount: { name: 'runner' }, pod: { name: 'x' } };
    expect(await refusal(join(await signed({ iss: issuer, 'kubernetes.io': pod })))).toBe(201);
    const elsewhere = { iss: issuer, 'kubernetes.io': { ...pod, namespace: 'other' } };
    expect(await refusal(join(await signed(elsewhere)))).toBe('claims');
    expect(calls).toEqual([]);
  });
});

describe('a policy', () => {
  it.each<[string, object]>([
    ['an issuer at an address', { issuer: 'https://10.0.0.1' }],
    ['an issuer without TLS', { issuer: 'http://id.ci.test' }],
    ['an issuer with a query', { issuer: 'https://id.ci.test/?a=b' }],
    ['an issuer with a password', { issuer: 'https://a:b@id.ci.test' }],
    ['no claims', { claims: {} }],
    ['rules for everybody at GitHub', { issuer: 'https://token.actions.githubusercontent.com', claims: { ref: 'x' } }],
    ['too long a life', { minutes: 100_000 }],
    ['a field that does not exist', { wildcard: true }],
    ['an empty key', { keys: [{ kty: 'RSA' }] }],
    ['a shared secret as a key', { keys: [{ kty: 'oct', k: 'AAAA' }] }],
  ])('is refused with %s', async (_, change) => {
    expect(await outcome(owner.call('POST', '/v1/service-accounts', { ...POLICY, ...change }))).toBe('invalid_input');
  });

  it('is refused with a private key, which no reply repeats', async () => {
    const key = await exportJWK(own.privateKey);
    const reply = await owner.call('POST', '/v1/service-accounts', { ...POLICY, keys: [key] });
    expect(reply.status).toBe(400);
    expect(await reply.text()).not.toContain(key.d);
  });

  it('is for admins, and for their own enterprise', async () => {
    const strangers = await ownerWithMember(control);
    const path = `/v1/service-accounts/${accountId}`;
    for (const [method, at, body] of [
      ['GET', path],
      ['PUT', path, POLICY],
      ['DELETE', path],
      ['GET', `${path}/secrets`],
      ['POST', `${path}/secrets`, { path: 'ci/x', value: 'value-of-a-test' }],
      ['GET', `${path}/host-bindings`],
    ] as const) {
      expect(await outcome(member.call(method, at, body))).toBe('admin_required');
      expect(await outcome(strangers.owner.call(method, at, body))).toBe('not_found');
    }
    expect(await outcome(member.call('POST', '/v1/service-accounts', POLICY))).toBe('admin_required');
    expect(await outcome(member.call('GET', '/v1/service-accounts'))).toBe('admin_required');
    const { items } = await parseReply(serviceAccountsPage, strangers.owner.call('GET', '/v1/service-accounts'));
    expect(items).toEqual([]);
  });

  it('ends the sidecars when it is changed, suspended or removed', async () => {
    const path = `/v1/service-accounts/${accountId}`;
    const changes: (() => Promise<Response>)[] = [
      () => owner.call('PUT', path, { ...POLICY, claims: { repository: 'acme/app' } }),
      () => owner.call('PUT', path, { ...POLICY, suspended: true }),
    ];
    for (const change of changes) {
      await owner.call('PUT', path, POLICY);
      await join(await signed());
      expect(await isLive()).toBe(true);
      expect((await change()).status).toBe(200);
      expect(await isLive()).toBe(false);
    }
    expect(await refusal(join(await signed()))).toBe('unknown_service_account');
    await owner.call('PUT', path, POLICY);
    await join(await signed());
    expect((await owner.call('DELETE', path)).status).toBe(204);
    expect(await isLive()).toBe(false);
    expect(await refusal(join(await signed()))).toBe('unknown_service_account');
    expect(await outcome(owner.call('GET', path))).toBe('not_found');
  });

  it('that is changed while a job joins is not the one it joins by', async () => {
    const token = await signed();
    const at = '/.well-known/openid-configuration';
    const document = answers[at];
    Object.defineProperty(answers, at, {
      configurable: true,
      get() {
        void control.context.database.client.execute({
          sql: `UPDATE service_accounts SET claims = '{"repository":"acme/other"}' WHERE user_id = ?`,
          args: [accountId],
        });
        return document;
      },
    });
    expect(await refusal(join(token))).toBe('unknown_service_account');
  });

  it('is not that of a member: nobody signs in as it, and it has no other role', async () => {
    const members = await (await owner.call('GET', '/v1/members')).text();
    expect(members).not.toContain(accountId);
    const promoted = owner.call('PUT', `/v1/members/${accountId}`, { role: 'owner', suspended: false });
    expect(await outcome(promoted)).toBe('not_found');
    expect(await outcome(owner.call('DELETE', `/v1/members/${accountId}`))).toBe('not_found');
    await control.context.database.client.execute(`UPDATE users SET role = 'owner' WHERE id = '${accountId}'`);
    const { rows } = await control.context.database.client.execute(`SELECT role FROM users WHERE id = '${accountId}'`);
    expect(rows[0]?.['role']).toBe('member');
  });

  it('is of another kind than the sidecars of a person', async () => {
    expect(await refusal(join(await signed(), { service_account: owner.caller.userId }))).toBe(
      'unknown_service_account',
    );
  });
});

describe('a change', () => {
  it('says in the audit log what changed, with the values before and after', async () => {
    const path = `/v1/service-accounts/${accountId}`;
    const claims = { repository: 'acme/app', ref: 'refs/heads/main' };
    await owner.call('PUT', path, { ...POLICY, claims, minutes: 7, reach: 'enterprise' });
    await owner.call('PUT', path, {
      ...POLICY,
      claims,
      minutes: 7,
      reach: 'enterprise',
      suspended: true,
      keys: [ownJwk],
    });
    await owner.call('PUT', path, {
      ...POLICY,
      claims,
      minutes: 7,
      reach: 'enterprise',
      suspended: true,
      keys: [ownJwk],
    });
    const told = (await events('control.service_account.updated')).map(({ data }) => data['svc.control.changed']);
    expect(told).toEqual([
      'nothing',
      'suspended: false -> true; keys: replaced',
      expect.stringMatching(
        /^claims: \{.*\} -> \{"repository":"acme\/app","ref":"refs\/heads\/main"\}; reach: own -> enterprise; minutes: \d+ -> 7$/,
      ),
    ]);
  });
});

describe('what a service account may use', () => {
  const HOST = { host: 'api.ci.test', scheme: 'bearer', credential_ref: 'vault://ci/key' };
  const ENTERPRISE = { ...HOST, credential_ref: 'vault://shared/key', host: 'shared.ci.test', owner: 'enterprise' };
  beforeEach(async () => {
    await owner.call('POST', '/v1/secrets', {
      path: 'shared/key',
      value: 'value-of-the-enterprise',
      owner: 'enterprise',
    });
    await owner.call('POST', '/v1/host-bindings', ENTERPRISE);
    await owner.call('POST', '/v1/secrets', { path: 'mine/key', value: 'value-of-the-admin' });
    await owner.call('POST', '/v1/host-bindings', {
      ...HOST,
      host: 'mine.ci.test',
      credential_ref: 'vault://mine/key',
    });
  });

  const OF_ENTERPRISE = { owner: 'enterprise', path: 'shared/key' };
  const OWN = { owner: 'personal', path: 'ci/key' };

  async function addOwn(): Promise<string> {
    const path = `/v1/service-accounts/${accountId}`;
    const secret = { path: 'ci/key', value: 'value-of-the-job' };
    expect(await outcome(owner.call('POST', `${path}/secrets`, secret))).toBe(201);
    expect(await outcome(owner.call('POST', `${path}/host-bindings`, HOST))).toBe(201);
    return path;
  }

  it('is its own, which only admins write, and nothing of the enterprise or of a person', async () => {
    const path = await addOwn();
    await join(await signed());
    expect(await boundHosts()).toEqual(['api.ci.test']);
    expect(await released(OWN, OF_ENTERPRISE, { owner: 'personal', path: 'mine/key' })).toEqual([
      { value: 'value-of-the-job' },
    ]);
    const listed = await (await owner.call('GET', `${path}/secrets`)).text();
    expect([listed.includes('ci/key'), listed.includes('shared/key'), listed.includes('mine/key')]).toEqual([
      true,
      false,
      false,
    ]);
    const personal = await (await owner.call('GET', '/v1/secrets')).text();
    expect(personal).not.toContain('ci/key');
    const [stored] = (await events('control.secret.stored')).filter(
      ({ data }) => data['svc.control.service_account'] === accountId,
    );
    expect(stored?.actor).toBe(owner.caller.userId);
  });

  it('may be the enterprise’s too', async () => {
    await addOwn();
    await owner.call('PUT', `/v1/service-accounts/${accountId}`, { ...POLICY, reach: 'enterprise' });
    await join(await signed());
    expect(await boundHosts()).toEqual(['api.ci.test', 'shared.ci.test']);
    expect(await released(OWN, OF_ENTERPRISE)).toEqual([
      { value: 'value-of-the-job' },
      { value: 'value-of-the-enterprise' },
    ]);
  });

  it('changes for a sidecar that has joined, and is deleted with the account', async () => {
    const path = await addOwn();
    await join(await signed());
    const { items } = await parseReply(hostBindingsPage, owner.call('GET', `${path}/host-bindings`));
    const [binding] = items;
    expect(await outcome(owner.call('DELETE', `${path}/secrets/ci/key`))).toBe('secret_in_use');
    expect(await outcome(owner.call('DELETE', `${path}/host-bindings/${binding?.id}`))).toBe(204);
    expect(await boundHosts()).toEqual([]);
    expect(await outcome(owner.call('DELETE', `${path}/secrets/ci/key`))).toBe(204);
    await addOwn();
    await owner.call('DELETE', path);
    const { rows } = await control.context.database.client.execute(
      `SELECT id FROM secrets WHERE owner_id = '${accountId}'`,
    );
    expect(rows).toEqual([]);
  });

  it('is written at the account alone, not at the enterprise', async () => {
    const path = `/v1/service-accounts/${accountId}`;
    const secret = { path: 'ci/key', value: 'value-of-the-job', owner: 'enterprise' };
    expect(await outcome(owner.call('POST', `${path}/secrets`, secret))).toBe('invalid_input');
    expect(await outcome(owner.call('POST', `${path}/host-bindings`, ENTERPRISE))).toBe('invalid_input');
    const { items } = await parseReply(hostBindingsPage, owner.call('GET', '/v1/host-bindings?owner=enterprise'));
    expect(await outcome(owner.call('DELETE', `${path}/host-bindings/${items[0]?.id}`))).toBe('invalid_input');
  });
});
