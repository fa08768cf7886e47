import { expect, test } from 'vitest';
import { SYSTEM_CLOCK } from '../../worker/kernel/clock.ts';
import { consoleSuite } from './console_suite.ts';
import { serveInProcess } from './serve_in_process.ts';

// Removes old events without scripts. The clock is the test's, because events of the last day always stay.

const DAY_MS = 24 * 3_600_000;
let aheadMs = 0;
const clock = { ...SYSTEM_CLOCK, now: () => Date.now() + aheadMs };
const dayOf = (ms: number) => new Date(ms).toISOString().slice(0, 10);
const suite = consoleSuite({ control: () => serveInProcess(clock), now: clock.now });

test('events are removed by the day that is typed; where none is so old, nothing is asked', async () => {
  await suite.world.seed();
  aheadMs = 3 * DAY_MS;
  const before = dayOf(clock.now() - DAY_MS);
  const page = await suite.open('/audit/retention', { javaScriptEnabled: false });
  await page.getByLabel('Received before (UTC)').fill(before);
  await page.getByRole('button', { name: 'Count them' }).click();
  await page.getByRole('link', { name: 'Remove them' }).click();
  await page.getByLabel(`Type ${before} to confirm`).fill(dayOf(clock.now()));
  await page.getByRole('button', { name: 'Remove them' }).click();
  expect(await page.locator('#confirm-problem').innerText()).toContain('nothing was removed');
  await page.getByLabel(`Type ${before} to confirm`).fill(before);
  await page.getByRole('button', { name: 'Remove them' }).click();
  await page.waitForURL('**/audit/retention?done=events_removed');
  await page.goto(`/audit/retention/remove?before=${before}`);
  expect(await page.locator('main').innerText()).toContain('there is nothing to remove');
  expect(await page.locator('main').getByRole('textbox').count()).toBe(0);
  await page.getByRole('link', { name: 'Back to Retention' }).click();
  await page.waitForURL('**/audit/retention');
});
