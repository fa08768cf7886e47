import { connect as connectTcp, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { ByteReader } from './byte_reader.ts';
import { EMPTY_BODY, type MessageBody, type MessageHead, readBody, readHead } from './http_message.ts';

/** A reply as the client received it. */
export interface SeenReply extends MessageHead {
  readonly status: number;
  readonly body: MessageBody;
  /** Head and body as they were on the wire. */
  readonly raw: Buffer;
  /** The body as JSON. */
  json(): unknown;
}

/** The data for using the proxy as a session. */
export interface ProxyAccess {
  readonly proxyUrl: string;
  readonly sessionId: string;
  readonly token: string;
  readonly caPem: string;
}

const IDLE_MS = 120_000;

/** The peer ended the connection before it replied. */
export class ConnectionEnded extends Error {}

/** A connection on which the test says exactly which bytes are sent. */
export class RawConnection {
  readonly socket: Socket;
  readonly reader: ByteReader;

  constructor(socket: Socket) {
    this.socket = socket;
    this.reader = new ByteReader(socket);
    socket.on('error', () => socket.destroy());
    // A peer that is silent for so long hangs: the test fails here, before its own time limit.
    socket.setTimeout(IDLE_MS, () => socket.destroy());
  }

  send(bytes: string | Buffer): void {
    this.socket.write(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes);
  }

  /** The next reply to a request of `method`, including interim ones (1xx except 101); null if the connection ends first. */
  async reply(method = 'GET'): Promise<SeenReply | null> {
    const head = await readHead(this.reader);
    if (head === null) return null;
    const status = Number(head.startLine.split(' ')[1]);
    const bodiless = method === 'HEAD' || status < 200 || status === 204 || status === 304;
    const connected = method === 'CONNECT' && status === 200;
    const body = bodiless || connected ? EMPTY_BODY : await readBody(this.reader, head, true);
    const raw = Buffer.concat([Buffer.from(head.text, 'latin1'), body.raw]);
    return Object.assign(head, { status, body, raw, json: () => JSON.parse(body.data.toString('utf8')) as unknown });
  }

  /** Sends one request and returns its reply; throws if there is none. */
  async exchange(bytes: string | Buffer, method?: string): Promise<SeenReply> {
    this.send(bytes);
    const text = typeof bytes === 'string' ? bytes : bytes.subarray(0, 32).toString('latin1');
    const seen = await this.reply(method ?? text.split(' ')[0]);
    if (seen === null) throw new ConnectionEnded('the connection ended without a reply');
    return seen;
  }

  close(): void {
    this.socket.destroy();
  }
}

/** A TCP connection to the port of an `http://` URL. */
export async function connectPlain(url: string): Promise<RawConnection> {
  const { hostname, port } = new URL(url);
  const socket = connectTcp({ host: hostname, port: Number(port), noDelay: true });
  await waitForOpen(socket, 'connect');
  return new RawConnection(socket);
}

/** TLS directly to a test upstream, without a proxy. */
export async function connectDirect(port: number, host: string, caPem: string): Promise<RawConnection> {
  const socket = connectTls({ host: '127.0.0.1', port, servername: host, ca: caPem, ALPNProtocols: ['http/1.1'] });
  await waitForOpen(socket, 'secureConnect');
  return new RawConnection(socket);
}

export function connectRequest(target: string, access: Pick<ProxyAccess, 'sessionId' | 'token'>): string {
  const credentials = Buffer.from(`${access.sessionId}:${access.token}`).toString('base64');
  return `CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\nProxy-Authorization: Basic ${credentials}\r\n\r\n`;
}

/** Requests a tunnel from the proxy and returns its answer. */
export async function openTunnel(
  access: ProxyAccess,
  target: string,
): Promise<{ connection: RawConnection; reply: SeenReply }> {
  const connection = await connectPlain(access.proxyUrl);
  return { connection, reply: await connection.exchange(connectRequest(target, access), 'CONNECT') };
}

/** TLS to `host` through the proxy, trusting only the session's CA. */
export async function connectThroughProxy(
  access: ProxyAccess,
  host: string,
  options: { servername?: string } = {},
): Promise<RawConnection> {
  const tunnel = await openTunnel(access, `${host}:443`);
  if (tunnel.reply.status !== 200) throw new Error(`CONNECT ${host}: ${tunnel.reply.raw.toString('latin1')}`);
  return secure(tunnel.connection, access, host, options);
}

/** TLS inside an open tunnel, trusting only the session's CA. */
export async function secure(
  tunnel: RawConnection,
  access: ProxyAccess,
  host: string,
  options: { servername?: string } = {},
): Promise<RawConnection> {
  await tunnel.reader.release();
  const socket = connectTls({
    socket: tunnel.socket,
    servername: options.servername ?? host,
    ca: access.caPem,
    ALPNProtocols: ['http/1.1'],
    ...(options.servername !== undefined && { checkServerIdentity: () => undefined }),
  });
  await waitForOpen(socket, 'secureConnect');
  return new RawConnection(socket);
}

function waitForOpen(socket: Socket, event: string): Promise<void> {
  return new Promise((resolve, reject) => {
    socket.once('error', reject);
    socket.once('close', () => reject(new Error('closed before it opened')));
    socket.once(event, () => {
      socket.off('error', reject);
      resolve();
    });
  });
}
