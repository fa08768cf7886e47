import { once } from 'node:events';
import { connect, createServer } from 'node:net';

/** A recently free port of 127.0.0.1, for programs that cannot choose one themselves. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  if (address === null || typeof address === 'string') throw new Error('no port of 127.0.0.1 is free');
  return address.port;
}

/** True if something accepts connections there. */
export function takesConnections(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.on('error', () => resolve(false));
    socket.on('connect', () => {
      resolve(true);
      socket.destroy();
    });
  });
}
