import type { Locator, Page } from 'playwright-core';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { consoleSuite } from './console_suite.ts';
import { expectAccessible, PLANTED_SECRET, type Seeded, tabTo } from './console_world.ts';

let seeded: Seeded;
const suite = consoleSuite({
  prepare: async (world) => {
    seeded = await world.seed();
  },
});

test('a page needs sign-in, and is shown after it', async () => {
  const page = await suite.openSignedOut();
  for (const path of ['/', '/audit', '/secrets/new', '/bindings']) {
    const reply = await page.goto(path);
    expect(reply?.status()).toBe(401);
    expect(await page.locator('h1').innerText()).toBe('Sign in');
  }
  await expectAccessible(page);
});

describe('by keyboard alone', () => {
  test('one Tab reaches the content, and the navigation reaches every page', async () => {
    const page = await suite.open();
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    expect(await page.evaluate('document.activeElement?.id')).toBe('main');
    await page.goto('/');
    await tabTo(page, 'Host rules');
    await page.keyboard.press('Enter');
    await page.waitForURL('**/bindings');
    expect(await page.locator('nav a[aria-current=page]:visible').first().innerText()).toContain('Host rules');
  });

  test('a secret is stored, and deleted by typing its name', async () => {
    const page = await suite.open('/secrets');
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

  test('a binding is created by its form, with errors beside their fields', async () => {
    const page = await suite.open('/bindings/new?scheme=header-template', withoutScripts);
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

  test('a binding starts from a template of the catalog', async () => {
    const page = await suite.open('/bindings/new', withoutScripts);
    await page.getByLabel('Start from a template').selectOption('google-maps');
    await page.getByRole('button', { name: 'Fill in' }).click();
    expect(await page.getByLabel('Host', { exact: true }).inputValue()).toBe('maps.googleapis.com');
    expect(await page.getByRole('textbox', { name: 'Query parameter' }).inputValue()).toBe('key');
    expect(await page.getByRole('combobox', { name: 'Credential' }).inputValue()).toBe('');
    await page.goto('/bindings/new?from=github-git');
    expect(await page.getByLabel('Request body').inputValue()).toBe('stream');
  });

  test('a request is explained', async () => {
    const page = await suite.open('/bindings', withoutScripts);
    await page.getByLabel('Method').selectOption('POST');
    await page.getByLabel('URL').fill('https://api.github.com/user');
    await page.getByRole('button', { name: 'Explain' }).click();
    expect(await page.locator('#explanation').innerText()).toMatch(/Refused: [^]*effect_not_allowed/);
  });

  test('a refused secret is not sent back', async () => {
    const page = await suite.open('/secrets/new', withoutScripts);
    await page.getByLabel('Path').fill('Not A Path');
    await page.getByLabel('Value').fill(`${PLANTED_SECRET}-4`);
    await page.getByRole('button', { name: 'Store' }).click();
    expect(await page.getByLabel('Path').inputValue()).toBe('Not A Path');
    expect(await page.getByLabel('Value').inputValue()).toBe('');
    expect(await page.content()).not.toContain(PLANTED_SECRET);
  });

  test('the URL filters the audit log, which says why', async () => {
    const page = await suite.open('/audit', withoutScripts);
    await page.getByLabel('What').selectOption({ label: 'Refused requests' });
    await page.getByRole('button', { name: 'Show' }).click();
    expect(new URL(page.url()).searchParams.get('type')).toContain('trust_denied');
    expect(await page.locator('#events tbody tr').count()).toBe(1);
    await page.locator('#events').getByRole('link', { name: 'Why' }).click();
    expect(await page.locator('main').innerText()).toContain('The binding is read-only');
  });

  test('an approval is decided only once', async () => {
    const page = await suite.open('/approvals', withoutScripts);
    await page.getByRole('button', { name: 'Deny acme/items delete-item, Items: delete item 42' }).click();
    await page.waitForURL('**/approvals?done=denied');
    expect(await page.locator('#approvals').innerText()).toContain('No request waits for you');
  });
});

/** Opens the dialog of Ctrl-K and types. */
async function typeInDialog(page: Page, text: string): Promise<Locator> {
  await page.waitForFunction(`document.documentElement.dataset['palette'] === 'on'`);
  await page.keyboard.press('Control+k');
  await page.keyboard.type(text);
  return page.getByRole('dialog', { name: 'Find' });
}

/** Holds the answers of the search until the function that it returns is called. */
async function holdAnswers(page: Page): Promise<() => void> {
  const held = Promise.withResolvers<void>();
  await page.route('**/find?*', async (route) => {
    await held.promise;
    await route.continue();
  });
  return held.resolve;
}

const titleWith = (count: number) => (count === 0 ? /^[A-Z]/ : new RegExp(`^\\(${count}\\) [A-Z]`));

describe('live', () => {
  test('a decision appears in the audit log at once', async () => {
    const page = await suite.open('/audit?host=live.example.com');
    await page.getByText('No event matches').waitFor();
    await page.locator('[data-live-of=events]').getByText('Live').waitFor();
    await suite.world.record('sandbox.proxy.passthrough', {
      'svc.proxy.method': 'GET',
      'svc.proxy.upstream.host': 'live.example.com',
      'svc.proxy.upstream.path': '/now',
    });
    const row = page.locator('#events').getByText('GET live.example.com/now');
    await row.waitFor();
    expect(await row.count()).toBe(1);
  });

  test('a request that waits is told on every tab, and is decided by a key', async () => {
    const [elsewhere, list] = [await suite.open('/secrets'), await suite.open('/approvals')];
    const second = await elsewhere.context().newPage();
    await second.goto('/bindings');
    const tabs = [elsewhere, second];
    const before = await list.locator('.card').count();
    const asked = await suite.world.askApproval(seeded.connectorId, 'Items: delete item 43');
    for (const tab of tabs) {
      await expect.poll(() => tab.title()).toMatch(titleWith(before + 1));
      expect(await tab.locator('nav a[href="/approvals"]:visible .count').innerText()).toBe(String(before + 1));
      expect(await tab.locator('link[rel=icon]').getAttribute('href')).toContain('icon_waiting');
    }
    const card = list.getByRole('article', { name: 'claude on' }).filter({ hasText: 'Items: delete item 43' });
    await card.waitFor();
    expect(await card.innerText()).toContain('/home/ann/shop');
    await card
      .locator('.ring')
      .getByText(/^\d+ s$/)
      .waitFor();
    await card.focus();
    await list.keyboard.press('s');
    const shown = { line: 'DELETE https://api.example.test/items/43', content_type: 'text/plain', bytes: 20 };
    await suite.world.showRequest(asked, { ...shown, text: '<b>why</b>\nKäse 43' });
    await card.locator('pre').getByText('<b>why</b>').waitFor();
    expect(await card.innerText()).toContain(shown.line);
    await card.getByText('Allow more like this').click();
    await expectAccessible(list);
    // In a field a key decides nothing.
    await card.getByRole('combobox').press('d');
    await card.focus();
    await list.keyboard.press('a');
    await list.waitForURL('**/approvals?done=approved');
    for (const tab of tabs) await expect.poll(() => tab.title()).toMatch(titleWith(before));
  });

  test('the icon of the tab has a mark while a request waits, and none after the last decision', async () => {
    const waiting = z.object({ items: z.array(z.object({ id: z.string() })) });
    const { items } = waiting.parse(await suite.world.api('GET', '/v1/approvals?state=pending'));
    for (const { id } of items) await suite.world.api('POST', `/v1/approvals/${id}/decide`, { decision: 'deny' });
    const page = await suite.open('/secrets');
    const icon = page.locator('link[rel=icon]');
    const calm = await icon.getAttribute('href');
    const asked = await suite.world.askApproval(seeded.connectorId, 'Items: delete item 44');
    await expect.poll(() => icon.getAttribute('href')).not.toBe(calm);
    const marked = await icon.getAttribute('href');
    for (const path of [calm, marked]) {
      const reply = await suite.world.send(path ?? '');
      expect([reply.status, reply.headers.get('content-type')]).toEqual([200, 'image/svg+xml; charset=utf-8']);
    }
    await page.reload();
    expect(await icon.getAttribute('href')).toBe(marked);
    await suite.world.api('POST', `/v1/approvals/${asked}/decide`, { decision: 'deny' });
    await expect.poll(() => icon.getAttribute('href')).toBe(calm);
  });

  test('what is live can be paused', async () => {
    const page = await suite.open('/audit?host=paused.example.com');
    await page.locator('[data-live-of=events]').getByText('Live').waitFor();
    await page.getByRole('button', { name: 'Pause' }).click();
    const event = { 'svc.proxy.method': 'GET', 'svc.proxy.upstream.host': 'paused.example.com' };
    const other = await suite.open('/audit?host=paused.example.com');
    await other.locator('[data-live-of=events]').getByText('Live').waitFor();
    await suite.world.record('sandbox.proxy.passthrough', { ...event, 'svc.proxy.upstream.path': '/now' });
    await other.locator('#events').getByText('GET paused.example.com/now').waitFor();
    expect(await page.locator('#events').innerText()).toContain('No event matches');
    expect(await page.locator('[data-live-of=events]').innerText()).toBe('Paused');
    await page.getByRole('button', { name: 'Continue' }).click();
    await page.locator('#events').getByText('GET paused.example.com/now').waitFor();
  });

  test('Ctrl-K finds anything by keyboard alone, and gives the focus back', async () => {
    const page = await suite.open('/audit');
    await page.getByLabel('Host, or a part of it').focus();
    await page.keyboard.press('Control+k');
    const dialog = page.getByRole('dialog', { name: 'Find' });
    await dialog.waitFor();
    await page.keyboard.type('github');
    await dialog.getByText('3 results').waitFor();
    await expectAccessible(page);
    await page.keyboard.press('Escape');
    await expect.poll(() => page.evaluate('document.activeElement?.id')).toBe('host');
    // It is asked again with what was typed before, and the arrow keys go through the results and back to the field.
    await page.keyboard.press('Control+k');
    await page.keyboard.press('ArrowDown');
    expect(await page.evaluate('document.activeElement?.textContent')).toContain('vault://user/github');
    await page.keyboard.press('ArrowUp');
    expect(await page.evaluate('document.activeElement?.id')).toBe('palette-q');
    await page.keyboard.type('https://api.github.com/user');
    await page.keyboard.press('Enter');
    await page.waitForURL('**/bindings?method=GET&url=**');
    await page.locator('#explanation').getByText('api.github.com matches a personal binding').waitFor();
  });

  test('Ctrl-K opens the search before the server has answered, and takes what is typed', async () => {
    const page = await suite.open('/secrets');
    const release = await holdAnswers(page);
    const dialog = await typeInDialog(page, 'github');
    expect(await dialog.getByLabel('Find').inputValue()).toBe('github');
    release();
    await dialog.getByText('3 results').waitFor();
  });

  test('Enter in the dialog of Ctrl-K opens no result of an earlier text', async () => {
    const page = await suite.open('/secrets');
    const dialog = await typeInDialog(page, 'github');
    await dialog.getByText('3 results').waitFor();
    // An answer without results, as of a proxy.
    await page.route('**/find?*', (route) =>
      route.fulfill({ status: 404, contentType: 'text/html', body: '<p>no</p>' }),
    );
    await page.keyboard.type('-other');
    await page.keyboard.press('Enter');
    await dialog.getByText('No answer: press Enter to try again').waitFor();
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'hidden' });
    expect(new URL(page.url()).pathname).toBe('/secrets');
  });

  test('Enter in the dialog of Ctrl-K opens no other place to search when nothing was found', async () => {
    const page = await suite.open('/secrets');
    const dialog = await typeInDialog(page, 'which-nobody-has');
    await dialog.getByRole('link', { name: 'the services' }).waitFor();
    const opened: string[] = [];
    page.on('request', (request) => void (request.isNavigationRequest() && opened.push(request.url())));
    await page.keyboard.press('Enter');
    await dialog.getByLabel('Find').fill('github');
    await dialog.getByText('3 results').waitFor();
    expect(opened).toEqual([]);
  });

  test('the dialog of Ctrl-K keeps the focus when the result that had it is gone', async () => {
    const page = await suite.open('/secrets');
    const dialog = await typeInDialog(page, 'github');
    await dialog.getByText('3 results').waitFor();
    const release = await holdAnswers(page);
    await page.keyboard.type('-which-nobody-has');
    await page.keyboard.press('ArrowDown');
    expect(await page.evaluate('document.activeElement?.tagName')).toBe('A');
    release();
    await dialog.getByText('Nothing of yours has this name').waitFor();
    // One of its links may be in the place of the result.
    expect(await page.evaluate(`document.activeElement?.closest('[role="dialog"]') !== null`)).toBe(true);
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'hidden' });
  });

  test('Escape in the dialog of Ctrl-K leaves the search of the page below as it is', async () => {
    const page = await suite.open('/bindings?q=github');
    await page.getByLabel('Order').focus();
    await page.keyboard.press('Control+k');
    const dialog = page.getByRole('dialog', { name: 'Find' });
    await dialog.getByRole('link').first().waitFor();
    const focusIsIn = () => page.evaluate(`document.activeElement?.closest('[role="dialog"]') !== null`);
    // Tab goes round in it.
    await page.keyboard.press('Shift+Tab');
    expect(await page.evaluate('document.activeElement?.tagName')).toBe('A');
    await page.keyboard.press('Tab');
    expect(await page.evaluate('document.activeElement?.id')).toBe('palette-q');
    await page.keyboard.press('ArrowDown');
    expect(await focusIsIn()).toBe(true);
    // The page below has a meaning for this key.
    await page.keyboard.press('/');
    expect(await focusIsIn()).toBe(true);
    // After a click on its words too.
    await dialog.locator('#palette-found').click();
    await page.keyboard.press('Shift+Tab');
    expect(await focusIsIn()).toBe(true);
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'hidden' });
    expect(await page.evaluate('document.activeElement?.id')).toBe('sort');
    expect(await page.getByLabel('Search').inputValue()).toBe('github');
  });

  test('a search that is answered with the page of an error says so, and keeps the list', async () => {
    const page = await suite.open('/bindings');
    await page.route('**/bindings?*', (route) =>
      route.fulfill({ status: 404, contentType: 'text/html', body: '<p>no</p>' }),
    );
    await page.getByLabel('Search').pressSequentially('git');
    await page.getByText('The search got no answer: press Enter to try again').waitFor();
    expect(new URL(page.url()).search).toBe('');
  });

  test('the explanation and the URL follow the input', async () => {
    const page = await suite.open('/bindings');
    await page.getByLabel('URL').pressSequentially('https://api.github.com/user');
    await page.locator('#explanation').getByText('api.github.com matches a personal binding').waitFor();
    expect(new URL(page.url()).searchParams.get('url')).toBe('https://api.github.com/user');
    expect(await page.evaluate('document.activeElement?.id')).toBe('url');
  });
});

test("a page of another site cannot change anything with the console's cookie", async () => {
  const page = await suite.open();
  const cookie = (await page.context().cookies()).map(({ name, value }) => `${name}=${value}`).join('; ');
  for (const path of ['/secrets', '/secrets/delete', '/bindings', `/bindings/${seeded.bindingId}/delete`]) {
    const body = new URLSearchParams({ path: 'user/github', owner: 'personal', confirm: 'user/github', value: 'x' });
    const headers = { cookie, origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' };
    const reply = await suite.world.send(path, { method: 'POST', headers, body });
    expect([path, reply.status]).toEqual([path, 403]);
  }
});
