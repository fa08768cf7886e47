import type { Connection } from '../../machine/connection/connection.ts';
import { discardUnsent, UnsentAllowance } from './discard_unsent.ts';

/**
 * Ends a connection whose peer may still be sending: closes our side, and discards input until the peer closes too, because
 * closing with unread input would reset the connection before the peer reads the answer (RFC 9112 section 9.6). The connection
 * counts as open until then: in its session's tunnels, or among those that wait.
 */
export async function closeAfterAnswer(client: Connection): Promise<void> {
  client.end();
  const drop = (): void => client.destroy();
  await discardUnsent(client, client.waitForFlush(), new UnsentAllowance(), drop);
  client.destroy();
}
