import { createServer } from 'node:net';

import { listen } from '../connection/listen.ts';

/**
 * Run inside a container's network namespace: listens on loopback there, hands the listening socket to the sidecar that
 * started it, and ends. Argument: the port. It reads no environment and accepts no connection.
 */

const server = createServer({ pauseOnConnect: true });

async function handOver(): Promise<void> {
  try {
    await listen(server, Number(process.argv[2]), '127.0.0.1');
    process.send?.('listening', server, () => {
      server.close();
      process.disconnect();
    });
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'UNKNOWN';
    process.send?.({ code }, () => process.disconnect());
  }
}

await handOver();
