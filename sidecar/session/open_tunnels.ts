/** Ends a tunnel; resolves when what it had to record is recorded. */
export type CloseTunnel = () => void | Promise<void>;

const CLOSE_TUNNELS_MS = 1_000;

/** The tunnels that a token opened, until it opens none any more. */
export class OpenTunnels {
  readonly #most: number;
  readonly #tunnels = new Set<CloseTunnel>();
  #ended = false;

  constructor(most: number) {
    this.#most = most;
  }

  get count(): number {
    return this.#tunnels.size;
  }

  get ended(): boolean {
    return this.#ended;
  }

  /** Counts a tunnel in until the returned function is called; null when there are as many as there may be, or after the end. */
  open(close: CloseTunnel): (() => void) | null {
    if (this.#ended || this.#tunnels.size >= this.#most) return null;
    const tunnel: CloseTunnel = () => close();
    this.#tunnels.add(tunnel);
    return () => this.#tunnels.delete(tunnel);
  }

  /** Takes no more tunnels and closes those there are. Waits for them, but not for long. */
  async end(): Promise<void> {
    this.#ended = true;
    await this.closeAll();
  }

  /** Closes those there are. */
  async closeAll(): Promise<void> {
    const closing = Promise.allSettled([...this.#tunnels].map(async (close) => close()));
    await within(closing, CLOSE_TUNNELS_MS);
    this.#tunnels.clear();
  }
}

/** Waits for a promise, but no longer than this. */
export async function within(promise: Promise<unknown>, ms: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  await Promise.race([promise, timeout]);
  clearTimeout(timer);
}
