import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { InstalledConnector, Operation } from '../../shared/model/connector.ts';
import { compilePolicy, resolve } from '../../shared/resolve/resolve.ts';
import { pythonWith, rubyWithRails } from '../../tools/system_parts.mjs';
import { freePort } from '../support/free_port.ts';
import { countOf } from '../support/full_counts.ts';
import { GO_CACHE, runOk } from '../support/program.ts';
import { waitFor } from '../support/wait_for.ts';

// Invariant 8: any spelling that a real server reads as an operation that needs an approval is that operation for the proxy
// too, or is refused. Each server has the same five routes and answers with the name of the matched one.

const HOST = 'api.example.test';
const folder = fileURLToPath(new URL('spelling_servers/', import.meta.url));
const ROUTES = {
  refund: '/v1/refunds',
  batch: '/v1/things:batchDelete',
  me: '/users/@me',
  merge: '/repos/{o}/{r}/merge',
};
const PATHS = [...Object.values(ROUTES).slice(0, 3), '/repos/acme/site/merge'];

function operation(name: string, path: string, approval: Operation['approval']): Operation {
  return { name, method: 'POST', path, summary: '', description: '', approval, effect: 'write', inputs: [], audit: [] };
}

const operations = Object.entries(ROUTES).map(([name, path]) => operation(name, path, 'required'));
const installed: InstalledConnector = {
  id: 'con_1',
  owner: 'personal',
  spec: {
    fqn: 'acme/api',
    version: '1.0.0',
    title: '',
    description: '',
    hosts: [HOST],
    credential: { kind: 'api_key', scopes: [] },
    operations: [...operations, operation('thing', '/v1/{thing}', 'none')],
  },
  contentHash: '',
  credential: { owner: 'personal', path: 'connectors/acme/api' },
};
const policy = compilePolicy([], [installed]);

const percentEscape = (character: string): string => `%${character.charCodeAt(0).toString(16).padStart(2, '0')}`;
const lastOf = (path: string): number => path.lastIndexOf('/') + 1;

/** Every change that may leave a path the same for some server. */
const CHANGES: readonly ((path: string) => string)[] = [
  (path) => path,
  (path) => path.toUpperCase(),
  (path) => path.slice(0, lastOf(path)) + path.charAt(lastOf(path)).toUpperCase() + path.slice(lastOf(path) + 1),
  (path) => path.toLowerCase(),
  (path) => path.replaceAll(/[:@]/g, percentEscape),
  (path) => path.replaceAll(/[re]/g, percentEscape),
  (path) => path.replaceAll(/[re:@]/g, (character) => percentEscape(character).replace('%', '%25')),
  (path) => path.replace(/s/, '%C5%BF'),
  (path) => path.replaceAll(/(?<=.)\//g, '%2f'),
  (path) => path.replaceAll(/(?<=.)\//g, '%252F'),
  (path) => path.replaceAll(/(?<=.)\//g, '//'),
  (path) => path.replaceAll(/(?<=.)\//g, ';a=b/'),
  (path) => path.replaceAll(/(?<=.)\//g, '/./'),
  (path) => `/x/..${path}`,
  (path) => `/x/%2e%2e${path}`,
  (path) => `/x/%252e%252e${path}`,
  (path) => `/index.php${path}`,
  ...['/', '.', '.json', '.xml', '.api', '.json/', '%2Ejson', ';x', '%3bx', '%20', '%09', '%0a', '%0ax', '%00', '%00.json', '%3Fa', '%23a', '%3f.json', '%2f', '%5c', '()', '~', '+', '%2520', '%250A'].map((end) => (path: string) => path + end), // prettier-ignore
];
/** Of the pairs of changes, one in so many. */
const ONE_IN = countOf(4, 16);
/** Each change, and some pairs, the second one applied after the first. */
const SPELLINGS = [
  ...new Set(
    PATHS.flatMap((path) =>
      CHANGES.flatMap((one, at) =>
        CHANGES.filter((_, second) => second === 0 || (at * 3 + second) % ONE_IN === 0).map((other) =>
          other(one(path)),
        ),
      ),
    ),
  ),
];

const children: ChildProcess[] = [];
const scratch = mkdtempSync(join(tmpdir(), 'svc-spellings-'));

/** Starts a server that prints its port. */
async function startServer(
  command: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<number> {
  const child = spawn(command, args, { env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'ignore'] });
  children.push(child);
  for await (const line of createInterface({ input: child.stdout })) {
    const port = /^port (\d+)$/.exec(line)?.[1];
    if (port !== undefined) return Number(port);
  }
  throw new Error(`${command} printed no port`);
}

/** `go run` would not pass on the signal that ends it, so the server is built first. */
async function startGoServer(): Promise<number> {
  const binary = join(scratch, 'server');
  const env = { GOCACHE: GO_CACHE, GOTOOLCHAIN: 'local' };
  await runOk('go', ['build', '-o', binary, join(folder, 'server.go')], { env });
  return startServer(binary, []);
}

/** nginx in front of another server, with what `proxy_pass` is given after the address. */
async function nginx(behind: number, uri: string): Promise<number> {
  const port = await freePort();
  const config = join(scratch, `nginx-${port}.conf`);
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `${name}_temp_path ${scratch}/${name};`,
  );
  const server = `server { listen 127.0.0.1:${port}; location / { proxy_pass http://127.0.0.1:${behind}${uri}; } }`;
  writeFileSync(
    config,
    `daemon off; pid ${config}.pid; error_log /dev/null; events {} http { access_log off; ${paths.join(' ')} ${server} }`,
  );
  const child = spawn('nginx', ['-c', config], { env: withSbin(), stdio: 'ignore' });
  children.push(child);
  await waitFor('nginx to answer', async () => {
    if (child.exitCode !== null) throw new Error('nginx ended');
    return (await answerOf(port, '/v1/refunds').catch(() => '')) !== '';
  });
  return port;
}

function withSbin(): NodeJS.ProcessEnv {
  return { ...process.env, PATH: `${process.env['PATH']}:/usr/sbin` };
}

/** The route that a server picks for a path, sent unchanged. */
function answerOf(port: number, path: string): Promise<string> {
  return new Promise((done, fail) => {
    const socket = connect(port, '127.0.0.1');
    let text = '';
    socket.on('error', fail);
    socket.on('data', (chunk: Buffer) => (text += chunk.toString('latin1')));
    socket.on('close', () => done(text));
    socket.write(`POST ${path} HTTP/1.1\r\nHost: ${HOST}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`, 'latin1');
  });
}

/** The whole body is the route's name, possibly as one chunk; error pages quote the path. */
function routeIn(reply: string): string {
  const [, body = ''] = reply.split('\r\n\r\n', 2);
  return /^(?:[0-9a-f]+\r\n)?(refund|batch|me|merge)\b(?:\r\n|$)/.exec(body)?.[1] ?? 'none';
}

function decisionOf(path: string): string {
  const found = resolve(policy, { method: 'POST', host: HOST, path });
  return found.kind === 'connector' ? found.match.operation.name : found.kind;
}

const has = (command: string, ...args: readonly string[]): boolean =>
  spawnSync(command, args, { env: withSbin(), stdio: 'ignore' }).status === 0;

interface Server {
  readonly name: string;
  readonly isHere: boolean;
  readonly start: () => Promise<number>;
}

const script = (name: string, ...args: readonly string[]): Promise<number> =>
  startServer(process.execPath, [join(folder, name), ...args]);
const python = (module: string, name: string): Promise<number> =>
  startServer(pythonWith(module) ?? 'python3', [join(folder, name)]);
const SERVERS: readonly Server[] = [
  { name: 'Express', isHere: true, start: () => script('express_server.mjs') },
  { name: 'Fastify', isHere: true, start: () => script('fastify_server.mjs') },
  { name: 'Fastify that matches more', isHere: true, start: () => script('fastify_server.mjs', 'lenient') },
  { name: 'a router with format suffixes, as of Rails', isHere: true, start: () => script('suffix_server.mjs') },
  { name: 'Flask', isHere: pythonWith('flask') !== null, start: () => python('flask', 'flask_server.py') },
  { name: 'Django REST framework', isHere: pythonWith('rest_framework') !== null, start: () => python('rest_framework', 'django_server.py') }, // prettier-ignore
  {
    name: 'Rails',
    isHere: rubyWithRails() !== null,
    start: () => startServer(rubyWithRails() ?? 'ruby', [join(folder, 'rails_routes.rb')]),
  },
  {
    name: 'Go net/http',
    isHere: has('go', 'version'),
    start: startGoServer,
  },
  ...['', '/', '$uri'].map((uri) => ({
    name: `Express behind nginx, proxy_pass with "${uri}"`,
    isHere: has('nginx', '-v'),
    start: async () => nginx(await script('express_server.mjs'), uri),
  })),
];

afterAll(() => {
  for (const child of children) child.kill();
  rmSync(scratch, { recursive: true, force: true });
});

describe.each(SERVERS)('any path that $name reads as an operation that needs an approval', ({ isHere, start }) => {
  let port = 0;
  beforeAll(async () => {
    if (isHere) port = await start();
  });

  it.skipIf(!isHere)('is that operation, or is refused', async () => {
    const passed: string[] = [];
    let reached = 0;
    const queue = [...SPELLINGS];
    const lane = async (): Promise<void> => {
      for (let path = queue.pop(); path !== undefined; path = queue.pop()) {
        const route = routeIn(await answerOf(port, path));
        const decision = decisionOf(path);
        if (route === 'none') continue;
        reached += 1;
        if (decision !== 'ambiguous_target' && decision !== route) passed.push(`${path}: ${route}, not ${decision}`);
      }
    };
    await Promise.all(Array.from({ length: 16 }, lane));
    expect(passed).toEqual([]);
    expect(reached).toBeGreaterThan(PATHS.length);
  });

  it.skipIf(!isHere)('is that operation as documented', async () => {
    for (const path of PATHS.slice(0, 3)) {
      expect([path, routeIn(await answerOf(port, path))]).toEqual([path, decisionOf(path)]);
    }
  });
});
