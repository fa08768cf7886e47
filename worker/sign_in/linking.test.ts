import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type InProcess, parseReply } from '../../e2e/runtimes/in_process.ts';
import { type CodeHost, startCodeHost } from '../../e2e/sign_in/code_host.ts';
import { FRONT, startHostedSignIn } from '../../e2e/sign_in/hosted_sign_in.ts';
import { namedOutbound } from '../../e2e/sign_in/named_outbound.ts';
import { TestBrowser } from '../../e2e/sign_in/test_browser.ts';
import { meReply } from '../../shared/wire/account.ts';
import { auditEventsPage } from '../../shared/wire/audit_events.ts';
import { identitiesPage } from '../../shared/wire/identities.ts';
import { signInsPage } from '../../shared/wire/sign_ins.ts';
import { createdToken } from '../../shared/wire/tokens.ts';
import { signInIdentity } from './sign_in_identity.ts';

let codeHost: CodeHost;
let control: InProcess;
/** Alice, who signed in by the general provider. */
let alice: TestBrowser;

beforeAll(async () => {
  codeHost = await startCodeHost();
});
afterAll(() => codeHost.stop());
beforeEach(async () => {
  atCodeHost('alice@home.test');
  const variables = {
    GENERAL_OAUTH_ISSUER: 'https://id.acme.test',
    GENERAL_OAUTH_CLIENT_ID: 'client-of-a-test',
    GENERAL_OAUTH_CLIENT_SECRET: 'secret-of-a-test',
  };
  control = await startHostedSignIn(namedOutbound({ 'code.acme.test': codeHost.loopback }), variables);
  alice = newBrowser();
  await signInAlice(alice);
});
afterEach(() => control.stop());

const newBrowser = () => new TestBrowser(control.send, FRONT);

/** The user at the code host. */
function atCodeHost(email: string, { id = 1, verified = true } = {}): void {
  codeHost.user = { id, login: 'someone', name: 'Someone', email };
  codeHost.emails = [{ email, primary: true, verified }];
}

/** Signs Alice in by the general provider, without calling it. */
async function signInAlice(by: TestBrowser): Promise<void> {
  const { context } = control;
  const [email, how] = ['alice@acme.test', { provider: 'general', client: '' }];
  const identity = {
    issuer: 'https://id.acme.test',
    subject: 'alice',
    email,
    emailVerified: true,
    displayName: 'Alice',
  };
  const signedIn = await signInIdentity(context, identity, how);
  if (!signedIn.ok) throw new Error(signedIn.error.message);
  by.cookies.set('__Host-session', signedIn.value.token);
}

async function signInAtCodeHost(by: TestBrowser): Promise<Response> {
  const begun = (await by.get('/auth/codehost/login')).headers.get('location') ?? '';
  const back = codeHost.authorise(begun);
  return by.get(back.pathname + back.search);
}

/** Another user, who signed in by the code host. */
async function signedInMallory(): Promise<TestBrowser> {
  const mallory = newBrowser();
  atCodeHost('mallory@evil.test', { id: 666 });
  expect((await signInAtCodeHost(mallory)).status).toBe(303);
  atCodeHost('alice@home.test');
  return mallory;
}

/** Starts adding the code host and approves there: the URL that the browser returns to. */
async function agree(by: TestBrowser): Promise<string> {
  control.clock.ms += 1_000;
  const page = await by.submit('/auth/codehost/link', {});
  const begun = /href="(https:\/\/code\.acme\.test[^"]*)"/.exec(await page.text())?.[1] ?? '';
  const back = codeHost.authorise(begun.replaceAll('&amp;', '&'));
  return back.pathname + back.search;
}

/** The form of the confirmation page. */
async function question(reply: Response): Promise<{ offer: string; seal: string }> {
  const text = await reply.text();
  const field = (name: string) => new RegExp(`name="${name}" value="([^"]*)"`).exec(text)?.[1] ?? `no ${name}: ${text}`;
  return { offer: field('offer'), seal: field('seal') };
}

async function link(by = alice): Promise<Response> {
  return by.submit('/identities/link', await question(await by.get(await agree(by))));
}

const identities = async (by = alice) => (await parseReply(identitiesPage, by.get('/v1/identities'))).items;
const userId = async (by: TestBrowser) => (await parseReply(meReply, by.get('/v1/me'))).id;
const codeHosts = async (by = alice) => (await identities(by)).filter(({ provider }) => provider === 'codehost');

/** An API call from one of our own pages. */
function call(method: string, path: string, body?: object, by = alice): Promise<Response> {
  const cookie = `__Host-session=${by.cookies.get('__Host-session')}`;
  const headers = { ...FRONT, cookie, 'content-type': 'application/json', 'sec-fetch-site': 'same-origin' };
  return control.send(path, { method, headers, ...(body && { body: JSON.stringify(body) }) });
}

async function expectRefused(reply: Response, status: number, words: string) {
  const text = (await reply.text()).toLowerCase();
  expect([reply.status, text]).toEqual([status, expect.stringContaining(words.toLowerCase())]);
  expect(await codeHosts()).toEqual([]);
}

describe('an added way to sign in', () => {
  test('is confirmed, is listed, and signs in to the same account', async () => {
    const asked = await alice.get(await agree(alice));
    expect(asked.status).toBe(200);
    expect(await asked.clone().text()).toContain('alice@home.test');
    expect(await codeHosts()).toEqual([]);
    const added = await alice.submit('/identities/link', await question(asked));
    expect([added.status, added.headers.get('location')]).toEqual([303, '/identities']);
    expect(await identities()).toMatchObject([
      { provider: 'general', title: 'Single sign-on', email: 'alice@acme.test', email_verified: true },
      { provider: 'codehost', title: 'Code hosting', issuer: 'https://code.acme.test', email: 'alice@home.test' },
    ]);
    expect(await (await alice.get('/identities')).text()).toContain('alice@home.test');
    const other = newBrowser();
    await signInAtCodeHost(other);
    expect(await userId(other)).toBe(await userId(alice));
  });

  test('is in the audit log', async () => {
    await link();
    const [added] = await codeHosts();
    const path = '/v1/audit-events?type=control.identity.linked';
    expect((await parseReply(auditEventsPage, alice.get(path))).items).toMatchObject([
      { actor: await userId(alice), data: { 'svc.control.resource': added?.id, 'svc.control.provider': 'codehost' } },
    ]);
  });

  test('is the same one when added a second time', async () => {
    await link();
    expect((await link()).status).toBe(303);
    expect(await codeHosts()).toHaveLength(1);
  });

  test('may have an unverified address', async () => {
    atCodeHost('someone@acme.test', { verified: false });
    expect((await link()).status).toBe(303);
    expect(await codeHosts()).toMatchObject([{ email: 'someone@acme.test', email_verified: false }]);
  });
});

describe('nobody can make another user add a way to sign in', () => {
  test('from a page of another site', async () => {
    const foreign = { 'sec-fetch-site': 'cross-site', origin: 'https://evil.test' };
    expect((await alice.submit('/auth/codehost/link', {}, foreign)).status).toBe(403);
    const asked = await question(await alice.get(await agree(alice)));
    await expectRefused(await alice.submit('/identities/link', asked, foreign), 403, 'must come from a page');
    const [first] = await identities();
    expect((await alice.submit('/identities/remove', { id: first!.id }, foreign)).status).toBe(403);
  });

  test('by a link: starting takes a form', async () => {
    expect((await alice.get('/auth/codehost/link')).status).toBe(405);
    const before = await userId(alice);
    await signInAtCodeHost(alice);
    expect(await userId(alice)).not.toBe(before);
  });

  test('without being signed in', async () => {
    const nobody = newBrowser();
    for (const path of ['/auth/codehost/link', '/identities/link', '/identities/remove']) {
      expect([path, (await nobody.submit(path, {})).status]).toEqual([path, 401]);
    }
    expect((await nobody.get('/identities')).status).toBe(401);
  });

  test('by a callback in another browser, even with the cookies of the one that started', async () => {
    const mallory = await signedInMallory();
    const back = await agree(mallory);
    await expectRefused(await alice.get(back), 400, 'was started in another browser');
    const session = alice.cookies.get('__Host-session') ?? '';
    for (const [name, value] of mallory.cookies) alice.cookies.set(name, value);
    alice.cookies.set('__Host-session', session);
    await expectRefused(await alice.get(back), 400, 'another user signed in meanwhile');
  });

  test('by a confirmation page that was made for another user', async () => {
    const mallory = await signedInMallory();
    const asked = await question(await mallory.get(await agree(mallory)));
    await expectRefused(await alice.submit('/identities/link', asked), 400, 'another user signed in meanwhile');
  });

  test('by a forged confirmation', async () => {
    const { offer, seal } = await question(await alice.get(await agree(alice)));
    const text = Buffer.from(offer, 'base64url').toString().replace('"subject":"1"', '"subject":"666"');
    const forged = { offer: Buffer.from(text).toString('base64url'), seal };
    expect(forged.offer).not.toBe(offer);
    await expectRefused(await alice.submit('/identities/link', forged), 400, 'start again');
    await expectRefused(await alice.submit('/identities/link', { offer, seal: '' }), 400, 'start again');
  });
});

describe('an identity is not added', () => {
  test('if another user signed in meanwhile in the same browser', async () => {
    const back = await agree(alice);
    const kept = new Map(alice.cookies);
    atCodeHost('mallory@evil.test', { id: 666 });
    await signInAtCodeHost(alice);
    for (const name of ['__Host-oauth_state', 'oauth_extra']) alice.cookies.set(name, kept.get(name) ?? '');
    const reply = await alice.get(back);
    expect([reply.status, await reply.text()]).toEqual([
      400,
      expect.stringContaining('another user signed in meanwhile'),
    ]);
    expect(await codeHosts()).toMatchObject([{ email: 'mallory@evil.test' }]);
  });

  test('in another session of the same user', async () => {
    const back = await agree(alice);
    const other = newBrowser();
    await signInAlice(other);
    alice.cookies.set('__Host-session', other.cookies.get('__Host-session') ?? '');
    await expectRefused(await alice.get(back), 400, 'your session has ended');
  });

  test('if the session that started it ended before the callback or before the confirmation', async () => {
    const { database } = control.context;
    const end = () => database.client.execute('DELETE FROM browser_sessions');
    const back = await agree(alice);
    await end();
    expect((await alice.get(back)).status).toBe(400);
    await signInAlice(alice);
    const asked = await question(await alice.get(await agree(alice)));
    await end();
    expect((await alice.submit('/identities/link', asked)).status).toBe(401);
    await signInAlice(alice);
    await expectRefused(await alice.submit('/identities/link', asked), 400, 'has ended');
  });

  test('after ten minutes', async () => {
    const asked = await question(await alice.get(await agree(alice)));
    control.clock.ms += 600_000;
    await expectRefused(await alice.submit('/identities/link', asked), 400, 'the ten minutes are over');
  });

  test('if it, or its verified address, belongs to another account', async () => {
    await signedInMallory();
    atCodeHost('mallory@evil.test', { id: 666 });
    await expectRefused(await alice.get(await agree(alice)), 409, 'belongs to another account here');
    atCodeHost('mallory@evil.test', { id: 667 });
    await expectRefused(await alice.get(await agree(alice)), 409, 'belongs to another account here');
    atCodeHost('mallory@evil.test', { id: 667, verified: false });
    expect((await link()).status).toBe(303);
  });

  test('if it was added to another account after the confirmation page', async () => {
    const asked = await question(await alice.get(await agree(alice)));
    await signInAtCodeHost(newBrowser());
    await expectRefused(await alice.submit('/identities/link', asked), 409, 'belongs to another account here');
  });

  test('if the enterprise does not allow its provider or its address', async () => {
    const plain = { name: 'Acme', billing_email: null, allowed_domains: [], sso_required: false, oidc: null };
    const providers = { ...plain, allowed_providers: ['general'] };
    expect((await call('PUT', '/v1/enterprise', providers)).status).toBe(200);
    await expectRefused(await alice.get(await agree(alice)), 403, 'does not allow this way to sign in');
    const domains = { ...plain, allowed_providers: null, allowed_domains: ['acme.test'] };
    expect((await call('PUT', '/v1/enterprise', domains)).status).toBe(200);
    await expectRefused(await alice.get(await agree(alice)), 403, 'only verified addresses of its own domains');
    atCodeHost('alice.other@acme.test');
    const asked = await question(await alice.get(await agree(alice)));
    expect((await call('PUT', '/v1/enterprise', providers)).status).toBe(200);
    await expectRefused(await alice.submit('/identities/link', asked), 403, 'does not allow this way to sign in');
  });

  test('to a suspended user', async () => {
    const asked = await question(await alice.get(await agree(alice)));
    await control.context.database.client.execute("UPDATE users SET suspended_at = '2026-01-01T00:00:00.000Z'");
    expect((await alice.submit('/identities/link', asked)).status).toBe(401);
    const rows = await control.context.database.client.execute('SELECT id FROM identities');
    expect(rows.rows).toHaveLength(1);
  });
});

const remove = (id: string) => call('DELETE', `/v1/identities/${id}`);
const ids = async () => (await identities()).map(({ id }) => id);

describe('removing a way to sign in', () => {
  test('makes it unusable for the account', async () => {
    await link();
    const other = newBrowser();
    await signInAtCodeHost(other);
    const [, second] = await ids();
    expect((await remove(second!)).status).toBe(204);
    expect(await identities()).toHaveLength(1);
    expect((await other.get('/v1/me')).status).toBe(401);
    expect((await alice.get('/v1/me')).status).toBe(200);
    await signInAtCodeHost(other);
    expect(await userId(other)).not.toBe(await userId(alice));
    const path = '/v1/audit-events?type=control.identity.unlinked';
    expect((await parseReply(auditEventsPage, alice.get(path))).items).toMatchObject([
      { data: { 'svc.control.resource': second, 'svc.control.provider': 'codehost' } },
    ]);
  });

  test('works on the page, and keeps the asking browser signed in even if it signed in that way', async () => {
    await link();
    const other = newBrowser();
    await signInAlice(other);
    const [first] = await ids();
    expect((await alice.submit('/identities/remove', { id: first! })).status).toBe(303);
    expect((await alice.get('/v1/me')).status).toBe(200);
    expect((await other.get('/v1/me')).status).toBe(401);
    expect((await parseReply(signInsPage, alice.get('/v1/sessions'))).items).toMatchObject([{ current: true }]);
  });

  test('is refused for the last one, and for the last usable one', async () => {
    const [first] = await ids();
    const refused = await remove(first!);
    expect([refused.status, await refused.text()]).toEqual([409, expect.stringContaining('would_lock_out')]);
    await link();
    const rules = { name: 'Acme', billing_email: null, allowed_domains: [], sso_required: false, oidc: null };
    await call('PUT', '/v1/enterprise', { ...rules, allowed_providers: ['general'] });
    expect((await remove(first!)).status).toBe(409);
    const [, second] = await ids();
    expect((await remove(second!)).status).toBe(204);
  });

  test('works for one of two concurrent removals of the last two', async () => {
    await link();
    const replies = await Promise.all((await ids()).map((id) => remove(id)));
    expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([204, 409]));
  });

  test('deletes its password', async () => {
    const { client } = control.context.database;
    const id = `idn_${'0'.repeat(26)}`;
    const now = '2026-01-01T00:00:00.000Z';
    await client.execute({
      sql: `INSERT INTO identities (id, provider, issuer, subject, user_id, email, email_verified, created_at, last_sign_in_at)
        VALUES (?, 'password', 'svc', 'alice@acme.test', ?, 'alice@acme.test', 1, ?, ?)`,
      args: [id, await userId(alice), now, now],
    });
    const others = ['alice@acme.test', 'other@acme.test'].map((email) => `('${email}', 'hash', '${now}')`);
    await client.execute(`INSERT INTO passwords VALUES ${others.join()}`);
    expect((await remove(id)).status).toBe(204);
    const left = await client.execute('SELECT email FROM passwords');
    expect(left.rows.map((row) => row['email'])).toEqual(['other@acme.test']);
  });

  test('is refused for a personal token', async () => {
    const scopes = { name: 'of a test', scopes: ['account:read'] };
    const { token } = await parseReply(createdToken, call('POST', '/v1/tokens', scopes));
    const headers = { authorization: `Bearer ${token}` };
    const [first] = await ids();
    expect((await control.send('/v1/identities', { headers })).status).toBe(403);
    expect((await control.send(`/v1/identities/${first}`, { method: 'DELETE', headers })).status).toBe(403);
  });
});

test('a list continues where a page ended', async () => {
  await link();
  const first = await parseReply(identitiesPage, alice.get('/v1/identities?limit=1'));
  expect(first).toMatchObject({ items: [{ provider: 'general' }] });
  const second = await parseReply(identitiesPage, alice.get(`/v1/identities?limit=1&cursor=${first.next_cursor}`));
  expect(second).toMatchObject({ items: [{ provider: 'codehost' }], next_cursor: null });
});
