import type { Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { marketplacePage } from '../../shared/wire/marketplace.ts';
import { type RegistryServer, startRegistryServer } from '../marketplace/registry_server.ts';
import { startOnNode } from '../runtimes/programs.ts';
import { chromiumProblem } from '../support/chromium.ts';
import { waitFor } from '../support/wait_for.ts';
import { ConsoleWorld, expectAccessible, expectFits, inEveryLook, savePicture, tabTo } from './console_world.ts';
import { HOSTILE, HOSTILE_ENTRY, WEATHER, WEATHER_VERSIONS } from './marketplace_entries.ts';

const MISSING = chromiumProblem();
/** As many as the public registry may have one day. */
const ENTRIES = 50_000;
const LONG_TASK_MS = 50;

let registry: RegistryServer;
let world: ConsoleWorld;
let pages: Page[] = [];

beforeAll(async () => {
  if (MISSING !== null) return;
  registry = await startRegistryServer({ entries: ENTRIES });
  for (const entry of [...WEATHER_VERSIONS, HOSTILE_ENTRY]) registry.publish(entry);
  world = await ConsoleWorld.start(await startOnNode({ SVC_REGISTRY_URL: registry.url }));
  // Each look is a search of the registry's own: it has to answer the mirror too.
  const isMirrored = async () => {
    await new Promise((resolve) => setTimeout(resolve, 500));
    return !marketplacePage.parse(await world.api('GET', '/v1/marketplace/servers?q=snow')).partial;
  };
  await waitFor('the mirror to be complete', isMirrored, 200_000);
});
afterAll(async () => {
  await world?.stop();
  await registry?.stop();
});
beforeEach(({ skip }) => {
  if (MISSING !== null) skip(MISSING);
});
afterEach(async () => {
  for (const page of pages) await page.context().close();
  pages = [];
});

async function visit(path: string, options: { readonly javaScriptEnabled?: boolean } = {}): Promise<Page> {
  const page = await world.openSignedOut(options);
  pages.push(page);
  await page.goto(path);
  return page;
}

const names = (page: Page) => page.locator('.result .mono').allTextContents();

describe('the marketplace, for who is not signed in', () => {
  test('finds while it is typed, and the address is that of what is shown', async () => {
    const page = await visit('/marketplace');
    await page.getByLabel('Search').pressSequentially('rain and snow');
    await page.waitForURL('**/marketplace?q=rain+and+snow');
    expect(await names(page)).toEqual([WEATHER]);
    expect(await page.getByRole('status').first().textContent()).toContain('1 server');
    await page.reload();
    expect([await page.getByLabel('Search').inputValue(), await names(page)]).toEqual(['rain and snow', [WEATHER]]);
  });

  test('is walked through by the keyboard alone', async () => {
    const page = await visit('/marketplace');
    // Until the script is there, the key does nothing.
    await waitFor('the key to lead to the search', async () => {
      await page.keyboard.press('/');
      return (await page.evaluate('document.activeElement.id')) === 'q';
    });
    await page.keyboard.type('weather');
    await page.waitForURL('**/marketplace?q=weather');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('ArrowDown');
    const second = page.locator('[data-result]').nth(1);
    expect(await second.evaluate('document.activeElement.textContent')).toBe(await second.textContent());
    await page.keyboard.press('ArrowUp');
    await page.keyboard.press('ArrowUp');
    expect(await page.evaluate('document.activeElement.id')).toBe('q');
    await page.keyboard.press('Escape');
    await page.waitForURL('**/marketplace');
    await page.keyboard.type('snow');
    await page.waitForURL('**/marketplace?q=snow');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    await page.waitForURL(`**/marketplace/${WEATHER}`);
    expect(await page.getByRole('heading', { level: 1 }).textContent()).toContain('Acme Weather');
  });

  test('is a plain form without JavaScript, with filters and pages', async () => {
    const page = await visit('/marketplace', { javaScriptEnabled: false });
    await page.getByLabel('Search').fill('weather');
    await page.getByLabel('Package').selectOption('npm');
    await page.getByLabel('Transport').selectOption('stdio');
    await page.getByRole('button', { name: 'Search' }).click();
    expect(new URL(page.url()).search).toBe('?q=weather&registry_type=npm&transport=stdio');
    const first = await names(page);
    await page.getByRole('link', { name: 'Next page' }).click();
    const second = await names(page);
    expect([first.length, second.length, new Set([...first, ...second]).size]).toEqual([30, 30, 60]);
    expect(new URL(page.url()).searchParams.get('registry_type')).toBe('npm');
    await page.getByRole('link', { name: 'First page' }).click();
    expect(await names(page)).toEqual(first);
  });

  test('shows exactly what an install would start, under the name with its slash raw or encoded', async () => {
    for (const path of [`/marketplace/${WEATHER}`, `/marketplace/${encodeURIComponent(WEATHER)}`]) {
      const page = await visit(path);
      const text = await page.getByRole('main').innerText();
      expect(text).toContain('npx -y @acme/weather@1.3.0 --region {region}');
      for (const part of ['API_KEY', 'Secret', 'io.example.acme', 'https://weather.example.com/mcp', '1.2.2'])
        expect(text).toContain(part);
      expect(await page.getByRole('link', { name: 'Sign in to install' }).count()).toBe(1);
    }
    const older = await visit(`/marketplace/${WEATHER}?version=1.2.2`);
    expect(await older.getByRole('main').innerText()).toContain('npx -y @acme/weather@1.2.2');
  });

  test('shows what others wrote as text, marks what nobody would see, and calls nobody', async () => {
    const page = await world.openSignedOut();
    pages.push(page);
    const asked: string[] = [];
    page.on('request', (request) => asked.push(new URL(request.url()).origin));
    page.on('dialog', () => asked.push('a dialog'));
    await page.goto(`/marketplace/${encodeURIComponent(HOSTILE)}`);
    const text = await page.getByRole('main').innerText();
    for (const part of ['Pay<U+202E>gnp.exe', 'Hid<U+200B>den', '<script>alert(2)</script>', 'Deprecated'])
      expect(text).toContain(part);
    const links = await page.locator('main a').evaluateAll((all) => all.map((each) => each.getAttribute('href')));
    expect(links.filter((href) => href?.startsWith('javascript'))).toEqual([]);
    expect([...new Set(asked)]).toEqual([world.control.url]);
    const source = await visit(`/marketplace/${WEATHER}`);
    const out = source.getByRole('link', { name: 'https://github.com/acme/weather' });
    expect(await out.getAttribute('rel')).toBe('noopener noreferrer nofollow');
  });

  test('says honestly that the registry does not answer, or that there is no such entry', async () => {
    const gone = await visit('/marketplace/io.example.none/gone');
    expect(await gone.getByRole('main').innerText()).toContain('io.example.none/gone');
    await registry.stop();
    const page = await visit('/marketplace/io.example.n000007/unknown');
    await registry.start();
    expect(await page.getByRole('alert').innerText()).toContain('registry');
    expect(await page.getByRole('main').innerText()).toMatch(/Request\s+req_/);
    const bad = await visit('/marketplace?cursor=nonsense');
    expect(await bad.getByRole('alert').innerText()).toContain('cursor');
    const none = await visit('/marketplace?q=nothing-has-this-in-it');
    expect(await none.getByRole('link', { name: 'Show all servers' }).count()).toBe(1);
  });

  test('can be used by everybody, in every width and scheme', async () => {
    for (const path of [
      '/marketplace?q=weather',
      `/marketplace/${WEATHER}`,
      `/marketplace/${HOSTILE}`,
      '/marketplace?cursor=x',
    ]) {
      const page = await visit(path);
      await inEveryLook(page, async () => {
        await expectFits(page);
        await expectAccessible(page);
      });
    }
  });

  test(`no search over ${ENTRIES} entries keeps the page from answering for ${LONG_TASK_MS} ms`, async () => {
    const page = await visit('/marketplace');
    const found: number[][] = [];
    // The machine itself may stop everything for a while: what the page does, it does each time.
    for (const words of ['github data', 'weather mcp', 'agent graph']) {
      found.push(await longTasks(page, words));
    }
    expect(Math.min(...found.map((durations) => Math.max(0, ...durations)))).toBeLessThanOrEqual(LONG_TASK_MS);
  });
});

/** How long the long tasks were while this was typed and answered. */
async function longTasks(page: Page, words: string): Promise<number[]> {
  await page.getByLabel('Search').fill('');
  await page.waitForURL('**/marketplace');
  await page.evaluate(`(() => {
    globalThis.longTasks = [];
    new PerformanceObserver((list) => globalThis.longTasks.push(...list.getEntries().map((it) => it.duration))).observe({ type: 'longtask' });
  })()`);
  await page.getByLabel('Search').pressSequentially(words, { delay: 60 });
  await page.waitForURL(`**/marketplace?q=${words.replace(' ', '+')}`);
  return z.array(z.number()).parse(await page.evaluate('globalThis.longTasks'));
}

describe('the marketplace, for who is signed in', () => {
  test('stands in the console, and leads to an install', async () => {
    const page = await world.open();
    pages.push(page);
    await tabTo(page, 'Marketplace');
    await page.keyboard.press('Enter');
    await page.waitForURL('**/marketplace');
    await page.getByLabel('Search').fill('snow');
    await page.waitForURL('**/marketplace?q=snow');
    await savePicture(page, 'marketplace');
    await page.getByRole('link', { name: 'Acme Weather' }).click();
    await savePicture(page, 'marketplace_entry');
    await page.getByRole('link', { name: 'Install', exact: true }).click();
    expect(await page.getByRole('heading', { level: 1 }).textContent()).toBe('Review what is installed');
  });
});
