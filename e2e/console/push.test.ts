import type { CDPSession, Page } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { type BrowserWorld, startBrowserWorld } from '../sign_in/browser_world.ts';
import { chromiumProblem } from '../support/chromium.ts';
import { HANGS_MS } from '../support/hangs.ts';

// The button on the account page, the service worker under the page's policy, and what the worker shows. There is no push service
// here: the browser's part of a subscription is given, and messages are delivered by the DevTools protocol.

const MISSING = chromiumProblem();
/** Stands for what a push service gives (the example of RFC 8291). */
const GIVEN = {
  endpoint: 'https://push.example.com/send/1',
  keys: {
    p256dh: 'BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4',
    auth: 'BTBZMqHH6r4Tts7J_aSIgg',
  },
};
let world: BrowserWorld;

beforeAll(async () => {
  if (MISSING === null) world = await startBrowserWorld();
});
afterAll(() => world?.stop());
beforeEach(({ skip }) => {
  if (MISSING !== null) skip(MISSING);
});

/** A script of the page that stands in for the browser's connection to its push service. */
function pushServiceOf(given: object): string {
  return `PushManager.prototype.getSubscription = async () => null;
    PushManager.prototype.subscribe = async ({ userVisibleOnly }) => {
      if (userVisibleOnly !== true) throw new Error('not for a person');
      return { toJSON: () => (${JSON.stringify(given)}) };
    };`;
}

async function openAccount(): Promise<Page> {
  world.openId.person = { sub: 'alice', email: 'alice@acme.test', email_verified: true, name: 'alice' };
  const context = await world.chromium.newContext({ baseURL: world.origin, permissions: ['notifications'] });
  context.setDefaultTimeout(HANGS_MS);
  const page = await context.newPage();
  await page.addInitScript({ content: pushServiceOf(GIVEN) });
  await page.goto('/');
  await page.getByRole('link', { name: 'Continue with Single sign-on' }).click();
  await page.locator('main').getByText('Signed in as alice').waitFor();
  await page.goto('/account');
  return page;
}

/** Delivers messages to the worker of a page. */
async function startDelivery(page: Page): Promise<(message: unknown) => Promise<void>> {
  const devtools: CDPSession = await page.context().newCDPSession(page);
  const registered = new Promise<string>((resolve) => {
    devtools.on('ServiceWorker.workerRegistrationUpdated', ({ registrations }) => {
      const [first] = registrations;
      if (first !== undefined) resolve(first.registrationId);
    });
  });
  await devtools.send('ServiceWorker.enable');
  const registrationId = await registered;
  return async (message) => {
    const data = typeof message === 'string' ? message : JSON.stringify(message);
    await devtools.send('ServiceWorker.deliverPushMessage', { origin: world.origin, registrationId, data });
  };
}

/** Records what the worker shows: a browser without a screen keeps no notifications. */
const RECORD = `self.shown = [];
  self.registration.showNotification = async (title, { tag, data }) => void self.shown.push({ title, tag, data });`;

async function recordShown(page: Page): Promise<() => Promise<unknown>> {
  const context = page.context();
  const worker = context.serviceWorkers()[0] ?? (await context.waitForEvent('serviceworker'));
  await worker.evaluate(RECORD);
  return () => worker.evaluate('self.shown');
}

test(
  'a browser subscribes by the button, and its worker shows a request and opens no other page',
  { timeout: HANGS_MS * 2 },
  async () => {
    const page = await openAccount();
    await page.getByRole('button', { name: 'Notify me in this browser' }).click();
    await page.waitForURL('**/account?done=push_on');
    await page.getByText('push.example.com').waitFor();
    const deliver = await startDelivery(page);
    const shown = await recordShown(page);

    await deliver({ title: 'A request needs an approval', path: '/approvals/apr_1', tag: 'apr_1' });
    const first = { title: 'A request needs an approval', tag: 'apr_1', data: '/approvals/apr_1' };
    await expect.poll(() => shown(), { timeout: HANGS_MS }).toEqual([first]);

    await deliver({ title: 'Another', path: 'https://evil.test/approvals/apr_1', tag: 'apr_2' });
    await deliver('not JSON');
    await expect
      .poll(() => shown(), { timeout: HANGS_MS })
      .toEqual(
        expect.arrayContaining([
          { title: 'Another', tag: 'apr_2', data: '/approvals' },
          { title: 'svc has a message', tag: 'svc', data: '/approvals' },
        ]),
      );

    await page.getByRole('button', { name: /^Turn off/ }).click();
    await page.waitForURL('**/account?done=push_off');
    expect(await page.locator('main').innerText()).not.toContain('push.example.com');
    await page.context().close();
  },
);
