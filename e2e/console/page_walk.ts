import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import type { ConsoleMessage, Page, Request } from 'playwright-core';
import { vi } from 'vitest';
import { z } from 'zod';
import { IS_FULL } from '../support/full_counts.ts';
import { htmlProblems } from './html_problems.ts';
import { HANGS_MS } from '../support/hangs.ts';

const PROBE = join(import.meta.dirname, 'page_probe.js');
/** axe in its small form: to send and compile the other one takes longer than to check a page. */
const AXE = createRequire(import.meta.url).resolve('axe-core/axe.min.js');
const HEIGHT = 900;
/** A narrow telephone, a wide screen, and this and a common one at 200 %: half as wide to the page. */
const WIDTHS = [360, 640, 720, 1440];
/**
 * The frame changes between these, and the colours with the scheme: between them, axe sees both of either. `npm test` takes them
 * in turn, page by page, and the keyboard at the other width, because both are most of what a walk costs.
 */
const AXE_LOOKS = [
  { width: 360, colorScheme: 'dark' },
  { width: 1440, colorScheme: 'light' },
] as const;
/** The stops that a long page is gone through at, at either end. */
const MOST_STOPS = 60;
/** The parts of a field for a time, such as the month. */
const MOST_PARTS = 10;
/** How often the keyboard is tried on a page that changes meanwhile. */
const MOST_TRIES = 3;
const AXE_TAGS = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];

export interface WalkOptions {
  /** Rules that axe leaves out. */
  readonly withoutRules?: readonly string[];
  /** Has thousands of elements: it is gone through in one look, by keyboard at its start and its end. */
  readonly isLong?: true;
  /** Only with axe, or only by keyboard. By default both. */
  readonly only?: 'axe' | 'keyboard';
}

/** Walks through pages in one tab, and says what is wrong with each. Nothing wrong is an empty list. */
export class PageWalk {
  readonly #page: Page;
  readonly #problems: string[] = [];
  #looked = 0;
  #bringsAxe = false;

  private constructor(page: Page) {
    this.#page = page;
  }

  /** Takes a tab for walks to `origin`, from which nothing leads elsewhere. */
  static async in(page: Page, origin: string): Promise<PageWalk> {
    const walk = new PageWalk(page);
    await page.addInitScript({ path: PROBE });
    page.on('console', (message) => walk.#note(message, origin));
    page.on('pageerror', (error) => walk.#problems.push(`script: ${error.message}`));
    page.on('request', (request) => walk.#noteRequest(request, origin));
    return walk;
  }

  /** Opens a page and looks at it in every way. The status is that of its reply. */
  async open(path: string, options: WalkOptions = {}): Promise<{ status: number; problems: readonly string[] }> {
    const status = await this.#goto(path);
    return { status, problems: await this.look(options) };
  }

  /** Opens a page and checks what depends on the runtime: status, markup, scripts, requests and content policy. */
  async visit(path: string): Promise<{ status: number; problems: readonly string[] }> {
    const status = await this.#goto(path);
    await this.#waitForStart();
    await this.#checkMarkup();
    return { status, problems: await this.#takeProblems() };
  }

  /** Looks at the page that it is at, for what no address leads to; what is wrong since the last time. */
  async look(options: WalkOptions = {}): Promise<readonly string[]> {
    await this.#waitForStart();
    await this.#checkMarkup();
    await this.#checkWidths();
    this.#looked += 1;
    if (options.only !== 'axe') await this.#checkKeyboards(options.isLong);
    if (options.only !== 'keyboard') await this.#checkAxe(options);
    return this.#takeProblems();
  }

  async #checkKeyboards(isLong: boolean | undefined): Promise<void> {
    const isWideTurn = this.#looked % 2 === 0 && isLong !== true;
    if (IS_FULL || !isWideTurn) await this.#checkKeyboard(360, 'start', isLong);
    // Where the navigation stands beside the content it is the same on every page: there the content is gone through.
    if ((IS_FULL && isLong !== true) || isWideTurn) await this.#checkKeyboard(1440, 'main');
  }

  /** Opens a page, whose source has to conform to the standard; the status of its reply. */
  async #goto(path: string): Promise<number> {
    this.#problems.length = 0;
    const reply = await this.#page.goto(path);
    this.#problems.push(...(await htmlProblems((await reply?.text()) ?? '')));
    return reply?.status() ?? 0;
  }

  /** The page's policy forbids what `waitForFunction` does if it has to look a second time. */
  async #waitForStart(): Promise<void> {
    await vi.waitUntil(() => this.#page.evaluate('probe.isStarted()'), { timeout: HANGS_MS });
  }

  async #takeProblems(): Promise<string[]> {
    this.#problems.push(...(await this.#probeTexts('violations')).map((each) => `policy: ${each}`));
    return this.#problems.splice(0);
  }

  /** The page as it is now. */
  content(): Promise<string> {
    return this.#page.content();
  }

  #note(message: ConsoleMessage, origin: string): void {
    const { url } = message.location();
    // What another site has to say of its own pages is no problem of ours.
    if (message.type() !== 'error' || (url !== '' && new URL(url).origin !== origin)) return;
    // Chromium reports the status of the page itself so, too: a refusal is looked at for what it says.
    if (url === this.#page.url() && message.text().startsWith('Failed to load resource')) return;
    this.#problems.push(`console: ${message.text()}`);
  }

  #noteRequest(request: Request, origin: string): void {
    const url = new URL(request.url());
    // Somebody is led to another site by a link; what is loaded is of the site that they are on.
    if (request.isNavigationRequest()) return;
    if (url.origin !== origin && url.protocol !== 'data:') this.#problems.push(`request: ${url.href}`);
  }

  async #probeTexts(expression: string): Promise<string[]> {
    return z.array(z.string()).parse(await this.#page.evaluate(`probe.${expression}`));
  }

  async #resize(width: number): Promise<void> {
    await this.#page.setViewportSize({ width, height: HEIGHT });
  }

  async #checkMarkup(): Promise<void> {
    const headings = await this.#page.locator('h1').count();
    if (headings !== 1) this.#problems.push(`markup: ${headings} headings of the first level`);
    if ((await this.#page.title()).trim() === '') this.#problems.push('markup: no title');
    const moving = await this.#probeTexts('moving()');
    this.#problems.push(...moving.map((each) => `motion: ${each}`));
  }

  async #checkWidths(): Promise<void> {
    for (const width of WIDTHS) {
      await this.#resize(width);
      const cut = await this.#probeTexts('cutOff()');
      this.#problems.push(...cut.map((each) => `${width} px: ${each}`));
    }
  }

  /**
   * The skip link leads to the content; Tab goes from the first stop of it, or of all, to each that follows, and out of the
   * page. A long page is gone through at its start and at its end.
   */
  async #checkKeyboard(width: number, where: 'start' | 'main', isLong = false): Promise<void> {
    await this.#resize(width);
    for (let tries = 1; ; tries += 1) {
      const found: string[] = [];
      await this.#walkStops(where, isLong, (text) => found.push(`keyboard at ${width} px: ${text}`));
      // What is live on a page may have been shown anew meanwhile.
      const hasStayed = await this.#page.evaluate('probe.haveStopsStayed()');
      if (found.length > 0 && hasStayed !== true && tries < MOST_TRIES) continue;
      this.#problems.push(...found);
      return;
    }
  }

  async #walkStops(where: 'start' | 'main', isLong: boolean, note: (text: string) => unknown): Promise<void> {
    const count = z.number().parse(await this.#page.evaluate('probe.listStops()'));
    const first = z.number().parse(await this.#page.evaluate('probe.firstInMain()'));
    await this.#checkSkipLink(first, note);
    const from = where === 'main' ? first : 0;
    if (isLong && count - from > 2 * MOST_STOPS) {
      await this.#checkStops(from, from + MOST_STOPS, count, note);
      await this.#checkStops(count - MOST_STOPS, count, count, note);
    } else await this.#checkStops(from, count, count, note);
  }

  /** The stops in [from, end). A field for a time has a stop for each of its parts, so it is left by several presses of Tab. */
  async #checkStops(from: number, end: number, count: number, note: (text: string) => unknown): Promise<void> {
    const all = z.array(z.number()).parse(await this.#page.evaluate('probe.listTimeStops()'));
    let start = from;
    for (const field of all.filter((place) => place >= from && place < end - 1)) {
      await this.#checkPlainStops(start, field + 1, count, note);
      let { place, name } = await this.#focused();
      for (let presses = 0; place === field && presses < MOST_PARTS; presses += 1) {
        await this.#page.keyboard.press('Tab');
        ({ place, name } = await this.#focused());
      }
      if (place !== field + 1) return void note(`what comes after the time field ${field} is ${name}`);
      start = field + 1;
    }
    await this.#checkPlainStops(start, end, count, note);
  }

  /** Presses Tab at each stop in [from, end); the page says by itself what had the focus at each. */
  async #checkPlainStops(from: number, end: number, count: number, note: (text: string) => unknown): Promise<void> {
    await this.#page.evaluate(`probe.focusStop(${from})`);
    await Promise.all(Array.from({ length: end - from }, () => this.#page.keyboard.down('Tab')));
    const seen = z.array(focused).parse(await this.#page.evaluate('probe.takeSeen()'));
    const after = await this.#focused();
    for (let place = from; place < end; place += 1) {
      const focus = seen[place - from] ?? after;
      if (focus.wrong !== '') note(`${focus.name} ${focus.wrong}`);
      if (focus.place !== place) {
        note(`stop ${place} of ${count} is ${focus.name}`);
        return;
      }
    }
    if (end === count && after.place > 0) note(`nothing leads on from ${after.name}`);
  }

  async #checkSkipLink(first: number, note: (text: string) => unknown): Promise<void> {
    await this.#page.evaluate('probe.focusStop(0)');
    await this.#page.keyboard.press('Enter');
    if ((await this.#page.evaluate('document.activeElement?.id')) !== 'main')
      note('the first stop does not skip to the content');
    await this.#page.keyboard.press('Tab');
    const { place, name } = await this.#focused();
    if (first > 0 && place !== first) note(`what comes after the skip link is ${name}`);
  }

  async #focused() {
    return focused.parse(await this.#page.evaluate('probe.focused()'));
  }

  async #checkAxe({ withoutRules = [], isLong }: WalkOptions): Promise<void> {
    if (!this.#bringsAxe) await this.#page.addInitScript({ path: AXE });
    this.#bringsAxe = true;
    // The skip link lies over others while it has the focus, and the bar over what is scrolled behind it.
    await this.#page.evaluate('document.activeElement?.blur(); scrollTo(0, 0)');
    const isWhole = IS_FULL && isLong !== true;
    for (const { width, colorScheme } of isWhole ? AXE_LOOKS : [AXE_LOOKS[this.#looked % 2 === 0 ? 0 : 1]]) {
      await this.#resize(width);
      await this.#page.emulateMedia({ colorScheme });
      const found = await axeProblems(this.#page, withoutRules);
      this.#problems.push(...found.map((each) => `axe, ${width} px, ${colorScheme}: ${each}`));
    }
  }
}

const focused = z.object({ place: z.number(), name: z.string(), wrong: z.string() });

/** What axe knows of that keeps somebody from using the page. It runs in the page and gives back only what it has found. */
export async function axeProblems(page: Page, without: readonly string[] = []): Promise<string[]> {
  const off = without.map((rule) => [rule, { enabled: false }] as const);
  // The one rule of WCAG 2.2 is off where nobody asks for it by its name.
  const rules = { 'target-size': { enabled: true }, ...Object.fromEntries(off) };
  // The console has no audio or video, and no rule that is on reads style sheets: axe need not load any first.
  const options = {
    runOnly: { type: 'tag', values: AXE_TAGS },
    rules,
    resultTypes: ['violations'],
    preload: false,
  };
  if ((await page.evaluate('typeof axe')) === 'undefined') await page.evaluate(readFileSync(AXE, 'utf8'));
  const found = await page.evaluate(`axe.run(document, ${JSON.stringify(options)}).then(${LIST_VIOLATIONS})`);
  return z.array(z.string()).parse(found);
}

const LIST_VIOLATIONS = `({ violations }) =>
  violations.map(({ id, nodes }) => id + ': ' + nodes.map(({ html }) => html.slice(0, 200)).join(' | '))`;
