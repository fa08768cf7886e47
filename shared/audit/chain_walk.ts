import type { ChainBreak } from '../model/audit_event.ts';
import type { Sha256Hex } from '../model/sha256_hex.ts';
import { chainBreak, type ChainHead, type HashedEvent } from './hash_chain.ts';

/** A chain as its control plane states it: the events after its beginning, up to its head. */
export interface StatedChain extends ChainHead {
  readonly writer: string;
  /** The last removed event; the start of a chain if none was removed. */
  readonly beginning: ChainHead;
}

/** Where a log does not match what its control plane stated. */
export interface WalkBreak {
  readonly writer: string;
  readonly sequence: number;
  readonly reason: ChainBreak;
}

/**
 * Compares events with a statement of their chains: whether each chain has every event from its beginning to its head, each with
 * its own hash and that of the event before it (design section 8). It takes each chain's events oldest first, and keeps one hash
 * for each chain.
 */
export class ChainWalk {
  readonly #chains: ReadonlyMap<string, StatedChain>;
  readonly #ends = new Map<string, ChainHead>();
  readonly #sha256Hex: Sha256Hex;
  #events = 0;

  constructor(chains: readonly StatedChain[], sha256Hex: Sha256Hex) {
    this.#sha256Hex = sha256Hex;
    this.#chains = new Map(chains.map((chain) => [chain.writer, chain]));
  }

  get events(): number {
    return this.#events;
  }

  /** Why the next event does not belong here, or null. */
  take(event: HashedEvent): WalkBreak | null {
    const { writer, sequence } = event;
    const chain = this.#chains.get(writer);
    if (chain === undefined) return { writer, sequence, reason: 'wrong_writers' };
    const end = this.#endOf(chain);
    if (sequence > chain.sequence) return { writer, sequence, reason: 'wrong_head' };
    const reason = chainBreak(end, event, this.#sha256Hex);
    if (reason === 'missing_event') return { writer, sequence: end.sequence + 1, reason };
    if (reason !== null) return { writer, sequence, reason };
    this.#ends.set(writer, { sequence, hash: event.hash });
    this.#events += 1;
    return null;
  }

  /** After the last event: the first chain that does not reach its head, or null. */
  finish(): WalkBreak | null {
    for (const chain of this.#chains.values()) {
      const { writer, sequence, hash } = chain;
      const end = this.#endOf(chain);
      if (end.sequence < sequence) return { writer, sequence: end.sequence + 1, reason: 'missing_event' };
      if (end.hash !== hash) return { writer, sequence, reason: 'wrong_head' };
    }
    return null;
  }

  #endOf({ writer, beginning }: StatedChain): ChainHead {
    return this.#ends.get(writer) ?? beginning;
  }
}
