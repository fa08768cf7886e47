import { err, ok, type Result } from '../../shared/model/result.ts';
import { backoffMs } from '../../shared/net/backoff.ts';

/** A started gateway program. */
export interface GatewayHandle {
  /** Resolves when it listens; never rejects. If it ends first, `exited` settles. */
  readonly ready: Promise<void>;
  /** How it ended, as text for the log. */
  readonly exited: Promise<string>;
  kill(signal: 'SIGTERM' | 'SIGKILL'): void;
}

interface GatewayChildOptions {
  /** Starts the program and lets it listen on this socket. */
  readonly launch: (socketPath: string) => GatewayHandle;
  /** A new path for each start, so that a socket left by a killed program is not in the way. */
  readonly newSocketPath: () => string;
  readonly removeSocket: (path: string) => void;
  /** Monotonic milliseconds. */
  readonly now: () => number;
  /** Waits; resolves at once when the signal is aborted. */
  readonly pause: (ms: number, signal: AbortSignal) => Promise<void>;
  readonly warn: (message: string) => void;
}

export const GATEWAY_START_MS = 20_000;
/** Shorter than the sidecar's own time to stop, after which everything left is killed. */
export const GATEWAY_STOP_MS = 3_000;
const RESTARTS = { firstMs: 500, mostMs: 30_000 } as const;
/** A program that ran this long is considered able to run. */
const STEADY_MS = 30_000;
/** Callers are refused at once if the remaining pause is longer than this. */
const MAX_KEPT_MS = 2_000;

/**
 * The sidecar's one gateway process, behind `/v1/mcp`. It is started on first use, and restarted on the next use after it
 * died, with a growing pause if it dies soon.
 */
export class GatewayChild {
  readonly #options: GatewayChildOptions;
  readonly #stopped = new AbortController();
  #socket: Promise<Result<string, string>> | null = null;
  #running: { readonly handle: GatewayHandle; readonly socketPath: string } | null = null;
  #deaths = 0;
  #mayStartAt = Number.NEGATIVE_INFINITY;

  constructor(options: GatewayChildOptions) {
    this.#options = options;
  }

  /** True while the program runs or is starting. */
  get wanted(): boolean {
    return this.#socket !== null;
  }

  /** The gateway's socket, once it listens. Refuses with a message. */
  socket(): Promise<Result<string, string>> {
    if (this.#stopped.signal.aborted) return Promise.resolve(err('svc is stopping'));
    const leftMs = this.#mayStartAt - this.#options.now();
    if (this.#socket === null && leftMs > MAX_KEPT_MS) return Promise.resolve(err(describePause(leftMs)));
    this.#socket ??= this.#start(leftMs);
    return this.#socket;
  }

  /** Ends the program and every server that it started. */
  async stop(): Promise<void> {
    this.#stopped.abort();
    await this.#end();
  }

  async #start(leftMs: number): Promise<Result<string, string>> {
    if (leftMs > 0) await this.#options.pause(leftMs, this.#stopped.signal);
    if (this.#stopped.signal.aborted) return this.#notStarted('svc is stopping');
    const startedAt = this.#options.now();
    const socketPath = this.#options.newSocketPath();
    const handle = this.#options.launch(socketPath);
    this.#running = { handle, socketPath };
    const ended = handle.exited.then((how) => this.#noteEnd(handle, startedAt, how));
    const deadline = new AbortController();
    const first = await Promise.race([
      handle.ready.then(() => 'ready' as const),
      ended,
      this.#options.pause(GATEWAY_START_MS, deadline.signal).then(() => 'late' as const),
    ]);
    deadline.abort();
    if (first === 'ready') return ok(socketPath);
    if (first === 'late') {
      this.#options.warn('The MCP gateway did not listen in time and was ended');
      handle.kill('SIGKILL');
      await ended;
    }
    return this.#notStarted('the MCP gateway did not start; see the sidecar’s log');
  }

  #notStarted(why: string): Result<never, string> {
    this.#socket = null;
    return err(why);
  }

  #noteEnd(handle: GatewayHandle, startedAt: number, how: string): 'ended' {
    const { now, removeSocket, warn } = this.#options;
    if (this.#running?.handle === handle) {
      removeSocket(this.#running.socketPath);
      this.#running = null;
      this.#socket = null;
    }
    if (this.#stopped.signal.aborted) return 'ended';
    const soon = now() - startedAt < STEADY_MS;
    this.#deaths = soon ? this.#deaths + 1 : 1;
    const pauseMs = backoffMs(this.#deaths, RESTARTS);
    this.#mayStartAt = now() + pauseMs;
    warn(`The MCP gateway ended (${how}); the next use restarts it after ${pauseMs / 1000} s`);
    return 'ended';
  }

  async #end(): Promise<void> {
    const running = this.#running;
    if (running === null) return;
    const patience = new AbortController();
    running.handle.kill('SIGTERM');
    const late = this.#options.pause(GATEWAY_STOP_MS, patience.signal).then(() => 'late');
    const first = await Promise.race([running.handle.exited, late]);
    patience.abort();
    if (first === 'late') {
      running.handle.kill('SIGKILL');
      await running.handle.exited;
    }
    this.#options.removeSocket(running.socketPath);
  }
}

function describePause(leftMs: number): string {
  return `the MCP gateway has died several times and will restart in ${Math.ceil(leftMs / 1000)} s; see the sidecar’s log`;
}
