import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { IS_FULL } from '../support/full_counts.ts';
import { ECHO } from '../support/grpc_echo.ts';
import { ROOT, shellEnvironment } from '../support/program.ts';
import { CLIENTS, useClient } from './clients.ts';
import { clientsPage, REFRESH_COMMAND, rowOf, rowsOfPage } from './table.ts';
import { type MatrixWorld, startMatrixWorld } from './world.ts';

/** Each does what a client beside it does, mostly with the same library: only `npm run test:full` uses them. */
const ALIKE = [
  'wget',
  'Python urllib',
  'Python httpx',
  'Node https',
  'Go net/http',
  'Python httpx, HTTP/2',
  'undici, HTTP/2',
  'Node fetch, HTTP/2',
  'gRPC for Python (grpcio)',
  'gRPC for Go (grpc-go)',
  'boto3',
  'AWS SDK for JavaScript, HTTP/2',
  'Google for Python (google-auth)',
  'Java HttpClient',
  'Java HttpsURLConnection',
  'Chromium, headless',
  'Chromium, headless, HTTP/2',
  'Chromium, WebSocket',
  'nghttp',
];
/** Another file of every run uses these: clients.test.ts, seal.test.ts and sandbox/cloud_sdks.test.ts. */
const ELSEWHERE = [
  'Python requests',
  'Node fetch',
  'git',
  'GitHub CLI (gh)',
  'npm',
  'pip',
  'AWS CLI',
  'AWS SDK for JavaScript (@aws-sdk/client-s3)',
  'Google for Node (google-auth-library)',
  'Azure for Node (@azure/identity)',
];
/** These show that a client needs the relay with which another row of it works. */
const IN_VAIN = ['Java, without `--relay`', 'Chromium, without `--relay`'];
const ONLY_IN_FULL = new Set([...ALIKE, ...ELSEWHERE, ...IN_VAIN]);
const TRIED = CLIENTS.filter(({ name }) => IS_FULL || !ONLY_IN_FULL.has(name));

const PAGE = join(ROOT, 'docs', 'clients.md');
const shown = new Map<string, readonly string[]>();
const admitted = new Map<string, number>();
let world: MatrixWorld;

/** The variables that `svc run` set for a command, with their values. */
async function variablesOf(printed: Promise<string>): Promise<ReadonlyMap<string, string>> {
  const pairs = (await printed).split('\0').map((pair) => pair.split(/=(.*)/s));
  return new Map(pairs.map(([name = '', value = '']) => [name, value]));
}

beforeAll(async () => {
  world = await startMatrixWorld();
});
afterAll(() => world.stop());

describe('client matrix', () => {
  it.for(TRIED)(
    '$name works with a credential that it does not hold, or fails as its row says',
    async (client, { skip }) => {
      const requests = await useClient(world, client, skip);
      expect(requests > 0).toBe(client.works);
      admitted.set(client.service, (admitted.get(client.service) ?? 0) + requests);
      shown.set(client.name, rowOf(client));
    },
  );

  it('names only variables that svc run sets', async () => {
    const before = shellEnvironment();
    const plain = await variablesOf(world.run(['env', '-0']));
    const relayed = await variablesOf(world.runWithRelay(['env', '-0']));
    for (const client of CLIENTS) {
      const variables = client.relay === true ? relayed : plain;
      const unset = client.sets.filter((name) => [undefined, before[name]].includes(variables.get(name)));
      expect({ client: client.name, unset }).toEqual({ client: client.name, unset: [] });
    }
  });

  it('shows its credentials to no command', async () => {
    const printed = await world.runWithRelay(['env', '-0']);
    expect(world.secrets.filter((secret) => printed.includes(secret))).toEqual([]);
  });

  it('recorded one audit event for each request with a credential', async () => {
    await world.endRuns();
    const events = (await world.svc.events()).filter(({ data }) => data['svc.proxy.upstream.path'] !== ECHO.wait.path);
    const injected = events.filter(({ type }) => type === 'sandbox.proxy.binding_injected');
    expect(injected).toHaveLength([...admitted.values()].reduce((sum, count) => sum + count, 0));
  });
});

describe('docs/clients.md', () => {
  it(`states what the matrix found; refresh it with ${REFRESH_COMMAND}`, () => {
    if (process.env['CLIENTS_MD'] === 'write' && shown.size === CLIENTS.length) {
      writeFileSync(PAGE, clientsPage([...shown.values()]));
    }
    const page = readFileSync(PAGE, 'utf8');
    const rows = rowsOfPage(page);
    // A client that was not tried here keeps its row.
    const due = CLIENTS.map((client) => shown.get(client.name) ?? rows.get(client.name) ?? rowOf(client));
    expect(page).toBe(clientsPage(due));
  });
});
