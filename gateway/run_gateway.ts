import { randomBytes } from 'node:crypto';
import { waitForAbort } from '../machine/pause.ts';
import { chmodSync } from 'node:fs';
import { createServer } from 'node:http';
import type { Readable, Writable } from 'node:stream';
import { err, ok, type Result } from '../shared/model/result.ts';
import { gatewayFacts } from '../shared/wire/mcp/mcp_gateway.ts';
import type { Clock } from '../shared/model/clock.ts';
import { readUpstreamProxy } from '../shared/net/upstream_proxy.ts';
import { HOST_CALLER } from '../machine/mcp_caller.ts';
import { connectorCalls } from './sidecar/connector_calls.ts';
import { connectorTools } from './routing/connector_tools.ts';
import { type LocalApiAddress, LocalApi, type LocalApiFailure } from './sidecar/local_api.ts';
import { serverSessions } from './sidecar/server_sessions.ts';
import { SidecarPorts, type ServerDetail } from './sidecar/sidecar_ports.ts';
import type { Gateway } from './gateway.ts';
import { createHttpFront, httpFrontListener } from './fronts/http_front.ts';
import { type LocalGateway, startLocalGateway } from './servers/local_gateway.ts';
import { serveStdioFront } from './fronts/stdio_front.ts';
import { waitUnlessAborted } from './servers/wait_unless_aborted.ts';

export interface GatewayRun {
  /** `$SVC_HOME/mcp`. */
  readonly mcpHome: string;
  /** The sidecar's current address; null if it does not run. */
  readonly locate: () => LocalApiAddress | null;
  /** The program's environment. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly version: string;
  readonly pid: number;
  readonly clock: Clock;
  /** Waits; resolves immediately if the signal is aborted. */
  readonly pause: (ms: number, signal: AbortSignal) => Promise<void>;
  readonly warn: (message: string) => void;
  /** The id of the only server that is served; by default all servers and the tools of connectors are. */
  readonly only?: string | null;
  /** Aborted when the program should end. */
  readonly stop: AbortSignal;
}

/** How long a gateway may run after its last client disconnects. */
const CLOSE_MS = 2_000;
/** How long a client waits for the list of servers before it is answered. */
const LISTED_MS = 2_000;
/** Maximum age of the server state that a person sees. */
const DETAILS_MS = 5_000;

/** Serves one client over stdin and stdout until it disconnects. Fails if there is no sidecar. */
export async function runStdioGateway(
  run: GatewayRun,
  { stdin, stdout }: { readonly stdin: Readable; readonly stdout: Writable },
): Promise<Result<void, LocalApiFailure>> {
  const opened = await openGateway(run, 'stdio');
  if (!opened.ok) return opened;
  const { local, ports } = opened.value;
  // A client reads the instructions of servers once, when it connects.
  await waitUnlessAborted(local.gateway.fleet.listed, AbortSignal.any([run.stop, AbortSignal.timeout(LISTED_MS)]));
  const front = serveStdioFront({ gateway: local.gateway, caller: HOST_CALLER, stdin, stdout });
  await Promise.race([front.ended, waitForAbort(run.stop)]);
  await front.close();
  await local.stop();
  await ports.close(CLOSE_MS);
  return ok(undefined);
}

/** Serves the sidecar on a socket that only this user can reach, until the program should end. Fails if there is no sidecar. */
export async function runSocketGateway(
  run: GatewayRun,
  socketPath: string,
  onListening: () => void,
): Promise<Result<void, LocalApiFailure>> {
  const opened = await openGateway(run, 'socket');
  if (!opened.ok) return opened;
  const { local, ports } = opened.value;
  const front = createHttpFront({ gateway: local.gateway, now: () => run.clock.now() });
  // No time limit: a client may listen indefinitely, and the sidecar has already checked the request.
  const server = createServer({ requestTimeout: 0, headersTimeout: CLOSE_MS }, httpFrontListener(front));
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(socketPath, resolve);
  });
  chmodSync(socketPath, 0o600);
  onListening();
  await waitForAbort(run.stop);
  server.close();
  await front.close();
  server.closeAllConnections();
  await local.stop();
  await ports.close(CLOSE_MS);
  return ok(undefined);
}

interface OpenedGateway {
  readonly local: LocalGateway;
  readonly ports: SidecarPorts;
}

async function openGateway(run: GatewayRun, kind: 'stdio' | 'socket'): Promise<Result<OpenedGateway, LocalApiFailure>> {
  const { locate, clock, pause, warn, mcpHome, env, version, pid, only = null } = run;
  const localApi = new LocalApi(locate);
  const facts = await localApi.call('GET', '/v1/mcp/gateway', gatewayFacts);
  if (!facts.ok) return err(facts.error);
  const proxy = readUpstreamProxy(facts.value.upstream_proxy);
  // The sidecar does not start with one that cannot be read.
  if (!proxy.ok) throw new Error(proxy.error);
  let gateway: Gateway | null = null;
  const identity = { id: randomBytes(16).toString('base64url'), kind, pid };
  const detailOf = (serverId: string): ServerDetail | null => (gateway === null ? null : readDetail(gateway, serverId));
  const ports = new SidecarPorts({ localApi, identity, clock, pause, warn, detailOf });
  const local = startLocalGateway({
    ports,
    sources: only === null ? [connectorTools({ sidecar: connectorCalls(localApi), pause })] : [],
    only,
    mcpHome,
    env,
    version,
    isLocal: facts.value.is_local,
    extraRoots: facts.value.extra_roots,
    proxy: proxy.value,
    sessions: serverSessions(localApi, pid),
  });
  gateway = local.gateway;
  setInterval(() => ports.refreshDetails(), DETAILS_MS).unref();
  return ok({ local, ports });
}

function readDetail(gateway: Gateway, serverId: string): ServerDetail | null {
  const supervised = gateway.fleet.find(serverId);
  if (supervised === null) return null;
  const { restarts } = supervised.facts;
  return { restarts, tools: gateway.toolCount(serverId), stderr: supervised.stderr.text() };
}
