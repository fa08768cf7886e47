import type { McpServer } from '../../../shared/model/mcp_server.ts';
import { ok } from '../../../shared/model/result.ts';
import { Secret } from '../../../shared/model/secret.ts';
import { referencesOf } from '../../../shared/mcp/references.ts';
import { localServer as validServer } from '../../../shared/mcp/testing/servers.ts';
import type {
  ApprovalRefusalReason,
  GatewayEvent,
  GatewayPorts,
  GatewayServer,
  ServerHealth,
  ToolApproval,
} from '../../../gateway/gateway_ports.ts';
import type { Result } from '../../../shared/model/result.ts';
import type { Refusal } from '../../../shared/model/refusal.ts';

/** In-process ports of a gateway: a test can read the recorded events and change the list of servers. */
export class FakePorts implements GatewayPorts {
  /** How far the clock was set ahead. */
  aheadMs = 0;
  readonly clock = { now: () => Date.now() + this.aheadMs };
  readonly events: GatewayEvent[] = [];
  readonly approvals: Omit<ToolApproval, 'signal'>[] = [];
  health: readonly ServerHealth[] = [];
  accepts = true;
  decide: () => Promise<Result<null, Refusal<ApprovalRefusalReason>>> = () => Promise.resolve(ok(null));
  secrets: Readonly<Record<string, string>>;
  /** When the values end that are released. */
  endsAt: number | null = null;
  bearer: string | null = null;
  #servers: readonly GatewayServer[];
  #onChange: ((servers: readonly GatewayServer[]) => void) | null = null;

  constructor(servers: readonly (McpServer | GatewayServer)[], secrets: Readonly<Record<string, string>> = {}) {
    this.secrets = secrets;
    this.#servers = servers.map(toGatewayServer);
  }

  async watchServers(onChange: (servers: readonly GatewayServer[]) => void, signal: AbortSignal): Promise<void> {
    this.#onChange = onChange;
    onChange(this.#servers);
    await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
  }

  /** The control plane's answer from now on. */
  change(servers: readonly (McpServer | GatewayServer)[]): void {
    this.#servers = servers.map(toGatewayServer);
    this.#onChange?.(this.#servers);
  }

  release(server: McpServer) {
    const values = referencesOf(server).map((path): [string, Secret] => {
      return [path, new Secret(this.secrets[path.split('/').at(-1) ?? ''] ?? '')];
    });
    const bearer = this.bearer === null ? null : { token: new Secret(this.bearer), expiresAt: null };
    return Promise.resolve(ok({ values: new Map(values), endsAt: this.endsAt, bearer }));
  }

  approve({ server, tool, argumentsHash, summary, shownArguments, sessionId }: ToolApproval) {
    this.approvals.push({ server, tool, argumentsHash, summary, shownArguments, sessionId });
    return this.decide();
  }

  /** Nothing is kept about tools. */
  reportTools() {
    return Promise.resolve(ok(null));
  }

  record(event: GatewayEvent): void {
    this.events.push(event);
  }

  hasEnded(): Promise<boolean> {
    return Promise.resolve(false);
  }

  isAccepting(): boolean {
    return this.accepts;
  }

  reportHealth(states: readonly ServerHealth[]): void {
    this.health = states;
  }

  calls(): readonly Extract<GatewayEvent, { readonly type: 'mcp.tool.called' }>[] {
    return this.events.filter((event) => event.type === 'mcp.tool.called');
  }
}

function toGatewayServer(one: McpServer | GatewayServer): GatewayServer {
  if ('server' in one) return one;
  return { server: one, consent: one.mode === 'local' ? 'given' : 'not_needed', missing: [] };
}

let ids = 0;

/** The configuration of a local server, with a test's changes. */
export function localServer(name: string, command: readonly string[], changes: Partial<McpServer> = {}): McpServer {
  ids += 1;
  const id = `mcp_0${String(ids).padStart(25, '0')}`;
  return validServer({ id, name, description: '', version: null, command, ...changes });
}

export function remoteServer(name: string, url: string, changes: Partial<McpServer> = {}): McpServer {
  return localServer(name, [], { mode: 'remote', url, transport: 'streamable-http', ...changes });
}
