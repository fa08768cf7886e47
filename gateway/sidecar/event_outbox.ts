import type { Result } from '../../shared/model/result.ts';
import type { GatewayEventRecord } from '../../shared/wire/mcp/mcp_gateway.ts';
import { backoffMs } from '../../shared/net/backoff.ts';
import type { LocalApiFailure } from './local_api.ts';
import { counted } from '../../shared/model/sentence.ts';

interface EventOutboxOptions {
  /** Sends events to the sidecar; returns whether it accepts more. */
  readonly send: (
    events: readonly GatewayEventRecord[],
  ) => Promise<Result<{ readonly accepting: boolean }, LocalApiFailure>>;
  /** A monotonic clock in milliseconds. */
  readonly now: () => number;
  /** Waits; resolves immediately if the signal is aborted. */
  readonly pause: (ms: number, signal: AbortSignal) => Promise<void>;
  readonly warn: (message: string) => void;
}

const MAX_BATCH = 100;
/** Maximum number of events kept while the sidecar does not answer. */
const MAX_PENDING = 200;
/** A restarted sidecar is back within this time. */
const MAX_SILENCE_MS = 15_000;
const RETRIES = { firstMs: 250, mostMs: 2_000 } as const;

/**
 * Queues this gateway's events for the sidecar's spool and sends each until it is accepted. If the sidecar does not accept
 * events for too long, or too many wait, the gateway stops making calls.
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

  /** Resolves when everything was delivered or the time limit is reached; after that nothing is retried. */
  async close(timeoutMs: number): Promise<void> {
    const timer = setTimeout(() => this.#closing.abort(), timeoutMs);
    await this.#sending;
    clearTimeout(timer);
    this.#closing.abort();
    const lost = this.#pending.length;
    if (lost > 0) this.#options.warn(`${counted(lost, 'event')} could not be recorded: the sidecar does not answer`);
  }

  async #send(): Promise<void> {
    // Events of one event-loop turn go in one call.
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
        // A retry cannot help and would block all later events.
        this.#options.warn(
          `${batch.length === 1 ? '1 event was' : `${batch.length} events were`} refused: ${taken.error.message}`,
        );
        this.#pending.splice(0, batch.length);
      } else {
        this.#failingSince ??= this.#options.now();
        failures += 1;
        await this.#options.pause(backoffMs(failures, RETRIES), this.#closing.signal);
      }
    }
  }
}
