import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { chromiumProblem } from '../support/chromium.ts';
import { BrowserPage } from './browser_page.ts';
import { type BrowserWorld, startBrowserWorld } from './browser_world.ts';

const MISSING = chromiumProblem();
const UNPROVEN = 'does not prove who you are';
const ALICE = { sub: 'alice', email: 'alice@acme.test', email_verified: true, name: 'Alice' };
let world: BrowserWorld;
let page: BrowserPage;

beforeAll(async () => {
  if (MISSING === null) world = await startBrowserWorld();
});
afterAll(() => world?.stop());
beforeEach(async ({ skip }) => {
  if (MISSING !== null) skip(MISSING);
  world.openId.person = ALICE;
  world.openId.alter = null;
  world.alterReturn = null;
  page = await BrowserPage.open(world.chromium);
});
afterEach(() => page?.close());

const home = (by = page) => by.goto(`${world.origin}/`);

async function signIn(by = page) {
  await home(by);
  return by.click('Continue with Single sign-on');
}

async function expectRefused(shown: Promise<{ readonly status: number; readonly text: string }>, words: string) {
  const { status, text } = await shown;
  expect([text.toLowerCase(), status]).toEqual([expect.stringContaining(words.toLowerCase()), expect.any(Number)]);
  expect(status).toBeGreaterThanOrEqual(400);
  expect((await page.cookies()).map(({ name }) => name)).not.toContain('__Host-session');
  expect((await home()).status).toBe(401);
}

describe('Chromium is not signed in', () => {
  test('by the answer of one provider at the callback of another', async () => {
    await home();
    await page.click('Continue with Code hosting');
    const begun = page.visited.find((url) => url.includes('/login/oauth/authorize')) ?? '';
    const { search } = world.codeHost.authorise(begun);
    await expectRefused(page.goto(`${world.origin}/auth/general/callback${search}`), 'was started in another browser');
  });

  test('by an answer that names another issuer, or none if the provider names itself', async () => {
    world.alterReturn = (back) => {
      expect(back.searchParams.get('iss')).toBe(world.openId.origin);
      back.searchParams.set('iss', 'https://evil.test');
    };
    await expectRefused(signIn(), UNPROVEN);
    world.alterReturn = (back) => back.searchParams.delete('iss');
    await expectRefused(signIn(), UNPROVEN);
  });

  test('by the ID token of another sign-in, whose nonce is another', async () => {
    let first = '';
    world.openId.alter = (path, body) => (path === '/token' ? (first ||= body) : body);
    const other = await BrowserPage.open(world.chromium);
    expect((await signIn(other)).text).toContain('Signed in as Alice');
    expect(first).toContain('id_token');
    await expectRefused(signIn(), UNPROVEN);
  });

  test("by another person's code", async () => {
    let theirs = '';
    world.alterReturn = (back) => {
      theirs = back.searchParams.get('code') ?? '';
      back.searchParams.delete('code');
    };
    const other = await BrowserPage.open(world.chromium);
    expect((await signIn(other)).status).toBe(502);
    expect(theirs).not.toBe('');
    world.alterReturn = (back) => back.searchParams.set('code', theirs);
    await expectRefused(signIn(), 'nobody was signed in');
  });

  test('under a host name that is not configured', async () => {
    const shown = await page.goto(`${world.strangeOrigin}/auth/general/login`);
    expect([shown.status, shown.url]).toEqual([421, `${world.strangeOrigin}/auth/general/login`]);
    expect(shown.text).toContain('Sign-in is off under this host name');
    expect(page.visited.filter((url) => url.startsWith(world.openId.origin))).toEqual([]);
  });
});

describe('an address in Chromium', () => {
  test('that is not verified joins no account, and belongs to no domain', async () => {
    await signIn();
    const alice = await page.call('GET', '/v1/me');
    world.openId.person = { ...ALICE, sub: 'mallory', email_verified: false, name: 'Mallory' };
    const other = await BrowserPage.open(world.chromium);
    expect((await signIn(other)).text).toContain('Signed in as Mallory');
    const mallory = await other.call('GET', '/v1/me');
    const [hers, his]: { id: string; enterprise_id: string }[] = [alice, mallory].map(({ text }) => JSON.parse(text));
    expect([his?.id === hers?.id, his?.enterprise_id === hers?.enterprise_id]).toEqual([false, false]);
  });

  test('of a domain that the enterprise does not allow is refused', async () => {
    world.openId.person = { sub: 'dora', email: 'dora@delta.test', email_verified: true, name: 'Dora' };
    await signIn();
    const settings = { name: 'Delta', billing_email: null, allowed_providers: null, sso_required: false, oidc: null };
    const allow = (allowed_domains: readonly string[]) =>
      page.call('PUT', '/v1/enterprise', { ...settings, allowed_domains });
    expect(await allow(['other.test'])).toMatchObject({ status: 409, text: expect.stringContaining('would_lock_out') });
    expect((await allow(['delta.test'])).status).toBe(200);
    world.openId.person = { sub: 'dora', email: 'dora@home.test', email_verified: true, name: 'Dora' };
    const other = await BrowserPage.open(world.chromium);
    const refused = await signIn(other);
    expect([refused.status, refused.text]).toEqual([403, expect.stringContaining('only verified addresses')]);
    expect((await home(other)).status).toBe(401);
    expect((await page.call('GET', '/v1/me')).status).toBe(200);
  });
});
