import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { BAD_ENTRIES, flatEntry, generatedEntry, type PublishedEntry } from './registry_entries.ts';

/** The registry's behaviour; it may change between calls. */
type Behaviour =
  | 'well'
  /** Entries in the flat shape of early 2025. */
  | 'flat'
  /** The same from a registry that knows no `/versions`. */
  | 'flat_only'
  /** Every page also holds entries that are none. */
  | 'bad_entries'
  /** 429 with an HTML page and `Retry-After: 7`. */
  | 'too_many'
  /** Answers after {@link RegistryServer.slowMs}. */
  | 'slow'
  /** Accepts and never answers. */
  | 'silent'
  /** Sends JSON that never ends. */
  | 'endless'
  | 'redirecting'
  /** Each page names the first one as the next. */
  | 'cursor_loop'
  /** 200 with what is no JSON. */
  | 'garbage'
  /** 500 with JSON. */
  | 'failing';

export interface RegistryServer {
  readonly url: string;
  behaviour: Behaviour;
  slowMs: number;
  /** Every page but the first is sent once this is resolved. */
  laterPages: Promise<void>;
  /** The targets of all calls so far, in order. */
  readonly calls: string[];
  /** Publishes an entry: a new one, a new version or a new state. */
  publish(entry: PublishedEntry): void;
  /** What a generated entry is now. */
  entry(index: number): PublishedEntry;
  /** Closes every connection and stops listening; `start` listens on the same port again. */
  stop(): Promise<void>;
  start(): Promise<void>;
}

interface RegistryOptions {
  readonly entries: number;
  readonly seed?: number;
  readonly port?: number;
}

const MAX_PAGE = 100;

/** A registry that serves `/v0/servers`, with as many generated entries as a test wants. */
export async function startRegistryServer(options: RegistryOptions): Promise<RegistryServer> {
  const registry = new GeneratedRegistry(options.entries, options.seed ?? 1);
  const server = createServer((request, response) => registry.answer(request, response));
  let port = options.port ?? 0;
  const start = async () => {
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
    const address = server.address();
    port = typeof address === 'object' && address !== null ? address.port : port;
  };
  await start();
  return Object.assign(registry, {
    url: `http://127.0.0.1:${port}`,
    start,
    async stop() {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  });
}

class GeneratedRegistry {
  behaviour: Behaviour = 'well';
  slowMs = 1_000;
  laterPages = Promise.resolve();
  readonly calls: string[] = [];
  readonly #count: number;
  readonly #seed: number;
  /** Every published version by name; the last one is the latest. */
  readonly #published = new Map<string, PublishedEntry[]>();
  #added: string[] = [];

  constructor(count: number, seed: number) {
    this.#count = count;
    this.#seed = seed;
  }

  entry(index: number): PublishedEntry {
    const generated = generatedEntry(index, this.#seed);
    return this.#published.get(generated.server.name)?.at(-1) ?? generated;
  }

  publish(entry: PublishedEntry): void {
    const { name } = entry.server;
    const before = this.#versions(name);
    this.#published.set(name, [...before.filter(({ server }) => server.version !== entry.server.version), entry]);
    if (before.length === 0) this.#added = [...this.#added, name];
  }

  answer(request: IncomingMessage, response: ServerResponse): void {
    const target = request.url ?? '/';
    this.calls.push(target);
    const misbehave = MISBEHAVIOURS[this.behaviour];
    if (misbehave !== undefined) return misbehave(response);
    const reply = async () => {
      if (target.includes('cursor=')) await this.laterPages;
      this.#reply(new URL(target, 'http://registry'), response);
    };
    if (this.behaviour === 'slow') setTimeout(() => void reply(), this.slowMs);
    else void reply();
  }

  #reply(url: URL, response: ServerResponse): void {
    const [, , , encoded, versions, version] = url.pathname.split('/');
    if (encoded === undefined) return this.#list(url.searchParams, response);
    const all = this.#versions(decodeURIComponent(encoded));
    if (all.length === 0 || this.behaviour === 'flat_only' || versions !== 'versions')
      return sendJson(response, 404, { title: 'Not Found', status: 404 });
    if (version === undefined) return sendJson(response, 200, this.#page(all.toReversed(), all.at(-1) ?? null));
    const wanted = decodeURIComponent(version);
    const found = wanted === 'latest' ? all.at(-1) : all.find(({ server }) => server.version === wanted);
    if (found === undefined) return sendJson(response, 404, { title: 'Not Found', status: 404 });
    return sendJson(response, 200, wrapEntry(found, found === all.at(-1)));
  }

  #list(query: URLSearchParams, response: ServerResponse): void {
    const limit = Math.min(Number(query.get('limit') ?? 30), MAX_PAGE);
    const from = Number(query.get('cursor') ?? 0);
    const shown: PublishedEntry[] = [];
    let at = from;
    for (; at < this.#total() && shown.length < limit; at += 1) {
      const entry = this.#at(at);
      if (isListed(entry, query)) shown.push(entry);
    }
    const next = this.behaviour === 'cursor_loop' ? '0' : at < this.#total() ? String(at) : undefined;
    sendJson(response, 200, this.#page(shown, null, next));
  }

  #page(entries: readonly PublishedEntry[], latest: PublishedEntry | null, nextCursor?: string) {
    const servers: unknown[] = entries.map((entry) =>
      this.behaviour.startsWith('flat') ? flatEntry(entry) : wrapEntry(entry, latest === null || entry === latest),
    );
    if (this.behaviour === 'bad_entries') servers.push(...BAD_ENTRIES);
    const metadata = { count: entries.length, ...(nextCursor !== undefined && { nextCursor }) };
    return { servers, metadata };
  }

  #total(): number {
    return this.#count + this.#added.length;
  }

  #at(index: number): PublishedEntry {
    if (index < this.#count) return this.entry(index);
    const name = this.#added[index - this.#count] ?? '';
    return this.#versions(name).at(-1) ?? generatedEntry(index, this.#seed);
  }

  #versions(name: string): readonly PublishedEntry[] {
    const published = this.#published.get(name);
    if (published !== undefined) return published;
    const index = Number(/^io\.example\.n(\d{6})\//.exec(name)?.[1] ?? Number.NaN);
    if (!(index < this.#count)) return [];
    const generated = generatedEntry(index, this.#seed);
    return generated.server.name === name ? [generated] : [];
  }
}

/** Like the public registry: deleted entries are listed only for requests with `updated_since`. */
function isListed({ server, status, updatedAt }: PublishedEntry, query: URLSearchParams): boolean {
  const since = query.get('updated_since');
  if (since === null && status === 'deleted') return false;
  if (since !== null && Date.parse(updatedAt) < Date.parse(since)) return false;
  return server.name.toLowerCase().includes((query.get('search') ?? '').toLowerCase());
}

function wrapEntry({ server, status, updatedAt }: PublishedEntry, isLatest: boolean) {
  const official = { status, publishedAt: updatedAt, updatedAt, isLatest };
  return { server, _meta: { 'io.modelcontextprotocol.registry/official': official } };
}

function sendJson(response: ServerResponse, status: number, value: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(value));
}

const MISBEHAVIOURS: { readonly [B in Behaviour]?: (response: ServerResponse) => void } = {
  too_many(response) {
    response.writeHead(429, { 'content-type': 'text/html', 'retry-after': '7' });
    response.end('<html><body><h1>429 Too Many Requests</h1></body></html>');
  },
  silent() {
    // The caller is left waiting.
  },
  endless(response) {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.write('{"servers":[');
    const more = () => {
      while (
        !response.destroyed &&
        response.write(`{"server":{"name":"io.example/x","pad":"${'x'.repeat(60_000)}"}},`)
      );
      if (!response.destroyed) response.once('drain', more);
    };
    more();
  },
  redirecting(response) {
    response.writeHead(302, { location: 'http://127.0.0.1:1/v0/servers' });
    response.end();
  },
  garbage(response) {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end('{"servers": [{"server"');
  },
  failing(response) {
    sendJson(response, 500, { title: 'Internal Server Error', status: 500 });
  },
};
