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
/** The first descriptor after standard input, output and error. */
const FIRST_INHERITED = 3;
/** Another program may have the chosen port at the other address. */
const TRIES = 20;
/** The address does not exist here, so no other program can listen on it. */
const NO_ADDRESS = new Set(['EADDRNOTAVAIL', 'EAFNOSUPPORT']);

/** Listens at one address. Throws the error of `listen`. */
export function listenAt(server: NetServer, host: string, port: number): Promise<AddressInfo> {
  server.listen(port, host);
  return addressOf(server);
}

/** Where a server listens, once it does. */
async function addressOf(server: NetServer): Promise<AddressInfo> {
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('a listener has no address');
  return address;
}

/** Listens on bound sockets of the parent process: the first inherited descriptor, and the next one if there are two. */
export async function listenOnInherited(server: Server, count: number): Promise<Listening> {
  server.listen({ fd: FIRST_INHERITED });
  const address = await addressOf(server);
  if (count < 2) return { address, twin: null };
  const twin = twinOf(server);
  twin.listen({ fd: FIRST_INHERITED + 1 });
  await addressOf(twin);
  return { address, twin };
}

/**
 * Listens at both loopback addresses: browsers try ::1 first for the console's name, and another program there would
 * receive its cookies. Throws the error of `listen`, with the address.
 */
export async function listenOnLoopback(server: Server, host: string, port: number): Promise<Listening> {
  const other = host === IPV6 ? IPV4 : IPV6;
  for (let tries = 1; ; tries += 1) {
    const address = await listenAt(server, host === 'localhost' ? IPV4 : host, port);
    const twin = twinOf(server);
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

/** A second listener whose connections the server serves. */
function twinOf(server: Server): NetServer {
  return createServer({ allowHalfOpen: true, noDelay: true }, (socket) => server.emit('connection', socket));
}
