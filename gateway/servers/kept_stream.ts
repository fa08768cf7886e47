import type { McpSubscription, SubscriptionFilter } from '@modelcontextprotocol/client';
import type { Clock } from '../../shared/model/clock.ts';
import { backoffMs } from '../../shared/net/backoff.ts';
import type { Downstream, ListKind } from '../fronts/downstream.ts';

/** How a stream is opened again. */
export interface StreamTimes {
  readonly clock: Clock;
  /** Waits; resolves immediately if the signal is aborted. */
  readonly pause: (ms: number, signal: AbortSignal) => Promise<void>;
}

interface KeptStreamOptions extends StreamTimes {
  readonly downstream: Pick<Downstream, 'client' | 'closed'>;
  readonly filter: SubscriptionFilter;
  /** Called when it is open again: changes may have been missed. */
  readonly onReturn: () => void;
}

const REOPENS = { firstMs: 1_000, mostMs: 300_000 } as const;
/** A stream that was open this long did not fail at its start. */
const STEADY_MS = 60_000;

/**
 * A `subscriptions/listen` stream of a server of the later generation. The SDK does not open it again when a load balancer or the
 * server ends it, and changes would then never be reported.
 */
export class KeptStream {
  readonly #options: KeptStreamOptions;
  readonly #over = new AbortController();
  #stream: McpSubscription | null = null;

  constructor(options: KeptStreamOptions) {
    this.#options = options;
    void options.downstream.closed.then(() => this.#over.abort());
  }

  /** Opens it. Rejects if the server refuses now; after that, it is opened again until it is closed or the connection ends. */
  async open(): Promise<void> {
    const stream = await this.#options.downstream.client.listen(this.#options.filter);
    void this.keep(stream);
  }

  /** Keeps a stream that is open already; with null, it is opened after a pause. */
  async keep(first: McpSubscription | null): Promise<void> {
    const { clock } = this.#options;
    const { signal } = this.#over;
    let failures = 0;
    let stream = first;
    while (true) {
      if (stream !== null) {
        const openedAt = clock.now();
        if (!(await this.#wait(stream))) return;
        if (clock.now() - openedAt >= STEADY_MS) failures = 0;
      }
      failures += 1;
      await this.#options.pause(backoffMs(failures, REOPENS), signal);
      if (signal.aborted) return;
      stream = await this.#options.downstream.client.listen(this.#options.filter).catch(() => null);
      if (stream !== null && !signal.aborted) this.#options.onReturn();
    }
  }

  async close(): Promise<void> {
    this.#over.abort();
    await this.#stream?.close();
  }

  /** Waits for the end of a stream. False if it was wanted. */
  async #wait(stream: McpSubscription): Promise<boolean> {
    this.#stream = stream;
    if (this.#over.signal.aborted) await stream.close();
    const why = await stream.closed;
    return why !== 'local' && !this.#over.signal.aborted;
  }
}

/** Keeps the stream with changes of a server's lists, which the SDK has opened if the server has one. */
export function keepListStream(
  downstream: Pick<Downstream, 'client' | 'closed'>,
  times: StreamTimes,
  onChanged: (kind: ListKind) => void,
): void {
  const { client } = downstream;
  if (client.getProtocolEra() !== 'modern') return;
  const { tools, prompts, resources } = client.getServerCapabilities() ?? {};
  const filter: SubscriptionFilter = {
    ...(tools?.listChanged === true && { toolsListChanged: true }),
    ...(prompts?.listChanged === true && { promptsListChanged: true }),
    ...(resources?.listChanged === true && { resourcesListChanged: true }),
  };
  if (Object.keys(filter).length === 0) return;
  const onReturn = (): void => {
    for (const kind of ['tools', 'prompts', 'resources'] as const) onChanged(kind);
  };
  void new KeptStream({ ...times, downstream, filter, onReturn }).keep(client.autoOpenedSubscription ?? null);
}
