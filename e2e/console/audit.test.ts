import type { Page } from 'playwright-core';
import { expect, onTestFinished, test } from 'vitest';
import { runCli, TestHome } from '../../cli/testing/run_cli.ts';
import { consoleSuite } from './console_suite.ts';
import { expectFits, expectGoodInEveryLook, tabTo } from './console_world.ts';
import { spreadRequests } from './spread_requests.ts';

// The audit log's chart, and the page of one event.

let eventId: string;

const suite = consoleSuite({
  prepare: async (world) => {
    ({ eventId } = await world.seed());
    await spreadRequests(world.sidecar, Date.now());
  },
});

const bars = (page: Page) => page.locator('.chart svg a');

test('a day of requests is a chart whose bars link to their events, without JavaScript too', async () => {
  const page = await suite.open('/audit?type=sandbox.proxy.', { javaScriptEnabled: false });
  expect(await bars(page).count()).toBeGreaterThan(20);
  expect(await page.locator('.chart').innerText()).toContain('Each bar is 30 minutes');
  const words = (await bars(page).nth(3).getAttribute('aria-label')) ?? '';
  await bars(page).nth(3).click();
  await page.waitForURL('**/audit?*since=*');
  const { searchParams } = new URL(page.url());
  expect(searchParams.get('type')).toBe('sandbox.proxy.');
  const minutes = (Date.parse(searchParams.get('until') ?? '') - Date.parse(searchParams.get('since') ?? '')) / 60_000;
  expect(minutes).toBe(30);
  const counted = Array.from(words.matchAll(/ (\d+)(?:,|$)/g), ([, count]) => Number(count));
  const sum = counted.reduce((all, count) => all + count, 0);
  expect(await page.locator('#events tbody tr').count()).toBe(sum);
  await page.getByRole('link', { name: 'The last day' }).click();
  await page.waitForURL('**/audit?type=sandbox.proxy.');
});

test('by keyboard alone: a bar and its table row can be reached', async () => {
  const page = await suite.open('/audit');
  await tabTo(page, 'credential added');
  await page.keyboard.press('Enter');
  await page.waitForURL('**/audit?since=*');
  expect(await page.locator('#events tbody tr').count()).toBeGreaterThan(0);
  await page.goto('/audit');
  await tabTo(page, 'Show as a table');
  await page.keyboard.press('Enter');
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  await page.waitForURL('**/audit?since=*');
});

test('times are in UTC, or by a switch in those of the machine, also in what the form sends', async () => {
  const page = await suite.open('/audit?since=2026-01-01T12:00:30Z', { timezoneId: 'Asia/Tokyo' });
  const from = page.locator('#since');
  expect(await from.inputValue()).toBe('2026-01-01T12:00:30');
  await page.getByRole('button', { name: 'Local times' }).click();
  expect(await from.inputValue()).toBe('2026-01-01T21:00:30');
  await from.fill('2026-01-01T22:00:30');
  await page.getByRole('button', { name: 'Show', exact: true }).click();
  await page.waitForURL('**since=2026-01-01T13*');
  // The choice stays.
  expect(await page.getByLabel('From (local)').inputValue()).toBe('2026-01-01T22:00:30');
  await page.getByRole('button', { name: 'Local times' }).click();
  expect(await from.inputValue()).toBe('2026-01-01T13:00:30');
});

test('the chart and its table: axe finds nothing and nothing overflows, at every width and colour scheme', async () => {
  const page = await suite.open();
  // One host of several: axe looks at each row for as long as at all the rest.
  await page.goto('/audit?host=maps.googleapis.com');
  await page.locator('.chart summary').click();
  await expectGoodInEveryLook(page);
});

test('the log with proof that the browser downloads verifies, without JavaScript too', async () => {
  const page = await suite.open('/audit', { javaScriptEnabled: false });
  const link = page.getByRole('link', { name: 'Everything with proof' });
  const [download] = await Promise.all([page.waitForEvent('download'), link.click()]);
  expect(download.suggestedFilename()).toBe('audit-with-proof.ndjson');
  const home = new TestHome();
  onTestFinished(() => home.remove());
  const checked = await runCli(home, ['audit', 'verify', '--file', await download.path(), '--json']);
  expect([checked.code, JSON.parse(checked.stdout)]).toMatchObject([0, { ok: true, first_break: null }]);
  expect(JSON.parse(checked.stdout).events).toBeGreaterThan(50);
});

test('an event says why, and that its place in the chain is verified', async () => {
  const page = await suite.open(`/audit/${eventId}`);
  const words = await page.locator('main').innerText();
  expect(words).toContain('It matched the host binding for api.github.com.');
  expect(words).toContain('Verified here');
  expect(words).toContain('The event after it refers to it.');
  await expectFits(page);
});
