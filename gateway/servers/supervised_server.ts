import type { McpHealthState, McpServer } from '../../shared/model/mcp_server.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import { backoffMs } from '../../shared/net/backoff.ts';
import type { Downstream, DownstreamEvents } from '../fronts/downstream.ts';
import type { GatewayLimits } from '../gateway_limits.ts';
import type { GatewayPorts, GatewayServer, ServerHealth } from '../gateway_ports.ts';
import type { Launcher } from './launcher.ts';
import type { KeptRevisions } from './kept_revisions.ts';
import { mayPass, stateOf } from './server_failure.ts';
import type { StartSlot, StartSlots } from './start_slots.ts';
import { StderrRing } from './stderr_ring.ts';
import type { Failure } from '../../shared/model/failure.ts';
import type { ServerFailureReason } from '../gateway_ports.ts';

export interface SupervisedOptions {
  readonly ports: Pick<GatewayPorts, 'isAccepting' | 'record' | 'clock'>;
  readonly launcher: Pick<Launcher, 'launch'>;
  readonly limits: GatewayLimits;
  /** A remote server that does not answer must not hold up a local one. */
  readonly slots: Readonly<Record<McpServer['mode'], StartSlots>>;
  readonly revisions: Pick<KeptRevisions, 'isLegacy' | 'keepLegacy'>;
  readonly eventsOf: (serverId: string) => DownstreamEvents;
  /** What a person should do about a server that runs; null if nothing. */
  readonly noteOf: (server: McpServer) => string | null;
  /** True while calls of the server run. */
  readonly isBusy: (serverId: string) => boolean;
  /** Called after each change of {@link SupervisedServer.health}. */
  readonly onHealth: () => void;
  /** Called when it has connected or ended, which changes its lists. */
  readonly onConnection: (serverId: string) => void;
  /** Waits; resolves immediately if the signal is aborted. */
  readonly pause: (ms: number, signal: AbortSignal) => Promise<void>;
}

type Connected = Result<Downstream, Failure<ServerFailureReason>>;

/** Keeps one server running after the first request, and reports its health. */
export class SupervisedServer {
  readonly stderr = new StderrRing();
  readonly #options: SupervisedOptions;
  #known: GatewayServer;
  #life = new AbortController();
  #downstream: Downstream | null = null;
  #starting: Promise<Connected> | null = null;
  /** Resolves when nothing of earlier starts runs any more. */
  #ending: Promise<unknown> = Promise.resolve();
  #problem: Failure<ServerFailureReason> | null = null;
  #startingSince = 0;
  #failures = 0;
  #failedAt = Number.NEGATIVE_INFINITY;
  #isLegacy = false;
  #connectedAt = 0;
  #wanted = false;
  #checkedAt: number;
  #restarts = 0;

  constructor(known: GatewayServer, options: SupervisedOptions) {
    this.#known = known;
    this.#options = options;
    this.#checkedAt = options.ports.clock.now();
  }

  get server(): McpServer {
    return this.#known.server;
  }

  /** Changes when a new value is stored for one of its references. */
  get credentials(): string {
    return this.#known.credentials ?? '';
  }

  /** The hashes of the tools that may be listed and called; null: all. */
  get reviewed(): readonly string[] | null {
    return this.#known.reviewed ?? null;
  }

  /** The kinds of what `reviewed` has. */
  get reviewedKinds(): readonly string[] {
    return this.#known.reviewedKinds ?? ['tool'];
  }

  /** The current connection, if any. */
  get current(): Downstream | null {
    return this.#downstream;
  }

  get facts(): { readonly restarts: number; readonly problem: Failure<ServerFailureReason> | null } {
    return { restarts: this.#restarts, problem: this.#problem };
  }

  health(): ServerHealth {
    const { id } = this.server;
    const lastError = this.#problem?.message ?? this.#options.noteOf(this.server);
    return { id, state: this.#state(), lastError, checkedAt: this.#checkedAt };
  }

  /** Returns the connection, starting the server if necessary. Fails immediately if it cannot start now. */
  connect(): Promise<Connected> {
    this.#wanted = true;
    if (this.#downstream !== null) return this.#inForce(this.#downstream);
    if (this.#starting !== null) return this.#isSlow() ? Promise.resolve(err(this.#problem ?? SLOW)) : this.#starting;
    const problem = this.#standingProblem();
    if (problem !== null) return Promise.resolve(err(problem));
    return this.#begin(0);
  }

  /**
   * The connection, or one of a new start if the values have changed that it was started with. Ahead of their end, running calls
   * are waited for; at the end, nothing uses it any more.
   */
  #inForce(downstream: Downstream): Promise<Connected> {
    const { ends } = downstream;
    const mayWait = !ends.hasEnded && this.#options.isBusy(this.server.id);
    return ends.isRenewalDue && !mayWait ? this.#renew(downstream) : Promise.resolve(ok(downstream));
  }

  async #renew(downstream: Downstream): Promise<Connected> {
    const { ends } = downstream;
    const renewal = await ends.renew();
    if (this.#downstream !== downstream) return this.connect();
    if (renewal !== 'changed' && !ends.hasEnded) return ok(downstream);
    await this.#reset();
    return this.connect();
  }

  /** As {@link connect}, but waits for a running start however long it takes, unless the server failed repeatedly. */
  connectPatiently(): Promise<Connected> {
    const connecting = this.connect();
    return this.#starting !== null && this.#failures <= 1 ? this.#starting : connecting;
  }

  /** True while it starts, or waits to be started again. */
  get isStarting(): boolean {
    return this.#starting !== null;
  }

  /** Takes a new configuration. The server is restarted if its program or address changed. */
  async update(known: GatewayServer): Promise<void> {
    const before = this.#known;
    this.#known = known;
    if (launchKey(before) === launchKey(known)) return this.#reconsider();
    this.#isLegacy = false;
    await this.#reset();
    if (this.#wanted && this.server.enabled) void this.connect();
  }

  /** The control plane reported a change: a missing sign-in or credential may be there now. */
  #reconsider(): void {
    this.#failedAt = Number.NEGATIVE_INFINITY;
    const waits = this.#wanted && this.#problem !== null && this.#downstream === null && this.#starting === null;
    if (waits) void this.connect();
  }

  /** Ends an unusable connection; the next request makes a new one. */
  async drop(problem: Failure<ServerFailureReason> | null): Promise<void> {
    await this.#reset();
    this.#problem = problem;
    if (problem !== null) this.#failedAt = this.#options.ports.clock.now();
    this.#notifyHealth();
  }

  /** Ends the server permanently. */
  async stop(): Promise<void> {
    this.#wanted = false;
    await this.#reset();
  }

  async #reset(): Promise<void> {
    const [life, downstream, starting] = [this.#life, this.#downstream, this.#starting];
    this.#life = new AbortController();
    this.#downstream = null;
    this.#starting = null;
    this.#problem = null;
    this.#failures = 0;
    life.abort();
    if (downstream !== null) this.#options.ports.record({ type: 'mcp.server.stopped', server: this.server });
    const ending = Promise.all([this.#ending, downstream?.close(), starting?.then(closeConnected)]);
    this.#ending = ending.catch(() => undefined);
    await ending;
    // Not before: a client that lists at once starts the next process, which may need the port or lock of this one.
    if (downstream !== null) this.#options.onConnection(this.server.id);
    this.#notifyHealth();
  }

  /** Why no start is attempted now. A server that failed too often is left stopped for a while. */
  #standingProblem(): Failure<ServerFailureReason> | null {
    const { server, consent, missing } = this.#known;
    if (!server.enabled) return { reason: 'command_refused', message: server.ruleProblem ?? 'it is disabled' };
    if (consent === 'needed') {
      return {
        reason: 'consent_needed',
        message: `it has no consent on this machine: svc mcp consent ${server.name}`,
      };
    }
    const [first] = missing;
    if (first !== undefined) {
      const message = `no value is stored for ${first}: svc mcp credential set ${server.name} ${first.split('/').at(-1) ?? ''}`;
      return { reason: 'credential_missing', message };
    }
    if (!this.#options.ports.isAccepting()) {
      return { reason: 'audit_unavailable', message: 'no more events can be recorded, so no server is started' };
    }
    const waits = this.#options.ports.clock.now() - this.#failedAt < this.#options.limits.giveUpMs;
    return this.#problem !== null && waits ? this.#problem : null;
  }

  /** Requests do not wait for a server that failed repeatedly or takes long to start. */
  #isSlow(): boolean {
    const { ports, limits } = this.#options;
    if (this.#failures > 1 || this.#problem?.reason === 'start_timeout') return true;
    return ports.clock.now() - this.#startingSince > limits.listWaitMs;
  }

  #begin(delayMs: number): Promise<Connected> {
    const life = this.#life;
    this.#startingSince = this.#options.ports.clock.now();
    const starting = this.#start(life, delayMs).catch((error: unknown): Connected => {
      return err({ reason: 'handshake_failed', message: error instanceof Error ? error.message : 'unknown error' });
    });
    this.#starting = starting;
    this.#notifyHealth();
    void this.#settle(life, starting);
    return starting;
  }

  async #settle(life: AbortController, starting: Promise<Connected>): Promise<void> {
    const connected = await starting;
    if (this.#life !== life) return;
    this.#starting = null;
    if (connected.ok) this.#hasConnected(life, connected.value);
    else this.#hasFailed(life, connected.error);
  }

  async #start(life: AbortController, delayMs: number): Promise<Connected> {
    if (delayMs > 0) await this.#options.pause(delayMs, life.signal);
    if (life.signal.aborted) return err(REPLACED);
    await this.#ending;
    return this.#options.slots[this.server.mode].run((slot) => this.#launch(life, slot));
  }

  async #launch(life: AbortController, slot: StartSlot): Promise<Connected> {
    if (life.signal.aborted) return err(REPLACED);
    const { launcher, revisions, eventsOf } = this.#options;
    const { server, stderr } = this;
    // A server that fails is asked again: it may have learned a newer revision.
    const isLegacy = this.#isLegacy || (this.#failures === 0 && revisions.isLegacy(server));
    const connected = await launcher.launch({
      server,
      events: eventsOf(server.id),
      stderr,
      isLegacy,
      isSealed: (this.#known.allowedHosts ?? null) !== null,
      image: this.#known.image ?? null,
      slot,
      signal: life.signal,
    });
    if (life.signal.aborted) {
      await closeConnected(connected);
      return err(REPLACED);
    }
    this.#noteRevision(connected, isLegacy);
    return connected;
  }

  /** A slow start looks like an earlier revision: what was assumed holds for a short time only, and what was not asked stays as it is. */
  #noteRevision(connected: Connected, wasTold: boolean): void {
    const isLegacy = connected.ok && connected.value.client.getProtocolEra() === 'legacy';
    const isGuess = connected.ok && connected.value.isEraGuessed === true;
    this.#isLegacy = isLegacy && !isGuess && (this.#isLegacy || !wasTold);
    if (isLegacy && !wasTold) void this.#options.revisions.keepLegacy(this.server, isGuess);
  }

  #hasConnected(life: AbortController, downstream: Downstream): void {
    this.#connectedAt = this.#options.ports.clock.now();
    this.#downstream = downstream;
    this.#problem = null;
    this.#options.ports.record({ type: 'mcp.server.started', server: this.server });
    this.#notifyHealth();
    this.#options.onConnection(this.server.id);
    void this.#restartWhenEnded(life, downstream);
  }

  async #restartWhenEnded(life: AbortController, downstream: Downstream): Promise<void> {
    const problem = await downstream.closed;
    if (this.#life === life) this.#hasEnded(downstream, problem);
  }

  /**
   * A request has failed because the server cannot be reached any more. It is then reported, and connected to again like one that
   * has ended. While other requests run over the connection, it is kept.
   */
  async lose(downstream: Downstream, problem: Failure<ServerFailureReason>): Promise<void> {
    if (this.#options.isBusy(this.server.id) || !this.#hasEnded(downstream, problem)) return;
    await downstream.close();
  }

  /** Restarts a server that ended. False if it is not the current connection. */
  #hasEnded(downstream: Downstream, problem: Failure<ServerFailureReason>): boolean {
    if (this.#downstream !== downstream) return false;
    this.#downstream = null;
    const { ports, limits, onConnection } = this.#options;
    if (ports.clock.now() - this.#connectedAt >= limits.steadyMs) this.#failures = 0;
    onConnection(this.server.id);
    this.#hasFailed(this.#life, problem);
    return true;
  }

  /** Retries after a delay if that may help; otherwise, or after too many failures, waits for a request. */
  #hasFailed(life: AbortController, problem: Failure<ServerFailureReason>): void {
    this.#failures += 1;
    this.#problem = problem;
    this.#failedAt = this.#options.ports.clock.now();
    const type = REFUSED.has(problem.reason) ? 'mcp.server.refused' : 'mcp.server.failed';
    this.#options.ports.record({ type, server: this.server, reason: problem.reason });
    if (this.#failures < this.#options.limits.maxFailures && mayPass(problem.reason) && this.#wanted) {
      this.#restarts += 1;
      if (this.#life === life) void this.#begin(backoffMs(this.#failures, RESTARTS));
      return;
    }
    this.#failures = 0;
    this.#notifyHealth();
  }

  #state(): McpHealthState {
    const { server, consent, missing } = this.#known;
    if (!server.enabled) return 'disabled';
    if (this.#downstream !== null) return 'running';
    if (consent === 'needed') return 'needs_consent';
    if (missing.length > 0) return 'needs_credentials';
    if (this.#starting !== null) return 'starting';
    return this.#problem === null ? 'stopped' : stateOf(this.#problem.reason);
  }

  #notifyHealth(): void {
    this.#checkedAt = this.#options.ports.clock.now();
    this.#options.onHealth();
  }
}

async function closeConnected(connected: Connected): Promise<void> {
  if (connected.ok) await connected.value.close();
}

const RESTARTS = { firstMs: 500, mostMs: 60_000 } as const;
const SLOW: Failure<ServerFailureReason> = {
  reason: 'start_timeout',
  message: 'it is still starting; try again later',
};
const REPLACED: Failure<ServerFailureReason> = {
  reason: 'exited',
  message: 'its configuration has changed; try again',
};
const REFUSED: ReadonlySet<string> = new Set([
  'command_refused',
  'url_refused',
  'consent_needed',
  'credential_missing',
]);

/** The part of the configuration that a launch depends on. Changes of other parts (policy, description) need no restart. */
function launchKey({
  server,
  consent,
  missing,
  credentials = '',
  allowedHosts = null,
  image = null,
}: GatewayServer): string {
  const { id, mode, command, env, url, transport, headers, enabled, isolation, version } = server;
  return JSON.stringify([
    id,
    mode,
    command,
    env,
    url,
    transport,
    headers,
    enabled,
    isolation,
    version,
    consent,
    missing,
    credentials,
    allowedHosts,
    image,
  ]);
}
