/**
 * What the data plane costs, in CPU of the proxy's own process: `node bench/data_plane.ts [seconds] [scenario]`. Three
 * processes on loopback: a raw TLS upstream, the proxy, and this client. Session authentication, 1,000 bindings, bearer
 * injection, scrub and an audit spool on disk are on. `bare` is a proxy that only copies, in the same run, and `direct`
 * the same client without a proxy.
 */
import type { TLSSocket } from 'node:tls';

import type { Started } from './data_plane/processes.ts';
import { BOUND_HOST, HOST, openTls, startProcess, startUpstream, usage } from './data_plane/processes.ts';

const WARM_UP_SECONDS = 3;

interface Scenario {
  readonly name: string;
  readonly host: string;
  readonly bytes: number;
  readonly connections: number;
  /** A new tunnel for each request. */
  readonly fresh?: boolean;
}

const SCENARIOS: readonly Scenario[] = [
  { name: 'bound GET', host: BOUND_HOST, bytes: 200, connections: 16 },
  { name: 'bound GET, one connection', host: BOUND_HOST, bytes: 200, connections: 1 },
  { name: 'passthrough GET', host: HOST, bytes: 200, connections: 16 },
  { name: 'bound 64 KiB', host: BOUND_HOST, bytes: 64 * 1024, connections: 8 },
  { name: 'new tunnel', host: BOUND_HOST, bytes: 200, connections: 4, fresh: true },
  { name: 'passthrough 256 MiB', host: HOST, bytes: 256 * 1024 * 1024, connections: 1 },
];

/** Sends requests one after the other until `until`; adds each time, in milliseconds, to `times`. */
async function run(scenario: Scenario, open: () => Promise<TLSSocket>, until: number, times: number[]): Promise<void> {
  const request = `GET /${scenario.bytes} HTTP/1.1\r\nHost: ${scenario.host}\r\nUser-Agent: bench/1.0\r\nAccept: application/json\r\nAccept-Encoding: gzip, br\r\n\r\n`;
  let socket = await open();
  while (performance.now() < until || times.length === 0) {
    const start = performance.now();
    if (scenario.fresh === true) socket = await open();
    socket.write(request);
    await wholeReply(socket);
    if (scenario.fresh === true) socket.destroy();
    times.push(performance.now() - start);
  }
  socket.destroy();
}

function wholeReply(socket: TLSSocket): Promise<void> {
  return new Promise((resolve, reject) => {
    let left = -1;
    const onData = (data: Buffer): void => {
      left = left === -1 ? countMissingBytes(data) : left - data.length;
      if (left > 0) return;
      socket.off('data', onData);
      if (left === 0) resolve();
      else reject(new Error('more bytes arrived than requested'));
    };
    socket.on('data', onData);
  });
}

/** How much of the reply is missing after its first piece, which contains the whole head. */
function countMissingBytes(first: Buffer): number {
  const end = first.indexOf('\r\n\r\n') + 4;
  const head = first.toString('latin1', 0, end);
  if (!head.startsWith('HTTP/1.1 200')) throw new Error(`unexpected reply: ${first.toString()}`);
  return end + Number(/Content-Length: (\d+)/.exec(head)?.[1]) - first.length;
}

async function measure(
  scenario: Scenario,
  seconds: number,
  upstream: Started,
  [label, proxy]: readonly [string, Started | null],
): Promise<string> {
  const open = (): Promise<TLSSocket> => openTls(scenario.host, upstream, proxy);
  const load = async (forSeconds: number): Promise<number[]> => {
    const times: number[] = [];
    const until = performance.now() + forSeconds * 1000;
    await Promise.all(Array.from({ length: scenario.connections }, () => run(scenario, open, until, times)));
    return times.toSorted((a, b) => a - b);
  };
  await load(WARM_UP_SECONDS);
  const before = proxy === null ? null : await usage(proxy);
  const times = await load(seconds);
  const after = proxy === null ? null : await usage(proxy);
  const at = (part: number): string => (times[Math.floor(times.length * part)] ?? 0).toFixed(2);
  const latency = `p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, ${times.length} requests`;
  if (before === null || after === null) return `${scenario.name}, ${label}: ${latency}`;
  const cpu = after.cpu.user + after.cpu.system - before.cpu.user - before.cpu.system;
  const growth = (after.rss - before.rss) / 1024 / 1024;
  return `${scenario.name}, ${label}: ${(cpu / times.length).toFixed(1)} us CPU each, ${latency}, RSS ${(after.rss / 1024 / 1024).toFixed(0)} MiB (${growth.toFixed(0)} more)`;
}

async function main(): Promise<void> {
  const [seconds = '3', only = ''] = process.argv.slice(2);
  const { upstream, args } = await startUpstream();
  const proxy = await startProcess('./proxy_process.ts', args);
  const bare = await startProcess('./bare_process.ts', args);
  const ways = [['svc', proxy] as const, ['bare', bare] as const, ['direct', null] as const];
  for (const scenario of SCENARIOS.filter(({ name }) => name.includes(only))) {
    for (const way of ways) process.stdout.write(`${await measure(scenario, Number(seconds), upstream, way)}\n`);
  }
  for (const { child } of [proxy, bare, upstream]) child.disconnect();
}

await main();
