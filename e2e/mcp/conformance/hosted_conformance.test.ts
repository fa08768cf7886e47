import type { ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { getRequestListener } from '@hono/node-server';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { mcpTokens } from '../../../shared/wire/mcp/mcp_clients.ts';
import { cachedInstall } from '../../support/cached_install.ts';
import { ONLY_FULL } from '../../support/full_counts.ts';
import { freePort } from '../../support/free_port.ts';
import { run, start } from '../../support/program.ts';
import { listen } from '../../support/tls_upstream.ts';
import { expectMcpTable } from '../mcp_table.ts';
import {
  addRemoteServer,
  decideInBrowser,
  pkce,
  registered,
  type RemoteUser,
  remoteUser,
  type RemoteWorld,
  startRemoteWorld,
} from '../remote_world.ts';
import { isUnmet, readSuiteResults } from './suite_results.ts';

// The protocol's own conformance suite against a hosted control plane: its authorization server, and `/mcp` with the server
// that the suite expects behind it. `MCP_MD=write` with `SVC_TEST_FULL=1` writes the table of docs/mcp.md.

const HERE = import.meta.dirname;
const SUITE = 'node_modules/@modelcontextprotocol/conformance/dist/index.js';
const PREVIEW = 'node_modules/conformance-of-clients/dist/index.js';
const TOOLS = [
  'tools-list',
  'tools-call-simple-text',
  'tools-call-image',
  'tools-call-audio',
  'tools-call-embedded-resource',
  'tools-call-mixed-content',
  'tools-call-error',
  'json-schema-2020-12',
];
/** What concerns tools and the transport. `/mcp` serves nothing else, and sends nothing while a call runs. */
const PLAYS = [
  {
    revision: '2025-11-25',
    suite: SUITE,
    options: [],
    scenarios: ['server-initialize', 'ping', ...TOOLS, 'dns-rebinding-protection'],
  },
  {
    revision: '2026-07-28',
    suite: PREVIEW,
    options: ['--spec-version', '2026-07-28'],
    scenarios: [
      'server-stateless',
      ...TOOLS,
      'dns-rebinding-protection',
      'http-header-validation',
      'http-custom-header-server-validation',
      'server-sse-multiple-streams',
    ],
  },
] as const;
const TOKEN = 'token-of-the-fixture';
const SERVER = 'fixture';
const PREFIX = `${SERVER}__`;

const installed = await cachedInstall({ name: 'conformance', from: HERE });

let folder: string;
let world: RemoteWorld;
let user: RemoteUser;
let origin: string;
let fixture: ChildProcess;
const servers: Server[] = [];

interface ReadRequest {
  readonly method: string;
  readonly headers: Headers;
  readonly body: string | null;
}

async function readRequest(request: Request): Promise<ReadRequest> {
  const { method, headers } = request;
  return { method, headers, body: method === 'POST' ? await request.text() : null };
}

/** A server of this test on a free port. */
async function serve(answer: (request: Request) => Promise<Response>): Promise<string> {
  const listener = getRequestListener(answer);
  const server = createServer((request, response) => void listener(request, response));
  servers.push(server);
  return `http://127.0.0.1:${await listen(server)}`;
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'svc-e2e-conformance-'));
  origin = await serve(async (request) => world.control.send(request.url, await readRequest(request)));
  world = await startRemoteWorld(origin);
  user = await remoteUser(world.control);
  fixture = start(process.execPath, [join(HERE, 'http_fixture_server.js')]);
  const [port] = await new Promise<string[]>((resolve) => {
    createInterface({ input: fixture.stdout! }).once('line', (line) => resolve([line]));
  });
  world.hosts.set('tools.example.com', async (request) => {
    if (request.headers.get('authorization') !== `Bearer ${TOKEN}`) return new Response('no', { status: 401 });
    return fetch(`http://127.0.0.1:${port}/mcp`, await readRequest(request));
  });
  await addRemoteServer(user, { name: SERVER }, TOKEN);
});
afterAll(async () => {
  fixture.kill();
  for (const server of servers) {
    server.closeAllConnections();
    server.close();
  }
  await world.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** What `npm test` plays; the others are alike. */
const SAMPLE: ReadonlySet<string> = new Set([
  'server-initialize',
  'tools-call-mixed-content',
  'server-stateless',
  'http-header-validation',
  'http-custom-header-server-validation',
]);

/** Checks about what `/mcp` does not serve: subscriptions, and whatever is sent to a client while its call runs. */
const NOT_SERVED: ReadonlySet<string> = new Set([
  'sep-2575-server-rejects-undeclared-capability',
  'sep-2575-missing-capability-http-400',
  'sep-2575-http-server-no-independent-requests-on-stream',
  'sep-2575-server-no-log-without-loglevel',
  'sep-2575-server-sends-subscription-ack',
  'sep-2575-server-tags-subscription-id',
]);

/** One scenario: how many of its checks passed, and those that did not. */
interface Played {
  readonly scenario: string;
  readonly passed: number;
  readonly problems: readonly string[];
}

/** What the suite wrote about a scenario below this folder. */
function readPlayed(scenario: string, place: string): Played {
  const checks = [...readSuiteResults(place).values()].flat();
  const unmet = checks.filter((check) => isUnmet(check) && !NOT_SERVED.has(check.id));
  const problems = unmet.map(({ id, errorMessage = '' }) => `${id}: ${errorMessage}`);
  return { scenario, passed: checks.filter(({ status }) => status === 'SUCCESS').length, problems };
}

/** Connects a client as a person does in a browser, and returns its token. */
async function connectClient(redirectUri: string): Promise<string> {
  const clientId = await registerClient(redirectUri);
  const { verifier, challenge } = await pkce();
  const asked = { response_type: 'code', client_id: clientId, redirect_uri: redirectUri, code_challenge: challenge };
  const query = new URLSearchParams({ ...asked, code_challenge_method: 'S256' }).toString();
  const back = await decide(`${origin}/oauth/authorize?${query}`);
  const code = new URL(back).searchParams.get('code') ?? '';
  const exchange = { grant_type: 'authorization_code', code, client_id: clientId, redirect_uri: redirectUri };
  const body = new URLSearchParams({ ...exchange, code_verifier: verifier });
  return mcpTokens.parse(await (await fetch(`${origin}/oauth/token`, { method: 'POST', body })).json()).access_token;
}

async function registerClient(redirectUri: string): Promise<string> {
  const body = JSON.stringify({ redirect_uris: [redirectUri] });
  const reply = await fetch(`${origin}/oauth/register`, { method: 'POST', body });
  return registered.parse(await reply.json()).client_id;
}

/** The person connects the client. Returns where the browser is sent. */
async function decide(url: string): Promise<string> {
  const decided = await decideInBrowser(world.control, user.cookie, url, 'connect', origin);
  return decided.headers.get('location') ?? '';
}

/** The suite has no token, and calls tools by the server's own names: this adds both. */
async function startRelay(token: string): Promise<string> {
  const relay: string = await serve(async (request) => {
    const { method, headers: given, body: sent } = await readRequest(request);
    const headers = new Headers(given);
    headers.set('authorization', `Bearer ${token}`);
    headers.delete('content-length');
    if (headers.get('origin') === relay) headers.set('origin', origin);
    const name = headers.get('mcp-name');
    if (name !== null) headers.set('mcp-name', PREFIX + name);
    const body = sent?.replace(/"name":"(?=test_|json_)/, `$&${PREFIX}`) ?? null;
    const reply = await fetch(`${origin}/mcp`, { method, headers, body });
    const answer = (await reply.text()).replaceAll(`"${PREFIX}`, '"');
    const type = reply.headers.get('content-type');
    const { status } = reply;
    return new Response(answer === '' ? null : answer, {
      status,
      ...(type !== null && { headers: { 'content-type': type } }),
    });
  });
  return relay;
}

test.skipIf(installed === null)('a client is connected by the authorization server as the protocol says', async () => {
  const [port, place] = [await freePort(), join(folder, 'authorization')];
  const clientId = await registerClient(`http://127.0.0.1:${port}/callback`);
  const about = ['--url', origin, '--client-id', clientId, '--resource', `${origin}/mcp`];
  const args = [join(installed ?? '', PREVIEW), 'authorization', ...about, '-p', String(port), '-o', place];
  const suite = start(process.execPath, args, { cwd: folder });
  let opened: Promise<Response> | null = null;
  for await (const line of createInterface({ input: suite.stdout! })) {
    if (line.startsWith(`${origin}/oauth/authorize?`)) opened = decide(line).then((back) => fetch(back));
  }
  await opened;
  expect(readPlayed('authorization', place)).toEqual({ scenario: 'authorization', passed: 3, problems: [] });
});

type Table = ReadonlyMap<string, ReadonlyMap<string, Played>>;

/** Plays the scenarios of each revision that are wanted, by scenario and revision. */
async function playScenarios(isWanted: (scenario: string) => boolean): Promise<Table> {
  const relay = await startRelay(await connectClient('http://localhost/callback'));
  const own = mkdtempSync(join(folder, 'play-'));
  const played = new Map<string, Map<string, Played>>();
  for (const { revision, suite, scenarios, options } of PLAYS) {
    for (const name of scenarios.filter(isWanted)) {
      const place = join(own, revision, name);
      const args = [join(installed ?? '', suite), 'server', '--url', `${relay}/mcp`, '--scenario', name, ...options];
      await run(process.execPath, [...args, '-o', place], { cwd: folder });
      const row = played.get(name) ?? new Map<string, Played>();
      played.set(name, row.set(revision, readPlayed(name, place)));
    }
  }
  return played;
}

const cell = (one: Played | undefined): string => (one === undefined ? '' : `${one.passed} passed`);

const findProblems = (table: Table): readonly Played[] =>
  [...table.values()]
    .flatMap((row) => [...row.values()])
    .filter(({ passed, problems }) => passed === 0 || problems.length > 0);

test.skipIf(installed === null)('`/mcp` passes a sample of the scenarios about what it serves', async () => {
  const table = await playScenarios((name) => SAMPLE.has(name));
  expect([table.size, findProblems(table)]).toEqual([SAMPLE.size, []]);
});

test.each(ONLY_FULL)('`/mcp` passes each scenario about what it serves%s', async () => {
  const table = await playScenarios(() => true);
  expect(findProblems(table)).toEqual([]);
  const rows = [...table].map(
    ([name, row]) => `| ${name} | ${PLAYS.map(({ revision }) => cell(row.get(revision))).join(' | ')} |`,
  );
  const head = `| Scenario | ${PLAYS.map(({ revision }) => revision).join(' | ')} |`;
  expectMcpTable('hosted conformance', [head, '| --- | --- | --- |', ...rows]);
});
