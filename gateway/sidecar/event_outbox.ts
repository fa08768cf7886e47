import type { Result } from '../../shared/model/result.ts';
import type { GatewayEventRecord } from '../../shared/wire/mcp_gateway.ts';
import { backoffMs } from '../../shared/net/backoff.ts';
import type { DaemonRefusal } from './daemon_calls.ts';

export interface EventOutboxOptions {
  /** Hands events to the daemon; says whether it takes more. */
  readonly send: (
    events: readonly GatewayEventRecord[],
  ) => Promise<Result<{ readonly accepting: boolean }, DaemonRefusal>>;
  /** Milliseconds; only ever compared with itself. */
  readonly now: () => number;
  /** Waits; resolves at once when the signal is aborted. */
  readonly pause: (ms: number, signal: AbortSignal) => Promise<void>;
  readonly warn: (message: string) => void;
}

const MAX_BATCH = 100;
/** More events than these are not kept for a daemon that does not answer. */
const MAX_PENDING = 200;
/** A daemon that is started again is back within this. */
const MAX_SILENCE_MS = 15_000;
const RETRIES = { firstMs: 250, mostMs: 2_000 } as const;

/**
 * The events of this gateway on their way to the daemon's spool, each sent until the daemon has it. While it cannot take
 * them, for long or too many, the gateway makes no more calls.
 */
export class EventOutbox {
  readonly #options: EventOutboxOptions;
  readonly #pending: GatewayEventRecord[] = [];
  readonly #closing = new AbortController();
  #sent = 0;
  #sending: Promise<void> | null = null;
  #accepting = true;
  #failingSince: number | null = null;

  constructor(options: EventOutboxOptions) {
    this.#options = options;
  }

  get accepting(): boolean {
    const isSilent = this.#failingSince !== null && this.#options.now() - this.#failingSince > MAX_SILENCE_MS;
    return this.#accepting && !isSilent && this.#pending.length < MAX_PENDING;
  }

  add(event: Omit<GatewayEventRecord, 'number'>): void {
    this.#sent += 1;
    this.#pending.push({ ...event, number: this.#sent });
    this.#sending ??= this.#send().finally(() => {
      this.#sending = null;
    });
  }

  /** Resolves when everything was handed over, or the time for that is up; then nothing is tried again. */
  async close(timeoutMs: number): Promise<void> {
    const timer = setTimeout(() => this.#closing.abort(), timeoutMs);
    await this.#sending;
    clearTimeout(timer);
    this.#closing.abort();
    const lost = this.#pending.length;
    if (lost > 0) this.#options.warn(`${lost} events could not be recorded: the sidecar does not answer`);
  }

  async #send(): Promise<void> {
    // What is recorded in one turn of the event loop goes in one call.
    await Promise.resolve();
    let failures = 0;
    while (this.#pending.length > 0 && !this.#closing.signal.aborted) {
      const batch = this.#pending.slice(0, MAX_BATCH);
      const taken = await this.#options.send(batch);
      if (taken.ok) {
        this.#accepting = taken.value.accepting;
        this.#failingSince = null;
        failures = 0;
        this.#pending.splice(0, batch.length);
      } else if (taken.error.code === 'invalid_input') {
        // Sending it again would never help, and would keep everything behind it back.
        this.#options.warn(`${batch.length} events were refused: ${taken.error.message}`);
        this.#pending.splice(0, batch.length);
      } else {
        this.#failingSince ??= this.#options.now();
        failures += 1;
        await this.#options.pause(backoffMs(failures, RETRIES), this.#closing.signal);
      }
    }
  }
}
