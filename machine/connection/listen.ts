import type { AddressInfo, ListenOptions, Server } from 'node:net';

/** An address, or a bound socket. */
type ListenTarget = Pick<ListenOptions, 'host' | 'port'> | { readonly fd: number };

/** The first descriptor after standard input, output and error. */
export const FIRST_INHERITED = 3;

/** Listens on an address (port 0: any free one) and resolves with the port. Rejects with the system's own error. */
export async function listen(server: Server, port: number, address: string): Promise<number> {
  return (await listenOn(server, { port, host: address })).port;
}

/** Listens on an address, or on a bound socket that the parent process passed on, and resolves with where that is. */
export function listenOn(server: Server, where: ListenTarget): Promise<AddressInfo> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(where, () => {
      server.off('error', reject);
      const bound = server.address();
      if (bound === null || typeof bound === 'string') reject(new Error('the server has no TCP port'));
      else resolve(bound);
    });
  });
}
