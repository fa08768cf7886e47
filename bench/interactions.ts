/**
 * `node bench/interactions.ts [ROUNDS]`: how long the console takes to show what a key or a click did (Interaction to Next Paint),
 * with a processor that is four times slower than this one, what of that is the page's own work, and when the page itself is seen.
 * Needs Chromium.
 */
import { fileURLToPath } from 'node:url';
import type { Browser, Page } from 'playwright-core';
import { z } from 'zod';
import { chromiumProblem, startChromium } from '../e2e/support/chromium.ts';
import { buildPackage } from '../tools/package/build_package.ts';
import { measureMainThread } from './main_thread.ts';
import { median } from './sample.ts';
import { figure, table } from './table.ts';

const DEFAULT_ROUNDS = 5;
const SLOWER = 4;
const TARGET_MS = 100;
const PAINT_TARGET_MS = 1_000;
/** Secrets and bindings: lists have several pages of them. */
const ITEMS = 250;
const VIEWPORT = { width: 1440, height: 900 };
/** After a key or a click: for what answers it, and for its entry in the list of events. */
const SETTLES_MS = 700;

// Which svc is used is read when this module is loaded.
const folder = fileURLToPath(new URL('../node_modules/.cache/svc/packages', import.meta.url));
process.env['SVC_TEST_PACKAGE'] = await buildPackage(folder);
const { Svc } = await import('../e2e/support/svc.ts');
type Control = Awaited<ReturnType<typeof Svc.up>>;

/** Collects each interaction: the longest of its events, and how long the page's scripts took for all of them. */
const OBSERVE = `
  globalThis.interactions = {};
  new PerformanceObserver((list) => {
    for (const { interactionId: id, duration, processingStart, processingEnd } of list.getEntries()) {
      if (id === 0) continue;
      const { longest, scripts } = interactions[id] ?? { longest: 0, scripts: 0 };
      interactions[id] = { longest: Math.max(longest, duration), scripts: scripts + processingEnd - processingStart };
    }
  }).observe({ type: 'event', durationThreshold: 16, buffered: true });`;

const FIRST_PAINT = `new Promise((resolve) => {
  const firstOf = (list) => list.getEntriesByName('first-contentful-paint')[0];
  new PerformanceObserver((list) => firstOf(list) && resolve(firstOf(list).startTime)).observe({ type: 'paint', buffered: true });
})`;

const interactions = z.record(z.string(), z.object({ longest: z.number(), scripts: z.number() }));
/** In milliseconds. The browser does not report interactions of less than 16 ms. */
type Interaction = z.infer<typeof interactions>[string];

interface Visit {
  readonly name: string;
  readonly path: string;
  /** What a person does there, each of which is an interaction or more. */
  readonly steps: readonly ((page: Page) => Promise<void>)[];
  /** Of the window; a wide one by default. */
  readonly width?: number;
}

const press = (key: string) => (page: Page) => page.keyboard.press(key);
const click = (selector: string) => (page: Page) => page.locator(`${selector} >> visible=true`).first().click();
const SEARCH = ['/', 'i', 't', 'e', 'm', 'ArrowDown', 'ArrowDown', 'Escape'].map(press);
const PALETTE = ['Control+k', 's', 'e', 'c', 'ArrowDown', 'ArrowDown', 'Escape'].map(press);
const TYPED = ['Tab', 'a', 'b', 'c'].map(press);
const URL_KEYS = 'https://item'.split('').map(press);

const VISITS: readonly Visit[] = [
  { name: 'the palette, on the overview', path: '/', steps: PALETTE },
  { name: 'the palette, on a long list', path: '/secrets', steps: PALETTE },
  { name: 'a search in the secrets', path: '/secrets', steps: SEARCH },
  { name: 'a search in the bindings', path: '/bindings', steps: SEARCH },
  { name: 'a request to explain', path: '/bindings', steps: [click('[name=url]'), ...URL_KEYS] },
  { name: 'a new binding', path: '/bindings/new', steps: [click('details.more > summary'), ...TYPED] },
  {
    name: 'the menu of a telephone',
    path: '/',
    steps: [click('.menu > summary'), click('.menu > summary')],
    width: 390,
  },
  { name: 'pausing the overview', path: '/', steps: [click('.live button'), click('.live button')] },
  { name: 'the kind of a source', path: '/secrets/sources/new', steps: [click('[name=path]'), ...TYPED] },
  { name: 'copying a command', path: '/mcp-servers/clients', steps: [click('.copy'), click('details.more > summary')] },
  { name: 'the audit log', path: '/audit', steps: [click('summary'), press('Tab'), press('Tab'), ...PALETTE] },
  { name: 'a search for a service', path: '/services', steps: SEARCH },
];

async function fill(svc: Control): Promise<void> {
  for (let index = 0; index < ITEMS; index += 1) {
    const name = `item-${String(index).padStart(3, '0')}`;
    await svc.secret(`user/${name}`, `value-${index}-of-no-account`);
    await svc.binding({ host: `${name}.example.test`, scheme: 'bearer', credential_ref: `vault://user/${name}` });
  }
}

interface Measured {
  readonly interactions: readonly Interaction[];
  /** Of the page's main thread for each key and click, in milliseconds. */
  readonly work: readonly number[];
  /** When something was seen first, in milliseconds after the navigation began. */
  readonly paintMs: number;
}

async function measureVisit(browser: Browser, page: Page, { path, steps, width }: Visit): Promise<Measured> {
  await page.setViewportSize({ ...VIEWPORT, ...(width !== undefined && { width }) });
  await page.goto(path, { waitUntil: 'networkidle' });
  const paintMs = z.number().parse(await page.evaluate(FIRST_PAINT));
  await page.waitForTimeout(SETTLES_MS);
  const work = await measureMainThread(browser, page, async () => {
    for (const step of steps) {
      await step(page);
      await page.waitForTimeout(SETTLES_MS);
    }
  });
  return { interactions: Object.values(interactions.parse(await page.evaluate('interactions'))), work, paintMs };
}

async function openTab(svc: Control, browser: Awaited<ReturnType<typeof startChromium>>) {
  const { url } = z.object({ url: z.url() }).parse((await svc.api('POST', '/v1/sign-in-links')).body);
  const context = await browser.newContext({ viewport: VIEWPORT, baseURL: new URL(url).origin });
  const page = await context.newPage();
  await page.addInitScript(OBSERVE);
  await page.goto(url);
  const devTools = await context.newCDPSession(page);
  await devTools.send('Emulation.setCPUThrottlingRate', { rate: SLOWER });
  return page;
}

/** The longest interaction of a visit counts, which is its INP below 50 interactions, the most work of one, and the most that the page's scripts took of one. */
function rowOf(name: string, visits: readonly Measured[]): readonly string[] {
  const most = (valuesOf: (visit: Measured) => readonly number[]) =>
    visits.map((visit) => Math.max(0, ...valuesOf(visit)));
  const longest = most(({ interactions: seen }) => seen.map((each) => each.longest));
  const scripts = most(({ interactions: seen }) => seen.map((each) => each.scripts));
  const work = most((visit) => visit.work);
  const paint = median(visits.map(({ paintMs }) => paintMs));
  const verdict = median(longest) <= TARGET_MS && paint <= PAINT_TARGET_MS ? '' : 'missed';
  return [name, ...[median(longest), Math.max(...longest), median(work), median(scripts), paint].map(figure), verdict];
}

async function main(rounds: number): Promise<void> {
  const problem = chromiumProblem();
  if (problem !== null) throw new Error(problem);
  const svc = await Svc.up();
  const browser = await startChromium();
  try {
    await fill(svc);
    const page = await openTab(svc, browser);
    const found = new Map<string, Measured[]>(VISITS.map(({ name }) => [name, []]));
    for (let round = 0; round < rounds; round += 1) {
      for (const visit of VISITS) found.get(visit.name)?.push(await measureVisit(browser, page, visit));
      process.stderr.write('.');
    }
    const rows = [...found].map(([name, visits]) => rowOf(name, visits));
    process.stdout.write(
      `\n${table(['Visit', 'longest interaction', 'worst round', 'work', 'scripts', 'first paint', ''], rows)}\n`,
    );
    process.stdout.write(
      `ms, medians of ${rounds} rounds at ${SLOWER} times less speed; at most ${TARGET_MS} ms is wanted, and ${PAINT_TARGET_MS} ms to the first paint\n`,
    );
  } finally {
    await browser.close();
    await svc.stop();
  }
}

await main(Number(process.argv[2] ?? DEFAULT_ROUNDS));
