import type { BrowserContextOptions, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { enterpriseSettings } from '../../shared/wire/enterprise.ts';
import { membersPage } from '../../shared/wire/members.ts';
import { type BrowserWorld, startBrowserWorld } from '../sign_in/browser_world.ts';
import { OPENID_CLIENT_ID, OPENID_CLIENT_SECRET } from '../sign_in/openid_provider.ts';
import { chromiumProblem } from '../support/chromium.ts';
import { expectAccessible, expectFits, LOOKS, type Look } from './console_world.ts';
import { type ProvenDomain, startProvenDomain } from './proven_domain.ts';
import { HANGS_MS } from '../support/hangs.ts';

// The enterprise of a hosted control plane as seen by its owner, an admin and a member, each signed in at a real provider.

const MISSING = chromiumProblem();
const DOMAIN = 'acme.test';
type Who = 'alice' | 'bob' | 'carol' | 'zed';
/** Chromium's cookies of each sign-in. */
const states = new Map<Who, BrowserContextOptions['storageState']>();
let world: BrowserWorld;
let domain: ProvenDomain;
let pages: Page[] = [];
let ids: Readonly<Record<Exclude<Who, 'zed'>, string>>;

beforeAll(async () => {
  if (MISSING !== null) return;
  domain = await startProvenDomain();
  world = await startBrowserWorld({ [DOMAIN]: domain.loopback });
  await signIn('alice', DOMAIN);
  await signIn('zed', 'other.test');
});
afterAll(async () => {
  await world?.stop();
  await domain?.stop();
});
beforeEach(({ skip }) => {
  if (MISSING !== null) skip(MISSING);
});
afterEach(async () => {
  for (const page of pages) await page.context().close();
  pages = [];
});

async function open(options: BrowserContextOptions): Promise<Page> {
  const context = await world.chromium.newContext({ baseURL: world.origin, reducedMotion: 'reduce', ...options });
  context.setDefaultTimeout(HANGS_MS);
  const page = await context.newPage();
  pages.push(page);
  return page;
}

/** Signs a user in at the provider, and keeps the cookies. */
async function signIn(who: Who, emailDomain: string): Promise<void> {
  const page = await open({});
  await signInAt(page, who, emailDomain);
  states.set(who, await page.context().storageState());
}

async function signInAt(page: Page, who: Who, emailDomain: string): Promise<void> {
  world.openId.person = { sub: who, email: `${who}@${emailDomain}`, email_verified: true, name: who };
  await page.goto('/');
  await page.getByRole('link', { name: 'Continue with Single sign-on' }).click();
  await page.locator('main').getByText(`Signed in as ${who}`).waitFor();
}

const openAs = (who: Who, options: BrowserContextOptions = {}) =>
  open({ ...options, storageState: states.get(who) ?? { cookies: [], origins: [] } });

/** A form that no page offers, sent from our own page, as a user with developer tools can. */
async function forge(page: Page, path: string, fields: Readonly<Record<string, string>>): Promise<number> {
  await beHere(page);
  const body = JSON.stringify(new URLSearchParams(fields).toString());
  const type = `{ 'content-type': 'application/x-www-form-urlencoded' }`;
  const answer = `fetch(${JSON.stringify(path)}, { method: 'POST', body: ${body}, headers: ${type}, redirect: 'manual' })`;
  return z.number().parse(await page.evaluate(`${answer}.then((reply) => reply.status)`));
}

/** One of our own pages, so that the form has our origin. */
async function beHere(page: Page): Promise<void> {
  if (!page.url().startsWith(world.origin)) await page.goto('/sign-in');
}

/** The API's answer to the browser's user. */
async function ask<T>(page: Page, path: string, schema: z.ZodType<T>): Promise<T> {
  await beHere(page);
  return schema.parse(await page.evaluate(`fetch(${JSON.stringify(path)}).then((reply) => reply.json())`));
}

async function signOutAt(page: Page): Promise<void> {
  await page.goto('/');
  await page.getByRole('button', { name: 'Sign out' }).filter({ visible: true }).click();
  await page.waitForURL('**/sign-in**');
  // The provider's cookies too: it would sign the same person in again.
  await page.context().clearCookies();
}

test('a page of one person shows nothing of the next, and goes on when the first is back', async () => {
  const page = await open({});
  await signInAt(page, 'alice', DOMAIN);
  await page.goto('/audit');
  const live = page.locator('[data-live-of]');
  await live.getByText('Live').waitFor();
  const other = await page.context().newPage();
  await signOutAt(other);
  await page.getByText('You are signed out').waitFor();
  await signInAt(other, 'zed', 'other.test');
  await other.goto('/audit');
  await other.locator('[data-live-of]').getByText('Live').waitFor();
  expect(await other.locator('#events').innerText()).toContain('zed');
  // Seen again, it asks the server, which answers as it answers zed.
  const answered = page.waitForResponse((reply) => reply.url().endsWith('/audit') && reply.status() === 200);
  await page.evaluate(`document.dispatchEvent(new Event('visibilitychange'))`);
  await answered;
  await live.getByText('Not up to date: trying again').waitFor();
  expect(await page.locator('#events').innerText()).not.toContain('zed');
  await page.getByText('You are signed out').waitFor();
  await signOutAt(other);
  await signInAt(other, 'alice', DOMAIN);
  await page.getByText('You are signed out').waitFor({ state: 'detached' });
  await live.getByText('Live').waitFor();
});

const settingsOf = (page: Page) => ask(page, '/v1/enterprise', enterpriseSettings);

const save = (page: Page) => page.getByRole('button', { name: 'Save the settings' }).click();

describe('an owner', () => {
  test('gives the enterprise its provider and a domain, whose ownership must be proved', async () => {
    const page = await openAs('alice', { javaScriptEnabled: false });
    await page.goto('/enterprise');
    const id = /ent_\w{26}/.exec(await page.locator('main').innerText())?.[0] ?? '';
    expect(await page.locator('main').innerText()).toContain(`${world.origin}/auth/${id}/callback`);
    await page.getByLabel('Name').fill('Acme');
    await page.getByLabel('Issuer').fill(world.openId.origin);
    await page.getByLabel('Client id').fill(OPENID_CLIENT_ID);
    await page.getByLabel('Client secret').fill(OPENID_CLIENT_SECRET);
    await page.getByLabel('Its domains').fill(DOMAIN);
    await save(page);
    expect(await page.locator('#oidc_domains-problem').innerText()).toContain(`/.well-known/svc-enterprise.txt`);
    expect(await page.content()).not.toContain(OPENID_CLIENT_SECRET);
    domain.proof = `${id}\n`;
    await page.getByLabel('Client secret').fill(OPENID_CLIENT_SECRET);
    await save(page);
    await page.waitForURL('**/enterprise?done=settings_changed');
    expect(await page.getByLabel('Its domains').inputValue()).toBe(DOMAIN);
  });

  test('sees who joined by signing in, and makes one of them an admin', async () => {
    await signIn('bob', DOMAIN);
    await signIn('carol', DOMAIN);
    const page = await openAs('alice');
    const { items } = await ask(page, '/v1/members', membersPage);
    const idOf = (name: string) => items.find(({ display_name: each }) => each === name)?.id ?? '';
    ids = { alice: idOf('alice'), bob: idOf('bob'), carol: idOf('carol') };
    await page.goto('/members');
    expect(await page.locator('main table tbody tr').count()).toBe(3);
    expect(await page.locator('main').innerText()).toContain('People join by an invitation');
    await page.getByRole('link', { name: 'Change bob' }).click();
    await page.getByLabel('admin', { exact: true }).check();
    await page.getByRole('button', { name: 'Change the role' }).click();
    await page.waitForURL('**/members?done=member_changed');
    expect(await page.getByRole('row', { name: /bob/ }).innerText()).toContain('Admin');
  });

  test.each([
    ['sso_required', (page: Page) => page.getByLabel('Single sign-on is required').check()],
    ['allowed_domains', (page: Page) => page.getByLabel('Email domains').fill('elsewhere.test')],
    [
      'allowed_providers',
      async (page: Page) => {
        await page.getByLabel('Only the selected ways').check();
        await page.getByLabel('Password', { exact: true }).check();
      },
    ],
  ] as const)(
    'is told beside %s that the change would lock the owner out, and nothing is changed',
    async (field, change) => {
      const page = await openAs('alice', { javaScriptEnabled: false });
      await page.goto('/enterprise');
      await change(page);
      await save(page);
      expect(await page.locator(`#${field}-problem`).innerText()).toContain('you could not sign in again');
      expect(await page.locator('.problem').count()).toBe(1);
      const after = await settingsOf(await openAs('alice'));
      expect(after).toMatchObject({ sso_required: false, allowed_domains: [], allowed_providers: null });
    },
  );
});

describe('an admin', () => {
  test('changes the settings, but is offered no form for the provider', async () => {
    const page = await openAs('bob', { javaScriptEnabled: false });
    await page.goto('/enterprise');
    expect(await page.locator('[name^=oidc_]').count()).toBe(0);
    expect(await page.locator('main').innerText()).toContain('Only an owner can change it');
    await page.getByLabel('Name').fill('Acme Ltd');
    await save(page);
    await page.waitForURL('**/enterprise?done=settings_changed');
    const { name, oidc } = await settingsOf(await openAs('alice'));
    expect([name, oidc?.issuer, oidc?.domains]).toEqual(['Acme Ltd', world.openId.origin, [DOMAIN]]);
  });

  test('is refused the provider if the form is forged', async () => {
    const page = await openAs('bob');
    const { revision = '' } = await settingsOf(page);
    const provider = { oidc_issuer: 'https://id.evil.test', oidc_client_id: 'evil' };
    const forged = { name: 'X', providers: 'every', revision, ...provider };
    expect(await forge(page, '/enterprise', { ...forged, oidc_client_secret: 'x', oidc_domains: DOMAIN })).toBe(403);
    expect(await forge(page, '/enterprise', { ...forged, oidc_issuer: '', oidc_client_id: '', oidc_domains: '' })).toBe(
      403,
    );
    expect(await settingsOf(page)).toMatchObject({ name: 'Acme Ltd', oidc: { issuer: world.openId.origin } });
  });

  test('suspends and resumes members, and can give no higher role', async () => {
    const page = await openAs('bob', { javaScriptEnabled: false });
    await page.goto(`/members/${ids.carol}`);
    expect(await page.getByRole('button', { name: 'Change the role' }).count()).toBe(0);
    await page.getByRole('link', { name: 'Suspend' }).click();
    await page.getByLabel(/Type .* to confirm/).fill(`carol@${DOMAIN}`);
    await page.getByRole('button', { name: 'Suspend' }).click();
    await page.waitForURL('**/members?done=member_suspended');
    expect((await (await openAs('carol')).goto('/'))?.status()).toBe(401);
    await page.goto(`/members/${ids.carol}`);
    await page.getByRole('button', { name: 'Resume' }).click();
    await page.waitForURL('**/members?done=member_resumed');
    await page.goto(`/members/${ids.alice}`);
    expect(await page.locator('main form, main a.danger').count()).toBe(0);
    expect((await page.goto(`/members/${ids.alice}/suspend`))?.status()).toBe(403);
    const forger = await openAs('bob');
    expect(await forge(forger, `/members/${ids.bob}/role`, { role: 'owner' })).toBe(403);
    expect(await forge(forger, `/members/${ids.carol}/role`, { role: 'admin' })).toBe(403);
    expect(await forge(forger, `/members/${ids.alice}/suspend`, { confirm: `alice@${DOMAIN}` })).toBe(403);
    await signIn('carol', DOMAIN);
  });
});

describe('a member', () => {
  test('sees the settings without forms, and neither the list of members nor a link to it', async () => {
    const page = await openAs('carol', { javaScriptEnabled: false });
    await page.goto('/enterprise');
    expect(await page.locator('main').innerText()).toContain('Acme Ltd');
    expect(await page.locator('main form').count()).toBe(0);
    expect(await page.locator('a[href="/members"]').count()).toBe(0);
    expect((await page.goto('/members'))?.status()).toBe(403);
    expect(await page.locator('main').innerText()).toContain('ask an admin');
    expect(await page.locator('main').innerText()).not.toContain(ids.alice);
  });

  test('may create only personal bindings, and cannot change those of the enterprise', async () => {
    const alice = await openAs('alice');
    const binding = {
      scheme: 'bearer',
      host: 'api.github.com',
      credential_ref: 'vault://team/key',
      owner: 'enterprise',
    };
    await forge(alice, '/bindings', binding);
    await alice.goto('/bindings');
    const path = (await alice.getByRole('link', { name: 'api.github.com', exact: true }).getAttribute('href')) ?? '';
    expect(path).toMatch(/^\/bindings\/bnd_/);
    const page = await openAs('carol');
    await page.goto('/bindings/new');
    expect(await page.getByRole('radio').count()).toBe(1);
    await page.goto('/bindings');
    expect(
      await page
        .locator('main')
        .getByRole('link', { name: /Edit|Delete/ })
        .count(),
    ).toBe(0);
    await page.goto(path);
    expect(await page.locator('main').innerText()).toContain('Your enterprise’s admins change it.');
    expect((await page.goto(`${path}/edit`))?.status()).toBe(403);
    expect(await forge(page, `${path}/edit`, { ...binding, revision: 'any' })).toBe(403);
    expect(await forge(page, `${path}/delete`, { confirm: binding.host })).toBe(403);
    expect(await forge(page, '/bindings', { ...binding, host: 'other.test' })).toBe(403);
    const stranger = await openAs('zed');
    for (const below of ['', '/edit', '/delete']) expect((await stranger.goto(path + below))?.status()).toBe(404);
    expect(await forge(stranger, `${path}/edit`, { ...binding, revision: 'any' })).toBe(404);
  });

  test('sees the secrets and MCP servers of the enterprise, and cannot change them', async () => {
    const alice = await openAs('alice');
    await forge(alice, '/secrets', { path: 'team/shown', value: 'of-the-enterprise', owner: 'enterprise' });
    const remote = { mode: 'remote', url: 'https://mcp.example.com/mcp', transport: 'streamable-http' };
    await forge(alice, '/mcp-servers', { ...remote, name: 'shared', owner: 'enterprise' });
    await alice.goto('/secrets');
    expect(await alice.getByRole('link', { name: 'Delete team/shown' }).count()).toBe(1);
    await alice.goto('/mcp-servers');
    const path = (await alice.getByRole('link', { name: 'shared' }).first().getAttribute('href')) ?? '';
    await alice.goto(path);
    expect(await alice.locator('main form').count()).toBe(3);
    const page = await openAs('carol');
    await page.goto('/secrets');
    expect(await page.locator('main').innerText()).toContain('vault://team/shown');
    expect(await page.locator('main').getByRole('link', { name: 'team/shown' }).count()).toBe(0);
    await page.goto(path);
    expect(await page.locator('main').innerText()).toContain('its admins change it');
    expect(await page.locator('main').locator('button, a.danger, a[href$="/edit"]').count()).toBe(0);
    for (const form of ['/secrets/new', '/connectors/install', '/mcp-servers/new']) {
      await page.goto(form);
      expect([form, await page.getByRole('radio', { name: 'Your enterprise' }).count()]).toEqual([form, 0]);
    }
    expect(await forge(page, `${path}/enabled`, { enabled: 'false' })).toBe(403);
    expect(await forge(page, '/secrets', { path: 'team/shown', value: 'other', owner: 'enterprise' })).toBe(403);
  });

  test('is refused every forged form, and nothing is changed', async () => {
    const page = await openAs('carol');
    expect(await forge(page, '/enterprise', { name: 'Carol’s', providers: 'every' })).toBe(403);
    expect(await forge(page, `/members/${ids.carol}/role`, { role: 'owner' })).toBe(403);
    expect(await forge(page, `/members/${ids.bob}/suspend`, { confirm: `bob@${DOMAIN}` })).toBe(403);
    expect(await forge(page, `/members/${ids.bob}/resume`, {})).toBe(403);
    const alice = await openAs('alice');
    expect((await settingsOf(alice)).name).toBe('Acme Ltd');
    const { items } = await ask(alice, '/v1/members', membersPage);
    expect(items.map(({ role, suspended_at: suspended }) => [role, suspended])).toEqual([
      ['owner', null],
      ['admin', null],
      ['member', null],
    ]);
  });
});

test('another enterprise’s members and events are not found, for any query', async () => {
  const alice = await openAs('alice');
  await alice.goto('/audit');
  const event = (await alice.getByRole('link', { name: 'Why' }).first().getAttribute('href')) ?? '';
  const page = await openAs('zed');
  const paths = Object.values(ids).flatMap((id) => [`/members/${id}`, `/members/${id}/suspend`]);
  for (const path of [...paths, event]) expect([path, (await page.goto(path))?.status()]).toEqual([path, 404]);
  for (const below of ['role', 'suspend', 'resume']) {
    expect(await forge(page, `/members/${ids.carol}/${below}`, { role: 'admin', confirm: ids.carol })).toBe(404);
  }
  await page.goto('/members');
  expect(await page.locator('main table tbody tr').count()).toBe(1);
  await page.goto('/audit');
  expect(await page.locator('main').innerHTML()).not.toContain(event);
});

// Each in one look with axe: the walks of the console look at the pages of a local control plane in all of them.
test.each<readonly [who: Who, path: () => string, look: Look]>([
  ['alice', () => '/enterprise', LOOKS[1]],
  ['alice', () => `/members/${ids.carol}`, LOOKS[2]],
  ['bob', () => '/enterprise', LOOKS[2]],
  ['carol', () => '/members', LOOKS[1]],
])('as %s: axe finds nothing and nothing overflows (%#)', async (who, path, look) => {
  const { width, colorScheme } = look;
  const page = await openAs(who, { viewport: { width, height: 900 }, colorScheme });
  await page.goto(path());
  expect(await page.locator('h1').count()).toBe(1);
  await expectAccessible(page);
  await expectFits(page);
});

test('a refusal beside its field: axe finds nothing', async () => {
  const page = await openAs('alice');
  await page.goto('/enterprise');
  await page.getByLabel('Only the selected ways').check();
  await save(page);
  await page.locator('#allowed_providers-problem').waitFor();
  await expectAccessible(page);
});
