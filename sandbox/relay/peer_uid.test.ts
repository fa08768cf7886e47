import { createServer, connect, type Socket } from 'node:net';
import { expect, test } from 'vitest';
import type { TcpEnds } from '../../shared/net/tcp_table.ts';
import { listen } from '../../machine/connection/listen.ts';
import { peerUid } from './peer_uid.ts';

const ENDS: TcpEnds = { remoteAddress: '127.0.0.1', remotePort: 54_321, localAddress: '127.0.0.1', localPort: 8_080 };

test('returns no user if there are no tables', async () => {
  expect(await peerUid(ENDS, ['/nonexistent/tcp'])).toBeNull();
});

test.skipIf(process.platform !== 'linux')('sees our own user at the other end of a real connection', async () => {
  const accepted = Promise.withResolvers<Socket>();
  const server = createServer(accepted.resolve);
  const client = connect(await listen(server, 0, '127.0.0.1'), '127.0.0.1');
  const { remoteAddress = '', remotePort = 0, localAddress = '', localPort = 0 } = await accepted.promise;
  expect(await peerUid({ remoteAddress, remotePort, localAddress, localPort })).toBe(process.getuid?.());
  client.destroy();
  server.close();
});
