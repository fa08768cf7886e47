import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { describeControlApi } from '../runtimes/control_api_suite.ts';
import { IS_FULL } from '../support/full_counts.ts';
import { startHostedOnDeno, startHostedOnNode, startHostedOnWorkerd } from '../team/team_runtimes.ts';
import { describeHostedFuzz } from './hosted_fuzz_suite.ts';
import { describeHostedTeam } from './hosted_suite.ts';
import { FORWARDED, HostedWorker } from './hosted_worker.ts';
import { type HostedWorld, startHostedWorld } from './hosted_world.ts';
import { describeMcpClient } from './mcp_client_suite.ts';
import { describeRestore } from './restore_suite.ts';

// Issue 19: the hosted control plane on Node, Deno and workerd: three workers of one installation, on a libSQL server with a replica.

const RUNTIMES = { Node: startHostedOnNode, Deno: startHostedOnDeno, workerd: startHostedOnWorkerd };

let world: HostedWorld;
const workers = new Map<string, HostedWorker>();

beforeAll(async () => {
  world = await startHostedWorld();
  const starting = Object.entries(RUNTIMES).map(async ([runtime, start]) => {
    workers.set(runtime, await HostedWorker.start(world, start));
  });
  await Promise.all(starting);
});
afterAll(async () => {
  await Promise.all(Array.from(workers.values(), ({ program }) => program.stop()));
  await world?.stop();
});

function workerOn(runtime: string): HostedWorker {
  const worker = workers.get(runtime);
  if (worker === undefined) throw new Error(`there is no worker on ${runtime}`);
  return worker;
}

/** The API of a worker, as somebody's program uses it. */
async function openApi(runtime: string) {
  const worker = workerOn(runtime);
  const name = `tour-${runtime}`;
  const { program } = await worker.openPerson((await worker.signIn(name)).browser, name);
  const { url, output } = worker.program;
  return { url, output, headers: FORWARDED, bearer: () => program.bearer(), stop: async () => undefined };
}

/** What a team does is tried on each runtime; the whole API and an MCP client on one each, and in full on all. */
const isTriedOn = (runtime: string, sampled: keyof typeof RUNTIMES) => IS_FULL || runtime === sampled;

describe.each(Object.keys(RUNTIMES))('hosted on %s', (runtime) => {
  if (isTriedOn(runtime, 'Node')) describeControlApi({ runtime, mode: 'hosted' }, () => openApi(runtime));
  describeHostedTeam(runtime, () => workerOn(runtime));
  if (isTriedOn(runtime, 'workerd')) describeMcpClient(runtime, () => workerOn(runtime));
  describeHostedFuzz(runtime, Object.keys(RUNTIMES).indexOf(runtime), () => workerOn(runtime));

  test('its log has no fault', () => {
    expect(workerOn(runtime).program.output()).not.toContain('"level":"error"');
  });
});

describe('the three together', () => {
  test('refresh a token once: of three calls at once, one at each, one gets the next token', async () => {
    const all = [...workers.values()];
    const [first] = all;
    const { browser } = await workerOn('Node').signIn('together');
    const program = await first!.signInProgram(browser, 'shared');
    const { refresh_token } = program.tokens;
    const replies = await Promise.all(all.map((worker) => worker.post('/auth/refresh', { refresh_token })));
    expect(replies.filter(({ status }) => status === 200)).toHaveLength(1);
  });

  describeRestore(() => workerOn('Node'), startHostedOnNode);

  test('also used the replica', () => expect(world.cluster.replicaCalls()).toBeGreaterThan(9));
});
