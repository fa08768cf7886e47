/**
 * A program: forwards each connection through its own CONNECT, byte for byte, so that a client without proxy support (wrk)
 * can be measured through a proxy. Settings: see `start_forwarder.ts`.
 */
import { connect, createServer, type Socket } from 'node:net';
import { announce, readSettings } from './programs.ts';
import { forwarderSettings, type ForwarderSettings } from './start_forwarder.ts';

const HEAD_END = '\r\n\r\n';

function relay(from: Socket, to: Socket): void {
  from.on('data', (chunk: Buffer) => {
    if (!to.write(chunk)) from.pause();
  });
  to.on('drain', () => from.resume());
  from.on('end', () => to.end());
  from.on('close', () => to.destroy());
}

/** Resolves when the proxy has answered the CONNECT with a 200. */
function tunnelOpened(upstream: Socket): Promise<void> {
  return new Promise((resolve) => {
    let head = '';
    const onData = (chunk: Buffer): void => {
      head += chunk.toString('latin1');
      if (!head.includes(HEAD_END)) return;
      if (!/^HTTP\/1\.[01] 200 /.test(head)) {
        process.stderr.write(`the proxy answered CONNECT with ${head.split('\r\n', 1)[0]}\n`);
        process.exit(1);
      }
      upstream.off('data', onData);
      resolve();
    };
    upstream.on('data', onData);
  });
}

async function forward(client: Socket, settings: ForwarderSettings): Promise<void> {
  client.pause();
  client.setNoDelay(true);
  const upstream = connect({ host: '127.0.0.1', port: settings.port, allowHalfOpen: true });
  upstream.setNoDelay(true);
  client.on('error', () => upstream.destroy());
  upstream.on('error', () => client.destroy());
  upstream.on('close', () => client.destroy());
  if (settings.connect !== null) {
    const auth = settings.connect.authorization;
    const line = auth === null ? '' : `Proxy-Authorization: ${auth}\r\n`;
    upstream.write(
      `CONNECT ${settings.connect.authority} HTTP/1.1\r\nHost: ${settings.connect.authority}\r\n${line}\r\n`,
    );
    await tunnelOpened(upstream);
  }
  relay(client, upstream);
  relay(upstream, client);
  client.resume();
}

async function main(): Promise<void> {
  const settings = await readSettings(forwarderSettings);
  const server = createServer(
    { allowHalfOpen: true, pauseOnConnect: true },
    (client) => void forward(client, settings),
  );
  server.listen(0, '127.0.0.1', 1024, () => {
    const address = server.address();
    if (address !== null && typeof address === 'object') announce(address.port);
  });
  process.on('SIGTERM', () => process.exit(0));
}

await main();
