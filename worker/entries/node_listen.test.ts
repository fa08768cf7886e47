import { once } from 'node:events';
import { createServer, get, type Server } from 'node:http';
import { createServer as createNetServer, type Server as NetServer } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { listenAt, listenOnLoopback } from './node_listen.ts';

const open: NetServer[] = [];
afterEach(async () => {
  for (const server of open.splice(0)) {
    if (!server.listening) continue;
    server.close();
    await once(server, 'close');
  }
});

function answering(): Server {
  const server = createServer((request, response) => {
    response.writeHead(200, { connection: 'close' }).end(request.socket.localAddress);
  });
  open.push(server);
  return server;
}

function bodyAt(host: string, port: number): Promise<string> {
  return new Promise((resolve, reject) => {
    get({ host, port, agent: false }, (reply) => {
      let body = '';
      reply.on('data', (chunk: Buffer) => (body += chunk.toString()));
      reply.on('end', () => resolve(body));
    }).on('error', reject);
  });
}

test.each([
  ['127.0.0.1', '127.0.0.1'],
  ['localhost', '127.0.0.1'],
  ['::1', '::1'],
])('listening on %s uses the port at both loopback addresses, and one program answers at both', async (host, first) => {
  const { address, twin } = await listenOnLoopback(answering(), host, 0);
  if (twin !== null) open.push(twin);
  expect(address.address).toBe(first);
  expect(await bodyAt('127.0.0.1', address.port)).toBe('127.0.0.1');
  expect(await bodyAt('::1', address.port)).toBe('::1');
});

test('a port that another program has at the other address is refused and named', async () => {
  const other = createNetServer();
  open.push(other);
  const { port } = await listenAt(other, '::1', 0);
  const refused = listenOnLoopback(answering(), '127.0.0.1', port);
  await expect(refused).rejects.toMatchObject({ code: 'EADDRINUSE', address: '::1' });
});

test('a port that is in use at its own address is refused', async () => {
  const other = createNetServer();
  open.push(other);
  const { port } = await listenAt(other, '127.0.0.1', 0);
  await expect(listenOnLoopback(answering(), '127.0.0.1', port)).rejects.toMatchObject({
    code: 'EADDRINUSE',
    address: '127.0.0.1',
  });
});
