import { expect, test } from 'vitest';
import { consoleSuite } from './console_suite.ts';

// Where the system gives the colours, it shows neither backgrounds nor shadows of ours: what is chosen has to show all the same.

const suite = consoleSuite();

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
