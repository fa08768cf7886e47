import type { BrowserContextOptions, Page } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type BrowserWorld, startBrowserWorld } from '../sign_in/browser_world.ts';
import { chromiumProblem } from '../support/chromium.ts';
import { takes } from './console_forms.ts';
import { SIGN_IN_FORMS } from './hosted_forms.ts';
import { PageWalk } from './page_walk.ts';
import { HANGS_MS } from '../support/hangs.ts';

const MISSING = chromiumProblem();
const PASSWORD = 'correct horse battery';
let world: BrowserWorld;

beforeAll(async () => {
  if (MISSING === null) world = await startBrowserWorld();
});
afterAll(() => world?.stop());
beforeEach(({ skip }) => {
  if (MISSING !== null) skip(MISSING);
});

async function open(options: BrowserContextOptions = {}): Promise<Page> {
  const context = await world.chromium.newContext({ baseURL: world.origin, reducedMotion: 'reduce', ...options });
  context.setDefaultTimeout(HANGS_MS);
  return context.newPage();
}

const press = (page: Page, name: string | RegExp) =>
  page.getByRole('button', { name }).filter({ visible: true }).first().click();

const pass = async () => undefined;

/** Signs up with an address of one's own; `look` is asked at each page on the way. */
async function signUp(page: Page, email: string, look: (name: string) => Promise<void>): Promise<void> {
  await page.goto('/sign-up');
  await look('the form');
  await page.getByLabel('Email').fill(email);
  await page.getByLabel('Name, for a new account').fill('Pat');
  await page.getByLabel('Password, 12 characters or more').fill(PASSWORD);
  await press(page, 'Send the code');
  await page.getByLabel('Code').waitFor();
  await look('the code');
  await page.getByLabel('Code').fill(world.codeFor(email));
  await press(page, 'Sign in');
  await page.waitForURL(`${world.origin}/`);
}

/** Adds a way to sign in at the code host, as its user of this address. */
async function addCodeHost(page: Page, email: string, look: (name: string) => Promise<void>): Promise<void> {
  world.codeHost.user = { id: email.length, login: 'pat', name: 'Pat', email };
  world.codeHost.emails = [{ email, primary: true, verified: true }];
  await page.goto('/identities');
  await look('the ways');
  await press(page, 'Add Code hosting');
  await look('the way there');
  await page.getByRole('link', { name: 'Continue to Code hosting' }).click();
  await page.getByRole('link', { name: 'Authorize' }).click();
  await page.getByRole('button', { name: 'Add it' }).waitFor();
  await look('the question');
  await press(page, 'Add it');
  await page.waitForURL('**/identities');
  await look('both ways');
}

describe('the pages of a sign-in', () => {
  test('are accessible', async () => {
    const page = await open();
    const walk = await PageWalk.in(page, world.origin);
    const found: Record<string, readonly string[]> = {};
    const look = async (name: string) => {
      found[name] = await walk.look();
    };
    await page.goto('/sign-in');
    await look('sign-in');
    await signUp(page, 'pat@beta.test', look);
    await addCodeHost(page, 'pat@home.test', look);
    expect(found).toEqual(Object.fromEntries(Object.keys(found).map((name) => [name, []])));
    expect(Object.keys(found)).toHaveLength(7);
  });

  test('work without scripts, in every form', async () => {
    const page = await open({ javaScriptEnabled: false });
    const sent: string[] = [];
    page.on('request', (request) => {
      if (request.method() === 'POST') sent.push(new URL(request.url()).pathname);
    });
    await signUp(page, 'sam@gamma.test', pass);
    await press(page, 'Sign out');
    await page.goto('/sign-in');
    await page.getByLabel('Email').first().fill('sam@gamma.test');
    await page.getByLabel('Password').fill(PASSWORD);
    await press(page, 'Sign in');
    await page.waitForURL(`${world.origin}/`);
    await addCodeHost(page, 'sam@other.test', pass);
    await press(page, /^Remove .*sam@other\.test/);
    await page.getByText('sam@other.test').first().waitFor({ state: 'detached' });
    for (const route of SIGN_IN_FORMS) expect([route, sent.some((path) => takes(route, path))]).toEqual([route, true]);
  });
});
