import type { Page, Response, Route } from 'playwright-core';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { consoleSuite } from './console_suite.ts';

// The cost of a page's first visit, for a control plane on the embedded database. Long tasks during a search are in
// marketplace.test.ts; the total size of all assets is also a unit test (worker/pages/frame/assets.test.ts).

const BUDGET = { scriptBytes: 25_000, styleBytes: 15_000, paintMs: 1_000 };
/** The machine itself may stall for a while; a page's own cost occurs every time. */
const ATTEMPTS = 12;
const PAGES = ['/', '/audit', '/approvals', '/bindings', '/secrets', '/mcp-servers', '/marketplace', '/report'];

type Cost = typeof BUDGET;

const suite = consoleSuite({
  prepare: async (world) => {
    await world.seed();
  },
});

/** A signed-in tab with an empty cache. */
async function openFresh(): Promise<Page> {
  const signedIn = await suite.open();
  return suite.openSignedOut(null, { storageState: await signedIn.context().storageState() });
}

/** The bytes that a page loads, and when its first content is painted. */
async function weigh(page: Page, path: string): Promise<Cost> {
  const loaded: Response[] = [];
  page.on('response', (reply) => loaded.push(reply));
  await page.goto(path, { waitUntil: 'networkidle' });
  const paintMs = await firstPaintMs(page);
  const [scriptBytes, styleBytes] = [await bytesOf(loaded, /javascript/), await bytesOf(loaded, /css/)];
  return { scriptBytes, styleBytes, paintMs };
}

async function bytesOf(replies: readonly Response[], type: RegExp): Promise<number> {
  const fitting = replies.filter((reply) => type.test(reply.headers()['content-type'] ?? ''));
  const sizes = await Promise.all(fitting.map((reply) => reply.request().sizes()));
  return sizes.reduce((sum, { responseBodySize }) => sum + responseBodySize, 0);
}

/** When something was seen first, in milliseconds after the navigation began. */
async function firstPaintMs(page: Page): Promise<number> {
  const seen = await page.evaluate(`new Promise((resolve) => {
    const firstOf = (list) => list.getEntriesByName('first-contentful-paint')[0];
    new PerformanceObserver((list) => firstOf(list) && resolve(firstOf(list).startTime)).observe({ type: 'paint', buffered: true });
  })`);
  return z.number().parse(seen);
}

/** The costs of a page that exceed its budget. */
function over(cost: Cost): string[] {
  const names = ['scriptBytes', 'styleBytes', 'paintMs'] as const;
  return names.filter((name) => !(cost[name] > 0 && cost[name] <= BUDGET[name]));
}

test.each(PAGES)('%s costs no more than its budget of script, style and time', async (path) => {
  let cost = await weigh(await openFresh(), path);
  for (let attempt = 1; attempt < ATTEMPTS && over(cost).length > 0; attempt += 1) {
    cost = await weigh(await openFresh(), path);
  }
  process.stdout.write(`${path}: ${JSON.stringify(cost)}\n`);
  expect({ cost, over: over(cost) }).toEqual({ cost, over: [] });
});

test.each([
  ['scriptBytes', '**/assets/console.*.js', (route: Route) => heavy(route, 'text/javascript')],
  ['styleBytes', '**/assets/style.*.css', (route: Route) => heavy(route, 'text/css')],
  ['paintMs', '**/assets/style.*.css', (route: Route) => late(route)],
])('a page that costs more %s would be noticed', async (name, url, answer) => {
  const page = await openFresh();
  await page.route(url, answer);
  expect(over(await weigh(page, '/'))).toContain(name);
});

async function heavy(route: Route, contentType: string): Promise<void> {
  await route.fulfill({ contentType, body: `/* ${'x'.repeat(2 * BUDGET.scriptBytes)} */` });
}

async function late(route: Route): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, BUDGET.paintMs));
  await route.continue();
}
