/** Closes a tunnel; resolves when its events are recorded. */
export type CloseTunnel = () => void | Promise<void>;

const CLOSE_TUNNELS_MS = 1_000;

/** The open tunnels of a token, while the token is valid. */
export class OpenTunnels {
  readonly #most: number;
  readonly #tunnels = new Set<CloseTunnel>();
  #onClosed = new Set<() => void>();
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

  /** Counts a tunnel until the returned function is called; null at the limit, or after the end. */
  open(close: CloseTunnel): (() => void) | null {
    if (this.#ended || this.#tunnels.size >= this.#most) return null;
    const tunnel: CloseTunnel = () => close();
    this.#tunnels.add(tunnel);
    return () => this.#tunnels.delete(tunnel);
  }

  /** Calls back when the open tunnels are closed, immediately after the end. Returns the function to stop. */
  onClosed(listener: () => void): () => void {
    if (this.#ended) listener();
    else this.#onClosed.add(listener);
    return () => this.#onClosed.delete(listener);
  }

  /** Accepts no more tunnels and closes the open ones. Waits for them, but not for long. */
  async end(): Promise<void> {
    this.#ended = true;
    await this.closeAll();
  }

  /** Closes the open tunnels. */
  async closeAll(): Promise<void> {
    const closing = Promise.allSettled([...this.#tunnels].map(async (close) => close()));
    for (const listener of this.#onClosed) listener();
    await waitAtMost(closing, CLOSE_TUNNELS_MS);
    this.#tunnels.clear();
  }
}

/** Waits for a promise for at most this long. */
export async function waitAtMost(promise: Promise<unknown>, ms: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  await Promise.race([promise, timeout]);
  clearTimeout(timer);
}
