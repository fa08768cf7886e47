import type { ChannelFailure } from './channel_failure.ts';

export type LinkState = 'connecting' | 'up' | 'down' | 'revoked';

/**
 * Tracks whether the control plane is reachable. Every call reports its outcome here. The first call that succeeds wakes
 * everybody who waits for the control plane to return.
 */
export class Link {
  #state: LinkState = 'connecting';
  #lastError: ChannelFailure | null = null;
  readonly #onUp = new Set<() => void>();
  readonly #onRevoked = new Set<() => void>();

  get state(): LinkState {
    return this.#state;
  }

  /** The error of the latest call; null if it succeeded or no call was made. */
  get lastError(): ChannelFailure | null {
    return this.#lastError;
  }

  /** Calls `listener` each time the control plane is reachable again. */
  onUp(listener: () => void): void {
    this.#onUp.add(listener);
  }

  /** Calls `listener` each time the control plane says that this sidecar is no longer enrolled. */
  onRevoked(listener: () => void): void {
    this.#onRevoked.add(listener);
  }

  markUp(): void {
    const returned = this.#state !== 'up';
    this.#state = 'up';
    this.#lastError = null;
    if (returned) notify(this.#onUp);
  }

  markDown(error: ChannelFailure): void {
    this.#lastError = error;
    if (error.reason === 'revoked') {
      this.#state = 'revoked';
      notify(this.#onRevoked);
    } else if (this.#state !== 'revoked') {
      this.#state = 'down';
    }
  }
}

function notify(listeners: ReadonlySet<() => void>): void {
  for (const listener of listeners) listener();
}
