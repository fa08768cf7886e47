import type { Result } from '../../shared/model/result.ts';
import type { McpHealthReport } from '../../shared/wire/mcp_servers.ts';

export interface HealthSenderOptions {
  /** What is to be told now; null while nothing is known. */
  readonly report: () => McpHealthReport | null;
  readonly send: (report: McpHealthReport) => Promise<Result<void, unknown>>;
  /** Waits; resolves at once when the signal is aborted. */
  readonly pause: (ms: number, signal: AbortSignal) => Promise<void>;
  readonly now: () => number;
}

/** Changes that come close together are told together. */
export const GATHER_MS = 1_000;
const RETRY_MS = 15_000;
/** That a server runs is believed for five minutes. */
const RENEW_MS = 120_000;
const PASSING_STATES: readonly string[] = ['running', 'starting'];

/**
 * Tells the control plane what the servers of this machine do: when that changes, and while something runs, again and again.
 * A report says everything, so that one that did not arrive is not sent again as it was: the next one is.
 */
export class HealthSender {
  readonly #options: HealthSenderOptions;
  readonly #stopped = new AbortController();
  #told = '';
  #toldAt = 0;
  #running: Promise<void> | null = null;
  #again = false;

  constructor(options: HealthSenderOptions) {
    this.#options = options;
  }

  /** Something may have changed, or was said once more. */
  notify(): void {
    this.#again = true;
    if (this.#stopped.signal.aborted) return;
    this.#running ??= this.#tell().finally(() => {
      this.#running = null;
      if (this.#again && !this.#stopped.signal.aborted) this.notify();
    });
  }

  /** Tells what is so at the end; nothing is tried again, nor waited for longer than the time for that. */
  async stop(timeoutMs: number): Promise<void> {
    this.#stopped.abort();
    const late = new Promise((resolve) => setTimeout(resolve, timeoutMs).unref());
    await Promise.race([this.#tellLast(), late]);
  }

  async #tellLast(): Promise<void> {
    await this.#running;
    const current = this.#options.report();
    if (current !== null && factsOf(current) !== this.#told) await this.#options.send(current);
  }

  async #tell(): Promise<void> {
    const { pause, report, send } = this.#options;
    await pause(GATHER_MS, this.#stopped.signal);
    this.#again = false;
    const current = report();
    const facts = current === null ? '' : factsOf(current);
    if (this.#stopped.signal.aborted || current === null || !this.#isNews(current, facts)) return;
    const sent = await send(current);
    if (sent.ok) {
      this.#told = facts;
      this.#toldAt = this.#options.now();
      return;
    }
    this.#again = true;
    await pause(RETRY_MS, this.#stopped.signal);
  }

  #isNews({ servers }: McpHealthReport, facts: string): boolean {
    if (facts !== this.#told) return true;
    const isOld = this.#options.now() - this.#toldAt >= RENEW_MS;
    return isOld && servers.some(({ state }) => PASSING_STATES.includes(state));
  }
}

/** When a server was looked at is no news by itself. */
function factsOf({ servers }: McpHealthReport): string {
  return JSON.stringify(servers.map(({ id, state, last_error: lastError }) => [id, state, lastError]));
}
