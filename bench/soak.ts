/**
 * `node bench/soak.ts [--minutes N] [--plots FOLDER]`: the whole product under a full and mixed load. Exits 1 if the
 * sidecar's memory grew by more than a tenth after its warm-up, or if a socket is left once every client is gone.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { setTimeout as wait } from 'node:timers/promises';
import { CleanUp } from './clean_up.ts';
import { CREDENTIALED_HOST, NGINX, PASSTHROUGH_HOST, startNginx, type Upstream } from './load/nginx.ts';
import { type OpenSocket, openTcpSockets, residentMib } from './load/process_stats.ts';
import { present } from './load/programs.ts';
import { EVENTS_HOST, startEventsUpstream } from './load/start_events_upstream.ts';
import { startForwarder } from './load/start_forwarder.ts';
import { startOddClients } from './load/start_odd_clients.ts';
import { runWrk, WRK } from './load/wrk.ts';
import { authorizationOf, forwarderSettingsOf } from './peers/proxy.ts';
import { startSvc, type SvcProxy } from './peers/svc.ts';
import { lineChart } from './plots/line_chart.ts';
import { type Look, soakVerdict } from './soak_verdict.ts';

const LOOK_EVERY_MS = 1_000;
const QUIET_MS = 10_000;
const WRK_SECONDS = 20;

interface Load {
  readonly path: string;
  readonly connections: number;
  readonly newTunnel: boolean;
}

const LOADS: readonly Load[] = [
  { path: '/small', connections: 16, newTunnel: false },
  { path: '/64k', connections: 8, newTunnel: false },
  { path: '/small', connections: 4, newTunnel: true },
];

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}

async function startProduct(directory: string, cleanUp: CleanUp): Promise<{ svc: SvcProxy; upstream: Upstream }> {
  const upstream = cleanUp.add(await startNginx(directory, [EVENTS_HOST]));
  const events = cleanUp.add(await startEventsUpstream(upstream));
  const resolve = [`${EVENTS_HOST}:127.0.0.1:${events.port}`];
  const svc = cleanUp.add(await startSvc({ directory, upstream, resolve, boundHosts: [EVENTS_HOST] }));
  return { svc, upstream };
}

/** Returns the number of replies. */
async function loadUntil(endMs: number, load: Load, port: number): Promise<number> {
  const close = load.newTunnel ? ['Connection: close'] : [];
  let replies = 0;
  while (Date.now() < endMs) {
    const seconds = Math.max(1, Math.min(WRK_SECONDS, Math.round((endMs - Date.now()) / 1000)));
    const { path, connections } = load;
    const report = await runWrk({
      port,
      path,
      connections,
      headers: [`Host: ${CREDENTIALED_HOST}`, ...close],
      seconds,
    });
    replies += report.requests;
  }
  return replies;
}

async function lookUntil(over: Promise<unknown>, svc: SvcProxy): Promise<readonly Look[]> {
  const looks: Look[] = [];
  const began = Date.now();
  const ended = over.then(() => true);
  while (!(await Promise.race([ended, wait(LOOK_EVERY_MS, false)]))) {
    const seconds = (Date.now() - began) / 1000;
    looks.push({
      seconds,
      residentMib: residentMib(svc.pid),
      sockets: openTcpSockets(svc.pid, svc.controlPort).length,
    });
  }
  return looks;
}

async function socketsLeft(svc: SvcProxy): Promise<readonly OpenSocket[]> {
  const deadline = Date.now() + QUIET_MS;
  for (;;) {
    const left = openTcpSockets(svc.pid, svc.controlPort);
    if (left.length === 0 || Date.now() > deadline) return left;
    await wait(100);
  }
}

async function underLoad(
  svc: SvcProxy,
  minutes: number,
  cleanUp: CleanUp,
): Promise<{ looks: readonly Look[]; replies: number }> {
  const forwarder = cleanUp.add(await startForwarder(forwarderSettingsOf(svc, CREDENTIALED_HOST)));
  const odd = cleanUp.add(
    startOddClients({
      proxyPort: svc.port,
      authorization: authorizationOf(svc),
      caFile: svc.caFile,
      bulkHost: PASSTHROUGH_HOST,
      credentialedHost: CREDENTIALED_HOST,
      eventsHost: EVENTS_HOST,
    }),
  );
  const endMs = Date.now() + minutes * 60_000;
  const loads = Promise.all(LOADS.map((load) => loadUntil(endMs, load, forwarder.port)));
  const looks = await lookUntil(loads, svc);
  const replies = (await loads).reduce((sum, count) => sum + count, 0);
  await odd.stop();
  await forwarder.stop();
  return { looks, replies };
}

async function soak(minutes: number, plots: string | undefined, directory: string, cleanUp: CleanUp): Promise<boolean> {
  const { svc, upstream } = await startProduct(directory, cleanUp);
  const { looks, replies } = await underLoad(svc, minutes, cleanUp);
  const left = await socketsLeft(svc);
  const verdict = soakVerdict(looks, left.length);
  const sockets = Math.max(...looks.map((look) => look.sockets));
  say(
    `${replies} replies in ${minutes} min beside the streams, slow readers and vanishing clients; at most ${sockets} sockets open`,
  );
  say(
    `memory after the warm-up ${verdict.afterWarmUpMib.toFixed(0)} MiB, at the end ${verdict.atEndMib.toFixed(0)} MiB: ${(verdict.growth * 100).toFixed(1)} % (at most 10 %)`,
  );
  say(`sockets left once every client was gone: ${left.length} ${left.map((one) => JSON.stringify(one)).join(' ')}`);
  say(`ports: proxy ${svc.port}, control ${svc.controlPort}, upstream ${upstream.port}`);
  say(`health: ${JSON.stringify((await svc.svc.local('GET', '/v1/health')).body)}`);
  say(verdict.ok ? 'ok' : 'FAILED');
  if (plots !== undefined) {
    mkdirSync(plots, { recursive: true });
    const points = looks.map(({ seconds, residentMib: mib }) => [seconds / 60, mib] as const);
    const note = 'resident memory while every kind of client comes and goes';
    const svg = lineChart({ title: 'Sidecar memory over a soak', note, xUnit: 'min', yUnit: 'MiB', points });
    writeFileSync(join(plots, 'soak_memory.svg'), svg);
  }
  return verdict.ok;
}

async function main(): Promise<void> {
  const options = { minutes: { type: 'string', default: '10' }, plots: { type: 'string' } } as const;
  const { values } = parseArgs({ options, strict: true });
  const missing = [NGINX, WRK].filter((tool) => !present(tool));
  for (const tool of missing) say(`${tool.name} is not installed: ${tool.install}`);
  if (missing.length > 0) process.exit(1);
  const directory = mkdtempSync(join(tmpdir(), 'svc-soak-'));
  const cleanUp = new CleanUp();
  cleanUp.do(() => rmSync(directory, { recursive: true, force: true }));
  cleanUp.onSignal();
  try {
    if (!(await soak(Number(values.minutes), values.plots, directory, cleanUp))) process.exitCode = 1;
  } finally {
    await cleanUp.run();
  }
}

await main();
