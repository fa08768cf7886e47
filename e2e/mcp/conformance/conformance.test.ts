import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createHttpFront, httpFrontListener } from '../../../gateway/fronts/http_front.ts';
import { startLocalGateway } from '../../../gateway/servers/local_gateway.ts';
import { CALLER_HEADER, callerHeader, HOST_CALLER } from '../../../machine/mcp_caller.ts';
import { localServer, SERVER_ID } from '../../../shared/mcp/testing/servers.ts';
import { cachedInstall } from '../../support/cached_install.ts';
import { run } from '../../support/program.ts';
import { listen } from '../../support/tls_upstream.ts';
import { FakePorts } from '../gateway/fake_ports.ts';
import { expectMcpTable } from '../mcp_table.ts';

// The protocol's own conformance suite against the gateway, with the server that the suite expects behind it.
// `MCP_MD=write` writes the table of docs/mcp.md.

const HERE = import.meta.dirname;
const SUITE = 'node_modules/@modelcontextprotocol/conformance/dist/index.js';
const PREVIEW = 'node_modules/conformance-of-clients/dist/index.js';
/** Scenarios in which the suite checks nothing here, each with the reason. */
const UNCHECKED: Readonly<Record<string, string>> = {
  'server-sse-polling': 'not checked: the gateway never closes the stream of a running call',
};

const installed = await cachedInstall({ name: 'conformance', from: HERE });

interface Played {
  readonly scenario: string;
  readonly passed: number;
  readonly failed: number;
}

/** Runs a suite against a gateway whose only server is `fixture`. */
async function play(suite: string, fixture: string, options: readonly string[]): Promise<readonly Played[]> {
  const home = mkdtempSync(join(tmpdir(), 'svc-e2e-conformance-'));
  const command = [process.execPath, join(HERE, fixture)];
  const local = startLocalGateway({
    ports: new FakePorts([localServer({ name: 'fixture', command })]),
    sources: [],
    mcpHome: home,
    env: process.env,
    version: '0.0.0-test',
    isLocal: true,
    extraRoots: [],
    only: SERVER_ID,
    // A busy machine starts servers slowly, and a suite lists once.
    limits: { listMs: 30_000 },
  });
  const front = createHttpFront({ gateway: local.gateway, now: () => Date.now() });
  const listener = httpFrontListener(front);
  const server = createServer((request, response) => {
    // As the sidecar does, once it has checked the caller's token.
    const caller = callerHeader(HOST_CALLER);
    request.headers[CALLER_HEADER.toLowerCase()] = caller;
    request.rawHeaders.push(CALLER_HEADER, caller);
    listener(request, response);
  });
  try {
    const url = `http://127.0.0.1:${await listen(server)}/mcp`;
    const args = [join(installed ?? '', suite), 'server', '--url', url, ...options];
    const done = await run(process.execPath, args, { cwd: home });
    return [...done.stdout.matchAll(/^[✓✗] ([\w-]+): (\d+) passed, (\d+) failed$/gmu)].map(
      ([, scenario = '', passed = '', failed = '']) => ({ scenario, passed: Number(passed), failed: Number(failed) }),
    );
  } finally {
    await front.close();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
    await local.stop();
    rmSync(home, { recursive: true, force: true });
  }
}

test.skipIf(installed === null)('every scenario for servers passes', async () => {
  const results = await play(SUITE, 'fixture_server.js', ['--suite', 'all']);
  expect(results.filter(({ failed }) => failed > 0)).toEqual([]);
  expect(results.filter(({ passed }) => passed === 0).map(({ scenario }) => scenario)).toEqual(Object.keys(UNCHECKED));
  const rows = results.map(({ scenario, passed }) => `| ${scenario} | ${UNCHECKED[scenario] ?? `${passed} passed`} |`);
  expectMcpTable('conformance', ['| Scenario | Checks |', '| --- | --- |', ...rows]);
});

test.skipIf(installed === null)('what the later revision requires of a server passes', async () => {
  const results = await play(PREVIEW, 'later_fixture_server.js', ['--requirements', '2026-07-28']);
  expect(results.filter(({ failed }) => failed > 0)).toEqual([]);
  const rows = results.map(({ scenario, passed }) => {
    return `| ${scenario} | ${passed === 0 ? 'nothing to check' : `${passed} passed`} |`;
  });
  expectMcpTable('later server conformance', ['| Scenario | 2026-07-28 |', '| --- | --- |', ...rows]);
});
