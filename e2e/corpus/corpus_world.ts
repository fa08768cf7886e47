import { connect as connectTcp } from 'node:net';
import { connect as connectTls, type ConnectionOptions, createServer, type TLSSocket } from 'node:tls';
import { connectRequest } from '../support/raw_client.ts';
import { type Session, Svc, type UpOptions } from '../support/svc.ts';
import { createTestCa, type TestCa } from '../support/test_ca.ts';
import { listen } from '../support/tls_upstream.ts';
import { WireSide } from './wire_side.ts';

/** A TLS server that passes each connection to the current listener. */
interface WireUpstream {
  readonly port: number;
  /** Receives every connection from now on. */
  onConnection(take: (socket: TLSSocket) => void): void;
  close(): Promise<void>;
}

export interface CorpusWorld {
  readonly svc: Svc;
  readonly ca: TestCa;
  readonly upstream: WireUpstream;
  stop(): Promise<void>;
}

/** svc in front of one raw upstream with a certificate for all these hosts. */
export async function startCorpusWorld(hosts: readonly string[], options: UpOptions = {}): Promise<CorpusWorld> {
  const ca = await createTestCa();
  const upstream = await startWireUpstream(ca, hosts);
  const svc = await Svc.up({
    ...options,
    upstreamCaFiles: [ca.file],
    resolve: [...hosts.map((host) => `${host}:127.0.0.1:${upstream.port}`), ...(options.resolve ?? [])],
  });
  const stop = async (): Promise<void> => {
    await svc.stop();
    await upstream.close();
  };
  return { svc, ca, upstream, stop };
}

function drop(socket: TLSSocket): void {
  socket.destroy();
}

async function startWireUpstream(ca: TestCa, hosts: readonly string[]): Promise<WireUpstream> {
  const sockets = new Set<TLSSocket>();
  let take = drop;
  const certificate = await ca.issue(hosts);
  const server = createServer({ ...certificate, ALPNProtocols: ['http/1.1'], allowHalfOpen: true }, (socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    socket.on('error', () => socket.destroy());
    take(socket);
  });
  server.on('tlsClientError', () => undefined);
  const port = await listen(server);
  return {
    port,
    onConnection: (next) => (take = next),
    close: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** TLS to the upstream without a proxy. */
export function openDirect(world: CorpusWorld, host: string): Promise<WireSide> {
  const options: ConnectionOptions & { allowHalfOpen: true } = {
    host: '127.0.0.1',
    port: world.upstream.port,
    servername: host,
    ca: world.ca.pem,
    ALPNProtocols: ['http/1.1'],
    allowHalfOpen: true,
  };
  return waitForTls(connectTls(options));
}

/** TLS to the host through the proxy; only the session's CA is trusted. An empty `servername` sends none. */
export async function openProxied(session: Session, host: string, servername = host): Promise<WireSide> {
  const { hostname, port } = new URL(session.proxyUrl);
  const tcp = connectTcp({ host: hostname, port: Number(port), allowHalfOpen: true, noDelay: true });
  tcp.write(connectRequest(`${host}:443`, session));
  const answer = await new Promise<string>((resolve, reject) => {
    tcp.once('data', (data) => resolve(data.toString('latin1')));
    tcp.once('error', reject);
  });
  if (!answer.startsWith('HTTP/1.1 200 ')) {
    tcp.destroy();
    throw new ConnectRefused(answer);
  }
  const socket = connectTls({
    socket: tcp,
    servername,
    ca: session.caPem,
    ALPNProtocols: ['http/1.1'],
    checkServerIdentity: () => undefined,
  });
  return waitForTls(socket);
}

/** The proxy's answer to a CONNECT that it refused. */
class ConnectRefused extends Error {
  readonly answer: string;

  constructor(answer: string) {
    super(`CONNECT was answered ${answer}`);
    this.answer = answer;
  }
}

function waitForTls(socket: TLSSocket): Promise<WireSide> {
  return new Promise((resolve, reject) => {
    const side = new WireSide(socket);
    socket.once('secureConnect', () => resolve(side));
    socket.once('error', reject);
  });
}
