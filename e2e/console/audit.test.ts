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
  const localTimes = page.locator('.side').getByRole('button', { name: 'Local times' });
  await localTimes.click();
  expect(await from.inputValue()).toBe('2026-01-01T21:00:30');
  await from.fill('2026-01-01T22:00:30');
  await page.getByRole('button', { name: 'Show', exact: true }).click();
  await page.waitForURL('**since=2026-01-01T13*');
  // The choice stays.
  expect(await page.getByLabel('From (local)').inputValue()).toBe('2026-01-01T22:00:30');
  await localTimes.click();
  expect(await from.inputValue()).toBe('2026-01-01T13:00:30');
});

test('a browser that puts back what a field showed before a reload does not shift its time', async () => {
  const page = await suite.open('/audit', { timezoneId: 'Asia/Tokyo' });
  await page.locator('.side').getByRole('button', { name: 'Local times' }).click();
  // As Firefox does: as soon as the field is there, and before any script of the page runs.
  await page.addInitScript(`new MutationObserver((_, observer) => {
    const field = document.querySelector('#since');
    if (field === null) return;
    field.value = '2026-01-01T21:00:30';
    observer.disconnect();
  }).observe(document, { childList: true, subtree: true })`);
  await page.goto('/audit?since=2026-01-01T12:00:30Z');
  await page.getByLabel('From (local)').waitFor();
  expect(await page.locator('#since').inputValue()).toBe('2026-01-01T21:00:30');
});

test('every time of a page follows the switch, and the next pages too', async () => {
  const page = await suite.open('/audit', { timezoneId: 'Asia/Tokyo' });
  const bar = bars(page).first();
  const [, utc = ''] = /^([\d-]+ [\d:]+) UTC to /.exec((await bar.getAttribute('aria-label')) ?? '') ?? [];
  const local = new Date(Date.parse(`${utc.replace(' ', 'T')}Z`) + 9 * 3_600_000)
    .toISOString()
    .slice(0, 19)
    .replace('T', ' ');
  await page.locator('.side').getByRole('button', { name: 'Local times' }).click();
  expect(await bar.getAttribute('aria-label')).toContain(`${local} local to `);
  expect(await bar.locator('title').textContent()).toContain(`${local} local to `);
  expect(await page.locator('.chart').innerText()).toContain('Times are in local time.');
  const today = new URL(
    (await page.getByRole('link', { name: 'Refused today' }).getAttribute('href')) ?? '',
    page.url(),
  );
  expect(today.searchParams.get('since')).toMatch(/T15:00:00$/);
  await page.goto(`/audit/${eventId}`);
  await page.getByText(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d local$/).waitFor();
  await page.locator('.side').getByRole('button', { name: 'Local times' }).click();
  await page.getByText(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC$/).waitFor();
});

const period = (page: Page) => {
  const { searchParams } = new URL(page.url());
  return (Date.parse(searchParams.get('until') ?? '') - Date.parse(searchParams.get('since') ?? '')) / 60_000;
};

/** Opens a live page whose list and chart have been brought up to date since. */
async function openLive(path: string, page?: Page): Promise<Page> {
  const opened = page ?? (await suite.open());
  await opened.goto(path);
  await opened.locator('[data-live-of=events]').getByText('Live').waitFor();
  const upstream = { 'svc.proxy.method': 'GET', 'svc.proxy.upstream.host': 'live.example.com' };
  const target = `/at/${path.length}`;
  await suite.world.record('sandbox.proxy.passthrough', { ...upstream, 'svc.proxy.upstream.path': target });
  await opened.locator('#events').getByText(`GET live.example.com${target}`).first().waitFor();
  return opened;
}

test('dragging over bars of a live chart chooses their period, and so do the arrow keys with Shift', async () => {
  const page = await openLive('/audit?type=sandbox.proxy.');
  await page.getByText('Drag over the bars to choose a period').waitFor();
  const box = (await page.locator('.chart svg').boundingBox()) ?? { x: 0, y: 0, width: 0, height: 0 };
  const bar = box.width / Number(await page.locator('figure.chart').getAttribute('data-count'));
  await page.mouse.move(box.x + 10.5 * bar, box.y + 20);
  await page.mouse.down();
  await page.mouse.move(box.x + 13.5 * bar, box.y + 40);
  await page.getByRole('status').getByText('From ').waitFor();
  expect(Number(await page.locator('.chart .chosen').getAttribute('width'))).toBeGreaterThan(0);
  await page.mouse.up();
  await page.waitForURL('**/audit?type=sandbox.proxy.&since=*');
  expect(period(page)).toBe(4 * 30);
  await openLive('/audit', page);
  await tabTo(page, 'credential added');
  await page.keyboard.press('Shift+ArrowLeft');
  await page.keyboard.press('Shift+ArrowLeft');
  await page.getByText(': Enter shows it.').waitFor();
  await page.keyboard.press('Enter');
  await page.waitForURL('**/audit?since=*');
  expect(period(page)).toBeGreaterThanOrEqual(60);
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
  expect(words).toContain('It matched the binding for api.github.com.');
  expect(words).toContain('Verified here');
  expect(words).toContain('The event after it refers to it.');
  await expectFits(page);
});
