import type { Result } from '../../shared/model/result.ts';
import type { McpHealthReport } from '../../shared/wire/mcp/mcp_servers.ts';

interface HealthSenderOptions {
  /** The report to send now; null while nothing is known. */
  readonly report: () => McpHealthReport | null;
  readonly send: (report: McpHealthReport) => Promise<Result<void, unknown>>;
  /** Waits; resolves at once when the signal is aborted. */
  readonly pause: (ms: number, signal: AbortSignal) => Promise<void>;
  readonly now: () => number;
}

/** Changes within this time are sent together. */
export const GATHER_MS = 1_000;
const RETRY_MS = 15_000;
/** A server can name a new host with each request, so hosts alone are sent at most this often. */
const HOSTS_MS = 15_000;
/** The control plane believes for five minutes that a server runs. */
const RENEW_MS = 120_000;
const PASSING_STATES: readonly string[] = ['running', 'starting'];

/**
 * Reports to the control plane what this machine's servers do: on each change, and repeatedly while something runs. A report
 * is complete, so a failed one is not retried as it was; the next one replaces it.
 */
export class HealthSender {
  readonly #options: HealthSenderOptions;
  readonly #stopped = new AbortController();
  #told = '';
  #toldHosts = '';
  #toldAt = 0;
  #running: Promise<void> | null = null;
  #again = false;

  constructor(options: HealthSenderOptions) {
    this.#options = options;
  }

  /** Something may have changed, or a report was repeated. */
  notify(): void {
    this.#again = true;
    if (this.#stopped.signal.aborted) return;
    this.#running ??= this.#tell().finally(() => {
      this.#running = null;
      if (this.#again && !this.#stopped.signal.aborted) this.notify();
    });
  }

  /** Sends the final state. It is not retried, and waits only for its own time limit. */
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
      this.#toldHosts = hostsOf(current);
      this.#toldAt = this.#options.now();
      return;
    }
    this.#again = true;
    await pause(RETRY_MS, this.#stopped.signal);
  }

  #isNews(report: McpHealthReport, facts: string): boolean {
    if (facts !== this.#told) return true;
    const age = this.#options.now() - this.#toldAt;
    if (age >= HOSTS_MS && hostsOf(report) !== this.#toldHosts) return true;
    return age >= RENEW_MS && report.servers.some(({ state }) => PASSING_STATES.includes(state));
  }
}

/** A new check time alone is not a change. */
function factsOf({ servers }: McpHealthReport): string {
  return JSON.stringify(servers.map(({ id, state, last_error: lastError }) => [id, state, lastError]));
}

function hostsOf({ servers }: McpHealthReport): string {
  return JSON.stringify(servers.map(({ id, refused_hosts: hosts = [] }) => [id, hosts.toSorted()]));
}
