import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { sidecarsPage } from '../../shared/wire/sidecars.ts';
import { PERSONAL_TOKEN_PREFIX } from '../../shared/wire/tokens.ts';
import { consoleSuite } from './console_suite.ts';
import { tabTo } from './console_world.ts';

const made = z.object({ token: z.string() });

let token: string;
let sidecar: { readonly id: string; readonly name: string };
const suite = consoleSuite({
  prepare: async (world) => {
    await world.sidecar.enrol(world.control.localKey);
    const [enrolled] = sidecarsPage.parse(await world.api('GET', '/v1/sidecars')).items;
    sidecar = enrolled!;
    const input = { name: 'ci', scopes: ['secrets:read', 'audit-events:read'] };
    ({ token } = made.parse(await world.api('POST', '/v1/tokens', input)));
  },
});

test('no page shows a token that was created earlier', async () => {
  const page = await suite.open('/account');
  expect(await page.locator('main').innerText()).toContain('ci');
  expect(await page.content()).not.toContain(token);
});

test.each(['/sidecars/sdc_nothing/revoke', '/account/tokens/tok_nothing/revoke', '/account/sign-ins/bse_nothing/end'])(
  'what belongs to another user is not found: %s',
  async (path) => {
    const page = await suite.open();
    expect((await page.goto(path))?.status()).toBe(404);
  },
);

test('by keyboard alone: a token is made, shown once, and revoked by its name', async () => {
  const page = await suite.open('/account/tokens/new');
  await tabTo(page, 'Name');
  await page.keyboard.type('keyboard');
  await tabTo(page, 'secrets:read');
  await page.keyboard.press('Space');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Copy the token now' }).waitFor();
  const text = await page.locator('.code code').first().innerText();
  expect(text.startsWith(PERSONAL_TOKEN_PREFIX)).toBe(true);
  const call = () => fetch(`${suite.world.control.url}/v1/secrets`, { headers: { authorization: `Bearer ${text}` } });
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

  test('a token without a scope is refused beside the field, and the input stays', async () => {
    const page = await suite.open('/account/tokens/new', withoutScripts);
    await page.getByLabel('Name').fill('nothing');
    await page.getByLabel('Days until it expires').fill('999');
    await page.getByRole('button', { name: 'Create' }).click();
    expect(await page.locator('#scopes-problem').innerText()).toContain('at least one scope');
    expect(await page.locator('#expires_in_days-problem').count()).toBe(1);
    expect(await page.getByLabel('Name').inputValue()).toBe('nothing');
  });

  test('one browser signs out another, which takes effect with its next call', async () => {
    const [page, other] = [
      await suite.open(null, withoutScripts),
      await suite.open(null, { userAgent: 'Browser of a test/1.0' }),
    ];
    await page.goto('/account');
    await page.getByRole('link', { name: 'Sign out the browser Browser of a test/1.0' }).click();
    await page.getByRole('button', { name: 'Sign it out' }).click();
    await page.waitForURL('**/account?done=signed_out');
    expect((await other.goto('/account'))?.status()).toBe(401);
  });

  test('a sidecar is revoked by its name', async () => {
    const page = await suite.open('/sidecars', withoutScripts);
    await page.getByRole('link', { name: `Revoke ${sidecar.name}` }).click();
    await page.getByLabel(`Type ${sidecar.name} to confirm`).fill('another');
    await page.getByRole('button', { name: 'Revoke it' }).click();
    expect(await page.locator('#confirm-problem').innerText()).toContain('nothing was revoked');
    await page.getByLabel(`Type ${sidecar.name} to confirm`).fill(sidecar.name);
    await page.getByRole('button', { name: 'Revoke it' }).click();
    await page.waitForURL('**/sidecars?done=sidecar_revoked');
    expect(await page.locator('table').innerText()).toContain('Revoked');
  });
});
