import { expect, test } from 'vitest';
import { consoleSuite } from './console_suite.ts';
import { expectAccessible } from './console_world.ts';

// Issue 22: what agents do is seen as it happens, moves together, and can be stopped (WCAG 2.2.2).

const suite = consoleSuite({
  prepare: async (world) => {
    await world.seed();
  },
});

async function request(path: string): Promise<void> {
  await suite.world.record('sandbox.proxy.rejected', {
    'svc.proxy.method': 'DELETE',
    'svc.proxy.upstream.host': 'api.github.com',
    'svc.proxy.upstream.path': path,
    'svc.proxy.reason': 'effect_not_allowed',
  });
}

test('a request is seen on its way at once, with its reason, and in the counts', async () => {
  const page = await suite.open('/');
  await page.locator('[data-live-of=recent]').getByText('Live').waitFor();
  const refused = page.locator('.legend li', { hasText: 'Refused' }).locator('strong');
  const before = Number(await refused.innerText());
  await request('/seen');
  const way = page.getByRole('list', { name: 'The newest request' });
  await way.getByText('api.github.com/seen').waitFor();
  expect(await way.innerText()).toContain('The binding is read-only');
  await expect.poll(async () => Number(await refused.innerText())).toBe(before + 1);
  expect(await page.getByRole('table', { name: 'Top hosts' }).innerText()).toContain('api.github.com');
  expect(
    await page
      .getByRole('table', { name: /^Agents/ })
      .getByRole('row')
      .count(),
  ).toBeGreaterThan(1);
  await expectAccessible(page);
});

test('everything on the page stops with one button, and goes on with it', async () => {
  const page = await suite.open('/');
  const witness = await suite.open('/');
  await page.locator('[data-live-of=recent]').getByText('Live').waitFor();
  await page.getByRole('button', { name: 'Pause' }).click();
  const parts = ['standing', 'way', 'activity', 'busy', 'recent', 'sidecars'];
  const shown = () => Promise.all(parts.map((id) => page.locator(`#${id}`).innerHTML()));
  const before = await shown();
  await request('/while-paused');
  await witness.locator('#way').getByText('api.github.com/while-paused').waitFor();
  expect(await shown()).toEqual(before);
  await page.getByRole('button', { name: 'Continue' }).click();
  await page.locator('#way').getByText('api.github.com/while-paused').waitFor();
  await page.locator('#recent').getByText('DELETE api.github.com/while-paused').waitFor();
});

test('the same is shown without scripts, and nothing moves for those who want that', async () => {
  const page = await suite.open('/', { javaScriptEnabled: false, viewport: { width: 390, height: 800 } });
  expect(await page.locator('#way').innerText()).toContain('api.github.com');
  expect(await page.getByRole('img', { name: /^Requests by minute/ }).getAttribute('aria-label')).toMatch(/refused \d/);
  expect(await page.evaluate(`getComputedStyle(document.querySelector('.hop')).animationName`)).toBe('none');
});
