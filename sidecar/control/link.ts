import type { ChannelFailure } from './channel_failure.ts';

export type LinkState = 'connecting' | 'up' | 'down' | 'revoked';

/**
 * Tracks whether the control plane is reachable. Every call reports its outcome here. The first call that succeeds wakes
 * everybody who waits for the control plane to return.
 */
export class Link {
  #state: LinkState = 'connecting';
  #lastError: ChannelFailure | null = null;
  #revocations = 0;
  readonly #onUp = new Set<() => void>();
  readonly #onRevoked = new Set<() => void>();

  get state(): LinkState {
    return this.#state;
  }

  /** The error of the latest call; null if it succeeded or no call was made. */
  get lastError(): ChannelFailure | null {
    return this.#lastError;
  }

  /** How often the control plane has said that this sidecar is no longer enrolled. */
  get revocations(): number {
    return this.#revocations;
  }

  /** Calls `listener` each time the control plane is reachable again. */
  onUp(listener: () => void): void {
    this.#onUp.add(listener);
  }

  /** Calls `listener` each time the control plane says that this sidecar is no longer enrolled. */
  onRevoked(listener: () => void): void {
    this.#onRevoked.add(listener);
  }

  /** `known`: {@link revocations} when the call was sent. The reply to an earlier call does not end a revocation. */
  markUp(known = this.#revocations): void {
    if (known !== this.#revocations) return;
    const returned = this.#state !== 'up';
    this.#state = 'up';
    this.#lastError = null;
    if (returned) notify(this.#onUp);
  }

  markDown(error: ChannelFailure): void {
    this.#lastError = error;
    if (error.reason === 'revoked') {
      this.#state = 'revoked';
      this.#revocations += 1;
      notify(this.#onRevoked);
    } else if (this.#state !== 'revoked') {
      this.#state = 'down';
    }
  }
}

function notify(listeners: ReadonlySet<() => void>): void {
  for (const listener of listeners) listener();
}
