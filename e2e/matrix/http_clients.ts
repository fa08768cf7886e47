import { join } from 'node:path';
import { expect } from 'vitest';
import { pythonWith } from '../../tools/system_parts.mjs';
import { PROXY, type MatrixClient } from './client.ts';
import { HOSTS, ITEMS, PROGRAMS, type MatrixWorld } from './world.ts';

type Command = readonly string[];

/** A client that lists the items and posts one. */
function itemsClient(
  row: Pick<MatrixClient, 'name' | 'probe' | 'packages' | 'sets' | 'note'>,
  command: Command | ((world: MatrixWorld) => Promise<Command>),
): MatrixClient {
  const use = async (world: MatrixWorld): Promise<void> => {
    const said = await world.run(typeof command === 'function' ? await command(world) : command);
    expectItemsCalls(world, said);
  };
  return { ...row, tried: 'GET, POST', works: true, service: 'items', use };
}

/** Expects the calls that every client of the items makes, and the last reply in its output. */
export function expectItemsCalls(world: MatrixWorld, said: string): void {
  const calls = world.services.items.requests.map(({ method, path, query, body }) => {
    const sent: unknown = method === 'POST' ? JSON.parse(body.toString('utf8')) : query.get('page');
    return [method, path, sent];
  });
  expect(calls).toEqual([
    ['GET', '/items', '1'],
    ['POST', '/items', { title: 'a' }],
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

async function buildGo(world: MatrixWorld): Promise<Command> {
  const folder = world.folder('go');
  const binary = join(folder, 'items');
  const env = {
    GOCACHE: join(folder, 'cache'),
    GOPATH: folder,
    GOPROXY: 'off',
    GOFLAGS: '-mod=mod',
    GOTOOLCHAIN: 'local',
  };
  await world.run(['go', 'build', '-o', binary, script('items.go')], { env, timeoutMs: 240_000 });
  return [binary, ITEMS];
}

const JSON_TYPE = 'content-type: application/json';
const ITEM = '{"title":"a"}';
const WGET = 'wget -q -O - --ca-certificate="$SSL_CERT_FILE"';
const DENO = ['deno', 'run', '--no-config', '--allow-net', script('items_fetch.mjs'), ITEMS];

export const HTTP_CLIENTS: readonly MatrixClient[] = [
  itemsClient({ name: 'curl', probe: 'curl --version', packages: 'curl', sets: [PROXY, 'CURL_CA_BUNDLE'] }, [
    'curl',
    '-sS',
    `${ITEMS}?page=1`,
    '--next',
    '-sS',
    '-H',
    JSON_TYPE,
    '-d',
    ITEM,
    ITEMS,
  ]),
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
    buildGo,
  ),
];
