import type { Page } from 'playwright-core';
import { describe, expect, test } from 'vitest';
import { signInLinkReply } from '../../shared/wire/account.ts';
import { consoleSuite } from './console_suite.ts';

// Issue 22: a live page stays true while nothing happens, says when it is not, and takes no more connections than it needs.

const HOST = 'pages.example.com';
const STREAMS = '**/v1/audit-events/stream**';
const MINUTE_MS = 60_000;

let connectorId = '';
const suite = consoleSuite({
  prepare: async (world) => {
    ({ connectorId } = await world.seed());
  },
});

async function request(path: string): Promise<void> {
  const about = { 'svc.proxy.method': 'GET', 'svc.proxy.upstream.host': HOST, 'svc.proxy.upstream.path': path };
  await suite.world.record('sandbox.proxy.passthrough', about);
}

const stateOf = (page: Page) => page.locator('[data-live-of]');

/** Notes the streams of a page, and lets a test hide the page. */
const NOTED_STREAMS = `
  window.streams = [];
  const Native = window.EventSource;
  window.EventSource = class extends Native {
    constructor(url) { super(url); window.streams.push(this); }
  };
  let hidden = false;
  Object.defineProperty(document, 'hidden', { get: () => hidden });
  window.hide = (value) => { hidden = value; document.dispatchEvent(new Event('visibilitychange')); };`;

describe('a stream that is answered with an error', () => {
  test.each([500, 503, 401])('%i is asked for again, for the list and for what waits', async (status) => {
    const page = await suite.open();
    await page.route(STREAMS, (route) => route.fulfill({ status }));
    await page.goto(`/audit?host=${HOST}&q=${status}`);
    await stateOf(page).getByText('Not up to date: trying again').waitFor();
    const before = Number(await page.locator('[data-island=waiting]').getAttribute('data-count'));
    await page.unroute(STREAMS);
    await suite.world.askApproval(connectorId, `Items: delete item ${status}`);
    await stateOf(page).getByText('Live').waitFor();
    await expect.poll(() => page.title()).toMatch(new RegExp(`^\\(${before + 1}\\) `));
    await request(`/after/${status}`);
    await page.locator('#events').getByText(`GET ${HOST}/after/${status}`).waitFor();
  });

  test('says in each tab that the person is signed out, also where nothing is live', async () => {
    const leading = await suite.open();
    await leading.addInitScript(NOTED_STREAMS);
    await leading.goto('/secrets');
    await expect.poll(() => leading.evaluate('Object.keys(localStorage).join()')).toContain('svc-waiting usr_');
    const other = await leading.context().newPage();
    await other.goto('/bindings?q=a', { waitUntil: 'networkidle' });
    await leading.route(STREAMS, (route) => route.fulfill({ status: 401 }));
    await leading.evaluate(`streams[0].close(); streams[0].dispatchEvent(new Event('error'))`);
    for (const tab of [leading, other]) await tab.getByText('You are signed out').waitFor();
    expect(await other.getByRole('link', { name: 'Sign in' }).getAttribute('href')).toBe('/bindings?q=a');
    await leading.unroute(STREAMS);
    for (const tab of [leading, other]) await tab.getByText('You are signed out').waitFor({ state: 'detached' });
  });
});

describe('a browser that is signed out', () => {
  test('says so in each tab until the person has signed in again, in any of them', async () => {
    const tabs = await openTabs(2, `/audit?host=${HOST}&q=again`);
    for (const tab of tabs) await stateOf(tab).getByText('Live').waitFor();
    await tabs[0]!.context().clearCookies();
    await request('/again/1');
    for (const tab of tabs) await tab.getByText('You are signed out').waitFor();
    const third = await tabs[0]!.context().newPage();
    const { url } = signInLinkReply.parse(await suite.world.api('POST', '/v1/sign-in-links'));
    await third.goto(url);
    for (const tab of tabs) await tab.getByText('You are signed out').waitFor({ state: 'detached' });
    await request('/again/2');
    for (const tab of tabs) await tab.locator('#events').getByText(`GET ${HOST}/again/2`).waitFor();
    expect(await countStreams(tabs)).toBe(1);
  });

  test('keeps nothing of what waited', async () => {
    const page = await suite.open('/secrets');
    await suite.world.askApproval(connectorId, 'Items: delete item of-the-storage');
    const kept = () => page.evaluate('JSON.stringify(localStorage)');
    await expect.poll(kept).toContain('apr_');
    expect(await kept()).not.toContain('of-the-storage');
    await page.getByRole('button', { name: 'Sign out' }).filter({ visible: true }).click();
    await page.waitForURL('**/sign-in**');
    expect(await kept()).not.toContain('apr_');
  });
});

const openStreams = (page: Page) => page.evaluate('streams.filter(({ readyState }) => readyState !== 2).length');

/** Tabs of one browser, of which a test can count the streams and hide each. */
async function openTabs(count: number, path: string): Promise<Page[]> {
  const first = await suite.open();
  await first.context().addInitScript(NOTED_STREAMS);
  await first.goto(path);
  const others = await Promise.all(Array.from({ length: count - 1 }, () => first.context().newPage()));
  for (const tab of others) await tab.goto(path);
  return [first, ...others];
}

async function countStreams(tabs: readonly Page[]): Promise<number> {
  const counts = await Promise.all(tabs.map(openStreams));
  return counts.reduce<number>((sum, count) => sum + Number(count), 0);
}

test('eight tabs share one stream, which the next one has when its tab is closed', async () => {
  const tabs = await openTabs(8, `/audit?host=${HOST}&q=tabs`);
  for (const tab of tabs) await stateOf(tab).getByText('Live').waitFor();
  expect(await countStreams(tabs)).toBe(1);
  await request('/tabs/1');
  for (const tab of tabs) await tab.locator('#events').getByText(`GET ${HOST}/tabs/1`).waitFor();
  const [leading, ...others] = tabs;
  await leading!.close();
  await expect.poll(() => countStreams(others)).toBe(1);
  await request('/tabs/2');
  for (const tab of others) await tab.locator('#events').getByText(`GET ${HOST}/tabs/2`).waitFor();
});

/** Lets a test say when a tab asks whether the leading one is there. */
const DRIVEN_BEATS = `
  window.beats = [];
  const repeat = window.setInterval;
  window.setInterval = (act, ms) => (ms === 5000 ? window.beats.push(act) : repeat(act, ms));`;

test('a tab that leads and is stopped gives way to another one, and has no stream when it goes on', async () => {
  const tabs = await openTabs(1, `/audit?host=${HOST}&q=stopped`);
  await stateOf(tabs[0]!).getByText('Live').waitFor();
  const other = await tabs[0]!.context().newPage();
  await other.addInitScript(DRIVEN_BEATS);
  await other.goto(`/audit?host=${HOST}&q=stopped`);
  await stateOf(other).getByText('Live').waitFor();
  const debug = await tabs[0]!.context().newCDPSession(tabs[0]!);
  await debug.send('Debugger.enable');
  await debug.send('Debugger.pause');
  const beat = async () => {
    await other.evaluate('for (const beat of beats) beat()');
    return openStreams(other);
  };
  await expect.poll(beat).toBe(1);
  await request('/stopped/1');
  await other.locator('#events').getByText(`GET ${HOST}/stopped/1`).waitFor();
  await debug.send('Debugger.resume');
  await debug.send('Debugger.disable');
  await expect.poll(() => countStreams([...tabs, other])).toBe(1);
  await request('/stopped/2');
  for (const tab of [...tabs, other]) await tab.locator('#events').getByText(`GET ${HOST}/stopped/2`).waitFor();
});

test('a list of several types is live, however they are written', async () => {
  const page = await suite.open(`/audit?type=sandbox.proxy.rejected,%20sandbox.proxy.passthrough`);
  await stateOf(page).getByText('Live').waitFor();
  await request('/types');
  const shown = page.locator('#events').getByText(`GET ${HOST}/types`);
  await shown.waitFor();
  expect(await shown.count()).toBe(1);
});

test('a page that is not seen is not brought up to date until it is seen again', async () => {
  const page = await suite.open();
  await page.addInitScript(NOTED_STREAMS);
  await page.goto(`/audit?host=${HOST}&q=hidden`);
  await stateOf(page).getByText('Live').waitFor();
  await page.evaluate('hide(true)');
  await request('/hidden');
  const other = await suite.open(`/audit?host=${HOST}&q=hidden`);
  await other.locator('#events').getByText(`GET ${HOST}/hidden`).waitFor();
  expect(await page.locator('#events').getByText(`GET ${HOST}/hidden`).count()).toBe(0);
  await page.evaluate('hide(false)');
  await page.locator('#events').getByText(`GET ${HOST}/hidden`).waitFor();
  expect(await openStreams(page)).toBe(1);
});

test('a page is brought up to date each minute, without any event', async () => {
  const page = await suite.open();
  await page.clock.install();
  await page.goto('/');
  await stateOf(page).getByText('Live').waitFor();
  // On a busy machine it may pass a moment before the page can be told to stop there.
  const pause = () => page.clock.pauseAt(Date.now() + 2_000).then(String, String);
  await expect.poll(pause).toBe('undefined');
  const asked: string[] = [];
  page.on('request', (sent) => {
    if (sent.resourceType() === 'xhr') asked.push(new URL(sent.url()).pathname);
  });
  await page.clock.runFor(MINUTE_MS);
  await expect.poll(() => asked).toEqual(['/']);
  await page.clock.runFor(1_000);
  await expect.poll(async () => (await page.clock.runFor(MINUTE_MS), asked.length)).toBeGreaterThan(1);
});

test('answers are shown in their order: one is asked for at a time', async () => {
  const page = await suite.open();
  const asked: string[] = [];
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  await page.route('**/audit?host=*', async (route) => {
    if (route.request().resourceType() !== 'xhr') return route.continue();
    asked.push(route.request().url());
    await released;
    await route.continue();
  });
  await page.goto(`/audit?host=${HOST}&q=order`);
  await expect.poll(() => asked.length).toBe(1);
  const witness = await suite.open(`/audit?host=${HOST}&q=order`);
  await stateOf(witness).getByText('Live').waitFor();
  for (const path of ['/order/1', '/order/2']) {
    await request(path);
    await witness.locator('#events').getByText(`GET ${HOST}${path}`).waitFor();
  }
  expect(asked).toHaveLength(1);
  release();
  await page.locator('#events').getByText(`GET ${HOST}/order/2`).waitFor();
});

test('the focus and what is open on the overview stay while agents send requests', async () => {
  const page = await suite.open('/');
  await stateOf(page).getByText('Live').waitFor();
  await page.getByText('Show as a table').click();
  const links = [
    page.locator('.tiles a[href="/approvals"]'),
    page.locator('#why-newest'),
    page.getByText('Show as a table'),
  ];
  for (const [n, link] of links.entries()) {
    await link.focus();
    await request(`/focus/${n}`);
    await page.locator('#way').getByText(`${HOST}/focus/${n}`).waitFor();
    expect(await link.and(page.locator(':focus')).count()).toBe(1);
    expect(await page.locator('#activity details').getAttribute('open')).toBe('');
  }
});

test('the chart above the audit log is as live as the log', async () => {
  const page = await suite.open(`/audit?host=chart.example.com`);
  await stateOf(page).getByText('Live').waitFor();
  expect(await page.locator('#chart .legend').count()).toBe(0);
  await suite.world.record('sandbox.proxy.passthrough', {
    'svc.proxy.method': 'GET',
    'svc.proxy.upstream.host': 'chart.example.com',
    'svc.proxy.upstream.path': '/',
  });
  await page.locator('#chart .legend li', { hasText: 'Passed' }).getByText('1').waitFor();
});
