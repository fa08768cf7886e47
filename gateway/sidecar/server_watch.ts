import type { Result } from '../../shared/model/result.ts';
import type { ServersReply } from '../../shared/wire/mcp/mcp_gateway.ts';
import type { LocalApiFailure } from './local_api.ts';

interface ServerWatchOptions {
  /** Answers as soon as the list differs from `version`; at once if that is null. */
  readonly list: (version: string | null, signal: AbortSignal) => Promise<Result<ServersReply, LocalApiFailure>>;
  /** Waits; resolves immediately if the signal is aborted. */
  readonly pause: (ms: number, signal: AbortSignal) => Promise<void>;
  /** The sidecar answers again after a failure. It may have been restarted. */
  readonly onReturn: () => void;
}

const RETRY_MS = 250;
const MAX_RETRY_MS = 5_000;

/** Follows the sidecar's list of servers. One request runs at a time, so that a list never follows a newer one. */
export class ServerWatch {
  readonly #options: ServerWatchOptions;
  /** Those who wait for a request that begins after they asked. */
  #waiting: (() => void)[] = [];
  /** Ends the request that runs; null while nothing is followed. */
  #running: AbortController | null = null;

  constructor(options: ServerWatchOptions) {
    this.#options = options;
  }

  /** Calls `onChange` with the newest list and each one that differs, until `signal` is aborted. */
  async follow(onChange: (list: ServersReply) => void, signal: AbortSignal): Promise<void> {
    let version: string | null = null;
    let retryMs = RETRY_MS;
    while (!signal.aborted) {
      const isLost = retryMs !== RETRY_MS;
      const waiting = this.#waiting.splice(0);
      const running = new AbortController();
      this.#running = running;
      const isAsked = isLost || waiting.length > 0;
      const reply = await this.#options.list(isAsked ? null : version, AbortSignal.any([signal, running.signal]));
      if (!reply.ok && running.signal.aborted) {
        this.#waiting.push(...waiting);
        continue;
      }
      if (reply.ok) {
        if (isLost) this.#options.onReturn();
        if (reply.value.version !== version && !signal.aborted) onChange(reply.value);
        ({ version } = reply.value);
      }
      for (const wake of waiting) wake();
      if (!reply.ok) await this.#options.pause(retryMs, signal);
      retryMs = reply.ok ? RETRY_MS : Math.min(MAX_RETRY_MS, retryMs * 2);
    }
    this.#running = null;
    for (const wake of this.#waiting.splice(0)) wake();
  }

  /** Resolves once a list asked for after this call has been passed on, or could not be had. */
  async refresh(): Promise<void> {
    const running = this.#running;
    if (running === null) return;
    await new Promise<void>((resolve) => {
      this.#waiting.push(resolve);
      running.abort();
    });
  }
}
