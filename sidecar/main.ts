import { readFileSync } from 'node:fs';
import type { Server as HttpServer } from 'node:http';
import type { Server } from 'node:net';
import { hostname, release } from 'node:os';
import { join } from 'node:path';

import { getRequestListener } from '@hono/node-server';
import { z } from 'zod';

import { readConfig } from './config.ts';
import type { SidecarConfig } from './config.ts';
import { FIRST_INHERITED, listenOn } from '../machine/connection/listen.ts';
import { createSocketGate, DROPPED_CONNECTIONS } from '../machine/connection/socket_gate.ts';
import { Approvals } from './control/approvals.ts';
import type { Control } from './control/control.ts';
import { createOperationRunner } from './connector/operation_runner.ts';
import { openControl } from './control/control.ts';
import { createSessionSeal } from './control/session_seal.ts';
import { createPlanLocks } from './control/plan_locks.ts';
import { releaseUnsealed } from './control/unsealed.ts';
import { BodyBudget } from './exchange/body.ts';
import { MaskedReplies } from './exchange/masked_replies.ts';
import { openRequestCounts } from './exchange/request_counts_file.ts';
import { MaterialCache } from './exchange/material.ts';
import { NodeSha256 } from './exchange/node_sha256.ts';
import { SANDBOXES } from '../sandbox/bubblewrap/sandbox_folder.ts';
import { homeLabelOf } from '../sandbox/engine/container_labels.ts';
import { engineRuntime } from '../sandbox/engine/docker_runtime.ts';
import { createApiServer } from './local_api/api_server.ts';
import { createContainerApi, createLocalApi } from './local_api/app.ts';
import { openHostToken } from './local_api/host_token.ts';
import type { LocalApiOptions } from './local_api/local_api_options.ts';
import { MetricsRegistry } from './local_api/metrics.ts';
import { jsonLog } from './log.ts';
import { type SidecarMcp, openSidecarMcp } from './mcp/sidecar_mcp.ts';
import type { Clock } from '../shared/model/clock.ts';
import type { SessionDirectory } from './ports.ts';
import { namespaceRightsAt } from '../sandbox/engine/namespace_rights.ts';
import { type ListenerKind, SessionListeners } from './reach/session_listeners.ts';
import { systemRootsPem } from './session/ca_bundle.ts';
import type { Session } from './session/session.ts';
import { notRestoredEvent, restoredEvent, type Restored, SessionKeeper, SUSPICIOUS } from './session/session_keeper.ts';
import type { EngineAddress } from './session/sandbox.ts';
import { type ContainerEngine, SessionContainers } from './session/session_containers.ts';
import { sessionDirectory, Sessions, sharedDirectory } from './session/sessions.ts';
import { createSessionCa, openSessionCa } from './tls/session_ca.ts';
import { type ConnectionGate, openableConnections } from '../shared/net/connection_gate.ts';
import { createListener } from './tunnel/listener.ts';
import { SessionRefusals } from './tunnel/session_refusals.ts';
import { StrangerRefusals } from './tunnel/stranger_refusals.ts';
import type { TunnelPorts } from './tunnel/tunnel_ports.ts';
import { pause } from '../machine/pause.ts';
import { bootId } from '../machine/process_identity.ts';
import { trustedRoots } from '../machine/trusted_roots.ts';
import { createDialer, type DialerOptions } from './upstream/dialer.ts';
import { TunnelLanes } from './upstream/lanes.ts';
import { openUpstream } from './upstream/open_upstream.ts';
import { WarmUpstreams } from './upstream/warm_upstreams.ts';
import { CARRIED, createPlainDialer } from './upstream/plain_dialer.ts';
import { errorCode } from '../shared/model/error_code.ts';
import { proxyOrigin, upstreamProxyVariables } from '../shared/net/upstream_proxy.ts';

/** Composition root of the sidecar: the only file that reads its arguments and environment. */

const EXIT_USAGE = 2;
const EXIT_CANNOT_START = 1;
const FLUSH_AT_STOP_MS = 3_000;

const COUNTERS = {
  svc_proxy_requests_total: 'Requests that were forwarded, by mediation.',
  svc_proxy_refusals_total: 'Requests that were refused, by reason.',
  [DROPPED_CONNECTIONS]: 'Connections that were dropped because there were too many, by reason.',
  svc_proxy_bugs_total: 'Tunnels that were closed because of an unexpected error.',
};

/** The most client connections; null if the system reports no limit. Read once: a process report is expensive. */
const MAX_OPEN = openableConnections(process.report);

const clock: Clock = { now: () => Date.now() };
const log = jsonLog((line) => process.stderr.write(line), clock);
const metrics = new MetricsRegistry(COUNTERS);
const warn = (message: string): void => log.error(message);

function fail(code: number, messages: readonly string[]): never {
  for (const message of messages) process.stderr.write(`svc sidecar: ${message}\n`);
  process.exit(code);
}

function engineAt({ endpoint }: EngineAddress): ContainerEngine {
  return engineRuntime(process.env, endpoint);
}

async function main(): Promise<void> {
  const config = readConfig(process.argv.slice(2), process.env, hostname());
  if (!config.ok) fail(EXIT_USAGE, config.error);
  const { home } = config.value;
  const hostToken = await openHostToken(join(home, 'sidecar', 'host.token'));
  if (!hostToken.ok) fail(EXIT_CANNOT_START, [hostToken.error.message]);
  const control = await openControl({ ...config.value, clock, metrics, warn, extraCa: config.value.upstreamRoots });
  if (!control.ok) fail(EXIT_CANNOT_START, [control.error.message]);

  const own: OwnAddress = { origin: '', port: config.value.port };
  const refusals = new SessionRefusals(control.value.audit);
  const sessions = openSessions(config.value, control.value, own, refusals);
  control.value.audit.onReason((id, reason) => sessions.noteReason(id, reason));
  control.value.scopes.useSessions((id) => sessions.get(id) ?? sessions.scope(id));
  const restored = await sessions.start();
  const requestCounts = openRequestCounts({
    path: join(home, 'sidecar', 'request_counts.json'),
    clock,
    limitsOfSession: (id) => sessions.limitsOf(id),
    warn,
  });
  const parts = { requestCounts, control: control.value, sessions, refusals, hostToken: hostToken.value, own };
  const served = await serve(config.value, parts, restored);
  stopOnSignal(async () => {
    // The gateway sends its last events as it ends, so this API must still be up.
    await Promise.all([served.mcp.stop(), sessions.stop()]);
    served.close();
    await Promise.all([control.value.stop(FLUSH_AT_STOP_MS), requestCounts.flush()]);
  });
}

/** Where the sidecar listens; the origin is set once it does. */
interface OwnAddress {
  origin: string;
  port: number;
}

interface Parts {
  readonly control: Control;
  readonly sessions: Sessions;
  readonly refusals: SessionRefusals;
  readonly hostToken: string;
  readonly own: OwnAddress;
  readonly requestCounts: ReturnType<typeof openRequestCounts>;
}

function openSessions(
  { home, limits }: SidecarConfig,
  { identity }: Control,
  own: OwnAddress,
  refusals: SessionRefusals,
): Sessions {
  const directory = join(home, 'sessions');
  // At most half of all connections, so that one session leaves room for the others.
  const maxTunnelsPerSession = Math.min(limits.maxTunnelsPerSession, Math.ceil((MAX_OPEN ?? Infinity) / 2));
  const caOptions = { maxLeaves: limits.maxLeafCertificates, now: () => clock.now() };
  return new Sessions({
    directory,
    clock,
    maxTunnelsPerSession,
    createCa: (at, sessionId) => createSessionCa(at, { ...caOptions, sessionId }),
    systemRoots: systemRootsPem,
    warn,
    onClosed: (sessionId) => refusals.flushSession(sessionId),
    containers: new SessionContainers({ engineAt, homeLabel: homeLabelOf(home), warn, pause }),
    keeper: new SessionKeeper({
      directory,
      clock,
      seal: createSessionSeal(identity),
      bootId: bootId(),
      uid: process.getuid?.() ?? null,
      proxyPort: () => own.port,
      openCa: (at, sessionId, digest) => openSessionCa(at, digest, { ...caOptions, sessionId }),
      maxTunnelsPerSession,
      warn,
    }),
  });
}

/** Listens on the sidecar's own port; a session's container has its own listener. */
async function serve(
  config: SidecarConfig,
  parts: Parts,
  restored: Restored,
): Promise<{ readonly mcp: SidecarMcp; close(): void }> {
  const { own, sessions } = parts;
  const approvals = new Approvals({ channel: parts.control.channel, findSession: (id) => sessions.find(id) });
  const tunnelPorts = tunnelPortsOf(config, parts, approvals);
  const listeners: SessionListeners = new SessionListeners({
    makeListener: (kind) => containerListener(kind, tunnelPorts, apiOptions),
    engineAt,
    kernelRelease: release(),
    rightsAt: namespaceRightsAt,
    sandboxes: join(config.home, SANDBOXES),
    ownPort: () => own.port,
    homeLabel: homeLabelOf(config.home),
    user: `${process.geteuid?.() ?? 0}:${process.getegid?.() ?? 0}`,
    warn,
    pause,
  });
  const mcp = openSidecarMcp({
    ...parts,
    home: config.home,
    origin: () => own.origin,
    approvals,
    isLocal: config.controlUrl.startsWith('http:'),
    extraRoots: config.upstreamRoots,
    upstreamProxy: upstreamProxyVariables(process.env),
    env: process.env,
    execArgv: process.execArgv,
    clock,
    warn,
  });
  const apiOptions: LocalApiOptions = {
    ...apiParts(config, parts),
    mcp: mcp.options,
    operations: createOperationRunner(tunnelPorts),
    masked: tunnelPorts.exchange.masked,
    listeners,
    proxyOrigin: () => own.origin,
  };
  const localApi = apiServer(createLocalApi(apiOptions));
  // Before anything is accepted: connections that waited for a restart find the policy and their session.
  await parts.control.start();
  adoptRestored(parts, restored, tunnelPorts.exchange.masked);
  const servers = config.listen.map((address) => ({ address, server: createListener(tunnelPorts, localApi) }));
  const port = await bindServers(config, servers);
  Object.assign(own, { origin: `http://${formatAddress(config.listen[0] ?? '127.0.0.1')}:${port}`, port });
  for (const session of restored.sessions) void reopenListener(parts, listeners, session);
  process.stdout.write(`${JSON.stringify({ listening: own.origin })}\n`);
  return {
    mcp,
    close: () => {
      for (const { server } of servers) server.close();
      tunnelPorts.strangers.flush();
      tunnelPorts.refusals.flush();
      listeners.close();
    },
  };
}

/** Binds each address to one port, which the first one gets if the configuration names none. Returns the port. */
async function bindServers(
  config: SidecarConfig,
  servers: readonly { readonly address: string; readonly server: ReturnType<typeof createListener> }[],
): Promise<number> {
  let { port } = config;
  for (const { address, server } of servers) {
    const wanted = port;
    const isInherited = config.inheritsSocket && server === servers[0]?.server;
    const where = isInherited ? { fd: FIRST_INHERITED } : { port: wanted, host: address };
    const bound = await listenOn(server, where).catch((error: unknown) =>
      fail(EXIT_CANNOT_START, [explainListen(error, address, wanted)]),
    );
    ({ port } = bound);
  }
  return port;
}

/** Records which sessions an earlier run has left to this one, and which of its files cannot be trusted. */
function adoptRestored(
  { control, sessions }: Parts,
  { sessions: found, refused }: Restored,
  masked: MaskedReplies,
): void {
  for (const session of found) {
    masked.restore(session.id, session.paused);
    control.audit.record(restoredEvent(session));
  }
  for (const { sessionId, reason } of refused) {
    if (!SUSPICIOUS.has(reason)) continue;
    warn(`Session ${sessionId} of an earlier run was not restored (${reason}).`);
    control.audit.record(notRestoredEvent(sessionId, reason));
  }
  control.link.onRevoked(() => void sessions.forgetSaved());
}

/** A container whose listener cannot be opened again gets no other way out: its session ends. */
async function reopenListener(
  { control, sessions }: Parts,
  listeners: SessionListeners,
  session: Session,
): Promise<void> {
  const reopened = await listeners.reopen(session);
  if (reopened.ok || session.ended) return;
  warn(`Session ${session.id} was ended: ${reopened.error.message}`);
  control.audit.record(notRestoredEvent(session.id, reopened.error.reason));
  await sessions.end(session.id);
}

function apiParts(
  config: SidecarConfig,
  { control, sessions, hostToken }: Parts,
): Omit<LocalApiOptions, 'operations' | 'listeners' | 'proxyOrigin' | 'masked'> {
  return {
    version: packageVersion(),
    hostToken,
    hostNames: config.listen,
    policy: control.policy,
    credentials: control.credentials,
    scopes: control.scopes,
    borrow: control.borrow,
    audit: control.audit,
    upstreamProxy: config.proxy === null ? null : proxyOrigin(config.proxy),
    link: control.link,
    witness: control.witness,
    sessions,
    planLocks: createPlanLocks(control.identity, clock),
    logins: control.channel,
    releaseUnsealed: (request) => releaseUnsealed(control.channel, request, clock),
    clock,
    limits: config.limits,
    metrics,
    warn,
  };
}

/** One gate for all listeners: file descriptors are limited per process. */
function gateOf({ limits }: SidecarConfig): ConnectionGate {
  const gate = createSocketGate({ limits, maxOpen: MAX_OPEN, metrics, log, clock });
  const gauge = (name: string, help: string, read: () => number): void => metrics.gauge({ name, help, read });
  gauge('svc_connections_open', 'Client connections.', () => gate.counts.open);
  gauge('svc_connections_waiting', 'Client connections that have not authenticated yet.', () => gate.counts.waiting);
  return gate;
}

function tunnelPortsOf(
  config: SidecarConfig,
  { control, sessions, refusals, requestCounts }: Parts,
  approvals: Approvals,
): TunnelPorts {
  const dialerOptions: DialerOptions = {
    roots: trustedRoots(config.upstreamRoots),
    pinned: config.pinned,
    proxy: config.proxy,
    denyPrivate: config.denyPrivateUpstreams,
    timeoutSeconds: config.limits.connectTimeoutSeconds,
    limits: config.limits,
  };
  const dialer = createDialer(dialerOptions);
  const warm = new WarmUpstreams(config.limits.keepUpstreamSeconds);
  const plainDialer = createPlainDialer(dialerOptions);
  const tcpDialer = createPlainDialer(dialerOptions, CARRIED);
  const materials = new MaterialCache();
  const masked = new MaskedReplies(
    config.limits.maxMaskedReplies,
    (id) => sessions.get(id) !== null,
    (id, paused) => sessions.notePaused(id, paused),
  );
  control.policy.onChanged(() => warm.dropAll());
  control.link.onRevoked(() => {
    warm.dropAll();
    materials.clear();
    void sessions.closeTunnels();
  });
  return {
    sessions: sharedDirectory(sessions),
    gate: gateOf(config),
    exchange: {
      policy: control.policy,
      credentials: control.credentials,
      scopes: control.scopes,
      approvals,
      audit: control.audit,
      clock,
      materials,
      masked,
      counts: requestCounts.counts,
      limits: config.limits,
      budget: new BodyBudget(config.limits.maxBufferedBodiesBytes),
      hash: NodeSha256,
    },
    audit: control.audit,
    strangers: new StrangerRefusals(control.audit),
    refusals,
    metrics,
    log,
    openUpstream: (wanted) => openUpstream(dialer, warm, wanted),
    dialTcp: (host, publicOnly) => tcpDialer.dial(host, publicOnly),
    openLanes: (host, isPublicOnly) => new TunnelLanes({ dialer, host, isPublicOnly }),
    openPlainLanes: (host, isPublicOnly) => new TunnelLanes({ dialer: plainDialer, host, isPublicOnly }),
  };
}

/** A listener that containers reach; it accepts only its own session. */
function containerListener(kind: ListenerKind, ports: TunnelPorts, options: LocalApiOptions): Server {
  const session = kind.kind === 'gateway' ? null : kind.session;
  const hostNames = kind.kind === 'gateway' ? [kind.address] : [];
  const api = apiServer(createContainerApi(options, { session, hostNames }));
  return createListener({ ...ports, sessions: directoryOf(kind, options.sessions) }, api, session?.id ?? null);
}

function directoryOf(kind: ListenerKind, sessions: Sessions): SessionDirectory {
  if (kind.kind === 'gateway') return sharedDirectory(sessions);
  const { id } = kind.session;
  const directory = sessionDirectory(sessions, id);
  return kind.kind === 'relay' ? { ...directory, findVouchedSession: () => sessions.get(id) } : directory;
}

function apiServer(api: { readonly fetch: Parameters<typeof getRequestListener>[0] }): HttpServer {
  const answer = getRequestListener(api.fetch);
  return createApiServer((request, response) => void answer(request, response));
}

function formatAddress(address: string): string {
  return address.includes(':') ? `[${address}]` : address;
}

function explainListen(error: unknown, address: string, port: number): string {
  const code = errorCode(error) || 'unknown error';
  const fix = code === 'EADDRINUSE' ? 'another program uses it; choose another with --port' : 'choose another';
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
