import { join } from 'node:path';
import { expect } from 'vitest';
import { pythonWith } from '../../tools/system_parts.mjs';
import { GO_CACHE } from '../support/program.ts';
import { PROXY, type MatrixClient } from './client.ts';
import { HOSTS, ITEMS, ITEMS_OVER_HTTP2, PROGRAMS, type MatrixWorld } from './world.ts';

type Command = readonly string[];
export type ItemsService = 'items' | 'itemsOverHttp2';

/** A client that lists the items and posts one. */
function itemsClient(
  row: Pick<MatrixClient, 'name' | 'probe' | 'packages' | 'sets' | 'note'>,
  command: Command | ((world: MatrixWorld) => Promise<Command>),
  service: ItemsService = 'items',
): MatrixClient {
  const use = async (world: MatrixWorld): Promise<void> => {
    const said = await world.run(typeof command === 'function' ? await command(world) : command);
    expectItemsCalls(world, said, service);
  };
  return { ...row, tried: 'GET, POST', works: true, service, use };
}

/** Expects the calls that every client of the items makes, and the last reply in its output. */
export function expectItemsCalls(world: MatrixWorld, said: string, service: ItemsService = 'items'): void {
  const calls = world.services[service].requests.map(({ version, method, path, query, body }) => {
    const sent: unknown = method === 'POST' ? JSON.parse(body.toString('utf8')) : query.get('page');
    return [version, method, path, sent];
  });
  const version = service === 'items' ? '1.1' : '2.0';
  expect(calls).toEqual([
    [version, 'GET', '/items', '1'],
    [version, 'POST', '/items', { title: 'a' }],
  ]);
  expect(said).toContain('{"made":true}');
}

function script(name: string): string {
  return join(PROGRAMS, name);
}

function pythonClient(module: string, name: string, variable: string, packages: string): MatrixClient {
  const python = pythonWith(module) ?? 'python3';
  const probe = `${python} -c 'import ${module}'`;
  const command = [python, script(`items_${module}.py`), ITEMS];
  return itemsClient({ name, probe, packages, sets: [PROXY, variable] }, command);
}

async function buildGo(world: MatrixWorld, url = ITEMS): Promise<Command> {
  const binary = join(world.folder('go'), 'items');
  const env = { ...goEnvironment(world), GOPROXY: 'off', GOFLAGS: '-mod=mod' };
  await world.run(['go', 'build', '-o', binary, script('items.go')], { env });
  return [binary, url];
}

function goEnvironment(world: MatrixWorld): Readonly<Record<string, string>> {
  const folder = world.folder('go-settings');
  return { GOCACHE: GO_CACHE, GOPATH: folder, GOTOOLCHAIN: 'local' };
}

export const JSON_TYPE = 'content-type: application/json';
export const ITEM = '{"title":"a"}';
const WGET = 'wget -q -O - --ca-certificate="$SSL_CERT_FILE"';
const HTTPX = pythonWith('httpx, h2') ?? 'python3';
const DENO = ['deno', 'run', '--no-config', '--allow-net', script('items_fetch.mjs'), ITEMS];

function curl(url: string): Command {
  return ['curl', '-sS', `${url}?page=1`, '--next', '-sS', '-H', JSON_TYPE, '-d', ITEM, url];
}

function undiciClient(name: string, caller: 'request' | 'fetch', note: string): MatrixClient {
  const row = { name, probe: 'true', packages: null, sets: [PROXY, 'NODE_EXTRA_CA_CERTS'], note };
  return itemsClient(row, [process.execPath, script('items_undici.mjs'), caller, ITEMS_OVER_HTTP2], 'itemsOverHttp2');
}

export const HTTP_CLIENTS: readonly MatrixClient[] = [
  itemsClient(
    { name: 'curl', probe: 'curl --version', packages: 'curl', sets: [PROXY, 'CURL_CA_BUNDLE'] },
    curl(ITEMS),
  ),
  itemsClient(
    {
      name: 'wget',
      probe: 'wget --version',
      packages: 'wget',
      sets: [PROXY],
      note: 'with `--ca-certificate="$SSL_CERT_FILE"`; built with GnuTLS, as in Debian, it reads no variable for its roots',
    },
    ['sh', '-ec', `${WGET} '${ITEMS}?page=1'; ${WGET} --header '${JSON_TYPE}' --post-data '${ITEM}' '${ITEMS}'`],
  ),
  itemsClient(
    {
      name: 'openssl s_client',
      probe: 'openssl version',
      packages: 'openssl',
      sets: [PROXY, 'SSL_CERT_FILE'],
      note: 'with `-proxy`, `-proxy_user` and `-proxy_pass`, which take the parts of `$HTTPS_PROXY`',
    },
    ['sh', script('items_openssl.sh'), HOSTS.items, '/items'],
  ),
  pythonClient('requests', 'Python requests', 'REQUESTS_CA_BUNDLE', 'python3-requests'),
  pythonClient('httpx', 'Python httpx', 'SSL_CERT_FILE', 'python3-httpx'),
  pythonClient('urllib', 'Python urllib', 'SSL_CERT_FILE', 'python3'),
  itemsClient(
    { name: 'Node fetch', probe: 'true', packages: null, sets: [PROXY, 'NODE_USE_ENV_PROXY', 'NODE_EXTRA_CA_CERTS'] },
    [process.execPath, script('items_fetch.mjs'), ITEMS],
  ),
  itemsClient(
    { name: 'Node https', probe: 'true', packages: null, sets: [PROXY, 'NODE_USE_ENV_PROXY', 'NODE_EXTRA_CA_CERTS'] },
    [process.execPath, script('items_https.mjs'), ITEMS],
  ),
  itemsClient({ name: 'Deno fetch', probe: 'deno --version', packages: null, sets: [PROXY, 'DENO_CERT'] }, DENO),
  itemsClient(
    { name: 'Go net/http', probe: 'go version', packages: 'golang-go', sets: [PROXY, 'SSL_CERT_FILE'] },
    (world) => buildGo(world),
  ),
  itemsClient(
    {
      name: 'curl, HTTP/2',
      probe: 'curl --version | grep -qw HTTP2',
      packages: 'curl',
      sets: [PROXY, 'CURL_CA_BUNDLE'],
    },
    curl(ITEMS_OVER_HTTP2),
    'itemsOverHttp2',
  ),
  itemsClient(
    {
      name: 'Python httpx, HTTP/2',
      probe: `${HTTPX} -c 'import httpx, h2'`,
      packages: 'python3-httpx python3-h2',
      sets: [PROXY, 'SSL_CERT_FILE'],
      note: 'with `http2=True`',
    },
    [HTTPX, script('items_httpx.py'), ITEMS_OVER_HTTP2, 'http2'],
    'itemsOverHttp2',
  ),
  itemsClient(
    { name: 'Go net/http, HTTP/2', probe: 'go version', packages: 'golang-go', sets: [PROXY, 'SSL_CERT_FILE'] },
    (world) => buildGo(world, ITEMS_OVER_HTTP2),
    'itemsOverHttp2',
  ),
  undiciClient('undici, HTTP/2', 'request', 'with `allowH2`, also in `requestTls`, of its `EnvHttpProxyAgent`'),
  undiciClient('Node fetch, HTTP/2', 'fetch', 'with the `dispatcher` of undici'),
];
