import { randomBytes } from 'node:crypto';
import { err, ok, type Result } from '../../shared/model/result.ts';
import type { UpstreamProxy } from '../../shared/net/upstream_proxy.ts';
import { isRunning } from '../../machine/process_identity.ts';
import { openEngine } from '../../sandbox/engine/open_engine.ts';
import { DEFAULT_RUNTIME_IMAGES, type RuntimeImages } from './container_command.ts';
import { Gateway } from '../gateway.ts';
import { DEFAULT_GATEWAY_LIMITS, type GatewayLimits } from '../gateway_limits.ts';
import type { GatewayPorts, ServerSessions } from '../gateway_ports.ts';
import { KeptLists } from '../routing/kept_lists.ts';
import { KeptRevisions } from './kept_revisions.ts';
import { Launcher } from './launcher.ts';
import { LocalLaunch } from './local_launch.ts';
import { PackageStore } from '../packages/package_store.ts';
import { ProcessGuard } from './process_guard.ts';
import { ProcessRecords } from '../../machine/process_records.ts';
import { killMarked, killTree } from './process_tree.ts';
import type { ToolSource } from '../tool_source.ts';
import { pauseInBackground } from '../../machine/pause.ts';

interface LocalGatewayOptions {
  readonly ports: GatewayPorts;
  readonly sources: readonly ToolSource[];
  /** `$SVC_HOME/mcp`. */
  readonly mcpHome: string;
  /** The program's environment: it determines PATH and the engine. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly version: string;
  /** The control plane is on this machine. */
  readonly isLocal: boolean;
  /** Additional PEM roots to trust for remote servers. */
  readonly extraRoots: readonly string[];
  readonly proxy?: UpstreamProxy | null;
  /** The id of the only server that is served; by default all are. */
  readonly only?: string | null;
  readonly limits?: Partial<GatewayLimits>;
  readonly images?: RuntimeImages;
  /** For servers in containers with a closed network; without it, none is started. */
  readonly sessions?: ServerSessions;
}

export interface LocalGateway {
  readonly gateway: Gateway;
  /** Ends every server completely. */
  stop(): Promise<void>;
}

/** A gateway whose local servers are processes and containers of this machine. At start it ends leftovers of a killed gateway. */
export function startLocalGateway(options: LocalGatewayOptions): LocalGateway {
  const { ports, sources, mcpHome, env, version, isLocal, extraRoots, proxy = null, only = null } = options;
  const limits = { ...DEFAULT_GATEWAY_LIMITS, ...options.limits };
  const gatewayMark = randomBytes(12).toString('hex');
  const guard = new ProcessGuard(gatewayMark, env);
  const records = new ProcessRecords(mcpHome, process.pid);
  endAbandoned(records);
  const images = options.images ?? DEFAULT_RUNTIME_IMAGES;
  const packages = new PackageStore({ mcpHome, env, pid: process.pid });
  // A failure leaves something behind until the next start.
  void packages.sweep().catch(() => undefined);
  const findEngine = () => engineOf(env);
  const machine = { mcpHome, env, gatewayMark, guard, records, images, packages, findEngine };
  const local = new LocalLaunch({ ...machine, sessions: options.sessions ?? null });
  const launcher = new Launcher({ ports, local, limits, version, isLocal, extraRoots, proxy });
  const keptLists = new KeptLists(mcpHome);
  const revisions = new KeptRevisions(mcpHome, () => ports.clock.now());
  const kept = { keptLists, revisions };
  const gateway = new Gateway({ ports, launcher, only, ...kept, sources, limits, version, pause: pauseInBackground });
  gateway.start();
  return {
    gateway,
    async stop() {
      await gateway.stop();
      guard.stop();
    },
  };
}

/** Kills servers of dead gateways. If a process id was reused, only processes with the mark are killed. */
function endAbandoned(records: ProcessRecords): void {
  for (const { server, runId } of records.listAbandoned()) {
    if (isRunning(server)) killTree(server.pid, runId);
    else killMarked(runId);
    records.remove(server.pid);
  }
}

async function engineOf(env: Readonly<Record<string, string | undefined>>): Promise<Result<string, string>> {
  const found = await openEngine(env);
  return found.ok ? ok(found.value.endpoint) : err(found.error.message);
}
