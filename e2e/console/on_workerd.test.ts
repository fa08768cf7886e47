import { afterAll, beforeAll, expect, test } from 'vitest';
import { startLibsqlServer, startOnWorkerd } from '../runtimes/programs.ts';
import { chromiumProblem } from '../support/chromium.ts';
import { CONSOLE_PAGES, consolePath } from './console_pages.ts';
import { ConsoleWorld, PLANTED_SECRET } from './console_world.ts';

const MISSING = chromiumProblem();
let world: ConsoleWorld;
beforeAll(async () => {
  if (MISSING !== null) return;
  const database = await startLibsqlServer();
  const control = await startOnWorkerd(database);
  const stop = async () => {
    await control.stop();
    await database.stop();
  };
  world = await ConsoleWorld.start({ ...control, stop });
});
afterAll(() => world?.stop());

test('every page of the console is served by workerd, with its style and its islands', async ({ skip }) => {
  if (MISSING !== null) skip(MISSING);
  const seeded = await world.seed();
  const page = await world.open();
  const problems: string[] = [];
  page.on('pageerror', (error) => problems.push(error.message));
  page.on('response', (response) => {
    if (response.url().includes('/assets/') && response.status() !== 200) problems.push(response.url());
  });
  const refused = new Map<string, number>([
    ['missing_binding', 404],
    ['audit_bad_filter', 400],
  ]);
  for (const name of CONSOLE_PAGES) {
    const reply = await page.goto(consolePath(name, seeded));
    const shown = [name, reply?.status(), await page.locator('h1').count()];
    expect(shown).toEqual([name, refused.get(name) ?? 200, 1]);
    expect(await page.content()).not.toContain(PLANTED_SECRET);
  }
  await page.goto(consolePath('audit_event', seeded));
  await page.getByRole('button', { name: 'Copy' }).waitFor();
  expect(await page.evaluate('getComputedStyle(document.body).margin')).toBe('0px');
  expect(problems).toEqual([]);
});
