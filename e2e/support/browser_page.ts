import { z } from 'zod';
import type { DevTools } from './devtools.ts';
import { waitFor } from './wait_for.ts';

/** What a person sees. */
export interface Shown {
  readonly url: string;
  readonly status: number;
  readonly text: string;
}

const cookie = z.object({
  name: z.string(),
  value: z.string(),
  domain: z.string(),
  path: z.string(),
  secure: z.boolean(),
  httpOnly: z.boolean(),
  sameSite: z.string().optional(),
});
export type BrowserCookie = z.infer<typeof cookie>;

const nothing = z.object({});
const evaluated = z.object({
  result: z.object({ value: z.unknown().optional() }),
  exceptionDetails: z.object({ text: z.string() }).optional(),
});
const requested = z.object({ type: z.string().optional(), request: z.object({ url: z.string() }) });
const responded = z.object({ type: z.string(), loaderId: z.string(), response: z.object({ status: z.number() }) });
const lifecycle = z.object({ name: z.string(), loaderId: z.string() });
const place = z.object({ x: z.number(), y: z.number() });

/** One tab of Chromium with cookies of its own, used as a person uses it: addresses, clicks and keys. */
export class BrowserPage {
  /** Every address that it was sent to, also those that only sent it on. */
  readonly visited: string[] = [];
  readonly #devTools: DevTools;
  readonly #sessionId: string;
  readonly #contextId: string;
  /** By the loader of the document: a document is shown when it was answered and has loaded. */
  readonly #statuses = new Map<string, number>();
  readonly #loaded = new Set<string>();
  #status = 0;
  #shownCount = 0;

  private constructor(devTools: DevTools, contextId: string, sessionId: string) {
    this.#devTools = devTools;
    this.#contextId = contextId;
    this.#sessionId = sessionId;
    devTools.listen(sessionId, (method, params) => this.#hear(method, params));
  }

  static async open(devTools: DevTools): Promise<BrowserPage> {
    const context = z.object({ browserContextId: z.string() });
    const { browserContextId } = await devTools.call(context, 'Target.createBrowserContext');
    const target = { url: 'about:blank', browserContextId };
    const { targetId } = await devTools.call(z.object({ targetId: z.string() }), 'Target.createTarget', target);
    const attached = z.object({ sessionId: z.string() });
    const { sessionId } = await devTools.call(attached, 'Target.attachToTarget', { targetId, flatten: true });
    const page = new BrowserPage(devTools, browserContextId, sessionId);
    await page.#call('Page.enable');
    await page.#call('Page.setLifecycleEventsEnabled', { enabled: true });
    await page.#call('Network.enable');
    await page.#call('Emulation.setFocusEmulationEnabled', { enabled: true });
    return page;
  }

  /** Opens an address, as typed. */
  goto(url: string): Promise<Shown> {
    return this.#navigate(`${url} to be shown`, () => this.#call('Page.navigate', { url }));
  }

  /** Clicks on the link or button with this text, and waits for the page that it leads to. */
  click(text: string): Promise<Shown> {
    return this.#navigate(`the page behind "${text}"`, async () => {
      const find = `[...document.querySelectorAll('a, button')].find((it) => it.textContent.trim() === ${JSON.stringify(text)})`;
      const box = `const box = it.getBoundingClientRect(); return { x: box.x + box.width / 2, y: box.y + box.height / 2 };`;
      const at = await this.#evaluate(place, `(() => { const it = ${find}; it.scrollIntoView(); ${box} })()`);
      const button = { ...at, button: 'left', clickCount: 1 };
      await this.#call('Input.dispatchMouseEvent', { ...button, type: 'mousePressed' });
      await this.#call('Input.dispatchMouseEvent', { ...button, type: 'mouseReleased' });
    });
  }

  /** Types into the first field of this name. */
  async fill(name: string, text: string): Promise<void> {
    const field = `document.querySelector(${JSON.stringify(`[name="${name}"]`)})`;
    await this.#evaluate(z.null(), `(() => { ${field}.select(); ${field}.focus(); return null; })()`);
    await this.#call('Input.insertText', { text });
  }

  async cookies(): Promise<readonly BrowserCookie[]> {
    const { cookies } = await this.#devTools.call(z.object({ cookies: z.array(cookie) }), 'Storage.getCookies', {
      browserContextId: this.#contextId,
    });
    return cookies;
  }

  /** Puts a cookie back that the browser had. */
  async putBack({ name, value, domain, path, secure, httpOnly }: BrowserCookie): Promise<void> {
    const cookies = [{ name, value, url: `https://${domain}${path}`, path, secure, httpOnly }];
    const browserContextId = this.#contextId;
    await this.#devTools.call(nothing, 'Storage.setCookies', { cookies, browserContextId });
  }

  async loseCookie(name: string): Promise<void> {
    const found = (await this.cookies()).find((each) => each.name === name);
    if (found === undefined) throw new Error(`the browser has no cookie ${name}`);
    await this.#call('Network.deleteCookies', { name, domain: found.domain, path: found.path });
  }

  async #navigate(what: string, act: () => Promise<void>): Promise<Shown> {
    const before = this.#shownCount;
    await act();
    await waitFor(what, () => this.#shownCount > before);
    const seen = z.object({ url: z.string(), text: z.string() });
    const page = await this.#evaluate(seen, '({ url: location.href, text: document.body.innerText })');
    return { ...page, status: this.#status };
  }

  #hear(method: string, params: unknown): void {
    if (method === 'Network.requestWillBeSent') {
      const { type, request } = requested.parse(params);
      if (type === 'Document') this.visited.push(request.url);
    } else if (method === 'Network.responseReceived') {
      const { type, loaderId, response } = responded.parse(params);
      if (type !== 'Document') return;
      this.#statuses.set(loaderId, response.status);
      this.#noteShown(loaderId);
    } else if (method === 'Page.lifecycleEvent') {
      const { name, loaderId } = lifecycle.parse(params);
      if (name !== 'load') return;
      this.#loaded.add(loaderId);
      this.#noteShown(loaderId);
    }
  }

  #noteShown(loaderId: string): void {
    const status = this.#statuses.get(loaderId);
    if (status === undefined || !this.#loaded.has(loaderId)) return;
    this.#status = status;
    this.#shownCount += 1;
  }

  async #evaluate<T>(schema: z.ZodType<T>, expression: string): Promise<T> {
    const how = { expression, returnByValue: true };
    const { result, exceptionDetails } = await this.#devTools.call(evaluated, 'Runtime.evaluate', how, this.#sessionId);
    if (exceptionDetails !== undefined) throw new Error(`${exceptionDetails.text} in ${expression}`);
    return schema.parse(result.value);
  }

  async #call(method: string, params: object = {}): Promise<void> {
    await this.#devTools.call(nothing, method, params, this.#sessionId);
  }
}
