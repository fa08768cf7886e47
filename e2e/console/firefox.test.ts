import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { Firefox, firefoxProblem, type FirefoxTab } from '../support/firefox.ts';
import { sampleOf } from '../support/full_counts.ts';
import { plantSecret } from '../support/planted_secret.ts';
import { reply } from '../support/tls_upstream.ts';
import { startWorld, type World } from '../support/world.ts';

// Issue 22: the main path in Firefox, which is another engine than that of all other walks: by mouse, by keyboard alone and
// without scripts, on a desk and on a phone, in light, dark and forced colours.

const MISSING = firefoxProblem();
const TOKEN = plantSecret();
const PAGES = ['/', '/approvals', '/audit', '/secrets', '/bindings', '/services', '/services/github', '/mcp-servers'];

let world: World;
let firefox: Firefox;
beforeAll(async () => {
  if (MISSING !== null) return;
  world = await startWorld(['api.github.com', 'api.stripe.com']);
  world.upstream.onRequest(async (exchange) => {
    await exchange.readBody();
    exchange.write(reply(200, '{"login":"octocat"}', ['Content-Type: application/json']));
  });
  firefox = await Firefox.start();
});
afterAll(async () => {
  await firefox?.stop();
  await world?.stop();
});
beforeEach(({ skip }) => {
  if (MISSING !== null) skip(MISSING);
});

/** A signed-in tab, and the origin of the console. */
async function signIn(browser: Firefox, width: number): Promise<{ readonly tab: FirefoxTab; readonly origin: string }> {
  const link = (await world.svc.ok(['console'])).trim();
  const tab = await browser.open(width);
  await tab.goto(link);
  return { tab, origin: String(await tab.evaluate('location.origin')) };
}

const linkNamed = (name: string) =>
  `[...document.querySelectorAll('a')].find((a) => a.textContent.trim() === '${name}' && a.checkVisibility())`;
const buttonNamed = (name: string) =>
  `[...document.querySelectorAll('main button')].find((each) => each.textContent.trim() === '${name}')`;

/** The pages that are wider than the window, or have no title. */
async function brokenPages(tab: FirefoxTab, origin: string, paths = PAGES): Promise<string[]> {
  const broken: string[] = [];
  for (const path of paths) {
    await tab.goto(origin + path);
    for (const width of [1440, 390]) {
      await tab.resize(width);
      const found = await tab.evaluate(
        '[document.documentElement.scrollWidth - document.documentElement.clientWidth, document.querySelectorAll("main h1").length]',
      );
      if (JSON.stringify(found) !== '[0,1]') broken.push(`${path} at ${width}: ${JSON.stringify(found)}`);
    }
  }
  return broken;
}

it('by mouse: a service is connected, and what an agent sends is seen as it is sent', async () => {
  const { tab, origin } = await signIn(firefox, 1440);
  await tab.click(linkNamed('Services'));
  await tab.click(linkNamed('GitHub'));
  await tab.click('document.querySelector("#token")');
  await tab.type(TOKEN);
  await tab.click(buttonNamed('Connect GitHub'));
  await tab.click(buttonNamed('Make a test call'));
  await tab.untilText('It works.');
  expect(world.upstream.last().headers('authorization')).toEqual([`Bearer ${TOKEN}`]);
  await tab.click(linkNamed('Overview'));
  await tab.until(`document.querySelector('[data-live-of=recent]')?.textContent === 'Live'`);
  await world.svc.ok(['run', '--', 'curl', '-sS', 'https://api.github.com/user']);
  await tab.until(`document.querySelector('#way')?.textContent.includes('api.github.com/user')`);
  expect(await brokenPages(tab, origin)).toEqual([]);
});

it('by keyboard alone, on a phone', async () => {
  const { tab, origin } = await signIn(firefox, 390);
  await tab.goto(`${origin}/services/stripe`);
  await tab.tabTo('A restricted or secret key');
  await tab.type(TOKEN);
  await tab.tabTo('Connect Stripe');
  await tab.key('Enter');
  await tab.untilText('Connected.');
  await tab.tabTo('Make a test call');
  await tab.key('Enter');
  await tab.untilText('It works.');
  expect(world.upstream.last().headers('host')).toEqual(['api.stripe.com']);
});

it('no page had an error of a script or of its content security policy', () => {
  // A page that is left while it loads its scripts says so.
  expect(firefox.errors.filter((text) => !text.includes('error loading dynamically imported module'))).toEqual([]);
});

describe('with another profile', () => {
  it('in dark and forced colours, and without scripts, the main path is the same', async () => {
    const plain = await Firefox.start({
      preferences: {
        'javascript.enabled': false,
        'ui.systemUsesDarkTheme': 1,
        'ui.useAccessibilityTheme': 1,
        'browser.display.document_color_use': 2,
      },
    });
    try {
      const { tab, origin } = await signIn(plain, 390);
      await tab.goto(`${origin}/services/github`);
      expect(
        await tab.evaluate(`[matchMedia('(forced-colors: active)').matches, matchMedia('(scripting: none)').matches]`),
      ).toEqual([true, true]);
      await tab.click(buttonNamed('Make a test call'));
      await tab.untilText('It works.');
      expect(await brokenPages(tab, origin, [...sampleOf(PAGES, 3)])).toEqual([]);
    } finally {
      await plain.stop();
    }
  });
});
