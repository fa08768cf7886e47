import { expect, test } from 'vitest';
import { consoleSuite } from './console_suite.ts';

// Where the system gives the colours, it shows neither backgrounds nor shadows of ours: what is chosen has to show all the same.

const suite = consoleSuite({
  prepare: async (world) => {
    await world.seed();
  },
});

const CHOICES = [
  ['.side .nav-group a[aria-current]', '.side .nav-group a:not([aria-current])', 'backgroundColor'],
  ['.side .themes [aria-pressed=true]', '.side .themes [aria-pressed=false]', 'backgroundColor'],
  ['.tabs a[aria-current]', '.tabs a:not([aria-current])', 'borderBottomColor'],
] as const;

test.each(CHOICES)('in forced colours %s looks other than what is not chosen', async (chosen, other, property) => {
  const page = await suite.open();
  await page.emulateMedia({ forcedColors: 'active' });
  await page.goto('/audit');
  const look = (selector: string, name: string) =>
    page.evaluate(`getComputedStyle(document.querySelector(${JSON.stringify(selector)}))['${name}']`);
  const shown = await look(chosen, property);
  expect(shown).not.toBe(await look(other, property));
  // A background that is taken away has the colour of the page.
  expect(shown).not.toBe(await look('body', 'backgroundColor'));
});

test('in forced colours the legend and the bars of the chart keep the colours that tell them apart', async () => {
  const page = await suite.open('/audit');
  const colours = () =>
    page.evaluate<string[]>(
      `[...document.querySelectorAll('.chart .legend i')].map((each) => getComputedStyle(each).backgroundColor)`,
    );
  const usual = await colours();
  await page.emulateMedia({ forcedColors: 'active' });
  expect(await colours()).toEqual(usual);
  expect(new Set(usual).size).toBe(usual.length);
});

test('on a window of 900 pixels the whole of the sign-out can be seen and pressed', async () => {
  const page = await suite.open('/', { viewport: { width: 900, height: 900 } });
  if (await page.locator('details.menu > summary').isVisible()) await page.locator('details.menu > summary').click();
  const button = page.getByRole('button', { name: 'Sign out' });
  await button.scrollIntoViewIfNeeded();
  const box = (await button.boundingBox()) ?? { x: -1, y: -1, width: 0, height: 0 };
  expect(box.x).toBeGreaterThanOrEqual(0);
  expect(box.x + box.width).toBeLessThanOrEqual(900);
  expect(box.y + box.height).toBeLessThanOrEqual(900);
  await button.click();
  await page.waitForURL('**/sign-in');
});
