import type { LoggingLevel, LoggingMessageNotificationParams, Prompt } from '@modelcontextprotocol/server';
import { randomUUID } from 'node:crypto';
import { Audience } from './fronts/audience.ts';
import { CallRegistry, HeldCalls } from './routing/call_registry.ts';
import type { Downstream, DownstreamEvents } from './fronts/downstream.ts';
import { Fleet } from './servers/fleet.ts';
import { Forwarder } from './routing/forwarder.ts';
import type { GatewayLimits } from './gateway_limits.ts';
import type { GatewayPorts } from './gateway_ports.ts';
import type { KeptLists } from './routing/kept_lists.ts';
import { keepListStream, type StreamTimes } from './servers/kept_stream.ts';
import type { LinkedResources } from './routing/linked_resources.ts';
import type { Launcher } from './servers/launcher.ts';
import { PromptRouter } from './routing/prompt_router.ts';
import { ResourceRouter } from './routing/resource_router.ts';
import { ResourceSubscriptions } from './routing/resource_subscriptions.ts';
import { SecondLimit } from './servers/second_limit.ts';
import type { Caller } from '../machine/mcp_caller.ts';
import { ServerInstructions } from './routing/server_instructions.ts';
import { ServerCatalog } from './routing/server_catalog.ts';
import type { ToolSource } from './tool_source.ts';
import type { SupervisedOptions } from './servers/supervised_server.ts';
import { TaskRouter } from './tasks/task_router.ts';
import { ToolReviews } from './routing/tool_reviews.ts';
import { ToolRouter } from './routing/tool_router.ts';

interface GatewayOptions {
  readonly ports: GatewayPorts;
  readonly launcher: Pick<Launcher, 'launch'>;
  /** The id of the only server that is served; null to serve all. */
  readonly only?: string | null;
  readonly keptLists: Pick<KeptLists, 'read' | 'write' | 'readInstructions' | 'writeInstructions'>;
  readonly revisions: SupervisedOptions['revisions'];
  /** Tools of the gateway itself. */
  readonly sources: readonly ToolSource[];
  readonly limits: GatewayLimits;
  /** The version of this program. */
  readonly version: string;
  /** Waits; resolves immediately if the signal is aborted. */
  readonly pause: (ms: number, signal: AbortSignal) => Promise<void>;
}

/** The core that all fronts share: servers, connected clients and routing. */
export class Gateway {
  readonly version: string;
  readonly limits: GatewayLimits;
  readonly fleet: Fleet;
  readonly audience = new Audience();
  readonly tools: ToolRouter;
  readonly resources: ResourceRouter;
  readonly prompts: PromptRouter;
  readonly subscriptions: ResourceSubscriptions;
  readonly tasks: TaskRouter;
  readonly #registry = new CallRegistry();
  readonly #held: HeldCalls;
  readonly #catalog: ServerCatalog;
  readonly #instructions: ServerInstructions;
  readonly #unwatch: (() => void)[];
  readonly #times: StreamTimes;
  /** The connections whose streams with changes are kept. */
  readonly #kept = new WeakSet<Downstream>();
  readonly #logLimits = new Map<string, SecondLimit>();
  #logLevel: LoggingLevel | null = null;

  constructor(options: GatewayOptions) {
    const { ports, limits, sources, version, launcher, pause } = options;
    this.version = version;
    this.limits = limits;
    this.#held = new HeldCalls(limits.inputMs + HELD_LONGER_MS);
    const onWaiting = (): void => this.fleet.noteChanged();
    const reviews = new ToolReviews({ kind: 'tool', ports, onWaiting, pause });
    const promptReviews = new ToolReviews<Prompt>({ kind: 'prompt', ports, onWaiting, pause });
    const instructionReviews = new ToolReviews<Prompt>({ kind: 'instructions', ports, onWaiting, pause });
    this.#instructions = new ServerInstructions({ kept: options.keptLists, reviews: instructionReviews });
    this.fleet = new Fleet({
      ports,
      launcher,
      limits,
      only: options.only ?? null,
      revisions: options.revisions,
      pause,
      noteOf: (server) => reviews.noteOf(server) ?? promptReviews.noteOf(server) ?? instructionReviews.noteOf(server),
      eventsOf: (serverId) => this.#eventsOf(serverId),
      isBusy: (serverId) => this.#registry.countOf(serverId) > 0 || this.tasks.countOf(serverId) > 0,
      onConnection: (serverId) => this.#onConnection(serverId),
      onServers: () => this.#listsChanged(null),
    });
    const now = (): number => ports.clock.now();
    const { fleet } = this;
    const registry = this.#registry;
    const catalog = new ServerCatalog({
      fleet,
      limits,
      now,
      kept: options.keptLists,
      onLate: (kind, serverId) => this.audience.listChanged(kind === 'templates' ? 'resources' : kind, serverId),
    });
    this.#catalog = catalog;
    const learn: LinkedResources['learn'] = (caller, serverId, result) =>
      this.resources.links.learn(caller, serverId, result);
    this.tasks = new TaskRouter({ ports, limits, links: { learn }, pause });
    const { tasks } = this;
    const forwarder = new Forwarder({ limits, registry, held: this.#held, tasks });
    this.resources = new ResourceRouter({ catalog, forwarder, limits });
    this.tools = new ToolRouter({
      ports,
      fleet,
      catalog,
      forwarder,
      registry,
      tasks,
      sources,
      limits,
      links: this.resources.links,
      reviews,
    });
    this.prompts = new PromptRouter({ fleet, catalog, forwarder, limits, reviews: promptReviews });
    this.#times = { clock: ports.clock, pause };
    const tell = (key: string, uri: string): void => this.audience.find(key)?.resourceUpdated(uri);
    this.subscriptions = new ResourceSubscriptions(fleet, this.#times, tell);
    this.#unwatch = sources.map((source) => source.watch(() => this.audience.listChanged('tools', null)));
  }

  /** Starts following the list of servers. */
  start(): void {
    this.fleet.start();
  }

  /** The number of tools in a server's last list; null if it was not asked or does not run. */
  toolCount(serverId: string): number | null {
    return this.#catalog.countOf('tools', serverId);
  }

  /** The accepted instructions of the caller's servers; empty if there are none. */
  instructionsFor(caller: Caller): string {
    return this.#instructions.textFor(this.fleet, caller);
  }

  /** A client disconnected: ends its calls, tasks and subscriptions. */
  leave(clientKey: string): void {
    this.audience.remove(clientKey);
    this.subscriptions.removeClient(clientKey);
    this.#held.dropClient(clientKey);
    this.tasks.dropClient(clientKey);
  }

  /** The clients' log levels changed: sends the lowest one to the servers. */
  logLevelChanged(): void {
    const level = this.audience.findLeastLogLevel();
    if (level === null || level === this.#logLevel) return;
    this.#logLevel = level;
    for (const { current } of this.fleet.listRunning()) setLevel(current, level);
  }

  /** Ends every call, every task and every server. */
  async stop(): Promise<void> {
    for (const end of this.#unwatch) end();
    this.#held.dropAll();
    await this.tasks.stop();
    await this.fleet.stop();
  }

  #eventsOf(serverId: string): DownstreamEvents {
    return {
      input: (call, gone) => this.#registry.ask(serverId, call, gone),
      listChanged: (kind) => {
        this.#catalog.forget(kind, serverId);
        this.audience.listChanged(kind, serverId);
      },
      resourceUpdated: (uri) => this.subscriptions.notifyUpdated(serverId, uri),
      log: (message) => this.#log(serverId, message),
      elicitationComplete: (params) =>
        this.#registry.findSoleCall(serverId)?.notify({ method: 'notifications/elicitation/complete', params }),
    };
  }

  /** A message goes to the client whose call is running; without a call, to the only connected client. */
  #log(serverId: string, message: LoggingMessageNotificationParams): void {
    if (!this.#limitOf(serverId).allow()) return;
    const name = this.fleet.nameOf(serverId);
    const named = { ...message, logger: message.logger === undefined ? name : `${name}/${message.logger}` };
    const call = this.#registry.findSoleCall(serverId);
    if (call === null) {
      if (this.#registry.countOf(serverId) === 0) this.audience.log(serverId, named);
    } else if (call.owner.wantsLog(message.level)) {
      call.notify({ method: 'notifications/message', params: named });
    }
  }

  #limitOf(serverId: string): SecondLimit {
    const limit = this.#logLimits.get(serverId) ?? new SecondLimit(MOST_MESSAGES_PER_SECOND);
    this.#logLimits.set(serverId, limit);
    return limit;
  }

  #onConnection(serverId: string): void {
    this.#listsChanged(serverId);
    void this.subscriptions.renew(serverId);
    const supervised = this.fleet.find(serverId);
    if (supervised !== null) void this.#instructions.note(supervised);
    const current = supervised?.current ?? null;
    if (current !== null && !this.#kept.has(current)) {
      this.#kept.add(current);
      keepListStream(current, this.#times, (kind) => this.#eventsOf(serverId).listChanged(kind));
    }
    if (this.#logLevel !== null) setLevel(current, this.#logLevel);
  }

  #listsChanged(serverId: string | null): void {
    for (const kind of ['tools', 'prompts', 'resources'] as const) this.audience.listChanged(kind, serverId);
  }
}

/** Grace time, so that an answer at the last moment still finds its call. */
const HELD_LONGER_MS = 60_000;
/** Limit per server and second. */
const MOST_MESSAGES_PER_SECOND = 100;

/** A key for a client with a connection. */
export function newClientKey(): string {
  return randomUUID();
}

/** Servers of the later generation receive the level with each request. */
function setLevel(current: ReturnType<Fleet['listRunning']>[number]['current'], level: LoggingLevel): void {
  if (current === null || current.client.getProtocolEra() !== 'legacy') return;
  if (current.client.getServerCapabilities()?.logging === undefined) return;
  current.client.setLoggingLevel(level).catch(() => undefined);
}
