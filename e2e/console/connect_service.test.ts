import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, expect, it, vi } from 'vitest';
import { APPROVAL_HOLD_SECONDS, approvalsPage } from '../../shared/wire/approvals.ts';
import { chromiumProblem, startChromium } from '../support/chromium.ts';
import { HANGS_MS } from '../support/hangs.ts';
import { foundIn, plantSecret, searchFiles } from '../support/planted_secret.ts';
import { reply } from '../support/tls_upstream.ts';
import { waitFor } from '../support/wait_for.ts';
import { startWorld, type World } from '../support/world.ts';
import { tabTo } from './console_world.ts';

// Issue 22: from nothing to a sealed call of GitHub without a terminal. GitHub is a stand-in with its host's name.

const TOKEN = plantSecret();
const MISSING = chromiumProblem();
const HELD_MS = APPROVAL_HOLD_SECONDS * 1000;

let world: World;
let browser: Browser;
beforeAll(async () => {
  if (MISSING !== null) return;
  world = await startWorld(['api.github.com']);
  world.upstream.onRequest(async (exchange) => {
    await exchange.readBody();
    exchange.write(reply(200, '{"login":"octocat"}', ['Content-Type: application/json']));
  });
  browser = await startChromium();
});
afterAll(async () => {
  await browser?.close();
  await world?.stop();
});
beforeEach(({ skip }) => {
  if (MISSING !== null) skip(MISSING);
});

async function signIn(options: { readonly javaScriptEnabled?: boolean; readonly width?: number }): Promise<Page> {
  const { width = 1440, ...others } = options;
  const context = await browser.newContext({ viewport: { width, height: 900 }, reducedMotion: 'reduce', ...others });
  const page = await context.newPage();
  page.setDefaultTimeout(HANGS_MS);
  await page.goto((await world.svc.ok(['console'])).trim());
  return page;
}

it('GitHub is found, its token pasted and a test call made, without a terminal', async () => {
  await waitFor('the link', () => /\/auth\/link\/\S+/.test(world.svc.output));
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, reducedMotion: 'reduce' });
  const page = await context.newPage();
  page.setDefaultTimeout(HANGS_MS);
  const began = Date.now();
  await page.goto(/http:\S+\/auth\/link\/[\w-]+/.exec(world.svc.output)?.[0] ?? '');
  await page.getByRole('navigation').getByRole('link', { name: 'Services', exact: true }).first().click();
  await page.getByLabel('Search').fill('GitHub');
  await page.getByRole('link', { name: 'GitHub', exact: true }).click();
  expect(await page.getByRole('radio', { name: 'Listed operations only' }).isChecked()).toBe(true);
  await page.getByLabel('personal access token').fill(TOKEN);
  await page.getByRole('button', { name: 'Connect GitHub' }).click();
  await page.getByRole('button', { name: 'Make a test call' }).click();
  await page.getByText('It works.').waitFor();
  const tookMs = Date.now() - began;
  process.stdout.write(`from the link to a sealed call: ${tookMs} ms\n`);
  expect(world.upstream.last().headers('authorization')).toEqual([`Bearer ${TOKEN}`]);
  expect(foundIn(await page.content(), TOKEN)).toEqual([]);
  await context.close();
});

it('an agent uses it from then on: listed operations with the credential, others without', async () => {
  expect(await world.svc.ok(['run', '--', 'curl', '-sS', 'https://api.github.com/user'])).toContain('octocat');
  expect(world.upstream.last().headers('authorization')).toEqual([`Bearer ${TOKEN}`]);
  await world.svc.ok(['run', '--', 'curl', '-sS', 'https://api.github.com/not/listed']);
  expect(world.upstream.last().headers('authorization')).toEqual([]);
  // A connector is a whole set-up: the first page asks for no more steps.
  const page = await signIn({});
  await page.getByRole('list', { name: 'The newest request' }).getByText('api.github.com/not/listed').waitFor();
  expect(await page.locator('main').innerText()).not.toContain('Seal your first credential');
  await page.context().close();
});

/** The machine itself may stall for longer than a request is held. */
const ATTEMPTS = 3;

/** Approves what an agent asks for once. Returns what the agent got: nothing if the approval came after the request was given up. */
async function approveOnce(page: Page, pull: number): Promise<string> {
  await page.goto(new URL('/secrets', page.url()).href);
  const merge = `https://api.github.com/repos/acme/app/pulls/${pull}/merge`;
  const agent = world.svc.cli(['run', '--', 'curl', '-sS', '--fail', '-X', 'PUT', merge]);
  await vi.waitUntil(async () => (await page.title()).startsWith('('), { timeout: HANGS_MS });
  await page.getByRole('navigation').getByRole('link', { name: 'Approvals' }).first().click();
  // Also of a request that was given up meanwhile: then this attempt is over.
  const card = page.locator('.card').filter({ hasText: `"${pull}"` });
  const approve = card.getByRole('button', { name: 'Approve' });
  await page.locator('[data-live-of=approvals]').getByText('Live').waitFor();
  // A button does nothing before it could be seen.
  const begun = Number(await page.evaluate('performance.now()'));
  await vi.waitUntil(async () => Number(await page.evaluate('performance.now()')) > begun + 600, { timeout: HANGS_MS });
  await approve.click();
  const { code, stdout } = await agent;
  return code === 0 ? stdout : '';
}

it('a held request is seen and approved from another window, in time for the agent that waits', async () => {
  const page = await signIn({});
  let got = '';
  for (let pull = 1; pull <= ATTEMPTS && got === ''; pull += 1) got = await approveOnce(page, pull);
  expect(got).toContain('octocat');
  expect(world.upstream.last().headers('authorization')).toEqual([`Bearer ${TOKEN}`]);
  const { items } = approvalsPage.parse(JSON.parse(await world.svc.ok(['api', 'GET', '/v1/approvals'])));
  const [approval] = items;
  const tookMs = Date.parse(approval?.decided_at ?? '') - Date.parse(approval?.requested_at ?? '');
  process.stdout.write(`from the request to its approval in another window: ${tookMs} ms\n`);
  expect(approval?.state).toBe('used');
  expect(tookMs).toBeLessThan(HELD_MS);
  await page.context().close();
});

it('works without scripts on a phone, and says what a second token would replace', async () => {
  const page = await signIn({ javaScriptEnabled: false, width: 390 });
  await page.goto(new URL('/services?q=github', page.url()).href);
  await page.getByRole('link', { name: 'GitHub', exact: true }).click();
  await page.getByLabel('personal access token').fill(TOKEN);
  await page.getByRole('button', { name: 'Connect GitHub' }).click();
  expect(await page.locator('#token-problem').innerText()).toContain('would replace the stored credential');
  await page.getByLabel('personal access token').fill(TOKEN);
  await page.getByLabel('Replace the stored credential').check();
  await page.getByRole('button', { name: 'Connect GitHub' }).click();
  await page.waitForURL('**/services/github?done=service_connected');
  await page.getByRole('button', { name: 'Make a test call' }).click();
  expect(await page.locator('main').innerText()).toContain('It works.');
  await page.context().close();
});

it('works by keyboard alone', async () => {
  const page = await signIn({});
  await page.goto(new URL('/services/github', page.url()).href);
  await tabTo(page, 'Make a test call');
  await page.keyboard.press('Enter');
  await page.getByText('It works.').waitFor();
  expect(world.upstream.last().headers('authorization')).toEqual([`Bearer ${TOKEN}`]);
  await page.context().close();
});

it("the token is in no file and in nothing of svc's output", () => {
  expect(foundIn(world.svc.output, TOKEN)).toEqual([]);
  expect(searchFiles(world.svc.home, TOKEN).holding).toEqual([]);
});
