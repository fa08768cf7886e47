import { sql } from 'drizzle-orm';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type InProcess, parseReply, startInProcess } from '../../e2e/runtimes/in_process.ts';
import { type CodeHost, startCodeHost } from '../../e2e/sign_in/code_host.ts';
import { FRONT, HOST, startHostedSignIn } from '../../e2e/sign_in/hosted_sign_in.ts';
import {
  OPENID_CLIENT_ID,
  OPENID_CLIENT_SECRET,
  type OpenIdProvider,
  startOpenIdProvider,
} from '../../e2e/sign_in/openid_provider.ts';
import { namedOutbound } from '../../e2e/sign_in/named_outbound.ts';
import { TestBrowser } from '../../e2e/sign_in/test_browser.ts';
import { enterpriseReply, meReply } from '../../shared/wire/account.ts';
import { providersReply } from '../../shared/wire/auth.ts';
import { ok } from '../../shared/model/result.ts';
import { createApp } from '../app.ts';
import { fileAssets } from '../entries/file_assets.ts';
import { commit } from '../kernel/commit.ts';
import { statement } from '../store/database.ts';
import { signInIdentity } from './sign_in_identity.ts';
import { CLIENT_BEGINS, finishSignIn } from './flows.ts';
import { listAccountsByVerifiedEmail } from '../store/identities.ts';

const CALLBACK = `https://${HOST}/auth/general/callback`;
let openId: OpenIdProvider;
let codeHost: CodeHost;
let control: InProcess;
let browser: TestBrowser;

const newBrowser = (headers: Record<string, string> = FRONT) => new TestBrowser(control.send, headers);

beforeAll(async () => {
  openId = await startOpenIdProvider('id.acme.test', [CALLBACK]);
  codeHost = await startCodeHost();
});
afterAll(async () => {
  await openId.stop();
  await codeHost.stop();
});
beforeEach(async () => {
  openId.alter = null;
  openId.person = { sub: 'alice', email: 'alice@acme.test', email_verified: true, name: 'Alice' };
  codeHost.user = { id: 583_231, login: 'alice', name: 'Alice', email: 'alice@acme.test' };
  codeHost.emails = [{ email: 'alice@acme.test', primary: true, verified: true }];
  const variables = {
    GENERAL_OAUTH_ISSUER: openId.origin,
    GENERAL_OAUTH_CLIENT_ID: OPENID_CLIENT_ID,
    GENERAL_OAUTH_CLIENT_SECRET: OPENID_CLIENT_SECRET,
  };
  control = await startHostedSignIn(
    namedOutbound({ 'id.acme.test': openId.loopback, 'code.acme.test': codeHost.loopback }),
    variables,
  );
  browser = newBrowser();
});
afterEach(() => control.stop());

/** The URL that a browser is redirected to when it starts with a provider. */
async function begin(provider: string, by = browser): Promise<string> {
  const reply = await by.get(`/auth/${provider}/login`);
  expect([reply.status, await reply.text()]).toEqual([303, '']);
  return reply.headers.get('location') ?? '';
}

/** The URL that the browser returns with. */
async function agree(provider: string, by = browser): Promise<URL> {
  const link = await begin(provider, by);
  return provider === 'general' ? openId.authorise(link) : codeHost.authorise(link);
}

/** Signs in as a person does: who that is, or the page that refuses. */
async function signIn(provider: string, by = browser) {
  const back = await agree(provider, by);
  return by.get(back.pathname + back.search);
}

async function me(by = browser) {
  return parseReply(meReply, by.get('/v1/me'));
}

async function expectSignedIn(provider: string, by = newBrowser()) {
  const reply = await signIn(provider, by);
  expect([reply.status, reply.headers.get('location')]).toEqual([303, '/']);
  return me(by);
}

async function expectRefused(reply: Response, status: number, words: string) {
  const text = (await reply.text()).toLowerCase();
  expect([reply.status, text]).toEqual([status, expect.stringContaining(words.toLowerCase())]);
  expect(browser.cookies.has('__Host-session')).toBe(false);
}

describe('the ways to sign in', () => {
  test('are listed for a page', async () => {
    expect(await parseReply(providersReply, control.send('/auth/providers'))).toEqual({
      providers: [
        { name: 'general', title: 'Single sign-on', login_url: '/auth/general/login' },
        { name: 'codehost', title: 'Code hosting', login_url: '/auth/codehost/login' },
      ],
      password: false,
    });
    const page = await browser.get('/');
    expect([page.status, await page.text()]).toEqual([401, expect.stringContaining('href="/auth/codehost/login"')]);
  });

  test('are empty if none is configured', async () => {
    const plain = await startInProcess({ localKey: null });
    expect(await parseReply(providersReply, plain.send('/auth/providers'))).toEqual({ providers: [], password: false });
    expect((await plain.send('/auth/general/login')).status).toBe(404);
    await plain.stop();
  });
});

describe('a sign-in with the general provider', () => {
  test('sends state, nonce and PKCE, and keeps what it needs in http-only cookies', async () => {
    const url = new URL(await begin('general'));
    expect(Object.fromEntries(url.searchParams)).toMatchObject({
      response_type: 'code',
      redirect_uri: CALLBACK,
      scope: 'openid email profile',
      code_challenge_method: 'S256',
      nonce: expect.stringMatching(/^.{40,}$/),
    });
    expect(browser.setCookies.map((set) => set.replace(/=[^;]*/, ''))).toEqual([
      '__Host-oauth_state; Max-Age=600; Path=/; HttpOnly; Secure; SameSite=Lax',
      'oauth_extra; Max-Age=600; Path=/; HttpOnly; Secure; SameSite=Lax',
    ]);
  });

  test('makes the first user the owner of an enterprise named after the email', async () => {
    const reply = await signIn('general');
    expect([reply.status, reply.headers.get('location')]).toEqual([303, '/']);
    expect(browser.setCookies.at(-1)).toMatch(
      /^__Host-session=[\w-]{43}; Max-Age=43200; Path=\/; HttpOnly; Secure; SameSite=Lax$/,
    );
    expect(await me()).toMatchObject({ email: 'alice@acme.test', display_name: 'Alice', role: 'owner' });
    expect(await parseReply(enterpriseReply, browser.get('/v1/enterprise'))).toMatchObject({ slug: 'alice-acme' });
    expect([...browser.cookies.keys()]).toEqual(['__Host-session']);
  });

  test('finds the same user again, even if the email has changed', async () => {
    const first = await expectSignedIn('general');
    openId.person = { sub: 'alice', email: 'new@acme.test', email_verified: false };
    expect((await expectSignedIn('general')).id).toBe(first.id);
  });

  test('continues to one of our own pages, and to no other', async () => {
    const reply = await browser.get('/auth/general/login?return_to=/docs%3Fa=1');
    const back = await openId.authorise(reply.headers.get('location') ?? '');
    expect((await browser.get(back.pathname + back.search)).headers.get('location')).toBe('/docs?a=1');
    for (const elsewhere of ['//evil.test', 'https://evil.test', '/\\evil.test', '/%09/evil.test/../..//evil.test']) {
      const other = await browser.get(`/auth/general/login?return_to=${encodeURIComponent(elsewhere)}`);
      const returned = await openId.authorise(other.headers.get('location') ?? '');
      const location = (await browser.get(returned.pathname + returned.search)).headers.get('location') ?? '';
      expect(new URL(location, CALLBACK).host).toBe(HOST);
    }
  });

  test('is recorded, and its token is stored as a hash', async () => {
    await signIn('general');
    const events = await browser.get('/v1/audit-events');
    const text = await events.text();
    for (const type of ['control.enterprise.created', 'control.user.created', 'control.user.signed_in']) {
      expect(text).toContain(type);
    }
    const token = browser.cookies.get('__Host-session') ?? '';
    expect(token).not.toBe('');
    expect((await control.databaseBytes()).includes(token)).toBe(false);
  });

  test('ends when the browser signs out', async () => {
    await signIn('general');
    const token = browser.cookies.get('__Host-session') ?? '';
    const cross = await browser.submit('/auth/logout', {}, { 'sec-fetch-site': 'cross-site' });
    expect([cross.status, (await browser.get('/v1/me')).status]).toEqual([403, 200]);
    expect((await browser.submit('/auth/logout', {})).headers.get('location')).toBe('/sign-in');
    expect(browser.cookies.has('__Host-session')).toBe(false);
    expect((await control.send('/v1/me', { headers: { cookie: `__Host-session=${token}` } })).status).toBe(401);
  });
});

describe('a page of another site', () => {
  test.each(['cross-site', 'same-site'])(
    'cannot sign anybody in by itself (%s): that takes a click on one of our own pages',
    async (site) => {
      const reply = await browser.get('/auth/general/login?return_to=/docs', { 'sec-fetch-site': site });
      expect([reply.status, reply.headers.get('location'), browser.cookies.size]).toEqual([200, null, 0]);
      const href = /href="(\/auth\/general\/login[^"]*)"/.exec(await reply.text())?.[1] ?? '';
      expect(href).toBe('/auth/general/login?return_to=%2Fdocs');
      expect((await browser.get(href, { 'sec-fetch-site': 'same-origin' })).status).toBe(303);
    },
  );

  test('is treated differently from a typed address', async () => {
    expect((await browser.get('/auth/general/login', { 'sec-fetch-site': 'none' })).status).toBe(303);
  });
});

describe('a sign-in is refused', () => {
  const EXPIRED = 'this sign-in was started in another browser';

  test("with a state other than the browser's", async () => {
    const back = await agree('general');
    back.searchParams.set('state', 'x'.repeat(43));
    await expectRefused(await browser.get(back.pathname + back.search), 400, EXPIRED);
  });

  test('in a browser that did not start it', async () => {
    const back = await agree('general', newBrowser());
    await expectRefused(await browser.get(back.pathname + back.search), 400, EXPIRED);
  });

  test('in a browser with a cookie that another host planted', async () => {
    const attacker = newBrowser();
    const back = await agree('general', attacker);
    browser.cookies.set('oauth_extra', attacker.cookies.get('oauth_extra') ?? '');
    await expectRefused(await browser.get(back.pathname + back.search), 400, EXPIRED);
  });

  test('as that of another provider, even under the callback URL of the first', async () => {
    const back = await agree('general');
    const other = control.context.signIn.providers.get('codehost');
    if (other === undefined) throw new Error('the code host is set up');
    const state = back.searchParams.get('state') ?? '';
    const extraState = decodeURIComponent(browser.cookies.get('oauth_extra') ?? '');
    const kept = { state, cookieState: state, extraState, redirectURL: CALLBACK };
    const answer = { ...kept, code: back.searchParams.get('code'), error: null, issuer: null, client: '' };
    expect(await finishSignIn(control.context, other, answer)).toMatchObject({ error: { code: 'sign_in_expired' } });
    expect((await browser.get(back.pathname + back.search)).status).toBe(303);
  });

  test('when the callback is repeated with its cookies', async () => {
    const back = await agree('general');
    const kept = new Map(browser.cookies);
    expect((await browser.get(back.pathname + back.search)).status).toBe(303);
    browser.cookies.clear();
    for (const [name, value] of kept) browser.cookies.set(name, value);
    await expectRefused(await browser.get(back.pathname + back.search), 400, EXPIRED);
  });

  test('for one of two concurrent callbacks', async () => {
    const back = await agree('general');
    const cookie = Array.from(browser.cookies, ([name, value]) => `${name}=${value}`).join('; ');
    const replies = await Promise.all(
      [1, 2].map(() => control.send(back.pathname + back.search, { headers: { ...FRONT, cookie } })),
    );
    expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([303, 400]));
  });

  test('for one of two callbacks that both found it started, even if the provider accepts a code twice', async () => {
    const back = await agree('general');
    const cookie = Array.from(browser.cookies, ([name, value]) => `${name}=${value}`).join('; ');
    const { database, signIn: methods } = control.context;
    let waiting = 0;
    const both = Promise.withResolvers<undefined>();
    const write: typeof database.write = async (statements) => {
      waiting += 1;
      if (waiting === 2) both.resolve(undefined);
      await both.promise;
      return database.write(statements);
    };
    const identity = {
      issuer: openId.origin,
      subject: 'a',
      email: 'a@acme.test',
      emailVerified: true,
      displayName: '',
    };
    const provider = { ...methods.providers.get('general')!, exchange: async () => ok(identity) };
    Object.assign(control.context, {
      database: Object.create(database, { write: { value: write } }),
      signIn: { ...methods, providers: new Map([['general', provider]]) },
    });
    const replies = await Promise.all(
      [1, 2].map(() => control.send(back.pathname + back.search, { headers: { ...FRONT, cookie } })),
    );
    expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([303, 400]));
  });

  test('with a code that was redeemed before', async () => {
    const spent = await agree('general');
    expect((await browser.get(spent.pathname + spent.search)).status).toBe(303);
    browser.cookies.clear();
    const fresh = await agree('general');
    fresh.searchParams.set('code', spent.searchParams.get('code') ?? '');
    await expectRefused(await browser.get(fresh.pathname + fresh.search), 502, 'refused: invalid_grant');
  });

  test('with the answer of one provider at the callback of another', async () => {
    const back = await agree('codehost');
    await expectRefused(await browser.get(`/auth/general/callback${back.search}`), 400, EXPIRED);
  });

  test("with another issuer's name in the answer", async () => {
    const back = await agree('general');
    expect(back.searchParams.get('iss')).toBe(openId.origin);
    back.searchParams.set('iss', 'https://evil.test');
    await expectRefused(await browser.get(back.pathname + back.search), 502, 'does not prove who you are');
  });

  test('without the issuer, if the provider declares that it sends it', async () => {
    const back = await agree('general');
    back.searchParams.delete('iss');
    await expectRefused(await browser.get(back.pathname + back.search), 502, 'does not prove who you are');
  });

  test.each([
    ['issuer', { iss: 'https://evil.test' }],
    ['audience', { aud: 'another-client' }],
    ['signature', { name: 'Somebody else' }],
  ])('with an ID token with a wrong %s', async (_, claims) => {
    const back = await agree('general');
    openId.alter = (path, body) => (path === '/token' ? withClaims(body, claims) : body);
    await expectRefused(await browser.get(back.pathname + back.search), 502, 'does not prove who you are');
  });

  test('with the ID token of another sign-in, which has another nonce', async () => {
    let first = '';
    openId.alter = (path, body) => (path === '/token' ? (first ||= body) : body);
    const other = await signIn('general', newBrowser());
    expect([other.status, first]).toEqual([303, expect.stringContaining('id_token')]);
    await expectRefused(await signIn('general'), 502, 'does not prove who you are');
  });

  test('with the cookie of another sign-in in the same browser', async () => {
    const back = await agree('general');
    const state = browser.cookies.get('__Host-oauth_state') ?? '';
    await begin('general');
    browser.cookies.set('__Host-oauth_state', state);
    await expectRefused(await browser.get(back.pathname + back.search), 400, EXPIRED);
  });

  test("without the cookie of the provider's state", async () => {
    const back = await agree('general');
    browser.cookies.delete('oauth_extra');
    await expectRefused(await browser.get(back.pathname + back.search), 400, EXPIRED);
  });

  test('after ten minutes', async () => {
    const back = await agree('general');
    control.clock.ms += 600_000;
    await expectRefused(await browser.get(back.pathname + back.search), 400, EXPIRED);
  });

  test('when the provider reports an error, in our own words', async () => {
    const back = await agree('general');
    const state = back.searchParams.get('state') ?? '';
    const reply = await browser.get(`/auth/general/callback?state=${state}&error=access_denied<b>`);
    await expectRefused(reply, 502, 'did not sign you in (access_deniedb)');
  });

  test.each([
    ['that is too long', 'x'.repeat(256)],
    ['that is not ASCII', 'al\u0131ce'],
    ['that is empty', ''],
  ])('with a subject %s', async (_, sub) => {
    const back = await agree('general');
    const provider = control.context.signIn.providers.get('general')!;
    const identity = {
      issuer: openId.origin,
      subject: sub,
      email: 'a@acme.test',
      emailVerified: true,
      displayName: '',
    };
    const answers = { ...provider, exchange: async () => ok(identity) };
    Object.assign(control.context, {
      signIn: { ...control.context.signIn, providers: new Map([['general', answers]]) },
    });
    await expectRefused(await browser.get(back.pathname + back.search), 502, 'sent no user id');
  });

  test('if one client starts too many, without affecting another client', async () => {
    const { context } = control;
    const app = (clientAddress: string) =>
      createApp({
        context: () => context,
        assets: fileAssets(),
        log: () => undefined,
        clientAddress: () => clientAddress,
      });
    const begins = (clientAddress: string) =>
      app(clientAddress).request('http://127.0.0.1:7420/auth/general/login', { headers: FRONT });
    expect((await begins('203.0.113.9')).status).toBe(303);
    await context.database.client.execute(`UPDATE throttles SET count = ${CLIENT_BEGINS.most}`);
    const refused = await begins('203.0.113.9');
    expect([refused.status, refused.headers.get('location')]).toEqual([429, null]);
    expect((await begins('203.0.113.10')).status).toBe(303);
  });

  test('if the provider sends no email', async () => {
    openId.person = { sub: 'alice', name: 'Alice' };
    await expectRefused(await signIn('general'), 403, 'sent no email address');
  });
});

describe('the callback URL', () => {
  test.each([
    ['a forged Host', { host: 'evil.test', 'x-forwarded-proto': 'https' }],
    ['a forged X-Forwarded-Host', { host: HOST, 'x-forwarded-host': 'evil.test', 'x-forwarded-proto': 'https' }],
    ['another port', { 'x-forwarded-host': `${HOST}:8443`, 'x-forwarded-proto': 'https' }],
    ['plain http', { 'x-forwarded-host': HOST, 'x-forwarded-proto': 'http' }],
  ])('is never taken from %s', async (_, headers) => {
    const reply = await newBrowser(headers).get('/auth/general/login');
    expect([reply.status, reply.headers.get('location')]).toEqual([421, null]);
  });

  test('uses the host that was called, without a proxy too', async () => {
    const reply = await newBrowser({ host: HOST, 'x-forwarded-proto': 'https' }).get('/auth/codehost/login');
    const url = new URL(reply.headers.get('location') ?? '');
    expect(url.searchParams.get('redirect_uri')).toBe(`https://${HOST}/auth/codehost/callback`);
  });

  test('is the same when the code is redeemed as when the sign-in started', async () => {
    const back = await agree('general');
    const reply = await browser.get(back.pathname + back.search, { 'x-forwarded-host': 'evil.test' });
    await expectRefused(reply, 421, 'SVC_ALLOWED_HOSTS');
  });

  test('cannot have another host name of the control plane than the sign-in started with', async () => {
    const { signIn: methods } = control.context;
    Object.assign(control.context, { signIn: { ...methods, allowedHosts: [HOST, 'other.acme.test'] } });
    const back = await agree('codehost');
    const elsewhere = await browser.get(back.pathname + back.search, { 'x-forwarded-host': 'other.acme.test' });
    await expectRefused(elsewhere, 400, 'this sign-in was started in another browser');
  });
});

describe('the code-hosting provider', () => {
  test('requests its two scopes; the subject is the id as text', async () => {
    await expectSignedIn('codehost');
    expect(codeHost.scopes()).toBe('user:email read:user');
    const rows = await control.context.database.client.execute('SELECT issuer, subject FROM identities');
    expect(rows.rows).toEqual([expect.objectContaining({ issuer: 'https://code.acme.test', subject: '583231' })]);
  });

  test('uses the login if there is no name', async () => {
    codeHost.user = { ...codeHost.user, name: '' };
    expect(await expectSignedIn('codehost')).toMatchObject({ display_name: 'alice' });
  });

  test('uses the primary, verified entry if the profile has no email', async () => {
    codeHost.user = { ...codeHost.user, email: null };
    codeHost.emails = [
      { email: 'other@acme.test', primary: false, verified: true },
      { email: 'Main@Acme.test', primary: true, verified: true },
    ];
    expect(await expectSignedIn('codehost')).toMatchObject({ email: 'main@acme.test' });
    expect(await listAccountsByVerifiedEmail(control.context.database, 'main@acme.test')).toHaveLength(1);
  });

  test.each([
    ['no list', null],
    ['an empty list', []],
    ['a primary entry that is not verified', [{ email: 'a@acme.test', primary: true, verified: false }]],
    ['a verified entry that is not primary', [{ email: 'a@acme.test', primary: false, verified: true }]],
  ])('is refused without an email in the profile and with %s', async (_, emails) => {
    codeHost.user = { ...codeHost.user, email: null };
    codeHost.emails = emails;
    await expectRefused(await signIn('codehost'), 403, 'no primary, verified email');
  });

  test.each([
    ['is not in the list', []],
    ['is in the list and not verified', [{ email: 'alice@acme.test', primary: true, verified: false }]],
    ['cannot be looked up', null],
  ])('signs in with a profile email that %s, as unverified', async (_, emails) => {
    codeHost.emails = emails;
    expect(await expectSignedIn('codehost')).toMatchObject({ email: 'alice@acme.test' });
    expect(await listAccountsByVerifiedEmail(control.context.database, 'alice@acme.test')).toEqual([]);
  });

  test("refuses another issuer's name in the answer", async () => {
    const back = await agree('codehost');
    back.searchParams.set('iss', 'https://evil.test');
    await expectRefused(await browser.get(back.pathname + back.search), 502, 'does not prove who you are');
  });
});

describe('an account', () => {
  test('is shared by two providers that both verified the address', async () => {
    const first = await expectSignedIn('general');
    expect((await expectSignedIn('codehost')).id).toBe(first.id);
    const events = await (await openSignedIn('codehost')).get('/v1/audit-events?type=control.identity.linked');
    expect(await events.text()).toContain('"svc.control.provider":"codehost"');
  });

  test('is shared also if both sign in for the first time at the same moment', async () => {
    const [one, two] = [newBrowser(), newBrowser()];
    const backs = [await agree('general', one), await agree('codehost', two)];
    await Promise.all(
      [one, two].map((by, index) => by.get((backs[index]?.pathname ?? '') + (backs[index]?.search ?? ''))),
    );
    expect((await me(one)).id).toBe((await me(two)).id);
  });

  test('is not joined by an address that the new provider did not verify', async () => {
    const first = await expectSignedIn('general');
    codeHost.emails = [];
    expect((await expectSignedIn('codehost')).id).not.toBe(first.id);
  });

  test('is not joined if its own address is unverified', async () => {
    codeHost.emails = [];
    const squatter = await expectSignedIn('codehost');
    const owner = await expectSignedIn('general');
    expect(owner.id).not.toBe(squatter.id);
    expect(owner.enterprise_id).not.toBe(squatter.enterprise_id);
  });

  test.each([['true'], [1], [undefined]])('is not joined if email_verified is %j', async (verified) => {
    const first = await expectSignedIn('codehost');
    openId.person = { sub: 'mallory', email: 'alice@acme.test', email_verified: verified };
    expect((await expectSignedIn('general')).id).not.toBe(first.id);
  });

  test('gets a distinct slug if another one has it', async () => {
    codeHost.emails = [];
    await expectSignedIn('codehost');
    const by = await openSignedIn('general');
    expect(await parseReply(enterpriseReply, by.get('/v1/enterprise'))).toMatchObject({ slug: 'alice-acme-2' });
  });

  test('that is suspended cannot sign in, nor can another provider with its address', async () => {
    const by = await openSignedIn('general');
    await control.context.database.client.execute("UPDATE users SET suspended_at = '2026-01-01T00:00:00.000Z'");
    expect((await by.get('/v1/me')).status).toBe(401);
    await expectRefused(await signIn('general'), 401, 'this account cannot sign in');
    await expectRefused(await signIn('codehost'), 401, 'this account cannot sign in');
  });

  test('that is suspended while it signs in gets no session, even after it is reinstated', async () => {
    const { context } = control;
    const owner = await expectSignedIn('general');
    const { client } = context.database;
    const chain = { enterpriseId: owner.enterprise_id, writer: owner.enterprise_id };
    const suspend = () =>
      commit(context, chain, async () => {
        const set = sql`UPDATE users SET suspended_at = ${owner.created_at} WHERE id = ${owner.id}`;
        const event = { type: 'control.member.changed' as const, actor: owner.id, data: {} };
        const statements = [statement(set), statement(sql`DELETE FROM browser_sessions`)];
        return ok({ statements, events: [event], value: null });
      });
    let isBetween = true;
    const write: typeof context.database.write = async (statements) => {
      const begins = statements.some((each) => each.toSQL().sql.includes('insert into "browser_sessions"'));
      if (begins && isBetween) {
        isBetween = false;
        await suspend();
      }
      return context.database.write(statements);
    };
    const disturbed = { ...context, database: { ...context.database, write } };
    const identity = { issuer: openId.origin, subject: 'alice', email: 'alice@acme.test', emailVerified: true };
    const how = { provider: 'general', client: '' };
    expect(await signInIdentity(disturbed, { ...identity, displayName: '' }, how)).toMatchObject({
      error: { code: 'account_unavailable' },
    });
    expect(isBetween).toBe(false);
    expect((await client.execute('SELECT id FROM browser_sessions')).rows).toEqual([]);
  });

  test('is limited to the domains of its enterprise; an unverified address has no domain', async () => {
    await expectSignedIn('codehost');
    await control.context.database.client.execute(`UPDATE enterprises SET allowed_domains = '["acme.test"]'`);
    await expectSignedIn('codehost');
    codeHost.emails = [];
    await expectRefused(await signIn('codehost'), 403, 'only verified addresses of its own domains');
    codeHost.user = { ...codeHost.user, email: 'alice@other.test' };
    codeHost.emails = [{ email: 'alice@other.test', primary: true, verified: true }];
    await expectRefused(await signIn('codehost'), 403, 'only verified addresses of its own domains');
  });

  test('is limited to the providers of its enterprise', async () => {
    await expectSignedIn('codehost');
    await control.context.database.client.execute(`UPDATE enterprises SET allowed_providers = '["general"]'`);
    await expectRefused(await signIn('codehost'), 403, 'use general');
    await expectSignedIn('general');
  });
});

async function openSignedIn(provider: string): Promise<TestBrowser> {
  const by = newBrowser();
  await expectSignedIn(provider, by);
  return by;
}

/** The token reply with other claims in its ID token, but the old signature. */
function withClaims(body: string, claims: object): string {
  const reply: unknown = JSON.parse(body);
  if (typeof reply !== 'object' || reply === null || !('id_token' in reply)) return body;
  const [head, payload = '', signature] = String(reply.id_token).split('.');
  const before: object = JSON.parse(Buffer.from(payload, 'base64url').toString());
  const altered = Buffer.from(JSON.stringify({ ...before, ...claims })).toString('base64url');
  return JSON.stringify({ ...reply, id_token: [head, altered, signature].join('.') });
}
