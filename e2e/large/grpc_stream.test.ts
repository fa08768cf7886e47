import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { countOf } from '../support/full_counts.ts';
import { type GrpcUpstream, startGrpcUpstream } from '../support/grpc_upstream.ts';
import { plantSecret } from '../support/planted_secret.ts';
import { Svc } from '../support/svc.ts';
import { createTestCa } from '../support/test_ca.ts';
import { watchMemory } from './process_stats.ts';

// A bidirectional stream of gRPC whose server checks a credential that the program does not hold, in constant memory.

const MIB = 1024 * 1024;
const HOST = 'stream.example.test';
const CLIENT = join(import.meta.dirname, '..', 'clients', 'grpc_client.mjs');
const TOKEN = plantSecret();
const MESSAGES = countOf(1_000_000, 8_000);
/** Enough for the heap to reach the size that a stream of any length needs. */
const WARM_UP_MESSAGES = countOf(50_000, 4_000);
let upstream: GrpcUpstream;
let svc: Svc;

beforeAll(async () => {
  const ca = await createTestCa();
  upstream = await startGrpcUpstream(await ca.issue([HOST]));
  svc = await Svc.up({ upstreamCaFiles: [ca.file], resolve: [`${HOST}:127.0.0.1:${upstream.port}`] });
  await svc.secret('user/api', TOKEN);
  await svc.binding({ host: HOST, scheme: 'bearer', credential_ref: 'vault://user/api', body: 'stream' });
});
afterAll(async () => {
  await svc.stop();
  upstream.close();
});

/** Sends so many messages, each of which comes back in order; the status of the call and the number of those that came. */
async function echo(messages: number): Promise<unknown> {
  const said = await svc.ok(['run', '--', process.execPath, CLIENT, `${HOST}:443`, String(messages), '0']);
  const { both }: { both: unknown } = JSON.parse(said);
  return both;
}

it(`${MESSAGES} messages each way on one stream, and the sidecar grows by less than 48 MiB`, async () => {
  expect(await echo(WARM_UP_MESSAGES)).toEqual([0, WARM_UP_MESSAGES]);
  upstream.calls.splice(0);
  const memory = watchMemory(svc.runFile.sidecar_pid);
  const since = performance.now();
  expect(await echo(MESSAGES)).toEqual([0, MESSAGES]);
  const seconds = (performance.now() - since) / 1000;
  const grown = memory.stop();
  process.stdout.write(`${MESSAGES} messages: ${seconds.toFixed(1)} s, ${(grown / MIB).toFixed(1)} MiB more\n`);
  expect(grown).toBeLessThan(48 * MIB);
  expect(upstream.calls.filter(({ method }) => method === 'both')).toMatchObject([
    { metadata: { authorization: `Bearer ${TOKEN}` } },
  ]);
});
