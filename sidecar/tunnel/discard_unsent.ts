import type { Connection } from '../../machine/connection/connection.ts';
import { ConnectionLost } from '../../machine/connection/connection.ts';

/** How long a client that was answered may pause while it still sends its request. */
export const UNSENT_MS = 5000;
/** How long it may go on sending. */
export const MOST_UNSENT_MS = 30_000;
/** How much is discarded of what one connection sends, with all its streams. */
export const MOST_UNSENT_BYTES = 256 * 1024 * 1024;
/** How many streams of a connection over HTTP/2 may be discarded at once. The others are stopped as soon as they are answered. */
export const MOST_UNSENT_STREAMS = 10;

/** What may still be discarded on one connection of a client. */
export class UnsentAllowance {
  #bytes = 0;
  #streams = 0;

  /** Takes a place for one stream; null if none is left. The function that is returned gives it back. */
  enter(): (() => void) | null {
    if (this.#streams >= MOST_UNSENT_STREAMS || this.#bytes > MOST_UNSENT_BYTES) return null;
    this.#streams += 1;
    return () => (this.#streams -= 1);
  }

  /** Counts bytes that were discarded; false if it was too much. */
  spend(bytes: number): boolean {
    this.#bytes += bytes;
    return this.#bytes <= MOST_UNSENT_BYTES;
  }
}

/**
 * Discards what a client still sends of a request that has its answer, until it ends or is lost, or a limit calls `drop`. The
 * time limits start when the answer has left (`answered`), so a slow reader gets everything.
 */
export async function discardUnsent(
  client: Connection,
  answered: Promise<void>,
  allowance: UnsentAllowance,
  drop: () => void,
): Promise<void> {
  let pause: NodeJS.Timeout | undefined;
  const onBytes = (bytes: number): void => {
    pause?.refresh();
    if (!allowance.spend(bytes)) drop();
  };
  const discarded = discardRest(client, onBytes);
  await answered;
  pause = setTimeout(drop, UNSENT_MS);
  const whole = setTimeout(drop, MOST_UNSENT_MS);
  await discarded;
  clearTimeout(pause);
  clearTimeout(whole);
}

async function discardRest(client: Connection, onBytes: (bytes: number) => void): Promise<void> {
  try {
    for (;;) {
      const chunk = client.take() ?? (await client.nextChunk());
      if (chunk === null) return;
      onBytes(chunk.length);
    }
  } catch (error) {
    if (!(error instanceof ConnectionLost)) throw error;
  }
}
