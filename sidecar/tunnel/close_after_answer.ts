import type { Connection } from '../../machine/connection/connection.ts';
import { ConnectionLost } from '../../machine/connection/connection.ts';

/** How long a client that was answered may pause while it still sends its request. */
export const UNSENT_MS = 5000;
/** How long it may go on sending. */
export const MOST_UNSENT_MS = 30_000;
/** How much of it is discarded. */
export const MOST_UNSENT_BYTES = 256 * 1024 * 1024;

/**
 * Ends a connection whose peer may still be sending: closes our side, and discards input until the peer closes too, because
 * closing with unread input would reset the connection before the peer reads the answer (RFC 9112 section 9.6). The time
 * limits start when our last byte has left, so a slow reader gets everything. The connection counts as open until then: in
 * its session's tunnels, or among those that wait.
 */
export async function closeAfterAnswer(client: Connection): Promise<void> {
  client.end();
  let pause: NodeJS.Timeout | undefined;
  const discarded = discardRest(client, () => pause?.refresh());
  await client.waitForFlush();
  const drop = (): void => client.destroy();
  pause = setTimeout(drop, UNSENT_MS);
  const whole = setTimeout(drop, MOST_UNSENT_MS);
  await discarded;
  clearTimeout(pause);
  clearTimeout(whole);
  client.destroy();
}

async function discardRest(client: Connection, onBytes: () => void): Promise<void> {
  try {
    for (let bytes = 0; bytes <= MOST_UNSENT_BYTES;) {
      const chunk = client.take() ?? (await client.nextChunk());
      if (chunk === null) return;
      bytes += chunk.length;
      onBytes();
    }
    client.destroy();
  } catch (error) {
    if (!(error instanceof ConnectionLost)) throw error;
  }
}
