import { rmSync } from 'node:fs';
import type { Approvals } from '../control/approvals.ts';
import type { Control } from '../control/control.ts';
import type { McpOptions } from '../local_api/mcp_options.ts';
import type { Clock } from '../../shared/model/clock.ts';
import { Consents } from './consents.ts';
import { GatewayChild } from './gateway_child.ts';
import { HealthBoard, healthReport } from './health_board.ts';
import { HealthSender } from './health_sender.ts';
import { serversInUse } from '../../machine/process_records.ts';
import { RefusedHosts } from './refused_hosts.ts';
import { ServerDirectory } from './server_directory.ts';
import { findExistingServers, ServerHomes } from './server_homes.ts';
import { newSocketPath, openGatewayDirectory, spawnGateway } from './spawn_gateway.ts';
import { pauseInBackground } from '../../machine/pause.ts';

interface SidecarMcpOptions {
  /** `$SVC_HOME`. */
  readonly home: string;
  /** The local API's origin; known once it listens. */
  readonly origin: () => string;
  readonly control: Pick<Control, 'policy' | 'credentials' | 'channel' | 'link'>;
  readonly approvals: Pick<Approvals, 'approveTool'>;
  /** The control plane is on this machine. */
  readonly isLocal: boolean;
  readonly extraRoots: readonly string[];
  /** The settings of the upstream proxy, for the gateways. */
  readonly upstreamProxy: Readonly<Record<string, string>>;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly execArgv: readonly string[];
  readonly clock: Clock;
  readonly warn: (message: string) => void;
}

const LAST_REPORT_MS = 1_000;

/** Everything in the sidecar that concerns MCP servers. */
export interface SidecarMcp {
  readonly options: McpOptions;
  stop(): Promise<void>;
}

export function openSidecarMcp(options: SidecarMcpOptions): SidecarMcp {
  const { home, control, approvals, clock, warn } = options;
  const directory = openGatewayDirectory(home);
  const consents = new Consents({ directory, clock, warn });
  const servers = new ServerDirectory({ policy: control.policy, credentials: control.credentials, consents });
  const board = new HealthBoard(clock);
  const refused = new RefusedHosts();
  const sender = new HealthSender({
    report: () => {
      const known = servers.listAll();
      return known === null ? null : healthReport(known, board, refused);
    },
    send: (report) => control.channel.reportMcpHealth(report),
    pause: pauseInBackground,
    now: () => clock.now(),
  });
  const startedAt = clock.now();
  const homes = new ServerHomes({
    mcpHome: directory,
    findExisting: () => findExistingServers({ policy: control.policy, clock, startedAt }),
    findInUse: () => serversInUse(directory),
    pause: pauseInBackground,
    warn,
  });
  servers.onChange(() => {
    sender.notify();
    homes.notify();
  });
  control.link.onUp(() => sender.notify());
  const gateway = gatewayChild(options, directory);
  return {
    options: {
      directory: servers,
      consents,
      refused,
      board,
      healthChanged: () => sender.notify(),
      credentials: control.credentials,
      approve: (request, gone) => approvals.approveTool(request, gone),
      reportTools: (report) => control.channel.reportMcpTools(report),
      gateway,
      facts: {
        is_local: options.isLocal,
        extra_roots: [...options.extraRoots],
        upstream_proxy: { ...options.upstreamProxy },
      },
    },
    async stop() {
      homes.stop();
      await gateway.stop();
      await sender.stop(LAST_REPORT_MS);
    },
  };
}

function gatewayChild({ home, origin, env, execArgv, warn }: SidecarMcpOptions, directory: string): GatewayChild {
  const log = (line: string): void => warn(`MCP gateway: ${line}`);
  return new GatewayChild({
    launch: (socketPath) => spawnGateway({ home, origin: origin(), env, execArgv, log }, socketPath),
    newSocketPath: () => newSocketPath(directory),
    removeSocket: (path) => rmSync(path, { force: true }),
    now: () => performance.now(),
    pause: pauseInBackground,
    warn,
  });
}
