import type { Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { chromiumProblem } from '../support/chromium.ts';
import { CONSOLE_PAGES, consolePath } from './console_pages.ts';
import {
  ConsoleWorld,
  type Seeded,
  expectAccessible,
  expectFits,
  inEveryLook,
  PLANTED_SECRET,
  tabTo,
} from './console_world.ts';

const MISSING = chromiumProblem();
let world: ConsoleWorld;
let seeded: Seeded;
let pages: Page[] = [];

beforeAll(async () => {
  if (MISSING !== null) return;
  world = await ConsoleWorld.start();
  seeded = await world.seed();
});
afterAll(() => world?.stop());
beforeEach(({ skip }) => {
  if (MISSING !== null) skip(MISSING);
});
afterEach(async () => {
  for (const page of pages) await page.context().close();
  pages = [];
});

async function open(options: Parameters<ConsoleWorld['open']>[0] = {}): Promise<Page> {
  const page = await world.open(options);
  pages.push(page);
  return page;
}

describe('every page', () => {
  test.each(CONSOLE_PAGES)(
    '%s: axe finds nothing and nothing overflows, light and dark, narrow and wide',
    async (name) => {
      const page = await open();
      const problems: string[] = [];
      page.on('console', (message) => {
        if (message.type() === 'error' && !message.text().includes('Failed to load resource'))
          problems.push(message.text());
      });
      page.on('pageerror', (error) => problems.push(error.message));
      await page.goto(consolePath(name, seeded));
      expect(await page.locator('h1').count()).toBe(1);
      await inEveryLook(page, async ({ width, colorScheme }) => {
        if ((width === 360) === (colorScheme === 'dark')) await expectAccessible(page);
        await expectFits(page);
      });
      expect(problems).toEqual([]);
    },
  );

  test('the API reference: axe finds nothing', async () => {
    const page = await open({ viewport: { width: 360, height: 900 } });
    await page.goto('/docs');
    await expectFits(page);
    // Its colours are those of the other pages, and to weigh each of its many thousand texts takes a minute.
    await expectAccessible(page, ['color-contrast']);
  });

  test('loads nothing from elsewhere, and shows no secret', async () => {
    const page = await open();
    const asked: string[] = [];
    page.on('request', (request) => asked.push(request.url()));
    for (const name of CONSOLE_PAGES) {
      await page.goto(consolePath(name, seeded));
      expect(await page.content()).not.toContain(PLANTED_SECRET);
    }
    const elsewhere = asked.filter((url) => !url.startsWith(world.control.url) && !url.startsWith('data:'));
    expect(elsewhere).toEqual([]);
    expect(world.control.output()).not.toContain(PLANTED_SECRET);
  });

  test('is for who is signed in, who comes back to it', async () => {
    const page = await world.openSignedOut();
    pages.push(page);
    for (const path of ['/', '/audit', '/secrets/new', '/bindings']) {
      const reply = await page.goto(path);
      expect(reply?.status()).toBe(401);
      expect(await page.locator('h1').innerText()).toBe('Sign in');
    }
    await expectAccessible(page);
  });
});

describe('by keyboard alone', () => {
  test('the content comes after one key, and the navigation leads everywhere', async () => {
    const page = await open();
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    expect(await page.evaluate('document.activeElement?.id')).toBe('main');
    await page.goto('/');
    await tabTo(page, 'Host bindings');
    await page.keyboard.press('Enter');
    await page.waitForURL('**/bindings');
    expect(await page.locator('nav a[aria-current=page]:visible').innerText()).toContain('Host bindings');
  });

  test('a secret is stored, and deleted by typing its name', async () => {
    const page = await open();
    await page.goto('/secrets');
    await tabTo(page, 'Store a secret');
    await page.keyboard.press('Enter');
    await page.waitForURL('**/secrets/new');
    await tabTo(page, 'Path');
    await page.keyboard.type('user/keyboard');
    await tabTo(page, 'Value');
    await page.keyboard.type(`${PLANTED_SECRET}-3`);
    await page.keyboard.press('Enter');
    await page.waitForURL('**/secrets?done=secret_stored');
    expect(await page.locator('[role=status]').first().innerText()).toContain('stored');
    await tabTo(page, 'Delete user/keyboard');
    await page.keyboard.press('Enter');
    await page.waitForURL('**/secrets/delete**');
    await tabTo(page, 'Type user/keyboard to confirm');
    await page.keyboard.type('user/other');
    await page.keyboard.press('Enter');
    await page.getByText('nothing was deleted').waitFor();
    expect(await page.evaluate('document.activeElement?.id')).toBe('confirm');
    await page.keyboard.type('user/keyboard');
    await page.keyboard.press('Enter');
    await page.waitForURL('**/secrets?done=secret_deleted');
    expect(await page.locator('main').innerText()).not.toContain('user/keyboard');
  });
});

describe('without JavaScript', () => {
  const withoutScripts = { javaScriptEnabled: false };

  test('a binding is made by its form, with what is wrong beside its field', async () => {
    const page = await open(withoutScripts);
    await page.goto('/bindings/new?scheme=header-template');
    await page.getByLabel('Host', { exact: true }).fill('https://api.example.com');
    await page.getByRole('combobox', { name: 'Credential' }).fill('vault://user/github');
    await page.getByLabel('Header', { exact: true }).fill('X-Api-Key');
    await page.getByLabel('Template', { exact: true }).fill('{token}');
    await page.getByRole('button', { name: 'Bind' }).click();
    const host = page.getByLabel('Host', { exact: true });
    expect(await host.getAttribute('aria-invalid')).toBe('true');
    expect(await page.locator('#host-problem').innerText()).toMatch(/^It .+\.$/);
    await host.fill('api.example.com');
    expect(await page.getByLabel('Template', { exact: true }).inputValue()).toBe('{token}');
    await page.getByRole('button', { name: 'Bind' }).click();
    await page.waitForURL('**/bindings?done=binding_created');
    await page.getByRole('link', { name: 'Delete the binding for api.example.com' }).click();
    await page.getByLabel('Type api.example.com to confirm').fill('api.example.com');
    await page.getByRole('button', { name: 'Delete it' }).click();
    await page.waitForURL('**/bindings?done=binding_deleted');
  });

  test('a binding begins with a template of the catalog', async () => {
    const page = await open(withoutScripts);
    await page.goto('/bindings/new');
    await page.getByLabel('Begin with a template').selectOption('google-maps');
    await page.getByRole('button', { name: 'Fill in' }).click();
    expect(await page.getByLabel('Host', { exact: true }).inputValue()).toBe('maps.googleapis.com');
    expect(await page.getByRole('textbox', { name: 'Query parameter' }).inputValue()).toBe('key');
    expect(await page.getByRole('combobox', { name: 'Credential' }).inputValue()).toBe('');
    await page.goto('/bindings/new?from=github-git');
    expect(await page.getByLabel('Request body').inputValue()).toBe('stream');
  });

  test('a request is explained', async () => {
    const page = await open(withoutScripts);
    await page.goto('/bindings');
    await page.getByLabel('Method').selectOption('POST');
    await page.getByLabel('URL').fill('https://api.github.com/user');
    await page.getByRole('button', { name: 'Explain' }).click();
    expect(await page.locator('#explanation').innerText()).toContain('effect_not_allowed');
  });

  test('a secret that is refused is not given back', async () => {
    const page = await open(withoutScripts);
    await page.goto('/secrets/new');
    await page.getByLabel('Path').fill('Not A Path');
    await page.getByLabel('Value').fill(`${PLANTED_SECRET}-4`);
    await page.getByRole('button', { name: 'Store' }).click();
    expect(await page.getByLabel('Path').inputValue()).toBe('Not A Path');
    expect(await page.getByLabel('Value').inputValue()).toBe('');
    expect(await page.content()).not.toContain(PLANTED_SECRET);
  });

  test('the audit log is filtered by its address, and says why', async () => {
    const page = await open(withoutScripts);
    await page.goto('/audit');
    await page.getByLabel('What').selectOption({ label: 'Refused requests' });
    await page.getByRole('button', { name: 'Show' }).click();
    expect(new URL(page.url()).searchParams.get('type')).toContain('trust_denied');
    expect(await page.locator('#events tbody tr').count()).toBe(1);
    await page.locator('#events').getByRole('link', { name: 'Why' }).click();
    expect(await page.locator('main').innerText()).toContain('The binding is for reading alone');
  });

  test('an approval is decided, once', async () => {
    const page = await open(withoutScripts);
    await page.goto('/approvals');
    await page.getByRole('button', { name: 'Deny acme/items delete-item, Items: delete item 42' }).click();
    await page.waitForURL('**/approvals?done=denied');
    expect(await page.locator('#approvals').innerText()).toContain('Nothing waits for you');
  });
});

describe('live', () => {
  test('a decision appears in the audit log as it is made', async () => {
    const page = await open();
    await page.goto('/audit?host=live.example.com');
    await page.getByText('No event fits').waitFor();
    await page.locator('[data-live-of=events]').getByText('Live').waitFor();
    await world.record('sandbox.proxy.passthrough', {
      'svc.proxy.method': 'GET',
      'svc.proxy.upstream.host': 'live.example.com',
      'svc.proxy.upstream.path': '/now',
    });
    const row = page.locator('#events').getByText('GET live.example.com/now');
    await row.waitFor();
    expect(await row.count()).toBe(1);
  });

  test('an explanation follows what is typed, and the address with it', async () => {
    const page = await open();
    await page.goto('/bindings');
    await page.getByLabel('URL').pressSequentially('https://api.github.com/user');
    await page.locator('#explanation').getByText('api.github.com matches a personal host binding').waitFor();
    expect(new URL(page.url()).searchParams.get('url')).toBe('https://api.github.com/user');
    expect(await page.evaluate('document.activeElement?.id')).toBe('url');
  });
});

test('no page of another site changes anything with the cookie of this one', async () => {
  const page = await open();
  const cookie = (await page.context().cookies()).map(({ name, value }) => `${name}=${value}`).join('; ');
  for (const path of ['/secrets', '/secrets/delete', '/bindings', `/bindings/${seeded.bindingId}/delete`]) {
    const body = new URLSearchParams({ path: 'user/github', owner: 'personal', confirm: 'user/github', value: 'x' });
    const headers = { cookie, origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' };
    const reply = await fetch(world.control.url + path, { method: 'POST', headers, body, redirect: 'manual' });
    expect([path, reply.status]).toEqual([path, 403]);
  }
});
