import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { Server } from 'node:net';
import { hostname } from 'node:os';
import { join } from 'node:path';

import { getRequestListener } from '@hono/node-server';
import { z } from 'zod';

import { readConfig } from './config.ts';
import type { SidecarConfig } from './config.ts';
import { listen } from './connection/listen.ts';
import type { Control } from './control/control.ts';
import { openControl } from './control/control.ts';
import { BodyBudget } from './exchange/body.ts';
import { MaterialCache } from './exchange/material.ts';
import { NodeSha256 } from './exchange/node_sha256.ts';
import { createLocalApi } from './local_api/app.ts';
import { openHostToken } from './local_api/host_token.ts';
import { MetricsRegistry } from './local_api/metrics.ts';
import { jsonLog } from './log.ts';
import type { Clock } from './ports.ts';
import { systemRootsPem } from './session/ca_bundle.ts';
import { Sessions } from './session/sessions.ts';
import { createSessionCa } from './tls/session_ca.ts';
import { createListener } from './tunnel/listener.ts';
import { createDialer } from './upstream/dial.ts';
import { TunnelLanes } from './upstream/lanes.ts';

/** Composition root of the sidecar: the only file that reads its arguments and environment. */

const EXIT_USAGE = 2;
const EXIT_CANNOT_START = 1;
const FLUSH_AT_STOP_MS = 3_000;

const COUNTERS = {
  svc_proxy_requests_total: 'Requests that were forwarded, by mediation.',
  svc_proxy_refusals_total: 'Requests that were refused, by reason.',
  svc_proxy_bugs_total: 'Tunnels that were closed because of an unexpected error.',
};

const clock: Clock = { now: () => Date.now() };
const log = jsonLog((line) => process.stderr.write(line), clock);
const metrics = new MetricsRegistry(COUNTERS);
const warn = (message: string): void => log.error(message);

function fail(code: number, messages: readonly string[]): never {
  for (const message of messages) process.stderr.write(`svc sidecar: ${message}\n`);
  process.exit(code);
}

async function main(): Promise<void> {
  const config = readConfig(process.argv.slice(2), process.env, hostname());
  if (!config.ok) fail(EXIT_USAGE, config.error);
  const { home, limits } = config.value;
  const hostToken = await openHostToken(join(home, 'sidecar', 'host.token'));
  if (!hostToken.ok) fail(EXIT_CANNOT_START, [hostToken.error.message]);
  const control = await openControl({ ...config.value, clock, metrics, warn, extraCa: config.value.upstreamRoots });
  if (!control.ok) fail(EXIT_CANNOT_START, [control.error.message]);

  const sessions = new Sessions({
    directory: join(home, 'sessions'),
    clock,
    maxTunnelsPerSession: limits.maxTunnelsPerSession,
    createCa: (directory, sessionId) =>
      createSessionCa(directory, { sessionId, maxLeaves: limits.maxLeafCertificates, now: () => clock.now() }),
    systemRoots: systemRootsPem,
  });
  await sessions.start();
  const servers = await serve(config.value, control.value, sessions, hostToken.value);
  await control.value.start();
  stopOnSignal(async () => {
    for (const server of servers) server.close();
    await sessions.stop();
    await control.value.stop(FLUSH_AT_STOP_MS);
  });
}

async function serve(
  config: SidecarConfig,
  control: Control,
  sessions: Sessions,
  hostToken: string,
): Promise<readonly Server[]> {
  let origin = '';
  const api = createLocalApi({
    version: packageVersion(),
    hostToken,
    proxyOrigin: () => origin,
    hostNames: config.listen,
    policy: control.policy,
    audit: control.audit,
    link: control.link,
    sessions,
    metrics,
    warn,
  });
  const dialer = createDialer({
    extraRoots: config.upstreamRoots,
    pinned: config.pinned,
    denyPrivate: config.denyPrivateUpstreams,
    timeoutSeconds: config.limits.connectTimeoutSeconds,
  });
  const materials = new MaterialCache();
  control.link.onRevoked(() => materials.clear());
  const ports = {
    sessions,
    exchange: {
      policy: control.policy,
      credentials: control.credentials,
      audit: control.audit,
      clock,
      materials,
      limits: config.limits,
      budget: new BodyBudget(config.limits.maxBufferedBodiesBytes),
      hash: NodeSha256,
    },
    audit: control.audit,
    metrics,
    log,
    openLanes: (host: string) => new TunnelLanes(dialer, host),
  };
  const answer = getRequestListener(api.fetch);
  const localApi = createServer((request, response) => void answer(request, response));
  const servers: Server[] = [];
  let { port } = config;
  for (const address of config.listen) {
    const server = createListener(ports, localApi);
    const wanted = port;
    port = await listen(server, wanted, address).catch((error: unknown) =>
      fail(EXIT_CANNOT_START, [explainListen(error, address, wanted)]),
    );
    servers.push(server);
  }
  origin = `http://${bracketed(config.listen[0] ?? '127.0.0.1')}:${port}`;
  process.stdout.write(`${JSON.stringify({ listening: origin })}\n`);
  return servers;
}

function bracketed(address: string): string {
  return address.includes(':') ? `[${address}]` : address;
}

function explainListen(error: unknown, address: string, port: number): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error';
  const fix = code === 'EADDRINUSE' ? 'another program has it; choose another with --port' : 'choose another';
  return `cannot listen on ${address} port ${port} (${code}): ${fix}`;
}

function packageVersion(): string {
  const text = readFileSync(new URL('../package.json', import.meta.url), 'utf8');
  return z.object({ version: z.string() }).parse(JSON.parse(text)).version;
}

function stopOnSignal(stop: () => Promise<void>): void {
  let stopping = false;
  const onSignal = (): void => {
    if (stopping) return;
    stopping = true;
    stop().then(
      () => process.exit(0),
      (error: unknown) => {
        log.error('the sidecar did not stop cleanly', { error: error instanceof Error ? error.message : 'unknown' });
        process.exit(EXIT_CANNOT_START);
      },
    );
  };
  process.on('SIGTERM', onSignal);
  process.on('SIGINT', onSignal);
}

await main();
