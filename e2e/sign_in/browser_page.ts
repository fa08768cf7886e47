import type { Browser, BrowserContext, Cookie, Page, Response } from 'playwright-core';

/** What a person sees. */
interface Shown {
  readonly url: string;
  readonly status: number;
  readonly text: string;
}

/** One tab with its own cookies, used like a person does: addresses, clicks and keys. */
export class BrowserPage {
  /** Every visited address, including redirects. */
  readonly visited: string[] = [];
  readonly #context: BrowserContext;
  readonly #page: Page;

  private constructor(context: BrowserContext, page: Page) {
    this.#context = context;
    this.#page = page;
    page.on('request', (request) => {
      if (request.isNavigationRequest()) this.visited.push(request.url());
    });
  }

  static async open(browser: Browser): Promise<BrowserPage> {
    const context = await browser.newContext();
    return new BrowserPage(context, await context.newPage());
  }

  /** Opens an address, as typed. */
  async goto(url: string): Promise<Shown> {
    return this.#shown(await this.#page.goto(url));
  }

  /** Clicks the link or button with this text, and waits for the next page. */
  async click(text: string): Promise<Shown> {
    const target = this.#page.locator('a, button').filter({ hasText: new RegExp(`^\\s*${text}\\s*$`), visible: true });
    const document = this.#page.waitForEvent('response', (response) => isDocument(response));
    await target.first().click();
    const answered = await document;
    await this.#page.waitForLoadState('load');
    return this.#shown(answered);
  }

  /** Types into the first field of this name. */
  fill(name: string, text: string): Promise<void> {
    return this.#page.locator(`[name="${name}"]`).first().fill(text);
  }

  /** Calls the API from the open page; returns status and body. */
  call(method: string, path: string, body?: object): Promise<{ readonly status: number; readonly text: string }> {
    return this.#page.evaluate(
      async (call) => {
        const headers = { 'content-type': 'application/json' };
        const sent = { method: call.method, ...(call.text !== undefined && { body: call.text, headers }) };
        const reply = await fetch(call.path, sent);
        return { status: reply.status, text: await reply.text() };
      },
      { method, path, text: body && JSON.stringify(body) },
    );
  }

  /** Closes the tab and forgets its cookies: an open page of the console goes on asking for what is new. */
  close(): Promise<void> {
    return this.#context.close();
  }

  cookies(): Promise<readonly Cookie[]> {
    return this.#context.cookies();
  }

  /** Restores an earlier cookie of the browser. */
  putBack(cookie: Cookie): Promise<void> {
    return this.#context.addCookies([cookie]);
  }

  async loseCookie(name: string): Promise<void> {
    const found = (await this.cookies()).find((each) => each.name === name);
    if (found === undefined) throw new Error(`the browser has no cookie ${name}`);
    await this.#context.clearCookies({ name, domain: found.domain, path: found.path });
  }

  async #shown(response: Response | null): Promise<Shown> {
    if (response === null) throw new Error('no document was answered');
    return { url: this.#page.url(), status: response.status(), text: await this.#page.locator('body').innerText() };
  }
}

/** The final document of a navigation, after redirects. */
function isDocument(response: Response): boolean {
  const isRedirect = response.status() >= 300 && response.status() < 400;
  return response.request().isNavigationRequest() && !isRedirect;
}
