import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type InProcess, parseReply } from '../../e2e/runtimes/in_process.ts';
import { type CodeHost, startCodeHost } from '../../e2e/sign_in/code_host.ts';
import { FRONT, HOST, startHostedSignIn } from '../../e2e/sign_in/hosted_sign_in.ts';
import { namedOutbound } from '../../e2e/sign_in/named_outbound.ts';
import {
  OPENID_CLIENT_ID,
  OPENID_CLIENT_SECRET,
  type OpenIdProvider,
  startOpenIdProvider,
} from '../../e2e/sign_in/openid_provider.ts';
import { TestBrowser } from '../../e2e/sign_in/test_browser.ts';
import { ok } from '../../shared/model/result.ts';
import { deviceReply, type TokenPair, tokenPair } from '../../shared/wire/device.ts';
import { type EnterpriseSettings, enterpriseSettings } from '../../shared/wire/enterprise.ts';
import { meReply } from '../../shared/wire/account.ts';
import { createdScimToken } from '../../shared/wire/scim_tokens.ts';
import { USER_SCHEMA } from '../../shared/scim/schemas.ts';
import { errorBody, ERROR_STATUS } from '../../shared/wire/errors.ts';
import type { Outbound } from '../kernel/outbound.ts';

let openId: OpenIdProvider;
let codeHost: CodeHost;
let control: InProcess;
let admin: TestBrowser;
let enterprise: EnterpriseSettings;
/** The content of each domain's file. */
let proofs: Record<string, string>;

beforeAll(async () => {
  codeHost = await startCodeHost();
});
afterAll(() => codeHost.stop());

function outboundTo(servers: Record<string, string>): Outbound {
  const named = namedOutbound(servers);
  return {
    call(request) {
      const url = new URL(request.url);
      const proof = url.pathname === '/.well-known/svc-enterprise.txt' ? proofs[url.host] : undefined;
      if (proof === undefined) return named.call(request);
      return Promise.resolve(ok({ status: 200, contentType: 'text/plain', body: new TextEncoder().encode(proof) }));
    },
  };
}

beforeEach(async () => {
  proofs = {};
  person('alice@acme.test');
  const servers = { 'code.acme.test': codeHost.loopback };
  control = await startHostedSignIn({
    call: (request) => outboundTo({ ...servers, ...(openId && { 'id.acme.test': openId.loopback }) }).call(request),
  });
  admin = newBrowser();
  expect((await signIn(admin, 'codehost')).status).toBe(303);
  enterprise = await settings();
  openId = await startOpenIdProvider('id.acme.test', [`https://${HOST}/auth/${enterprise.id}/callback`]);
  openId.person = { sub: 'alice', email: 'alice@acme.test', email_verified: true, name: 'Alice' };
});
afterEach(async () => {
  await control.stop();
  await openId.stop();
});

const newBrowser = () => new TestBrowser(control.send, FRONT);

/** The user at the code host. */
function person(email: string, id = 1): void {
  codeHost.user = { id, login: 'someone', name: 'Someone', email };
  codeHost.emails = [{ email, primary: true, verified: true }];
}

async function signIn(browser: TestBrowser, provider: string): Promise<Response> {
  const begun = await browser.get(`/auth/${provider}/login`);
  const link = begun.headers.get('location');
  if (link === null) return begun;
  const back = provider === 'codehost' ? codeHost.authorise(link) : await openId.authorise(link);
  return browser.get(back.pathname + back.search);
}

async function expectRefused(reply: Response, status: number, words: string) {
  expect([reply.status, await reply.text()]).toEqual([status, expect.stringContaining(words)]);
}

const settings = async (browser = admin) => parseReply(enterpriseSettings, browser.get('/v1/enterprise'));
const me = async (browser: TestBrowser) => parseReply(meReply, browser.get('/v1/me'));

function put(more: object = {}, browser = admin): Promise<Response> {
  const { name, billing_email } = enterprise;
  const plain = { name, billing_email, allowed_domains: [], allowed_providers: null, sso_required: false, oidc: null };
  return send('PUT', '/v1/enterprise', { ...plain, ...more }, browser);
}

function send(method: string, path: string, body: object, browser: TestBrowser): Promise<Response> {
  return control.send(path, {
    method,
    headers: {
      ...FRONT,
      'content-type': 'application/json',
      'sec-fetch-site': 'same-origin',
      cookie: `__Host-session=${browser.cookies.get('__Host-session')}`,
    },
    body: JSON.stringify(body),
  });
}

const post = (path: string, body: object) =>
  control.send(path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });

/** The device code of a program that a browser's user approved and that has no tokens yet. */
async function approvedCode(browser: TestBrowser): Promise<string> {
  const device = await parseReply(deviceReply, post('/auth/device/code', { client_name: 'svc on laptop' }));
  const answer = { user_code: device.user_code, decision: 'approve' };
  expect((await browser.submit('/device/decide', answer)).status).toBe(200);
  return device.device_code;
}

/** A program signed in by a browser, as by `svc login`. */
async function programOf(browser: TestBrowser): Promise<TokenPair> {
  return parseReply(tokenPair, post('/auth/device/token', { device_code: await approvedCode(browser) }));
}

/** Whether a browser and a program are signed in, and whether the program can refresh. */
async function listSignedIn(browser: TestBrowser, program: TokenPair): Promise<readonly number[]> {
  const headers = { authorization: `Bearer ${program.access_token}` };
  const calls = [
    await browser.get('/v1/me'),
    await control.send('/v1/me', { headers }),
    await post('/auth/refresh', { refresh_token: program.refresh_token }),
  ];
  return calls.map(({ status }) => status);
}
const STAY = [200, 200, 200];
const OUT = [401, 401, 401];

async function refusal(reply: Promise<Response>) {
  const answered = await reply;
  const { error } = errorBody.parse(await answered.json());
  expect(answered.status).toBe(ERROR_STATUS[error.code]);
  return error;
}

const oidc = (more: object = {}) => ({
  issuer: 'https://id.acme.test',
  client_id: OPENID_CLIENT_ID,
  client_secret: OPENID_CLIENT_SECRET,
  domains: ['acme.test'],
  ...more,
});

/** Sets the enterprise's provider and domain. */
async function withProvider(more: object = {}): Promise<void> {
  proofs['acme.test'] = `# ours\n${enterprise.id}\n`;
  expect((await put({ oidc: oidc(), ...more })).status).toBe(200);
}

/** Creates users as the directory of an owner's enterprise, which gets a token for it. */
const directoryOf = async (owner: TestBrowser) => {
  const asked = send('POST', '/v1/scim-tokens', { name: 'directory' }, owner);
  const { token } = await parseReply(createdScimToken, asked);
  return async (userName: string) => {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/scim+json' };
    const emails = [{ value: userName, primary: true }];
    const body = JSON.stringify({ schemas: [USER_SCHEMA], userName, emails });
    return (await control.send('/scim/v2/Users', { method: 'POST', headers, body })).status;
  };
};

describe('the settings of an enterprise', () => {
  test('are replaced as a whole, and the secret is in no reply and not readable in the database', async () => {
    await withProvider({ name: 'Acme', billing_email: 'bills@acme.test', allowed_domains: ['acme.test'] });
    const now = await settings();
    expect(now).toMatchObject({
      name: 'Acme',
      billing_email: 'bills@acme.test',
      allowed_domains: ['acme.test'],
      allowed_providers: null,
      oidc: {
        issuer: 'https://id.acme.test',
        domains: ['acme.test'],
        redirect_path: `/auth/${enterprise.id}/callback`,
      },
    });
    expect(JSON.stringify(now)).not.toContain(OPENID_CLIENT_SECRET);
    expect((await control.databaseBytes()).includes(OPENID_CLIENT_SECRET)).toBe(false);
    expect((await put()).status).toBe(200);
    expect(await settings()).toMatchObject({ oidc: null, allowed_domains: [] });
  });

  test('can be changed by admins', async () => {
    await withProvider();
    const member = newBrowser();
    openId.person = { sub: 'bob', email: 'bob@acme.test', email_verified: true };
    await signIn(member, enterprise.id);
    const { client_secret: _, ...same } = oidc();
    for (const more of [{}, { oidc: same }, { oidc: same, name: 'Renamed' }]) {
      expect(await refusal(put(more, member))).toMatchObject({ code: 'admin_required' });
    }
  });

  test('can only be changed by owners if whoever runs the provider could sign in as an owner', async () => {
    await withProvider();
    await control.context.database.client.execute("UPDATE users SET role = 'admin'");
    const { client_secret: _, ...same } = oidc();
    expect((await put({ name: 'Renamed', oidc: same })).status).toBe(200);
    const others = [
      null,
      oidc(),
      { ...same, issuer: 'https://evil.test' },
      { ...same, client_id: 'another' },
      { ...same, domains: [] },
    ];
    for (const other of others) expect(await refusal(put({ oidc: other }))).toMatchObject({ code: 'admin_required' });
    proofs['other.test'] = enterprise.id;
    const more = { ...same, domains: ['acme.test', 'other.test'] };
    expect(await refusal(put({ oidc: more }))).toMatchObject({ code: 'admin_required' });
    await put({ oidc: same });
    await control.context.database.client.execute("UPDATE users SET role = 'owner'");
    expect((await put({ oidc: more })).status).toBe(200);
  });

  test('keep a way to sign in for an owner, whatever an admin changes', async () => {
    await withProvider();
    const { client_secret: _, ...same } = oidc();
    openId.person = { sub: 'bob', email: 'bob@acme.test', email_verified: true, name: 'Bob' };
    const bob = newBrowser();
    expect((await signIn(bob, enterprise.id)).status).toBe(303);
    const role = { role: 'admin', suspended: false };
    expect((await send('PUT', `/v1/members/${(await me(bob)).id}`, role, admin)).status).toBe(200);
    const rules = [{ sso_required: true }, { allowed_providers: [] }, { allowed_domains: ['beta.test'] }];
    for (const rule of rules) {
      expect(await refusal(put({ oidc: same, ...rule }, bob))).toMatchObject({ code: 'would_lock_out' });
    }
    expect((await me(admin)).role).toBe('owner');
    expect(
      (await put({ oidc: same, allowed_providers: ['codehost'], allowed_domains: ['acme.test'] }, bob)).status,
    ).toBe(200);
    openId.person = { sub: 'alice', email: 'alice@acme.test', email_verified: true, name: 'Alice' };
    expect((await signIn(newBrowser(), enterprise.id)).status).toBe(303);
    expect((await put({ oidc: same, sso_required: true }, bob)).status).toBe(200);
  });

  test('keep an omitted secret only for the same issuer and client', async () => {
    await withProvider();
    const { client_secret: _, ...rest } = oidc();
    expect((await put({ oidc: rest })).status).toBe(200);
    expect((await signIn(newBrowser(), enterprise.id)).status).toBe(303);
    for (const other of [{ issuer: 'https://evil.test' }, { client_id: 'another' }]) {
      expect(await refusal(put({ oidc: { ...rest, ...other } }))).toMatchObject({
        code: 'invalid_input',
        details: { fields: [{ field: 'oidc.client_secret' }] },
      });
    }
  });

  test.each([
    ['a domain without a proof', undefined],
    ['a domain whose proof names another enterprise', 'ent_00000000000000000000000000'],
  ])('refuse %s', async (_, proof) => {
    if (proof !== undefined) proofs['acme.test'] = proof;
    expect(await refusal(put({ oidc: oidc() }))).toMatchObject({
      code: 'domain_not_proven',
      details: { domain: 'acme.test', content: enterprise.id },
    });
    expect(await settings()).toMatchObject({ oidc: null });
  });

  test('refuse a domain that another enterprise has proven to be its own', async () => {
    await withProvider();
    const other = newBrowser();
    person('eve@evil.test', 2);
    await signIn(other, 'codehost');
    proofs['acme.test'] += (await settings(other)).id;
    expect(await refusal(put({ oidc: oidc() }, other))).toMatchObject({ code: 'domain_taken' });
  });

  test('accept a domain that changed hands: its file names the new owner and no longer the previous one', async () => {
    await withProvider();
    const other = newBrowser();
    person('eve@new.test', 2);
    await signIn(other, 'codehost');
    const { id } = await settings(other);
    proofs['acme.test'] = 'nobody';
    expect(await refusal(put({ oidc: oidc() }, other))).toMatchObject({ code: 'domain_taken' });
    proofs['acme.test'] = id;
    expect((await put({ oidc: oidc() }, other)).status).toBe(200);
    expect((await settings(other)).oidc?.domains).toEqual(['acme.test']);
    expect((await settings()).oidc?.domains).toEqual([]);
    person('dora@acme.test', 7);
    const dora = newBrowser();
    await signIn(dora, 'codehost');
    expect((await me(dora)).enterprise_id).toBe(id);
  });

  test('a domain that changes hands or is given up takes along the people that were only claimed by it', async () => {
    await withProvider();
    const create = await directoryOf(admin);
    expect([await create('pat@acme.test'), await create('una@acme.test')]).toEqual([201, 201]);
    openId.person = { sub: 'vic', email: 'vic@acme.test', email_verified: true };
    await signIn(newBrowser(), enterprise.id);
    person('wes@acme.test', 8);
    await signIn(newBrowser(), 'codehost');
    const arrive = async (name: string, id: number) => {
      const browser = newBrowser();
      person(`${name}@acme.test`, id);
      await signIn(browser, 'codehost');
      return (await me(browser)).enterprise_id;
    };
    expect(await arrive('una', 11)).toBe(enterprise.id);
    const other = newBrowser();
    person('eve@new.test', 2);
    await signIn(other, 'codehost');
    const { id } = await settings(other);
    proofs['acme.test'] = id;
    expect((await put({ oidc: oidc() }, other)).status).toBe(200);
    expect([await arrive('pat', 12), await arrive('vic', 13)]).toEqual([id, id]);
    expect(await (await directoryOf(other))('xia@acme.test')).toBe(201);
    expect((await put({}, other)).status).toBe(200);
    expect([enterprise.id, id]).not.toContain(await arrive('xia', 14));
    // Who has an own way to sign in stays who they are.
    expect([await arrive('una', 11), await arrive('wes', 8)]).toEqual([enterprise.id, enterprise.id]);
  });

  test.each([
    ['domains of others', { allowed_domains: ['other.test'] }],
    ['providers that its admin never used', { allowed_providers: ['general'] }],
    ['its own provider alone, which its admin never used', { sso_required: true, oidc: oidc() }],
  ])('do not lock their admin out: %s', async (_, more) => {
    proofs['acme.test'] = enterprise.id;
    expect(await refusal(put(more))).toMatchObject({ code: 'would_lock_out' });
  });

  test('name the invalid field', async () => {
    for (const [field, more] of [
      ['sso_required', { sso_required: true }],
      ['oidc.issuer', { oidc: oidc({ issuer: 'http://127.0.0.1:1' }) }],
      ['oidc.issuer', { oidc: oidc({ issuer: 'https://10.0.0.1' }) }],
      ['allowed_domains.0', { allowed_domains: ['Acme.test'] }],
    ] as const) {
      expect(await refusal(put(more))).toMatchObject({ code: 'invalid_input', details: { fields: [{ field }] } });
    }
  });
});

describe("the enterprise's own provider", () => {
  test('is found by the domain of an address', async () => {
    await withProvider();
    const browser = newBrowser();
    const page = await browser.get('/auth/sso?email=Bob@acme.test&return_to=/docs');
    expect(await page.text()).toContain(`href="/auth/${enterprise.id}/login?return_to=%2Fdocs"`);
    expect((await browser.get('/auth/sso?email=bob@other.test')).status).toBe(404);
  });

  test('adds its users as members, and joins existing ones', async () => {
    await withProvider();
    const alice = newBrowser();
    expect((await signIn(alice, enterprise.id)).status).toBe(303);
    expect((await me(alice)).id).toBe((await me(admin)).id);
    openId.person = { sub: 'bob', email: 'bob@acme.test', email_verified: true, name: 'Bob' };
    const bob = newBrowser();
    await signIn(bob, enterprise.id);
    expect(await me(bob)).toMatchObject({ role: 'member', enterprise_id: enterprise.id, display_name: 'Bob' });
  });

  test.each([
    ['an address of another domain', { email: 'alice@other.test', email_verified: true }],
    ['an address that is not verified', { email: 'bob@acme.test', email_verified: false }],
  ])('is not trusted about %s', async (_, claims) => {
    await withProvider();
    person('alice@other.test', 3);
    await signIn(newBrowser(), 'codehost');
    openId.person = { sub: 'mallory', ...claims };
    await expectRefused(await signIn(newBrowser(), enterprise.id), 403, 'only verified addresses of its own domains');
  });

  test('does not take over an account of its domain in another enterprise', async () => {
    person('early@acme.test', 4);
    const early = newBrowser();
    await signIn(early, 'codehost');
    await withProvider();
    openId.person = { sub: 'early', email: 'early@acme.test', email_verified: true };
    await expectRefused(await signIn(newBrowser(), enterprise.id), 403, 'an account in another enterprise');
  });

  test('is removed with the settings', async () => {
    await withProvider();
    await put();
    expect((await newBrowser().get(`/auth/${enterprise.id}/login`)).status).toBe(404);
  });
});

describe('a verified address of a domain of the enterprise', () => {
  test('adds anybody who signs in with another provider for the first time as a member', async () => {
    await withProvider();
    person('carol@acme.test', 5);
    const carol = newBrowser();
    await signIn(carol, 'codehost');
    expect(await me(carol)).toMatchObject({ role: 'member', enterprise_id: enterprise.id });
  });

  test('that is not verified does not', async () => {
    await withProvider();
    person('carol@acme.test', 5);
    codeHost.emails = [];
    const carol = newBrowser();
    await signIn(carol, 'codehost');
    expect((await me(carol)).enterprise_id).not.toBe(enterprise.id);
  });
});

describe('sso_required', () => {
  beforeEach(async () => {
    await withProvider();
    await signIn(admin, enterprise.id);
  });

  test('refuses every other way to sign in, for existing and new users', async () => {
    await withProvider({ sso_required: true });
    await expectRefused(await signIn(newBrowser(), 'codehost'), 403, `start at /auth/${enterprise.id}/login`);
    person('new@acme.test', 6);
    await expectRefused(await signIn(newBrowser(), 'codehost'), 403, `start at /auth/${enterprise.id}/login`);
    expect((await signIn(newBrowser(), enterprise.id)).status).toBe(303);
  });

  test('signs out browsers that signed in another way', async () => {
    const other = newBrowser();
    await signIn(other, 'codehost');
    expect((await other.get('/v1/me')).status).toBe(200);
    await withProvider({ sso_required: true });
    expect([(await other.get('/v1/me')).status, (await admin.get('/v1/me')).status]).toEqual([401, 200]);
  });

  test('signs out programs that were approved in another way, and those still waiting for their tokens', async () => {
    const other = newBrowser();
    await signIn(other, 'codehost');
    const [ended, waiting] = [await programOf(other), await approvedCode(other)];
    const [kept, due] = [await programOf(admin), await approvedCode(admin)];
    await withProvider({ sso_required: true });
    expect([await listSignedIn(other, ended), await listSignedIn(admin, kept)]).toEqual([OUT, STAY]);
    expect(await refusal(post('/auth/device/token', { device_code: waiting }))).toMatchObject({
      code: 'expired_token',
    });
    expect((await post('/auth/device/token', { device_code: due })).status).toBe(200);
  });

  test('is not possible with a provider that its admin never used', async () => {
    const moved = oidc({ issuer: 'https://other-id.acme.test' });
    expect(await refusal(put({ sso_required: true, oidc: moved }))).toMatchObject({ code: 'would_lock_out' });
  });
});

describe('settings that some users could not sign in with', () => {
  let other: TestBrowser;
  beforeEach(async () => {
    proofs['beta.test'] = enterprise.id;
    await withProvider({ oidc: oidc({ domains: ['acme.test', 'beta.test'] }) });
    other = newBrowser();
  });

  test.each([
    ['a name', () => ({ name: 'Acme' })],
    ['ways that all of them used', () => ({ allowed_providers: ['codehost'], allowed_domains: ['acme.test'] })],
  ])('do not include %s: nobody is signed out', async (_, more) => {
    await signIn(other, 'codehost');
    const program = await programOf(other);
    await withProvider(more());
    expect(await listSignedIn(other, program)).toEqual(STAY);
  });

  test('end sign-ins by a provider that is no longer allowed', async () => {
    await signIn(other, 'codehost');
    await signIn(admin, enterprise.id);
    const [ended, kept] = [await programOf(other), await programOf(admin)];
    await withProvider({ allowed_providers: [] });
    expect([await listSignedIn(other, ended), await listSignedIn(admin, kept)]).toEqual([OUT, STAY]);
  });

  test('end sign-ins with an address of a domain that is no longer allowed', async () => {
    const kept = await programOf(admin);
    person('carol@beta.test', 7);
    await signIn(other, 'codehost');
    const ended = await programOf(other);
    await withProvider({ allowed_domains: ['acme.test'] });
    expect([await listSignedIn(other, ended), await listSignedIn(admin, kept)]).toEqual([OUT, STAY]);
  });

  test.each([
    ['was removed', () => ({ oidc: null })],
    ['was replaced', () => ({ oidc: oidc({ issuer: 'https://other-id.acme.test' }) })],
  ])("end sign-ins by the enterprise's own provider when it %s", async (_, more) => {
    openId.person = { sub: 'bob', email: 'bob@acme.test', email_verified: true };
    await signIn(other, enterprise.id);
    const [ended, kept] = [await programOf(other), await programOf(admin)];
    await withProvider(more());
    expect([await listSignedIn(other, ended), await listSignedIn(admin, kept)]).toEqual([OUT, STAY]);
  });

  test('do not affect another enterprise', async () => {
    person('dave@gamma.test', 8);
    await signIn(other, 'codehost');
    const program = await programOf(other);
    await signIn(admin, enterprise.id);
    await withProvider({ sso_required: true });
    expect(await listSignedIn(other, program)).toEqual(STAY);
  });
});
