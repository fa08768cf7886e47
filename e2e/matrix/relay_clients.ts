import { join } from 'node:path';
import { expect } from 'vitest';
import { withoutNetlink } from '../support/chromium.ts';
import type { MatrixClient } from './client.ts';
import { expectItemsCalls, ITEM, type ItemsService, JSON_TYPE } from './http_clients.ts';
import { HOSTS, ITEMS, ITEMS_OVER_HTTP2, PROGRAMS, type MatrixWorld } from './world.ts';

const JAVA = { probe: 'command -v javac && java --version', packages: 'default-jdk-headless' };
const CHROMIUM = { probe: 'chromium --version', packages: 'chromium' };

function java(client: string, url = ITEMS): readonly string[] {
  return ['java', join(PROGRAMS, 'Items.java'), client, url];
}

function javaClient(name: string, client: string, service: ItemsService = 'items', url = ITEMS): MatrixClient {
  const use = async (world: MatrixWorld): Promise<void> =>
    expectItemsCalls(world, await world.runWithRelay(java(client, url)), service);
  return {
    name,
    ...JAVA,
    sets: ['JAVA_TOOL_OPTIONS'],
    relay: true,
    tried: 'GET, POST',
    works: true,
    service,
    use,
  };
}

/** Chromium as root has to run without its sandbox; the proxy has no part in that. */
function chromium(profile: string, flags: string, host: string = HOSTS.items, page = 'page'): string {
  const sandbox = process.getuid?.() === 0 ? '--no-sandbox' : '';
  const quiet = '--headless --disable-gpu --no-first-run --disable-background-networking --disable-component-update';
  const patience = '--virtual-time-budget=8000 --dump-dom';
  const { program, env } = withoutNetlink('chromium');
  const variables = Object.entries(env).map(([name, value]) => `${name}=${value}`);
  return `${variables.join(' ')} exec '${program}' ${quiet} ${sandbox} --user-data-dir='${profile}' ${flags} ${patience} https://${host}/${page}`;
}

interface ChromiumRow {
  readonly name: string;
  readonly service: ItemsService;
  readonly page: string;
  readonly tried: string;
  /** What the page shows in the end. */
  readonly said: string;
  /** The requests of the page after its own. */
  readonly sends: readonly string[];
}

function chromiumClient({ name, service, page, tried, said, sends }: ChromiumRow): MatrixClient {
  const use = async (world: MatrixWorld): Promise<void> => {
    const command = chromium(world.folder('chromium'), '$SVC_CHROMIUM_FLAGS', HOSTS[service], page);
    const shown = await world.runWithRelay(['sh', '-c', command]);
    expect(shown).toContain(`<p id="said">${said}</p>`);
    const requests = world.services[service].requests.filter(({ path }) => path !== '/favicon.ico');
    const sent = requests.map(({ method, path }) => `${method} ${path}`);
    expect([sent[0], sent.slice(1).toSorted()]).toEqual([`GET /${page}`, sends.toSorted()]);
    expectVersion(requests, service);
  };
  return {
    name,
    ...CHROMIUM,
    sets: ['SVC_CHROMIUM_FLAGS'],
    relay: true,
    tried,
    note: 'with `--user-data-dir="$(mktemp -d)" $SVC_CHROMIUM_FLAGS` on its command line',
    works: true,
    service,
    use,
  };
}

const POSTS = { page: 'page', tried: 'a page, and a POST by its script', said: 'made 201', sends: ['POST /items'] };

/** `opens`: the method of the request that opens the WebSocket. */
function webSocketPage(opens: string): Omit<ChromiumRow, 'name' | 'service'> {
  const sends = [`${opens} /socket`, 'GET /held', 'GET /closed'];
  return { page: 'socket-page', tried: 'a page, and a WebSocket by its script', said: 'heard hello', sends };
}

function expectVersion(requests: readonly { readonly version: string }[], service: ItemsService): void {
  expect(new Set(requests.map(({ version }) => version))).toEqual(new Set([service === 'items' ? '1.1' : '2.0']));
}

/** A program that knows no proxy, with a port of loopback in its place. */
function socatClient(
  name: string,
  sets: readonly string[],
  command: string,
  tried: string,
  expectCalls: (world: MatrixWorld, said: string) => void,
): MatrixClient {
  const through = ['sh', join(PROGRAMS, 'through_socat.sh'), HOSTS.itemsOverHttp2, command];
  return {
    name,
    probe: `command -v ${name} && command -v socat`,
    packages: 'nghttp2-client socat',
    sets: ['SVC_RELAY_URL', ...sets],
    relay: true,
    tried,
    note: 'behind socat, which makes a port of loopback lead to the host: it knows no proxy',
    works: true,
    service: 'itemsOverHttp2',
    use: async (world) => expectCalls(world, await world.runWithRelay(through)),
  };
}

const NGHTTP = `nghttp -H':authority: ${HOSTS.itemsOverHttp2}'`;
const LOADED = 200;

function expectLoad(world: MatrixWorld, said: string): void {
  expect(said).toContain(`${LOADED} succeeded, 0 failed`);
  const { requests } = world.services.itemsOverHttp2;
  expect(requests).toHaveLength(LOADED);
  expectVersion(requests, 'itemsOverHttp2');
}

/** Runs a client without the relay, and expects that it fails and sends nothing. */
function withoutRelay(
  row: Pick<MatrixClient, 'name' | 'probe' | 'packages' | 'note'>,
  command: (world: MatrixWorld) => readonly string[],
): MatrixClient {
  const use = async (world: MatrixWorld): Promise<void> => {
    const done = await world.tryRun(command(world));
    expect(done.stdout).not.toContain('made');
    expect(world.services.items.requests).toEqual([]);
  };
  return { ...row, sets: [], tried: 'the same', works: false, service: 'items', use };
}

export const RELAY_CLIENTS: readonly MatrixClient[] = [
  javaClient('Java HttpClient', 'HttpClient'),
  javaClient('Java HttpClient, HTTP/2', 'HttpClient', 'itemsOverHttp2', ITEMS_OVER_HTTP2),
  javaClient('Java HttpsURLConnection', 'HttpsURLConnection'),
  withoutRelay(
    {
      name: 'Java, without `--relay`',
      ...JAVA,
      note: 'a JVM reads no proxy variable, and no property of it holds credentials for a proxy',
    },
    () => java('HttpClient'),
  ),
  chromiumClient({ name: 'Chromium, headless', service: 'items', ...POSTS }),
  chromiumClient({ name: 'Chromium, headless, HTTP/2', service: 'itemsOverHttp2', ...POSTS }),
  chromiumClient({ name: 'Chromium, WebSocket', service: 'items', ...webSocketPage('GET') }),
  chromiumClient({
    name: 'Chromium, WebSocket over HTTP/2',
    service: 'itemsOverHttp2',
    ...webSocketPage('CONNECT'),
  }),
  withoutRelay(
    {
      name: 'Chromium, without `--relay`',
      ...CHROMIUM,
      note: 'it reads the proxy variables, but drops the credentials in them',
    },
    (world) => ['sh', '-c', chromium(world.folder('chromium'), '')],
  ),
  socatClient(
    'nghttp',
    ['SSL_CERT_FILE'],
    `${NGHTTP} "https://127.0.0.1:$PORT/items?page=1"; printf '${ITEM}' >"$0.body"; ${NGHTTP} -H'${JSON_TYPE}' -d "$0.body" "https://127.0.0.1:$PORT/items"`,
    'GET, POST',
    (world, said) => expectItemsCalls(world, said, 'itemsOverHttp2'),
  ),
  socatClient(
    'h2load',
    [],
    `h2load -n ${LOADED} -c 1 -m 100 --connect-to="127.0.0.1:$PORT" '${ITEMS_OVER_HTTP2}?page=1'`,
    `${LOADED} requests, 100 at a time on one connection`,
    expectLoad,
  ),
];
