import type { Server } from 'node:net';

/** Listens on an address (port 0: any free one) and resolves with the port. Rejects with the system's own error. */
export function listen(server: Server, port: number, address: string): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, address, () => {
      server.off('error', reject);
      const bound = server.address();
      if (bound === null || typeof bound === 'string') reject(new Error('the server has no TCP port'));
      else resolve(bound.port);
    });
  });
}
