import type { Page, Response, Route } from 'playwright-core';
import { expect, test } from 'vitest';
import { consoleSuite } from './console_suite.ts';

// What a page's first visit loads. The total size of all assets is also a unit test (worker/pages/frame/assets.test.ts); when a page
// is seen is measured by bench/interactions.ts.

const BUDGET = { scriptBytes: 25_000, styleBytes: 15_000 };
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

/** The bytes that a page loads. */
async function weigh(page: Page, path: string): Promise<Cost> {
  const loaded: Response[] = [];
  page.on('response', (reply) => loaded.push(reply));
  await page.goto(path, { waitUntil: 'networkidle' });
  return { scriptBytes: await bytesOf(loaded, /javascript/), styleBytes: await bytesOf(loaded, /css/) };
}

async function bytesOf(replies: readonly Response[], type: RegExp): Promise<number> {
  const fitting = replies.filter((reply) => type.test(reply.headers()['content-type'] ?? ''));
  const sizes = await Promise.all(fitting.map((reply) => reply.request().sizes()));
  return sizes.reduce((sum, { responseBodySize }) => sum + responseBodySize, 0);
}

/** The costs of a page that exceed its budget. */
function over(cost: Cost): string[] {
  const names = ['scriptBytes', 'styleBytes'] as const;
  return names.filter((name) => !(cost[name] > 0 && cost[name] <= BUDGET[name]));
}

test.each(PAGES)('%s costs no more than its budget of script and style', async (path) => {
  const cost = await weigh(await openFresh(), path);
  expect({ cost, over: over(cost) }).toEqual({ cost, over: [] });
});

test.each([
  ['scriptBytes', '**/assets/console.*.js', 'text/javascript'],
  ['styleBytes', '**/assets/style.*.css', 'text/css'],
])('a page that costs more %s would be noticed', async (name, url, contentType) => {
  const page = await openFresh();
  await page.route(url, (route: Route) =>
    route.fulfill({ contentType, body: `/* ${'x'.repeat(2 * BUDGET.scriptBytes)} */` }),
  );
  expect(over(await weigh(page, '/'))).toContain(name);
});
