import type { Page } from 'playwright-core';
import { beforeAll, describe, expect, test } from 'vitest';
import { chromiumProblem } from '../support/chromium.ts';
import { consoleSuite } from './console_suite.ts';
import { expectGoodInEveryLook, PLANTED_SECRET, tabTo } from './console_world.ts';

const IMAGE = 'acme/agent\u202e:1';
const REASON = 'the client pins its certificate';

const suite = consoleSuite();

const main = (page: Page) => page.locator('main').innerText();
const card = (page: Page, ref: string) => page.getByRole('article').filter({ hasText: ref });

test('the report of an empty vault says what to do next', async () => {
  const page = await suite.open('/report', { javaScriptEnabled: false });
  expect(await main(page)).toContain('There are no credentials yet');
  expect(await main(page)).toContain('svc secret set user/demo');
  await page.getByRole('link', { name: 'Store a secret' }).click();
  await page.waitForURL('**/secrets/new');
});

describe('the report of a vault with secrets', () => {
  beforeAll(async () => {
    if (chromiumProblem() !== null) return;
    const { world } = suite;
    await world.seed();
    for (const path of ['user/stripe', 'user/db', 'user/nowhere']) {
      await world.api('POST', '/v1/secrets', { path, value: `${PLANTED_SECRET}-${path}` });
    }
    await world.record('sandbox.proxy.credential_unsealed', {
      'svc.proxy.credential_ref': 'vault://user/stripe',
      'svc.proxy.upstream.host': 'api.stripe.com',
      'svc.proxy.reason': REASON,
      'svc.sandbox.image': IMAGE,
    });
    await world.record('sandbox.proxy.credential_unsealed', {
      'svc.proxy.credential_ref': 'vault://user/db',
      'svc.proxy.upstream.host': 'items.example.com',
      'svc.proxy.reason': 'not HTTP',
    });
  });

  test('is linked from the navigation and, if a credential was released, from the overview', async () => {
    const page = await suite.open();
    expect(await main(page)).toContain('2 credentials were released');
    await page.getByRole('link', { name: 'See where it was used' }).click();
    await page.waitForURL('**/report');
    await tabTo(page, 'Exposure');
    expect(await page.locator('nav a[aria-current=page]:visible').innerText()).toContain('Exposure');
  });

  test('says which credentials were released, when, to which session and image, for which host, and why', async () => {
    const page = await suite.open('/report', { javaScriptEnabled: false });
    const words = await card(page, 'vault://user/stripe').innerText();
    for (const part of ['Exposed', 'the session claude', 'api.stripe.com', REASON, 'acme/agent<U+202E>:1']) {
      expect(words).toContain(part);
    }
    expect(await page.locator('main').getByRole('article').count()).toBe(3);
    expect(await page.content()).not.toContain(PLANTED_SECRET);
    await card(page, 'vault://user/stripe').getByRole('link', { name: 'claude' }).click();
    await page.waitForURL('**/audit/sessions/ses_demo');
  });

  test('says what is sealed, and by which binding or connector', async () => {
    const page = await suite.open('/report', { javaScriptEnabled: false });
    const sealed = page.getByRole('table', { name: 'Sealed credentials' });
    expect(await sealed.locator('tbody tr').count()).toBe(2);
    expect(await sealed.innerText()).toMatch(/connector it was stored for/);
    await sealed.getByRole('link', { name: 'api.github.com' }).click();
    await page.waitForURL('**/bindings/bnd_*');
  });

  test('links to a filled-in form of the binding that seals one; the next report lists it as sealed', async () => {
    const page = await suite.open('/report', { javaScriptEnabled: false });
    await card(page, 'vault://user/stripe').getByRole('link', { name: 'A binding by the template' }).click();
    expect(await page.getByLabel('Host', { exact: true }).inputValue()).toBe('api.stripe.com');
    expect(await page.getByRole('combobox', { name: 'Credential' }).inputValue()).toBe('vault://user/stripe');
    await page.getByRole('button', { name: 'Bind' }).click();
    await page.waitForURL('**/bindings?done=binding_created');
    await page.goto('/report');
    // The value that left is still the one that is stored.
    expect(await card(page, 'vault://user/stripe').innerText()).toContain('It is also bound to api.stripe.com');
    await card(page, 'vault://user/stripe').getByRole('link', { name: 'A new value' }).click();
    await page.getByLabel('Value').fill(`${PLANTED_SECRET}-new`);
    await page.getByRole('button', { name: 'Store' }).click();
    await page.waitForURL('**/secrets?done=secret_stored');
    await page.goto('/report');
    expect(await card(page, 'vault://user/stripe').count()).toBe(0);
    expect(await page.getByRole('table', { name: 'Sealed credentials' }).innerText()).toContain('vault://user/stripe');
    // What was, stays told.
    expect(await page.getByRole('table', { name: 'Exposures' }).innerText()).toContain('api.stripe.com');
  });

  test('axe finds nothing and nothing overflows, at every width and colour scheme', async () => {
    const page = await suite.open('/report');
    expect(await page.locator('h1').count()).toBe(1);
    await expectGoodInEveryLook(page);
  });
});
