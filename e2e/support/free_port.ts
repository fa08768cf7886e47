import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';

/** Below the ephemeral ports (from 32768 on Linux, 49152 elsewhere), and above those of common services. */
const LOWEST = 12_000;
const HIGHEST = 32_000;

/**
 * A loopback port for a program that has to be told one. The system never gives it to a connection or to a server that asks for
 * any port, so it is still free when the program takes it.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(LOWEST, HIGHEST);
    const server = createServer();
    const isFree = await new Promise<boolean>((resolve) => {
      server.once('error', () => resolve(false));
      server.listen(port, '127.0.0.1', () => resolve(true));
    });
    if (!isFree) continue;
    server.close();
    await once(server, 'close');
    return port;
  }
}
