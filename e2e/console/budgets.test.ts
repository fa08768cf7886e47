import { gzipSync } from 'node:zlib';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { z } from 'zod';
import { chromiumProblem } from '../support/chromium.ts';
import { type ConsolePage, consolePath } from './console_pages.ts';
import { ConsoleWorld, type Seeded } from './console_world.ts';

// What a page costs who opens it for the first time. The weight of all assets together is a unit test
// (worker/pages/assets.test.ts), and long tasks while one searches are in marketplace.test.ts.

const MAX_SCRIPT_BYTES = 25_000;
const MAX_STYLE_BYTES = 15_000;
const PAGES = ['overview', 'audit', 'approvals', 'bindings', 'secrets', 'mcp_servers'] as const satisfies ConsolePage[];
const MISSING = chromiumProblem();
let world: ConsoleWorld;
let seeded: Seeded;

beforeAll(async () => {
  if (MISSING !== null) return;
  world = await ConsoleWorld.start();
  seeded = await world.seed();
});
afterAll(() => world?.stop());
beforeEach(({ skip }) => {
  if (MISSING !== null) skip(MISSING);
});

interface Cost {
  readonly script: number;
  readonly style: number;
  readonly paintMs: number;
}

/** What the page loads for the first time, compressed, by what it is. */
async function weigh(page: Page, path: string): Promise<Cost> {
  const loaded: { readonly type: string; readonly body: Promise<Buffer> }[] = [];
  page.on('response', (reply) => {
    const type = reply.headers()['content-type'] ?? '';
    if (/javascript|css/.test(type)) loaded.push({ type, body: reply.body() });
  });
  await page.goto(path, { waitUntil: 'load' });
  const paintMs = await firstPaintMs(page);
  const weights = await Promise.all(
    loaded.map(async ({ type, body }) => ({ isStyle: type.includes('css'), bytes: gzipSync(await body).length })),
  );
  const sum = (isStyle: boolean) =>
    weights.filter((each) => each.isStyle === isStyle).reduce((total, { bytes }) => total + bytes, 0);
  return { script: sum(false), style: sum(true), paintMs };
}

/** When something was seen first, in milliseconds after the navigation began. */
async function firstPaintMs(page: Page): Promise<number> {
  const seen = await page.evaluate(`new Promise((resolve) => {
    const firstOf = (list) => list.getEntriesByName('first-contentful-paint')[0];
    new PerformanceObserver((list) => firstOf(list) && resolve(firstOf(list).startTime)).observe({ type: 'paint', buffered: true });
  })`);
  return z.number().parse(seen);
}

test.each(PAGES)('%s loads no more than its budget of script and style', async (name) => {
  const signedIn = await world.open();
  const state = await signedIn.context().storageState();
  await signedIn.context().close();
  const page = await world.openSignedOut({ storageState: state });
  const { script, style, paintMs } = await weigh(page, consolePath(name, seeded));
  await page.context().close();
  // A figure and no check: how quick this machine is right now is no property of the page.
  process.stdout.write(
    `${name}: first contentful paint ${Math.round(paintMs)} ms, script ${script}, style ${style} B\n`,
  );
  expect(Math.min(script, style)).toBeGreaterThan(0);
  expect(script).toBeLessThanOrEqual(MAX_SCRIPT_BYTES);
  expect(style).toBeLessThanOrEqual(MAX_STYLE_BYTES);
});
