import { connect } from 'node:net';
import { ByteReader } from '../support/byte_reader.ts';
import { readHead } from '../support/http_message.ts';

/** The status of the host's sidecar proxy for a CONNECT with this user and password. */
export async function connectAs(proxyUrl: string, user: string, password: string, host: string): Promise<number> {
  const { hostname, port } = new URL(proxyUrl);
  const socket = connect(Number(port), hostname);
  socket.on('error', () => undefined);
  const credentials = Buffer.from(`${user}:${password}`).toString('base64');
  const lines = [`CONNECT ${host}:443 HTTP/1.1`, `Host: ${host}:443`, `Proxy-Authorization: Basic ${credentials}`];
  socket.write(`${lines.join('\r\n')}\r\n\r\n`);
  const head = await readHead(new ByteReader(socket));
  socket.destroy();
  return Number(head?.startLine.split(' ')[1] ?? 0);
}
