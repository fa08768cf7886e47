import { createServer, type Server } from 'node:http';
import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { chromiumProblem, startChromium } from '../support/chromium.ts';
import { listen } from '../support/tls_upstream.ts';
import { PageWalk, type WalkOptions } from './page_walk.ts';

// A walk that finds nothing says something only when it would find what is there: each of these pages has one fault.

const MISSING = chromiumProblem();
const POLICY = "default-src 'none'; style-src 'self' 'unsafe-inline'; script-src 'self'; img-src 'self' data:";
const GOOD = '<p>A page with <a href="/one">one link</a> and <a href="/other">another</a>.</p>';

let browser: Browser;
let server: Server;
let origin: string;
let content = '';
let page: Page;

beforeAll(async () => {
  if (MISSING !== null) return;
  browser = await startChromium();
  server = createServer((_, response) => {
    response.writeHead(200, { 'content-type': 'text/html; charset=utf-8', 'content-security-policy': POLICY });
    response.end(documentOf(content));
  });
  origin = `http://127.0.0.1:${await listen(server)}`;
});
afterAll(async () => {
  await browser?.close();
  server?.closeAllConnections();
  server?.close();
});
beforeEach(async ({ skip }) => {
  if (MISSING !== null) skip(MISSING);
  const context = await browser.newContext({ baseURL: origin, reducedMotion: 'reduce' });
  page = await context.newPage();
});
afterEach(() => page?.context().close());

function documentOf(main: string): string {
  return `<!doctype html><html lang="en"><head><title>A page</title><link rel="icon" href="data:,">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <style>body { background: #fff; color: #000 } a { color: #00c } :focus-visible { outline: 2px solid #00c }</style></head>
    <body><a class="skip" href="#main">Skip to content</a><main id="main" tabindex="-1"><h1>Title</h1>${main}</main></body></html>`;
}

async function problemsOf(main: string, options: WalkOptions = {}): Promise<string[]> {
  content = main;
  const walk = await PageWalk.in(page, origin);
  return [...(await walk.open('/', options)).problems];
}

test('a page without a fault passes', async () => {
  expect(await problemsOf(GOOD)).toEqual([]);
});

test.each([
  ['that is too wide', '<div style="width: 500px">Wide</div>', /^360 px: the page, by \d+ px/],
  ['that is too wide at 200 %', '<div style="width: 700px">Wide</div>', /^640 px: the page/],
  [
    'that cuts something off',
    '<div style="overflow: hidden; white-space: nowrap">Words that go on and on, which nobody sees who has a narrow window</div>',
    /^360 px: div Words/,
  ],
  ['that moves', '<p style="transition: color 1s">Moves</p>', /^motion: p Moves/],
  [
    'with an order of its own',
    '<a href="/a">First</a> <a href="/b" tabindex="1">Second</a>',
    /^keyboard at 360 px: stop/,
  ],
  [
    'whose focus is not seen',
    '<a href="/a" style="outline: 0">Hidden</a>',
    /Hidden does not show that it has the focus/,
  ],
  [
    'whose focus is under something',
    '<div style="position: fixed; inset: 0; background: #fff"></div><a href="/a">Covered</a>',
    /Covered is under div/,
  ],
  ['with two headings', '<h1>Another</h1>', /^markup: 2 headings/],
  ['with a picture without words', '<img src="data:," width="9" height="9">', /^axe, .*image-alt/],
  ['with grey on grey', '<p style="color: #999; background: #888">Grey</p>', /^axe, .*color-contrast/],
  [
    'whose buttons are too small',
    '<button style="all: unset; width: 9px; height: 9px" aria-label="A"></button><button style="all: unset; width: 9px; height: 9px" aria-label="B"></button>',
    /^axe, .*target-size/,
  ],
  ['with a script in it', '<script>document.title = "changed"</script>', /^policy: script-src/],
  ['that calls somebody', '<img src="http://127.0.0.1:9/x.png" alt="A picture">', /^request: http:\/\/127\.0\.0\.1:9/],
  ['whose script fails', '<script src="/gone.js"></script>', /^script: /],
])('a page %s is found', async (_, fault, found) => {
  // axe takes longest, and finds nothing of the others.
  const only = found.source.startsWith('^axe') ? 'axe' : 'keyboard';
  expect(await problemsOf(GOOD + fault, { only })).toContainEqual(expect.stringMatching(found));
});
