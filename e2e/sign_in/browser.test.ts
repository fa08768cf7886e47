import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { run, until } from '../runtimes/programs.ts';
import { SVC } from '../support/program.ts';
import { chromiumProblem, withoutNetlink } from '../support/chromium.ts';
import { BrowserPage } from './browser_page.ts';
import { type BrowserWorld, startBrowserWorld } from './browser_world.ts';

const MISSING = chromiumProblem();
const SESSION = '__Host-session';
const STATE = '__Host-oauth_state';
const PASSWORD = 'correct horse battery';
let world: BrowserWorld;
let page: BrowserPage;

beforeAll(async () => {
  if (MISSING === null) world = await startBrowserWorld();
});
afterAll(() => world?.stop());
beforeEach(async ({ skip }) => {
  if (MISSING !== null) skip(MISSING);
  world.openId.person = { sub: 'alice', email: 'alice@acme.test', email_verified: true, name: 'Alice' };
  page = await BrowserPage.open(world.chromium);
});
afterEach(() => page?.close());

const home = (by = page) => by.goto(`${world.origin}/`);
const cookieNames = async () => (await page.cookies()).map(({ name }) => name);

/** Signs in at the code host and agrees on its page. */
async function signInByCodeHost(by = page): Promise<string> {
  await home(by);
  await by.click('Continue with Code hosting');
  return (await by.click('Authorize')).text;
}

/** The address with which a provider was called. */
const findVisited = (part: string) => new URL(page.visited.find((url) => url.includes(part)) ?? 'none:');

/** The address that a sign-in returned to. */
const callbackOf = (by: BrowserPage) => by.visited.find((url) => url.includes('/callback?')) ?? '';

/** Expects a page with a refusal, and a browser that is not signed in. */
async function expectRefused(shown: Promise<{ readonly status: number; readonly text: string }>, by = page) {
  const { status, text } = await shown;
  expect([status, text]).toEqual([
    400,
    expect.stringContaining('This sign-in was started in another browser, was used already'),
  ]);
  expect((await home(by)).status).toBe(401);
}

test('Chromium, when started without netlink, does not see the interfaces of test engines', ({ skip }) => {
  if (process.platform !== 'linux') skip('netlink is part of Linux');
  const { program, env } = withoutNetlink('python3');
  const script = 'import socket; socket.socket(socket.AF_UNIX); socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)';
  const { stderr } = spawnSync(program, ['-c', script], { env: { ...process.env, ...env }, encoding: 'utf8' });
  expect(stderr.trim().split('\n').at(-1)).toBe('OSError: [Errno 97] Address family not supported by protocol');
});

describe('specification section 5: sign-in in Chromium', () => {
  test('by an OpenID provider on another site', async () => {
    expect(await home()).toMatchObject({ status: 401, text: expect.stringContaining('Sign in') });
    const shown = await page.click('Continue with Single sign-on');
    expect(shown).toMatchObject({ url: `${world.origin}/`, status: 200 });
    expect(shown.text).toContain('Signed in as Alice');
    expect(page.visited.some((url) => url.startsWith(`${world.openId.origin}/auth?`))).toBe(true);
  });

  test('by a code host, with cookies that scripts and other hosts do not get', async () => {
    expect(await signInByCodeHost()).toContain('Signed in as Alice');
    const ours = (await page.cookies()).filter(({ domain }) => domain === 'localhost');
    expect(ours).toEqual([
      expect.objectContaining({ name: SESSION, path: '/', secure: true, httpOnly: true, sameSite: 'Lax' }),
    ]);
  });

  test('by a password, set with a code from a mail', async () => {
    await page.goto(`${world.origin}/sign-up`);
    await page.fill('email', 'pat@beta.test');
    await page.fill('display_name', 'Pat');
    await page.fill('password', PASSWORD);
    expect((await page.click('Send the code')).text).toContain('Enter the code');
    await page.fill('code', world.codeFor('pat@beta.test'));
    expect((await page.click('Sign in')).text).toContain('Signed in as Pat');
    await page.click('Sign out');
    await page.fill('email', 'pat@beta.test');
    await page.fill('password', PASSWORD);
    expect(await page.click('Sign in')).toMatchObject({
      status: 200,
      text: expect.stringContaining('Signed in as Pat'),
    });
  });

  test("ends with the button, also for a copy of the browser's cookie", async () => {
    await signInByCodeHost();
    const session = (await page.cookies()).find(({ name }) => name === SESSION);
    expect((await page.click('Sign out')).url).toBe(`${world.origin}/sign-in`);
    expect(await cookieNames()).not.toContain(SESSION);
    await page.putBack(session!);
    expect(await cookieNames()).toContain(SESSION);
    expect((await home()).status).toBe(401);
  });
});

describe('specification section 5: federated sign-in in Chromium', () => {
  let restore: () => void;
  beforeEach(() => {
    const { user, emails } = world.codeHost;
    restore = () => Object.assign(world.codeHost, { user, emails });
  });
  afterEach(() => restore());

  test("derives each provider's callback URL from the host that the browser called", async () => {
    await home();
    await page.click('Continue with Code hosting');
    const ofCodeHost = findVisited('/login/oauth/authorize').searchParams;
    expect(ofCodeHost.get('redirect_uri')).toBe(`${world.origin}/auth/codehost/callback`);
    expect(ofCodeHost.get('scope')).toBe('user:email read:user');
    await home();
    await page.click('Continue with Single sign-on');
    expect(findVisited('/auth?').searchParams.get('redirect_uri')).toBe(`${world.origin}/auth/general/callback`);
  });

  test('keeps ExtraState in the http-only cookie oauth_extra across the redirect, and no longer', async () => {
    await home();
    await page.click('Continue with Code hosting');
    const extra = (await page.cookies()).find(({ name }) => name === 'oauth_extra');
    expect(extra).toMatchObject({ httpOnly: true, secure: true, sameSite: 'Lax', path: '/' });
    await page.click('Authorize');
    expect(await cookieNames()).not.toContain('oauth_extra');
  });

  test("uses the primary, verified email if the code host's profile has none, and the login as the name", async () => {
    world.codeHost.user = { id: 77, login: 'erin', name: '', email: null };
    world.codeHost.emails = [
      { email: 'other@epsilon.test', primary: false, verified: true },
      { email: 'erin@epsilon.test', primary: true, verified: true },
    ];
    expect(await signInByCodeHost()).toContain('Signed in as erin');
    expect((await page.goto(`${world.origin}/v1/me`)).text).toContain('"email":"erin@epsilon.test"');
  });

  test('is an error of the code-hosting provider without a primary, verified email', async () => {
    world.codeHost.user = { id: 78, login: 'frank', name: 'Frank', email: null };
    world.codeHost.emails = [{ email: 'frank@zeta.test', primary: true, verified: false }];
    expect(await signInByCodeHost()).toContain('has no primary, verified email address');
    expect((await home()).status).toBe(401);
  });

  test('is one account for two providers that verified the same address', async () => {
    world.openId.person = { sub: 'gina', email: 'gina@eta.test', email_verified: true, name: 'Gina' };
    await home();
    await page.click('Continue with Single sign-on');
    const first = (await page.goto(`${world.origin}/v1/me`)).text;
    world.codeHost.user = { id: 79, login: 'gina', name: 'Gina', email: 'gina@eta.test' };
    world.codeHost.emails = [{ email: 'gina@eta.test', primary: true, verified: true }];
    const other = await BrowserPage.open(world.chromium);
    await signInByCodeHost(other);
    expect((await other.goto(`${world.origin}/v1/me`)).text).toBe(first);
  });
});

describe('a way to sign in that is added in Chromium', () => {
  let restore: () => void;
  beforeEach(() => {
    const { user, emails } = world.codeHost;
    restore = () => Object.assign(world.codeHost, { user, emails });
    world.openId.person = { sub: 'carol', email: 'carol@gamma.test', email_verified: true, name: 'Carol' };
    world.codeHost.user = { id: 42, login: 'carol', name: 'Carol', email: 'carol@home.test' };
    world.codeHost.emails = [{ email: 'carol@home.test', primary: true, verified: true }];
  });
  afterEach(() => restore());

  test('is confirmed, signs in to the same account, and no longer works once it is removed', async () => {
    await home();
    await page.click('Continue with Single sign-on');
    await page.click('Account');
    await page.click('Ways to sign in');
    await page.click('Add Code hosting');
    await page.click('Continue to Code hosting');
    const question = await page.click('Authorize');
    expect(question.text).toContain('carol@home.test');
    const listed = await page.click('Add it');
    expect(listed.url).toBe(`${world.origin}/identities`);
    expect(listed.text).toMatch(/carol@gamma\.test[^]*carol@home\.test/);
    const other = await BrowserPage.open(world.chromium);
    await signInByCodeHost(other);
    await other.click('Account');
    expect((await other.click('Ways to sign in')).text).toContain('carol@gamma.test');
    expect((await other.click('Remove')).text).not.toContain('carol@gamma.test');
    expect((await other.click('Remove')).text).toContain('your last way to sign in');
  });

  test("is not added by another person's answer from the provider", async () => {
    const mallory = await BrowserPage.open(world.chromium);
    await home(mallory);
    await mallory.click('Continue with Single sign-on');
    await mallory.click('Account');
    await mallory.click('Ways to sign in');
    await mallory.click('Add Code hosting');
    await mallory.click('Continue to Code hosting');
    const begun = mallory.visited.find((url) => url.includes('/login/oauth/authorize')) ?? '';
    const back = world.codeHost.authorise(begun).href;
    world.openId.person = { sub: 'dave', email: 'dave@delta.test', email_verified: true, name: 'Dave' };
    await home();
    await page.click('Continue with Single sign-on');
    expect((await page.goto(back)).status).toBe(400);
    expect((await page.goto(`${world.origin}/identities`)).text).not.toContain('carol@home.test');
  });
});

describe('specification section 5: what Chromium brings back from a provider is refused', () => {
  test('with a forged state', async () => {
    await home();
    await page.click('Continue with Code hosting');
    const forged = `${world.origin}/auth/codehost/callback?code=0123456789&state=${'A'.repeat(43)}`;
    await expectRefused(page.goto(forged));
  });

  test("with the code and state of an attacker who wants others to act in the attacker's account", async () => {
    const mallory = await BrowserPage.open(world.chromium);
    await home(mallory);
    await mallory.click('Continue with Code hosting');
    const begun = mallory.visited.find((url) => url.includes('/login/oauth/authorize')) ?? '';
    const back = world.codeHost.authorise(begun).href;
    await expectRefused(page.goto(back));
    await home();
    await page.click('Continue with Code hosting');
    await expectRefused(page.goto(back));
  });

  test('a second time, also with the cookies of the first', async () => {
    await home();
    await page.click('Continue with Code hosting');
    const begun = (await page.cookies()).filter(({ name }) => [STATE, 'oauth_extra'].includes(name));
    expect(begun).toHaveLength(2);
    expect((await page.click('Authorize')).text).toContain('Signed in as Alice');
    const replayed = callbackOf(page);
    expect(new URL(replayed).searchParams.has('code')).toBe(true);
    await page.click('Sign out');
    await expectRefused(page.goto(replayed));
    for (const each of begun) await page.putBack(each);
    await expectRefused(page.goto(replayed));
    const other = await BrowserPage.open(world.chromium);
    await expectRefused(other.goto(replayed), other);
  });

  test.each([STATE, 'oauth_extra'])('without the cookie %s', async (name) => {
    await home();
    await page.click('Continue with Code hosting');
    await page.loseCookie(name);
    await expectRefused(page.click('Authorize'));
  });
});

describe('specification section 5: svc login, approved in Chromium', () => {
  let machine: string;
  beforeAll(async () => {
    machine = await mkdtemp(join(tmpdir(), 'svc-machine-'));
  });
  afterAll(() => rm(machine, { recursive: true, force: true }));

  test('by a code typed on the page, after a sign-in that returns to it', async () => {
    const args = ['--home', machine, 'login', '--control', world.origin, '--name', 'laptop of a test'];
    const login = run(SVC, args, { NODE_EXTRA_CA_CERTS: world.ca.file });
    const ended = once(login.child, 'close');
    try {
      const code = await until(login, async () => /\b[A-Z]{4}-[A-Z]{4}\b/.exec(login.output())?.[0] ?? null);
      expect((await page.goto(`${world.origin}/device`)).status).toBe(401);
      await page.click('Continue with Code hosting');
      expect((await page.click('Authorize')).url).toBe(`${world.origin}/device`);
      await page.fill('user_code', code.toLowerCase());
      const question = await page.click('Continue');
      expect(question.text).toContain('svc on laptop of a test');
      expect(question.text).toContain('127.0.0.1');
      expect((await page.click('Sign it in')).text).toContain('Signed in');
      await ended;
    } finally {
      await login.stop();
    }
    expect(login.output()).toContain(`signed in to ${world.origin} as alice@acme.test; its sidecar is enrolled`);
  });
});
