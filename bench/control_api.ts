/**
 * How long the control API's calls take on the embedded database (design section 12: p99 under 20 ms), with 1,000 bindings
 * and the audit events of their making, at one and at eight calls at a time; and how long the control worker takes to start
 * in workerd. Prints a table and exits 1 when a target is missed. With `--runtime node-server|deno-server|workerd-server` the
 * calls go to that runtime on a libSQL server with a replica, which has no target, and nothing is started in workerd.
 * Run with `node bench/control_api.ts [--calls N] [--runtime R]`.
 */
import { randomBytes } from 'node:crypto';
import { Agent, request } from 'node:http';
import { performance } from 'node:perf_hooks';
import { parseArgs } from 'node:util';
import { startLibsqlCluster } from '../e2e/runtimes/libsql_cluster.ts';
import {
  type ControlPlaneUnderTest,
  type DatabaseUrls,
  startOnDeno,
  startOnNode,
  startOnNodeServer,
  startOnWorkerd,
} from '../e2e/runtimes/programs.ts';
import { workerdStarts } from './load/workerd_start.ts';
import { median } from './sample.ts';
import { figure, table } from './table.ts';

const BINDINGS = 1_000;
const SECRETS = 200;
const P99_LIMIT_MS = 20;
const COLD_START_LIMIT_MS = 100;
const WORKERD_STARTS = 9;

interface Target {
  readonly url: string;
  readonly localKey: string;
}
interface ApiCall {
  readonly method: string;
  readonly path: string;
  readonly body?: unknown;
}
interface Times {
  readonly title: string;
  readonly concurrency: number;
  readonly sortedMs: readonly number[];
  readonly perSecond: number;
}

const options = parseArgs({
  options: { calls: { type: 'string', default: '1000' }, runtime: { type: 'string', default: 'node-file' } },
}).values;

type Start = (database: DatabaseUrls) => Promise<ControlPlaneUnderTest>;
const ON_SERVER: ReadonlyMap<string, Start> = new Map([
  ['node-server', startOnNodeServer],
  ['deno-server', startOnDeno],
  ['workerd-server', startOnWorkerd],
]);

/** The requested runtime, with an empty database. */
async function startRuntime(name: string): Promise<Pick<ControlPlaneUnderTest, 'url' | 'localKey' | 'stop'>> {
  if (name === 'node-file') return startOnNode();
  const start = ON_SERVER.get(name);
  if (start === undefined) throw new Error(`--runtime ${name}: use node-file, ${[...ON_SERVER.keys()].join(', ')}`);
  const cluster = await startLibsqlCluster();
  const control = await start({ url: cluster.url, replicaUrl: cluster.directReplicaUrl });
  const stop = async () => {
    await control.stop();
    await cluster.stop();
  };
  return { ...control, stop };
}

let made = 0;
const newBinding = () => ({
  method: 'POST',
  path: '/v1/host-bindings',
  body: { host: `h${(made += 1)}.bench.test`, scheme: 'bearer', credential_ref: `vault://bench/${made % SECRETS}` },
});

const CALLS: Readonly<Record<string, () => ApiCall>> = {
  'GET /v1/secrets': () => ({ method: 'GET', path: '/v1/secrets' }),
  'GET /v1/audit-events': () => ({ method: 'GET', path: '/v1/audit-events' }),
  'POST /v1/host-bindings/explain': () => ({
    method: 'POST',
    path: '/v1/host-bindings/explain',
    body: { method: 'GET', url: `https://h${1 + (made % BINDINGS)}.bench.test/items` },
  }),
  'POST /v1/secrets/check (64 values)': () => ({
    method: 'POST',
    path: '/v1/secrets/check',
    body: { values: Array.from({ length: 64 }, () => randomBytes(24).toString('hex')) },
  }),
  'POST /v1/host-bindings': newBinding,
};

/** Sends a call and reads its reply to the end; rejects unless it succeeded. */
function send(target: Target, agent: Agent, call: ApiCall): Promise<void> {
  const body = call.body === undefined ? '' : JSON.stringify(call.body);
  const headers = {
    authorization: `Bearer ${target.localKey}`,
    ...(body !== '' && { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }),
  };
  return new Promise((resolve, reject) => {
    const sent = request(target.url + call.path, { method: call.method, agent, headers }, (reply) => {
      reply.resume();
      reply.on('end', () => {
        const status = reply.statusCode ?? 0;
        if (status < 300) resolve();
        else reject(new Error(`${call.method} ${call.path} was answered ${status}`));
      });
    });
    sent.on('error', reject);
    sent.end(body);
  });
}

/** Makes `calls` calls, `concurrency` at a time; returns their times in ms, sorted. */
async function timeCalls(target: Target, of: () => ApiCall, calls: number, concurrency: number) {
  const agent = new Agent({ keepAlive: true, maxSockets: concurrency });
  const times: number[] = [];
  let left = calls;
  const caller = async () => {
    while ((left -= 1) >= 0) {
      const begun = performance.now();
      await send(target, agent, of());
      times.push(performance.now() - begun);
    }
  };
  const begun = performance.now();
  await Promise.all(Array.from({ length: concurrency }, caller));
  const seconds = (performance.now() - begun) / 1_000;
  agent.destroy();
  return { sortedMs: times.toSorted((a, b) => a - b), perSecond: calls / seconds };
}

async function fill(target: Target): Promise<void> {
  let stored = 0;
  const newSecret = () => ({
    method: 'POST',
    path: '/v1/secrets',
    body: { path: `bench/${(stored += 1)}`, value: randomBytes(24).toString('hex') },
  });
  await timeCalls(target, newSecret, SECRETS, 2);
  await timeCalls(target, newBinding, BINDINGS, 2);
}

async function measureApi(calls: number): Promise<Times[]> {
  const control = await startRuntime(options.runtime);
  try {
    await fill(control);
    const results: Times[] = [];
    for (const [title, of] of Object.entries(CALLS)) {
      for (const concurrency of [1, 8]) {
        await timeCalls(control, of, Math.ceil(calls / 10), concurrency);
        results.push({ title, concurrency, ...(await timeCalls(control, of, calls, concurrency)) });
      }
    }
    return results;
  } finally {
    await control.stop();
  }
}

function quantile(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

function apiTable(results: readonly Times[]): string {
  const rows = results.map(({ title, concurrency, sortedMs, perSecond }) => [
    title,
    String(concurrency),
    ...[quantile(sortedMs, 0.5), quantile(sortedMs, 0.99), sortedMs.at(-1) ?? Number.NaN, perSecond].map(figure),
  ]);
  return table(['call', 'at a time', 'p50 ms', 'p99 ms', 'max ms', 'calls/s'], rows);
}

/** Prints how long workerd takes to start; what our worker adds, in ms. */
async function measureStarts(): Promise<number> {
  const starts = await workerdStarts(WORKERD_STARTS);
  const coldStartMs = median(starts.ours) - median(starts.empty);
  const startRows = [
    ['an empty worker, process start to first reply', ...[median(starts.empty), Math.max(...starts.empty)].map(figure)],
    [
      'the control worker, process start to first reply',
      ...[median(starts.ours), Math.max(...starts.ours)].map(figure),
    ],
    ['difference: what our worker adds', figure(coldStartMs), '-'],
  ];
  process.stdout.write(`\n${table(['workerd', 'median ms', 'max ms'], startRows)}\n`);
  return coldStartMs;
}

const results = await measureApi(Number(options.calls));
process.stdout.write(`${apiTable(results)}\n`);
if (options.runtime === 'node-file') {
  const coldStartMs = await measureStarts();
  const slow = results.filter(({ sortedMs }) => quantile(sortedMs, 0.99) >= P99_LIMIT_MS);
  process.exitCode = slow.length === 0 && coldStartMs < COLD_START_LIMIT_MS ? 0 : 1;
}
