import { createServer, type Server } from 'node:net';

import { listen } from '../../machine/connection/listen.ts';
import { errorCode } from '../../shared/model/error_code.ts';

/**
 * Runs inside a container's network namespace: listens on loopback there, passes the listening sockets to the sidecar that
 * started it, and exits. Arguments: the ports. It reads no environment and accepts no connection.
 */

async function listenAt(port: number): Promise<Server> {
  const server = createServer({ pauseOnConnect: true });
  await listen(server, port, '127.0.0.1');
  return server;
}

function handOver(port: number, server: Server): Promise<void> {
  return new Promise((resolve) => {
    process.send?.({ port }, server, () => {
      server.close();
      resolve();
    });
  });
}

async function main(ports: readonly number[]): Promise<void> {
  try {
    const servers = await Promise.all(ports.map(async (port) => ({ port, server: await listenAt(port) })));
    for (const { port, server } of servers) await handOver(port, server);
    process.disconnect();
  } catch (error) {
    const code = errorCode(error) || 'UNKNOWN';
    process.send?.({ code }, () => process.exit(1));
  }
}

await main(process.argv.slice(2).map(Number));
