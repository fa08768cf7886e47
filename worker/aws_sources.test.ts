import { generateKeyPairSync } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type InProcess, parseReply, startInProcess } from '../e2e/runtimes/in_process.ts';
import type { TestSidecar } from '../e2e/runtimes/sidecar_client.ts';
import { StsStub } from '../e2e/support/sts_stub.ts';
import { ok } from '../shared/model/result.ts';
import { CREDENTIALS_TYP, credentialsPayload, sealedCredential } from '../shared/wire/channel.ts';
import { errorBody } from '../shared/wire/errors.ts';
import { hostBindingRecord } from '../shared/wire/host_binding.ts';
import { sourceTestReply } from '../shared/wire/secret_sources.ts';
import type { Outbound, OutboundRequest } from './kernel/outbound.ts';

// STS is a stub that verifies signatures: e2e/support/sts_stub.ts.

const RSA = generateKeyPairSync('rsa', { modulusLength: 2048 });
const PEM = RSA.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
const CALLER = 'AKIAIOSFODNN7EXAMPLE';
const SECRET = 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY';
const PATH = 'aws/deploy';
const POLICY = '{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"s3:GetObject","Resource":"*"}]}';
const ROLE = {
  kind: 'aws_assume_role',
  access_key_id: CALLER,
  role_arn: 'arn:aws:iam::123456789012:role/teams/ci/deploy',
  region: 'eu-central-1',
  external_id: 'ours',
};
const IDENTITY = {
  kind: 'aws_web_identity',
  role_arn: ROLE.role_arn,
  region: ROLE.region,
  issuer: 'https://id.example.com',
  subject: 'ci',
};

let sts: StsStub;
let asked: OutboundRequest[];
let control: InProcess;
let sidecar: TestSidecar;
let body: ((xml: string) => string) | null;

const outbound: Outbound = {
  async call(request) {
    asked.push(request);
    const { host, pathname } = new URL(request.url);
    const { status, body: xml } = sts.answer({
      method: request.method,
      target: pathname,
      headers: (name) => (name === 'host' ? [host] : [request.headers[name] ?? []].flat()),
      body: Buffer.from(request.body ?? []),
    });
    const text = body === null ? xml : body(xml);
    return ok({ status, contentType: 'text/xml', body: new TextEncoder().encode(text) });
  },
};

beforeEach(async () => {
  asked = [];
  body = null;
  control = await startInProcess({ outbound });
  sidecar = await control.enrolSidecar();
  sts = new StsStub({
    callers: new Map([[CALLER, SECRET]]),
    trusted: RSA.publicKey,
    externalId: ROLE.external_id,
    now: () => control.clock.now(),
  });
});
afterEach(() => control.stop());

const put = (source: object = ROLE, key = SECRET) =>
  control.asUser('POST', '/v1/secret-sources', { path: PATH, source, key });
const bind = (more: object = {}) =>
  control.asUser('POST', '/v1/host-bindings', {
    host: 's3.eu-central-1.amazonaws.com',
    scheme: 'sigv4-resign',
    access_key_id: 'minted',
    region: 'eu-central-1',
    service: 's3',
    credential_ref: `vault://${PATH}`,
    ...more,
  });
const problemOf = async (reply: Promise<Response>) => (await parseReply(errorBody, reply)).error.message;
const tryOut = () => control.asUser('POST', '/v1/secret-sources/test', { path: PATH });

async function release() {
  const credentials = [{ owner: 'personal', path: PATH }];
  const reply = await sidecar.call('POST', '/v1/sidecar/credentials', {
    body: { request_id: crypto.randomUUID(), credentials },
  });
  return sidecar.verify(await reply.text(), CREDENTIALS_TYP, credentialsPayload);
}

async function released() {
  const { credentials, unavailable } = await release();
  if (credentials[0] === undefined) throw new Error(unavailable[0]?.message);
  const value = sealedCredential.parse(await sidecar.unseal(credentials[0].sealed));
  return { value, until: Date.parse(credentials[0].expires_at ?? '') };
}

describe('a role that a caller assumes', () => {
  test('gives one key set, whose three parts are of one mint', async () => {
    expect((await put()).status).toBe(201);
    expect((await bind()).status).toBe(201);
    for (const mints of [1, 1, 2]) {
      if (mints === 2) control.clock.ms += 3_600_000;
      const { value, until } = await released();
      const id = value.signed_as?.access_key_id ?? '';
      expect(sts.issued.get(id)).toEqual({ secret: value.value, token: value.signed_as?.session_token });
      expect(until).toBeLessThanOrEqual(control.clock.now() + 3_600_000);
      expect(sts.issued.size).toBe(mints);
    }
  });

  test('is asked for with everything that narrows it', async () => {
    const tags = { Project: 'a b=c', Stage: 'prod' };
    const narrow = { policy: POLICY, policy_arns: ['arn:aws:iam::aws:policy/ReadOnlyAccess'], tags };
    await put({ ...ROLE, ...narrow, transitive_tag_keys: ['Stage'], session_name: 'ci@main', duration_seconds: 900 });
    const { minted_for: mintedFor, until } = await parseReply(sourceTestReply, tryOut());
    expect(mintedFor).toBe(
      `the role ${ROLE.role_arn} as ci@main, narrowed by a session policy, arn:aws:iam::aws:policy/ReadOnlyAccess`,
    );
    // To the second, like the answer of STS.
    expect(control.clock.now() + 900_000 - Date.parse(until)).toBeLessThan(1_000);
    expect(asked[0]?.url).toBe('https://sts.eu-central-1.amazonaws.com/');
    expect(sts.asked).toEqual([
      {
        Action: 'AssumeRole',
        Version: '2011-06-15',
        RoleArn: ROLE.role_arn,
        RoleSessionName: 'ci@main',
        DurationSeconds: '900',
        Policy: POLICY,
        'PolicyArns.member.1.arn': 'arn:aws:iam::aws:policy/ReadOnlyAccess',
        ExternalId: 'ours',
        'Tags.member.1.Key': 'Project',
        'Tags.member.1.Value': 'a b=c',
        'Tags.member.2.Key': 'Stage',
        'Tags.member.2.Value': 'prod',
        'TransitiveTagKeys.member.1': 'Stage',
      },
    ]);
  });

  test('is asked for in China and at another URL', async () => {
    await put({ ...ROLE, region: 'cn-north-1' });
    await tryOut();
    await put({ ...ROLE, sts_url: 'https://sts.example.com/' });
    await tryOut();
    expect(asked.map(({ url }) => url)).toEqual([
      'https://sts.cn-north-1.amazonaws.com.cn/',
      'https://sts.example.com/',
    ]);
    expect(sts.issued.size).toBe(2);
  });

  test.each([
    ['another secret access key', ROLE, 'x'.repeat(40), /refused: SignatureDoesNotMatch \(the key is not that of/],
    ['an unknown access key id', { ...ROLE, access_key_id: 'AKIAOTHER' }, SECRET, /InvalidClientTokenId \(there is no/],
    ['another external id', { ...ROLE, external_id: 'theirs' }, SECRET, /AccessDenied \(the caller may not assume/],
  ])('is refused with %s, which is told without the text of AWS', async (_, source, key, message) => {
    await put(source, key);
    const problem = await problemOf(tryOut());
    expect(problem).toMatch(message);
    expect(problem).not.toMatch(/A text with|xxxx/);
  });

  test.each([
    ['of another account', { Arn: 'arn:aws:sts::999999999999:assumed-role/deploy/svc' }, 'of another session'],
    ['of another role', { Arn: 'arn:aws:sts::123456789012:assumed-role/admin/svc' }, 'of another session'],
    ['of no session', { Arn: null }, 'of another session'],
    ['without its policy', { PackedPolicySize: null }, 'without the session policies'],
    ['without a token', { SessionToken: null }, 'has no key set'],
    ['with two keys', { AccessKeyId: 'A</AccessKeyId><AccessKeyId>B' }, 'has no key set'],
    ['without an end', { Expiration: 'soon' }, 'does not say when'],
    ['that has ended', { Expiration: '2020-01-01T00:00:00Z' }, 'already ended'],
  ])('that answers with a key set %s is not believed', async (_, altered, message) => {
    sts.altered = altered;
    await put({ ...ROLE, policy: POLICY });
    expect(await problemOf(tryOut())).toContain(message);
  });

  test('never outlives what was asked for, whatever the clock of AWS says', async () => {
    sts.altered = { Expiration: '2099-01-01T00:00:00Z' };
    await put();
    await bind();
    expect((await released()).until).toBe(control.clock.now() + 3_600_000);
  });

  test('is reported if the answer is none of STS', async () => {
    body = () => '<html>';
    await put();
    expect(await problemOf(tryOut())).toContain('has no key set');
  });

  test.each([
    ['role_arn', { role_arn: 'deploy' }],
    ['policy', { policy: 'Allow *' }],
    ['region', { region: 'evil.example.com/' }],
    ['duration_seconds', { duration_seconds: 60 }],
    ['session_name', { session_name: 'a b' }],
    ['sts_url', { sts_url: 'http://sts.example.com/' }],
    ['tags', { tags: { 'a*': 'b' } }],
  ])('is not stored with a wrong %s', async (field, more) => {
    expect(await problemOf(put({ ...ROLE, ...more }))).toContain(field);
    expect(asked).toEqual([]);
  });
});

describe('a role for a web identity', () => {
  test('gives a key set for a JWT that the source signs', async () => {
    await put({ ...IDENTITY, policy: POLICY }, PEM);
    await bind();
    const { value } = await released();
    expect(sts.issued.get(value.signed_as?.access_key_id ?? '')?.secret).toBe(value.value);
    expect(Object.keys(asked[0]?.headers ?? {})).not.toContain('authorization');
    const [, claims = ''] = (sts.asked[0]?.['WebIdentityToken'] ?? '').split('.');
    expect(JSON.parse(Buffer.from(claims, 'base64url').toString())).toMatchObject({
      iss: IDENTITY.issuer,
      sub: 'ci',
      aud: 'sts.amazonaws.com',
    });
  });

  test.each([
    ['another key', {}, generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey],
    ['another audience', { audience: 'somebody' }, RSA.privateKey],
  ])('is refused with %s', async (_, more, key) => {
    await put({ ...IDENTITY, ...more }, key.export({ type: 'pkcs8', format: 'pem' }).toString());
    expect(await problemOf(tryOut())).toMatch(/InvalidIdentityToken \(it does not accept the signed identity/);
  });
});

describe('a key set', () => {
  test.each([
    ['another scheme', { scheme: 'bearer', access_key_id: undefined, region: undefined, service: undefined }],
    ['an access key id', { access_key_id: CALLER }],
    ['a session token beside it', { session_token_ref: 'vault://aws/token' }],
  ])('cannot be bound with %s', async (_, more) => {
    await put();
    const reply = await bind(more);
    expect([reply.status, await reply.text()]).toEqual([400, expect.stringMatching(/key set/)]);
  });

  test('cannot be the session token of another key', async () => {
    await put();
    await control.asUser('POST', '/v1/secrets', { path: 'aws/key', value: SECRET });
    const more = { access_key_id: CALLER, credential_ref: 'vault://aws/key', session_token_ref: `vault://${PATH}` };
    expect(await problemOf(bind(more))).toContain('session_token_ref cannot be used so');
  });

  test('is wanted by no binding of a stored secret', async () => {
    await control.asUser('POST', '/v1/secrets', { path: PATH, value: SECRET });
    expect(await problemOf(bind())).toContain('AWS does not mint');
  });

  test('may be what a borrowed secret is, which only its machine knows', async () => {
    await control.asUser('POST', '/v1/secret-sources', { path: PATH, source: { kind: 'borrowed' } });
    expect((await bind()).status).toBe(201);
    expect((await bind({ host: 'other.amazonaws.com', access_key_id: CALLER })).status).toBe(201);
  });

  test('is no API key of a connector and no value in plaintext', async () => {
    await put();
    await bind();
    const reply = await sidecar.call('POST', '/v1/sidecar/unsealed', {
      body: {
        request_id: crypto.randomUUID(),
        reference: { owner: 'personal', path: PATH },
        host: 'a.example.com',
        reason: 'for a test',
      },
    });
    expect([reply.status, await reply.text()]).toEqual([503, expect.stringContaining('is a key set of AWS')]);
  });

  test('is in the database sealed, and in no answer or log', async () => {
    await put();
    const { id } = await parseReply(hostBindingRecord, bind());
    const { value } = await released();
    const told = JSON.stringify([
      await (await control.asUser('GET', '/v1/secret-sources')).text(),
      await (await control.asUser('GET', '/v1/audit-events')).text(),
      await (await control.asUser('GET', `/v1/host-bindings/${id}`)).text(),
      control.log,
    ]);
    const bytes = await control.databaseBytes();
    for (const planted of [SECRET, value.value, value.signed_as?.session_token ?? '?']) {
      expect(told).not.toContain(planted);
      expect(bytes.includes(planted)).toBe(false);
    }
  });
});
