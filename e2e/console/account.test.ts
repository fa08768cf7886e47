import type { Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { sidecarsPage } from '../../shared/wire/sidecars.ts';
import { PERSONAL_TOKEN_PREFIX } from '../../shared/wire/tokens.ts';
import { chromiumProblem } from '../support/chromium.ts';
import { ConsoleWorld, expectAccessible, expectFits, inEveryLook, savePicture, tabTo } from './console_world.ts';

const MISSING = chromiumProblem();
const made = z.object({ id: z.string(), token: z.string() });

let world: ConsoleWorld;
let token: z.infer<typeof made>;
let sidecar: { readonly id: string; readonly name: string };
let pages: Page[] = [];

beforeAll(async () => {
  if (MISSING !== null) return;
  world = await ConsoleWorld.start();
  await world.sidecar.enrol(world.control.localKey);
  const [enrolled] = sidecarsPage.parse(await world.api('GET', '/v1/sidecars')).items;
  sidecar = enrolled!;
  const input = { name: 'ci', scopes: ['secrets:read', 'audit-events:read'] };
  token = made.parse(await world.api('POST', '/v1/tokens', input));
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

const PATHS: Readonly<Record<string, () => string>> = {
  account: () => '/account',
  token_new: () => '/account/tokens/new',
  token_revocation: () => `/account/tokens/${token.id}/revoke`,
  sidecars: () => '/sidecars',
  sidecar_revocation: () => `/sidecars/${sidecar.id}/revoke`,
};

test.each(Object.keys(PATHS))('%s: axe finds nothing and nothing overflows, in every look', async (name) => {
  const page = await open();
  await page.goto(PATHS[name]!());
  expect(await page.locator('h1').count()).toBe(1);
  await inEveryLook(page, async ({ width, colorScheme }) => {
    if ((width === 360) === (colorScheme === 'dark')) await expectAccessible(page);
    await expectFits(page);
    await savePicture(page, `${name}_${colorScheme}_${width}`);
  });
  expect(await page.content()).not.toContain(token.token);
});

test.each(['/sidecars/sdc_nothing/revoke', '/account/tokens/tok_nothing/revoke', '/account/sign-ins/bse_nothing/end'])(
  'what is not the caller’s own is not there: %s',
  async (path) => {
    const page = await open();
    expect((await page.goto(path))?.status()).toBe(404);
  },
);

test('by keyboard alone: a token is made, shown once, and revoked by its name', async () => {
  const page = await open();
  await page.goto('/account/tokens/new');
  await tabTo(page, 'Name');
  await page.keyboard.type('keyboard');
  await tabTo(page, 'secrets:read');
  await page.keyboard.press('Space');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Copy the token now' }).waitFor();
  const text = await page.locator('.code code').first().innerText();
  expect(text.startsWith(PERSONAL_TOKEN_PREFIX)).toBe(true);
  const call = () => fetch(`${world.control.url}/v1/secrets`, { headers: { authorization: `Bearer ${text}` } });
  expect((await call()).status).toBe(200);
  await tabTo(page, 'I have it');
  await page.keyboard.press('Enter');
  await page.waitForURL('**/account');
  expect(await page.content()).not.toContain(text);
  await tabTo(page, 'Revoke keyboard');
  await page.keyboard.press('Enter');
  await page.waitForURL('**/revoke');
  await tabTo(page, 'Type keyboard to confirm');
  await page.keyboard.type('keyboard');
  await page.keyboard.press('Enter');
  await page.waitForURL('**/account?done=token_revoked');
  expect((await call()).status).toBe(401);
});

describe('without JavaScript', () => {
  const withoutScripts = { javaScriptEnabled: false };

  test('a token for nothing is refused beside the field, and what was typed stays', async () => {
    const page = await open(withoutScripts);
    await page.goto('/account/tokens/new');
    await page.getByLabel('Name').fill('nothing');
    await page.getByLabel('Days until it ends').fill('999');
    await page.getByRole('button', { name: 'Make it' }).click();
    expect(await page.locator('#scopes-problem').innerText()).toContain('at least one scope');
    expect(await page.locator('#expires_in_days-problem').count()).toBe(1);
    expect(await page.getByLabel('Name').inputValue()).toBe('nothing');
  });

  test('a browser is signed out by another, with its next call', async () => {
    const [page, other] = [await open(withoutScripts), await open({ userAgent: 'Browser of a test/1.0' })];
    await page.goto('/account');
    await page.getByRole('link', { name: 'Sign out the browser Browser of a test/1.0' }).click();
    await page.getByRole('button', { name: 'Sign it out' }).click();
    await page.waitForURL('**/account?done=signed_out');
    expect((await other.goto('/account'))?.status()).toBe(401);
  });

  test('a sidecar is revoked by its name', async () => {
    const page = await open(withoutScripts);
    await page.goto('/sidecars');
    await page.getByRole('link', { name: `Revoke ${sidecar.name}` }).click();
    await page.getByLabel(`Type ${sidecar.name} to confirm`).fill('another');
    await page.getByRole('button', { name: 'Revoke it' }).click();
    expect(await page.locator('#confirm-problem').innerText()).toContain('nothing was revoked');
    await page.getByLabel(`Type ${sidecar.name} to confirm`).fill(sidecar.name);
    await page.getByRole('button', { name: 'Revoke it' }).click();
    await page.waitForURL('**/sidecars?done=sidecar_revoked');
    expect(await page.locator('table').innerText()).toContain('revoked');
  });
});
