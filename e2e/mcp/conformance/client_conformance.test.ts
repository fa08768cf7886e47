import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { cachedInstall } from '../../support/cached_install.ts';
import { HANGS_MS } from '../../support/hangs.ts';
import { run } from '../../support/program.ts';
import { Svc } from '../../support/svc.ts';
import { listen } from '../../support/tls_upstream.ts';
import { expectMcpTable } from '../mcp_table.ts';
import { type Scenario, ScenarioPlayer } from './played_scenario.ts';
import { isUnmet, readSuiteResults } from './suite_results.ts';

// The protocol's own conformance suite, with its servers behind the gateway: what each revision requires of a client.
// `MCP_MD=write` writes the table of docs/mcp.md.

const HERE = import.meta.dirname;
const SUITE = 'node_modules/conformance-of-clients/dist/index.js';
const REVISIONS = ['2025-11-25', '2026-07-28'] as const;
/** Extensions, which no revision requires: a program gets the token, as a minted credential of the server. */
const MINTED: ReadonlySet<string> = new Set(['auth/client-credentials-jwt', 'auth/client-credentials-basic']);
/** Extensions that are not played, with the reason. */
const EXTENSIONS: Readonly<Record<string, string>> = {
  'auth/enterprise-managed-authorization': 'no server gets an ID-JAG of svc',
  'auth/dpop': 'DPoP is not built',
  'auth/dpop-nonce': 'DPoP is not built',
  'auth/wif-jwt-bearer': 'svc signs its own assertions, and shows none of a platform',
};

const installed = await cachedInstall({ name: 'conformance', from: HERE });
const asking = z
  .object({ 'svc-scenario': z.string(), 'svc-server': z.url() })
  .transform((headers) => ({ scenario: headers['svc-scenario'], serverUrl: headers['svc-server'] }));
const context = z.record(z.string(), z.unknown());

let svc: Svc;
let player: ScenarioPlayer;
let runner: Server;
let runnerUrl: string;
let folder: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'svc-e2e-conformance-'));
  svc = await Svc.up({ env: { SVC_MCP_CLIENT_URL: 'https://conformance-test.local/client-metadata.json' } });
  player = await ScenarioPlayer.start(svc);
  runner = createServer((request, response) => {
    void text(request)
      .then((body) => play({ ...asking.parse(request.headers), context: context.parse(JSON.parse(body)) }))
      .catch(String)
      .then((problem) => response.writeHead(problem === null ? 200 : 500).end(problem));
  });
  runnerUrl = `http://127.0.0.1:${await listen(runner)}`;
});
afterAll(async () => {
  runner.closeAllConnections();
  runner.close();
  await player.stop();
  await svc.stop();
  rmSync(folder, { recursive: true, force: true });
});

async function play(asked: Scenario): Promise<string | null> {
  if (asked.scenario in EXTENSIONS) return 'not played';
  await (MINTED.has(asked.scenario) ? player.playWithMinted(asked) : player.play(asked));
  return null;
}

const cellOf = (name: string, isThere: boolean): string => {
  if (!isThere) return '';
  if (name in EXTENSIONS) return `not played: ${EXTENSIONS[name]}`;
  return MINTED.has(name) ? 'passed, with a minted credential' : 'passed';
};

test.skipIf(installed === null)('what each revision requires of a client passes', async () => {
  const all = new Map<string, Map<string, readonly string[]>>();
  for (const revision of REVISIONS) {
    const place = join(folder, revision);
    const command = `${join(HERE, 'run_scenario.sh')} ${runnerUrl}`;
    const args = [join(installed ?? '', SUITE), 'client', '--command', command, '--requirements', revision];
    await run(process.execPath, [...args, '-o', place, '--timeout', String(HANGS_MS)], {
      cwd: folder,
    });
    for (const [name, checks] of readSuiteResults(place)) {
      const failed = checks.filter(isUnmet).map(({ id, status, description }) => `${status} ${id}: ${description}`);
      const row = all.get(name) ?? new Map<string, readonly string[]>();
      all.set(name, row.set(revision, failed));
    }
  }
  const shown = [...all].toSorted(([a], [b]) => a.localeCompare(b));
  const played = shown.filter(([name]) => !(name in EXTENSIONS));
  expect(played.map(([name]) => name)).toEqual(expect.arrayContaining([...MINTED]));
  expect(
    played.flatMap(([name, row]) =>
      [...row].flatMap(([revision, failed]) => failed.map((each) => `${name} ${revision} ${each}`)),
    ),
  ).toEqual([]);
  const rows = shown.map(
    ([name, row]) => `| ${name} | ${REVISIONS.map((each) => cellOf(name, row.has(each))).join(' | ')} |`,
  );
  expectMcpTable('client conformance', [`| Scenario | ${REVISIONS.join(' | ')} |`, '| --- | --- | --- |', ...rows]);
});
