import type { McpHealthState } from '../../shared/model/mcp_server.ts';
import type { McpHealthReport } from '../../shared/wire/mcp/mcp_servers.ts';
import type { GatewayIdentity, HealthInput, ReportedServer } from '../../shared/wire/mcp/mcp_gateway.ts';
import type { Clock } from '../../shared/model/clock.ts';
import { listRefusedHosts, type RefusedHosts } from './refused_hosts.ts';
import type { KnownServer } from './server_directory.ts';

/** The state of a server on this machine, combined from all gateway reports. */
interface ServerState {
  readonly state: McpHealthState;
  readonly lastError: string | null;
  /** Milliseconds since the epoch. */
  readonly checkedAt: number;
  /** Null if no gateway reports it. */
  readonly restarts: number | null;
  readonly tools: number | null;
  /** The number of gateways that run it. */
  readonly gateways: number;
}

/** A server's stderr output in one gateway. */
interface ServerLog {
  readonly gateway: GatewayIdentity;
  readonly lines: readonly string[];
}

interface Gateway {
  readonly identity: GatewayIdentity;
  readonly servers: Map<string, ReportedServer>;
  readonly logs: Map<string, readonly string[]>;
  /** What it reported before it ended. */
  readonly ended: Map<string, ReportedServer>;
  seenAt: number;
  gone: boolean;
}

/** A gateway reports at least once a minute; after this long without a report it is considered gone. */
const SILENT_MS = 150_000;
/** Logs of an ended gateway are kept, because they may say why it ended. */
const MAX_GONE = 4;
const MAX_GATEWAYS = 64;

/** A server's state is the first of these that any gateway reports. */
const RANK: readonly McpHealthState[] = [
  'running',
  'starting',
  'failed',
  'needs_authorisation',
  'needs_credentials',
  'needs_consent',
  'stopped',
  'unknown',
  'disabled',
];

/** A server in one of these states has a problem that a person should see also after its gateway has ended. */
const FAILING: ReadonlySet<McpHealthState> = new Set(['failed', 'starting']);

/** The gateways' reports about their servers. In memory only: a gateway repeats its full report. */
export class HealthBoard {
  readonly #clock: Clock;
  readonly #gateways = new Map<string, Gateway>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Takes a gateway's report on its servers. The last report of one that ends only says that it has stopped them. */
  take({ gateway: identity, servers, ended }: HealthInput): void {
    const gateway = this.#gateway(identity);
    if (!ended) gateway.servers.clear();
    for (const server of servers) {
      if (!ended) gateway.servers.set(server.id, server);
      if (server.log !== null) gateway.logs.set(server.id, server.log);
    }
    gateway.ended.clear();
    gateway.seenAt = this.#clock.now();
    gateway.gone = false;
    this.#sweep();
  }

  /** A gateway is about to end: none of its servers runs any more. */
  end(gatewayId: string): void {
    const gateway = this.#gateways.get(gatewayId);
    if (gateway !== undefined) this.#isGone(gateway);
    this.#sweep();
  }

  /** The state of a server. If no gateway runs it: why it cannot start, or `stopped`. */
  stateOf(known: KnownServer): ServerState {
    this.#sweep();
    const reports = this.#liveReports(known.server.id);
    const standing = findStandingState(known);
    const now = this.#clock.now();
    if (standing !== null) return { ...standing, checkedAt: now, restarts: null, tools: null, gateways: 0 };
    const [first] = reports.toSorted((a, b) => RANK.indexOf(a.state) - RANK.indexOf(b.state));
    if (first === undefined) {
      const problem = this.#findLastProblem(known.server.id);
      const { lastError, restarts } = problem;
      return { state: 'stopped', lastError, checkedAt: now, restarts, tools: null, gateways: 0 };
    }
    return {
      state: first.state,
      lastError: first.last_error,
      checkedAt: first.seenAt,
      restarts: first.restarts,
      tools: first.tools,
      gateways: reports.filter(({ state }) => state === 'running').length,
    };
  }

  /** Why the server did not run in the gateway that ended last: its client may have ended because of it. */
  #findLastProblem(serverId: string): Pick<ServerState, 'lastError' | 'restarts'> {
    const ended = [...this.#gateways.values()].filter((gateway) => gateway.ended.has(serverId));
    const last = ended
      .toSorted((a, b) => a.seenAt - b.seenAt)
      .at(-1)
      ?.ended.get(serverId);
    if (last === undefined || !FAILING.has(last.state)) return { lastError: null, restarts: null };
    return { lastError: last.last_error, restarts: last.restarts };
  }

  /** A server's stderr output: from running gateways first, then from the last ended ones. */
  logsOf(serverId: string): readonly ServerLog[] {
    return [...this.#gateways.values()]
      .toSorted((a, b) => Number(a.gone) - Number(b.gone))
      .flatMap(({ identity, logs }) => {
        const lines = logs.get(serverId) ?? [];
        return lines.length === 0 ? [] : [{ gateway: identity, lines }];
      });
  }

  /** Each state with the time of its gateway's latest report. */
  #liveReports(serverId: string): readonly (ReportedServer & { readonly seenAt: number })[] {
    return [...this.#gateways.values()].flatMap(({ servers, seenAt }) => {
      const report = servers.get(serverId);
      return report === undefined ? [] : [{ ...report, seenAt }];
    });
  }

  #gateway(identity: GatewayIdentity): Gateway {
    const found = this.#gateways.get(identity.id);
    if (found !== undefined) return found;
    const made = { identity, servers: new Map(), logs: new Map(), ended: new Map(), seenAt: 0, gone: false };
    this.#gateways.set(identity.id, made);
    return made;
  }

  #isGone(gateway: Gateway): void {
    gateway.gone = true;
    for (const [id, server] of gateway.servers) gateway.ended.set(id, server);
    gateway.servers.clear();
  }

  #sweep(): void {
    const now = this.#clock.now();
    const all = [...this.#gateways.values()];
    for (const gateway of all) if (now - gateway.seenAt > SILENT_MS) this.#isGone(gateway);
    const surplus = all.filter(({ gone }) => gone).slice(0, -MAX_GONE);
    const excess = all.slice(0, Math.max(0, all.length - MAX_GATEWAYS));
    for (const { identity } of [...surplus, ...excess]) this.#gateways.delete(identity.id);
  }
}

/** Why a server cannot start, even if a gateway has not heard of it yet; null if it can. */
function findStandingState(known: KnownServer): Pick<ServerState, 'state' | 'lastError'> | null {
  const { server, consent, missing, authorization } = known;
  if (!server.enabled) return { state: 'disabled', lastError: server.ruleProblem ?? null };
  if (consent === 'needed')
    return { state: 'needs_consent', lastError: `consent to it with: svc mcp consent ${server.name}` };
  if (missing.length > 0) {
    const names = missing.map((path) => path.slice(path.lastIndexOf('/') + 1)).join(', ');
    return { state: 'needs_credentials', lastError: `store with svc mcp credential set ${server.name}: ${names}` };
  }
  if (authorization === null || authorization === 'ready') return null;
  return { state: 'needs_authorisation', lastError: `authorise it with: svc mcp authorize ${server.name}` };
}

/** The report for the control plane. */
export function healthReport(
  servers: readonly KnownServer[],
  board: HealthBoard,
  refused: Pick<RefusedHosts, 'listOf'>,
): McpHealthReport {
  return {
    servers: servers.map((known) => {
      const { state, lastError, checkedAt } = board.stateOf(known);
      const hosts = listRefusedHosts(refused, known);
      return {
        id: known.server.id,
        state,
        last_error: lastError,
        checked_at: new Date(checkedAt).toISOString(),
        ...(hosts.length > 0 && { refused_hosts: hosts }),
      };
    }),
  };
}
