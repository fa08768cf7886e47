import { once } from 'node:events';
import type { Server } from 'node:http';
import { type AddressInfo, createServer, type Server as NetServer } from 'node:net';
import { errorCode } from '../../shared/model/error_code.ts';

/** Where a program listens. */
export interface Listening {
  readonly address: AddressInfo;
  /** The listener at the other loopback address; null if there is none. */
  readonly twin: NetServer | null;
}

const IPV4 = '127.0.0.1';
const IPV6 = '::1';
/** Another program may have the chosen port at the other address. */
const TRIES = 20;
/** The address does not exist here, so no other program can listen on it. */
const NO_ADDRESS = new Set(['EADDRNOTAVAIL', 'EAFNOSUPPORT']);

/** Listens at one address. Throws the error of `listen`. */
export async function listenAt(server: NetServer, host: string, port: number): Promise<AddressInfo> {
  server.listen(port, host);
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('a listener has no address');
  return address;
}

/**
 * Listens at both loopback addresses: browsers try ::1 first for the console's name, and another program there would
 * receive its cookies. Throws the error of `listen`, with the address.
 */
export async function listenOnLoopback(server: Server, host: string, port: number): Promise<Listening> {
  const other = host === IPV6 ? IPV4 : IPV6;
  for (let tries = 1; ; tries += 1) {
    const address = await listenAt(server, host === 'localhost' ? IPV4 : host, port);
    const twin = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => server.emit('connection', socket));
    try {
      await listenAt(twin, other, address.port);
      return { address, twin };
    } catch (error) {
      const code = errorCode(error);
      if (NO_ADDRESS.has(code)) return { address, twin: null };
      if (code !== 'EADDRINUSE' || port !== 0 || tries === TRIES) throw error;
      server.close();
      await once(server, 'close');
    }
  }
}
