/** A minimal browser for sign-in: it keeps cookies, and does not follow redirects. */
export class TestBrowser {
  readonly cookies = new Map<string, string>();
  /** The last cookies set, with their attributes. */
  setCookies: readonly string[] = [];
  readonly #send: (path: string, init?: RequestInit) => Promise<Response>;
  readonly #headers: Readonly<Record<string, string>>;

  constructor(
    send: (path: string, init?: RequestInit) => Promise<Response>,
    headers: Readonly<Record<string, string>> = {},
  ) {
    this.#send = send;
    this.#headers = headers;
  }

  async get(path: string, headers: Record<string, string> = {}): Promise<Response> {
    return this.#call(path, { method: 'GET', headers });
  }

  /** A form of a console page. */
  async submit(path: string, fields: Record<string, string>, headers: Record<string, string> = {}): Promise<Response> {
    const ofForm = { 'sec-fetch-site': 'same-origin', origin: 'null', accept: 'text/html', ...headers };
    return this.#call(path, { method: 'POST', headers: ofForm, body: new URLSearchParams(fields) });
  }

  async #call(
    path: string,
    init: Omit<RequestInit, 'headers'> & { readonly headers: Readonly<Record<string, string>> },
  ): Promise<Response> {
    const cookie = Array.from(this.cookies, ([name, value]) => `${name}=${value}`).join('; ');
    const headers = {
      ...this.#headers,
      'user-agent': 'TestBrowser/1',
      ...(cookie !== '' && { cookie }),
      ...init.headers,
    };
    const reply = await this.#send(path, { ...init, headers, redirect: 'manual' });
    this.setCookies = reply.headers.getSetCookie();
    for (const set of this.setCookies) this.#keep(set);
    return reply;
  }

  #keep(set: string): void {
    const [pair = ''] = set.split(';');
    const name = pair.slice(0, pair.indexOf('='));
    const value = pair.slice(pair.indexOf('=') + 1);
    if (/max-age=0/i.test(set)) this.cookies.delete(name);
    else this.cookies.set(name, value);
  }
}

/** Follows redirects with a browser's cookies until one leaves the provider at `origin`. */
export async function followRedirects(
  url: string,
  origin: string,
  send: (at: URL, cookie: string) => Promise<Response>,
): Promise<URL> {
  const cookies = new Map<string, string>();
  let at = new URL(url);
  for (let hops = 0; hops < 10; hops += 1) {
    const reply = await send(at, Array.from(cookies, ([name, value]) => `${name}=${value}`).join('; '));
    for (const set of reply.headers.getSetCookie()) {
      const [name = '', value = ''] = set.split(';')[0]?.split('=') ?? [];
      cookies.set(name, value);
    }
    const location = reply.headers.get('location');
    if (location === null) throw new Error(`the provider answered ${reply.status}: ${await reply.text()}`);
    at = new URL(location, at);
    if (at.origin !== origin) return at;
  }
  throw new Error('the provider redirects for ever');
}
