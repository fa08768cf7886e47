import type { Caller } from '../../machine/mcp_caller.ts';
import type { GatewayLimits } from '../gateway_limits.ts';

export type CallLimits = Pick<GatewayLimits, 'maxCalls' | 'maxCallsOfServer'>;

/** One call of a caller to a server. */
export interface SlotUse extends Pick<Caller, 'sessionId'> {
  readonly serverId: string;
}

/** The calls that run, which may have taken no slot. */
interface Running {
  readonly all: number;
  readonly ofServer: number;
}

/** The slots of tool calls: of all servers, of each one, and of each caller. */
export class CallSlots {
  readonly #taken = new Map<string, number>();

  isFull(use: SlotUse, { maxCalls, maxCallsOfServer }: CallLimits, running: Running): boolean {
    const { all, ofServer, ofCaller, ofBoth } = keysOf(use);
    return (
      isUsedUp(Math.max(running.all, this.#count(all)), this.#count(ofCaller), maxCalls) ||
      isUsedUp(Math.max(running.ofServer, this.#count(ofServer)), this.#count(ofBoth), maxCallsOfServer)
    );
  }

  /** Returns the function that frees the slot. */
  take(use: SlotUse): () => void {
    const keys = Object.values(keysOf(use));
    for (const key of keys) this.#taken.set(key, this.#count(key) + 1);
    let isOver = false;
    return () => {
      if (isOver) return;
      isOver = true;
      for (const key of keys) this.#free(key);
    };
  }

  #count(key: string): number {
    return this.#taken.get(key) ?? 0;
  }

  #free(key: string): void {
    const left = this.#count(key) - 1;
    if (left <= 0) this.#taken.delete(key);
    else this.#taken.set(key, left);
  }
}

function keysOf({ serverId, sessionId }: SlotUse) {
  return {
    all: 'all',
    ofServer: JSON.stringify(['server', serverId]),
    ofCaller: JSON.stringify(['caller', sessionId]),
    ofBoth: JSON.stringify(['both', serverId, sessionId]),
  };
}

/**
 * The last quarter of the slots is for callers that have only a few: a call that waits for its client's input has its slot for
 * minutes, and one caller must not take all of them from the others.
 */
function isUsedUp(taken: number, own: number, most: number): boolean {
  const reserved = Math.floor(most / 4);
  const few = Math.max(1, Math.floor(reserved / 4));
  return taken >= most || (taken >= most - reserved && own >= few);
}
