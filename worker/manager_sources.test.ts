import { generateKeyPairSync } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type InProcess, parseReply, startInProcess } from '../e2e/runtimes/in_process.ts';
import type { TestSidecar } from '../e2e/runtimes/sidecar_client.ts';
import { verifySigV4 } from '../e2e/support/sigv4_verifier.ts';
import { parseJson } from '../shared/model/json.ts';
import { ok } from '../shared/model/result.ts';
import { auditEventsPage } from '../shared/wire/audit_events.ts';
import { CREDENTIALS_TYP, credentialsPayload, sealedCredential } from '../shared/wire/channel.ts';
import { errorBody } from '../shared/wire/errors.ts';
import { sourcePlan, sourcesPage } from '../shared/wire/secret_sources.ts';
import type { Outbound, OutboundReply, OutboundRequest } from './kernel/outbound.ts';
import { json } from './kernel/testing/json_reply.ts';

// Each manager is a stub, written from the reference of its HTTP API with its errors. None is the service itself.

const RSA = generateKeyPairSync('rsa', { modulusLength: 2048 });
const PEM = RSA.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
const REF = { owner: 'personal', path: 'ci/token' } as const;
const VALUE = 'the-value-in-the-manager';
const TOKEN = 'the-token-of-a-login';
const KEYED = JSON.stringify({ password: VALUE, number: 7 });
const LIFE_MS = 300_000;
const ITEM = 'abcdefghijklmnopqrstuvwxy1';
const VAULT_ID = 'abcdefghijklmnopqrstuvwxy2';
const ARN = 'arn:aws:secretsmanager:eu-central-1:123456789012:secret:ci/database-AbC123';
const SECRET_KEY = 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY';

/** One manager: a source, its key, the calls that read the value, and the answer of the last one. */
interface Manager {
  readonly source: Readonly<Record<string, unknown>>;
  readonly key: string;
  /** Method, path and query of each call. */
  readonly calls: readonly string[];
  readonly isAllowed: (request: OutboundRequest) => boolean;
  readonly answer: Readonly<Record<string, unknown>>;
  /** What makes the answer one for something else. */
  readonly another: Readonly<Record<string, unknown>>;
  readonly refused: (code: string) => unknown;
  readonly refusals: readonly (readonly [status: number, code: string, words: string])[];
  readonly wrongFields: readonly Readonly<Record<string, unknown>>[];
}

const bearer =
  (token: string) =>
  ({ headers }: OutboundRequest): boolean =>
    headers['authorization'] === `Bearer ${token}`;

function isSignedForAws(request: OutboundRequest): boolean {
  const { pathname, host } = new URL(request.url);
  const headers = (name: string) => (name === 'host' ? [host] : [request.headers[name] ?? []].flat());
  const signed = { method: request.method, target: pathname, headers, body: Buffer.from(request.body ?? []) };
  const verdict = verifySigV4(signed, new Map([['AKIAIOSFODNN7EXAMPLE', SECRET_KEY]]), control.clock.now());
  const covered = /SignedHeaders=[^,]*x-amz-target/.test(request.headers['authorization'] ?? '');
  return verdict.ok && covered && verdict.service === 'secretsmanager' && verdict.region === 'eu-central-1';
}

const MANAGERS: Readonly<Record<string, Manager>> = {
  aws_secrets_manager: {
    source: {
      access_key_id: 'AKIAIOSFODNN7EXAMPLE',
      region: 'eu-central-1',
      secret_id: 'ci/database',
      field: 'password',
    },
    key: SECRET_KEY,
    calls: ['POST https://secretsmanager.eu-central-1.amazonaws.com/'],
    isAllowed: isSignedForAws,
    answer: { ARN, Name: 'ci/database', SecretString: KEYED, VersionStages: ['AWSCURRENT'] },
    another: { Name: 'ci/other' },
    refused: (code) => ({ __type: code, message: VALUE }),
    refusals: [
      [400, 'AccessDeniedException', 'allow secretsmanager:GetSecretValue'],
      [400, 'ResourceNotFoundException', 'no such secret'],
      [400, 'com.amazonaws.secretsmanager#DecryptionFailure', 'allow kms:Decrypt'],
      [400, 'UnrecognizedClientException', 'no such access key id'],
      [500, 'InternalServiceError', 'try again'],
      [400, 'constructor', 'status 400, constructor'],
    ],
    wrongFields: [
      { secret_id: 'a b' },
      { region: 'eu.evil.example' },
      { secrets_manager_url: 'https://10.0.0.7/' },
      { version_stage: '' },
      { access_key_id: 'a/b' },
    ],
  },
  google_secret_manager: {
    source: {
      client_email: 'ci@p.iam.gserviceaccount.com',
      secret_resource: 'projects/our-project/secrets/db',
      field: 'password',
    },
    key: PEM,
    calls: [
      'POST https://oauth2.googleapis.com/token',
      'GET https://secretmanager.googleapis.com/v1/projects/our-project/secrets/db/versions/latest:access',
    ],
    isAllowed: bearer(TOKEN),
    answer: {
      name: 'projects/123456/secrets/db/versions/7',
      payload: { data: Buffer.from(KEYED).toString('base64') },
    },
    another: { name: 'projects/123456/secrets/other/versions/7' },
    refused: (status) => ({ error: { code: 1, status, message: VALUE } }),
    refusals: [
      [403, 'PERMISSION_DENIED', 'roles/secretmanager.secretAccessor'],
      [404, 'NOT_FOUND', 'no such secret or version'],
      [400, 'FAILED_PRECONDITION', 'disabled or destroyed'],
      [429, 'RESOURCE_EXHAUSTED', 'quota'],
    ],
    wrongFields: [
      { secret_resource: 'projects/p/secrets/..' },
      { secret_resource: 'projects/p/secrets/s/versions/1' },
      { secret_resource: 'projects/p/secrets/s?alt=' },
      { secret_manager_url: 'https://169.254.169.254' },
      { token_url: 'https://id.example.com:8443/token' },
      { version: 0 },
    ],
  },
  onepassword_connect: {
    source: { connect_url: 'https://connect.example.com:8443', vault_id: VAULT_ID, item_id: ITEM, field: 'password' },
    key: 'the-token-of-the-source',
    calls: [`GET https://connect.example.com:8443/v1/vaults/${VAULT_ID}/items/${ITEM}`],
    isAllowed: bearer('the-token-of-the-source'),
    answer: {
      id: ITEM,
      vault: { id: VAULT_ID },
      fields: [
        { id: 'username', label: 'username', value: 'me' },
        { id: 'f1', label: 'password', value: VALUE },
        { id: 'n' },
      ],
    },
    another: { id: VAULT_ID },
    refused: () => ({ status: 1, message: VALUE }),
    refusals: [
      [401, '', 'does not accept the token'],
      [403, '', 'may not read this vault'],
      [404, '', 'no such item'],
      [418, '', 'answered with status 418'],
      [302, '', 'answered with status 302'],
    ],
    wrongFields: [
      { vault_id: '..' },
      { item_id: 'ABCDEFGHIJKLMNOPQRSTUVWXYZ' },
      { connect_url: 'https://connect.example.com/v1' },
      { connect_url: 'https://connect.example.com:80' },
      { connect_url: 'https://connect.example.com/?a=' },
      { field: '' },
    ],
  },
  doppler: {
    source: { project: 'web', config: 'prd', secret_name: 'DB_PASSWORD' },
    key: 'dp.st.prd.the-token',
    calls: ['GET https://api.doppler.com/v3/configs/config/secret?project=web&config=prd&name=DB_PASSWORD'],
    isAllowed: bearer('dp.st.prd.the-token'),
    answer: { name: 'DB_PASSWORD', value: { raw: '${OTHER}', computed: VALUE }, success: true },
    another: { name: 'OTHER' },
    refused: () => ({ messages: [VALUE], success: false }),
    refusals: [
      [401, '', 'it has ended, or was revoked'],
      [404, '', 'no such project, config or secret'],
      [429, '', 'try again later'],
    ],
    wrongFields: [
      { project: 'a&b=c' },
      { config: '' },
      { secret_name: '..' },
      { doppler_url: 'http://api.doppler.com' },
    ],
  },
  infisical: {
    source: { client_id: 'the-identity', project_id: 'p-1', environment: 'prod', folder: '/ci', secret_name: 'DB' },
    key: 'the-client-secret',
    calls: [
      'POST https://us.infisical.com/api/v1/auth/universal-auth/login',
      'GET https://us.infisical.com/api/v4/secrets/DB?projectId=p-1&environment=prod&secretPath=%2Fci&type=shared&viewSecretValue=true',
      'POST https://us.infisical.com/api/v1/auth/token/revoke',
    ],
    isAllowed: bearer(TOKEN),
    answer: { secret: { secretKey: 'DB', secretValue: VALUE, version: 3 } },
    another: { secret: { secretKey: 'OTHER', secretValue: VALUE } },
    refused: () => ({ message: VALUE, error: 'x', statusCode: 1 }),
    refusals: [
      [401, '', 'compare the trusted IPs'],
      [403, '', 'give it a role in the project'],
      [404, '', 'older than secrets v4'],
    ],
    wrongFields: [
      { folder: 'ci' },
      { folder: '/ci/../..' },
      { secret_name: 'a/b' },
      { environment: 'a b' },
      { infisical_url: 'https://user@us.infisical.com' },
    ],
  },
};
const KINDS = Object.entries(MANAGERS);

let asked: OutboundRequest[];
/** What replaces the answer with the value. */
let instead: OutboundReply | null;
let control: InProcess;
let sidecar: TestSidecar;
let manager: Manager;

const isLogin = ({ url }: OutboundRequest) => /\/token$|\/login$/.test(url);
const outbound: Outbound = {
  async call(request) {
    asked.push(request);
    if (request.url.endsWith('/revoke')) return ok(json(200, { message: 'Successfully revoked access token' }));
    if (isLogin(request)) return ok(logIn(request));
    if (instead !== null) return ok(instead);
    return ok(manager.isAllowed(request) ? json(200, manager.answer) : json(401, manager.refused('UNAUTHENTICATED')));
  },
};

function logIn({ url, body }: OutboundRequest): OutboundReply {
  const sent = new TextDecoder().decode(body ?? undefined);
  if (url.endsWith('/token')) return json(200, { access_token: TOKEN, token_type: 'Bearer', expires_in: 3599 });
  const isKnown = sent === JSON.stringify({ clientId: 'the-identity', clientSecret: 'the-client-secret' });
  return isKnown ? json(200, { accessToken: TOKEN, expiresIn: 7200, tokenType: 'Bearer' }) : json(401, {});
}

// One control plane for all: each test stores its source anew.
beforeAll(async () => {
  control = await startInProcess({ outbound });
  sidecar = await control.enrolSidecar();
});
beforeEach(() => {
  asked = [];
  instead = null;
});
afterAll(() => control.stop());

const put = (kind: string, more: object = {}, key = manager.key) => {
  const source = { kind, ...manager.source, ...more };
  return control.asUser('POST', '/v1/secret-sources', { path: REF.path, source, key });
};
const tryOut = () => control.asUser('POST', '/v1/secret-sources/test', { path: REF.path });
const refusal = async () => (await parseReply(errorBody, tryOut())).error.message;

async function released() {
  const body = { request_id: crypto.randomUUID(), credentials: [REF] };
  const reply = await sidecar.call('POST', '/v1/sidecar/credentials', { body });
  const payload = await sidecar.verify(await reply.text(), CREDENTIALS_TYP, credentialsPayload);
  const [credential] = payload.credentials;
  if (credential === undefined) return null;
  const { value } = sealedCredential.parse(await sidecar.unseal(credential.sealed));
  return { value, until: Date.parse(credential.expires_at ?? '') };
}

/** Nothing that is told, logged or at rest has a secret of these tests. */
async function expectNoSecret() {
  const events = await parseReply(auditEventsPage, control.asUser('GET', '/v1/audit-events'));
  const sources = await parseReply(sourcesPage, control.asUser('GET', '/v1/secret-sources'));
  const told = JSON.stringify([events, sources, control.log]);
  const bytes = await control.databaseBytes();
  for (const planted of [VALUE, TOKEN, manager.key.split('\n')[1] ?? manager.key]) {
    expect([planted, told.includes(planted), bytes.includes(planted)]).toEqual([planted, false, false]);
  }
}

describe.each(KINDS)('a secret of %s (a stub by its reference)', (kind, of) => {
  beforeEach(() => {
    manager = of;
  });

  test('is read when it is needed, by the documented calls, for five minutes', async () => {
    expect((await put(kind)).status).toBeLessThan(300);
    const binding = {
      host: `${kind.replaceAll('_', '-')}.test`,
      scheme: 'bearer',
      credential_ref: `vault://${REF.path}`,
    };
    expect((await control.asUser('POST', '/v1/host-bindings', binding)).status).toBe(201);
    expect(asked).toEqual([]);
    expect(await released()).toEqual({ value: VALUE, until: control.clock.now() + LIFE_MS });
    expect(asked.map(({ method, url }) => `${method} ${url}`)).toEqual(of.calls);
    for (const { url } of asked) expect([url, url.includes(TOKEN) || url.includes(manager.key)]).toEqual([url, false]);
    control.clock.ms += LIFE_MS;
    instead = json(503, of.refused('UNAVAILABLE'));
    expect(await released()).toBeNull();
    await expectNoSecret();
  });

  test('has a dry run that says what is read, and asks nobody', async () => {
    const source = { kind, ...of.source };
    const reply = control.asUser('POST', '/v1/secret-sources/dry-run', { source, key: of.key });
    const plan = await parseReply(sourcePlan, reply);
    const url = of.calls.find((call) => !/login$|\/token$|revoke$/.test(call))?.split(' ')[1];
    expect(plan).toMatchObject({ kind, value: 'kept_value', provider_url: url, life_seconds: 300, key_checked: true });
    expect(asked).toEqual([]);
  });

  test.each(of.refusals)('refused with %i %s says what to change, without the text', async (status, code, words) => {
    await put(kind);
    instead = json(status, of.refused(code));
    expect(await refusal()).toContain(words);
    await expectNoSecret();
  });

  test('that is another one than was asked for is discarded', async () => {
    await put(kind);
    instead = json(200, { ...of.answer, ...of.another });
    expect(await refusal()).toContain('another secret or version than was asked for, which was discarded');
  });

  test.each(['not json', '[]', 'null', '{}', `{"value":"${VALUE}"}`])('with the answer %s is none', async (body) => {
    await put(kind);
    instead = json(200, body);
    expect(await refusal()).toContain('is not that of this service');
    await expectNoSecret();
  });

  test.each(of.wrongFields)('with %j is refused, and nothing is stored or called', async (more) => {
    const { error } = await parseReply(errorBody, put(kind, more));
    expect(error.code).toBe('invalid_input');
    expect(JSON.stringify(error)).toContain(`source.${Object.keys(more)[0]}`);
    expect(asked).toEqual([]);
  });
});

describe.each(['onepassword_connect', 'doppler', 'infisical'])('the key of %s', (kind) => {
  test.each(['two words', 'a\r\nx: b', 'tökén'])('that is %j is refused', async (key) => {
    manager = MANAGERS[kind]!;
    const { error } = await parseReply(errorBody, put(kind, {}, key));
    expect(error).toMatchObject({ code: 'invalid_input', details: { fields: [{ field: 'key' }] } });
    expect(JSON.stringify(error)).not.toContain(key);
  });
});

describe('of AWS Secrets Manager', () => {
  beforeEach(() => {
    manager = MANAGERS['aws_secrets_manager']!;
  });

  test.each([
    [ARN, true],
    [ARN.slice(0, -7), true],
    [ARN.slice(0, -2), false],
    [`${ARN}-AbC124`, false],
  ])('the ARN %s is the one that was asked for: %s', async (id, isIt) => {
    await put('aws_secrets_manager', { secret_id: id });
    expect((await tryOut()).status).toBe(isIt ? 200 : 503);
    expect(parseJson(new TextDecoder().decode(asked[0]?.body ?? undefined))).toEqual({ SecretId: id });
  });

  test.each([
    [{ SecretString: undefined, SecretBinary: 'AAAA' }, 'is not there'],
    [{ SecretString: VALUE }, 'whether the value is a JSON object'],
    [{ SecretString: JSON.stringify({ password: 7 }) }, 'is not a text'],
    [{ SecretString: JSON.stringify({ other: VALUE }) }, 'is not there'],
    [{ SecretString: JSON.stringify([VALUE]) }, 'is not there'],
  ])('an answer with %j has no such field', async (more, words) => {
    await put('aws_secrets_manager');
    instead = json(200, { ...manager.answer, ...more });
    expect(await refusal()).toContain(words);
    await expectNoSecret();
  });

  test.each(['__proto__', 'constructor'])('the field %s is there only if it is', async (field) => {
    await put('aws_secrets_manager', { field });
    expect(await refusal()).toContain('is not there');
  });

  test('is asked for by its stage, with a signature of its region', async () => {
    await put('aws_secrets_manager', { version_stage: 'AWSPREVIOUS' });
    expect((await tryOut()).status).toBe(200);
    expect(new TextDecoder().decode(asked[0]?.body ?? undefined)).toContain('"VersionStage":"AWSPREVIOUS"');
  });
});

describe('of other managers', () => {
  test('a version of Google is asked for by its number, and another one is discarded', async () => {
    manager = MANAGERS['google_secret_manager']!;
    await put('google_secret_manager', { version: 7 });
    expect((await tryOut()).status).toBe(200);
    expect(asked.at(-1)?.url).toContain('/versions/7:access');
    await put('google_secret_manager', { version: 8 });
    expect(await refusal()).toContain('which was discarded');
  });

  test('a value of Google that is no text is refused', async () => {
    manager = MANAGERS['google_secret_manager']!;
    await put('google_secret_manager', { field: undefined });
    instead = json(200, { ...manager.answer, payload: { data: '//79' } });
    expect(await refusal()).toContain('is not a text');
  });

  test.each([
    [{ field: 'password' }, 'is there 2 times'],
    [{ field: 'password', section: 'Other' }, '"minted_for"'],
    [{ field: 'f1' }, '"minted_for"'],
    [{ field: 'nothing' }, 'is not there'],
    [{ field: 'f1', section: 'Nowhere' }, 'is not there'],
  ])('of 1Password, %j finds one field or says why not', async (more, words) => {
    manager = MANAGERS['onepassword_connect']!;
    await put('onepassword_connect', more);
    const fields = [
      { id: 'f1', label: 'password', value: VALUE },
      { id: 'f2', label: 'password', value: 'another', section: { id: 's1', label: 'Other' } },
    ];
    instead = json(200, { ...manager.answer, fields });
    const reply = await (await tryOut()).text();
    expect(reply).toContain(words);
  });

  test('a value of Doppler that the token may not see is none', async () => {
    manager = MANAGERS['doppler']!;
    await put('doppler');
    instead = json(200, { ...manager.answer, value: { raw: null, computed: null } });
    expect(await refusal()).toContain('is not a text');
  });

  test('a value of Infisical that is hidden, or of another version, is none', async () => {
    manager = MANAGERS['infisical']!;
    await put('infisical', { version: 3 });
    expect((await tryOut()).status).toBe(200);
    expect(asked[1]?.url).toContain('&version=3');
    instead = json(200, { secret: { secretKey: 'DB', secretValue: '<hidden>', version: 3, secretValueHidden: true } });
    expect(await refusal()).toContain('is hidden from this identity');
    instead = json(200, { secret: { secretKey: 'DB', secretValue: VALUE, version: 4 } });
    expect(await refusal()).toContain('which was discarded');
    const ended = asked.filter(({ url }) => url.endsWith('/revoke'));
    expect(ended.map(({ body }) => new TextDecoder().decode(body ?? undefined))).toEqual(
      ended.map(() => JSON.stringify({ accessToken: TOKEN })),
    );
    expect(ended).toHaveLength(3);
  });

  test('a login at Infisical that is refused reads nothing', async () => {
    manager = MANAGERS['infisical']!;
    await put('infisical', {}, 'another-client-secret');
    expect(await refusal()).toContain('does not accept the client id and the client secret');
    expect(asked).toHaveLength(1);
  });
});
