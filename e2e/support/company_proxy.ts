import { connect, createServer as createTcpServer, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import type { Certificate } from './test_ca.ts';
import { listen } from './tls_upstream.ts';

/** A proxy that knows CONNECT alone, and records every byte up to the end of each head. */
export interface CompanyProxy {
  readonly port: number;
  /** `http://127.0.0.1:PORT`, or `https://localhost:PORT` with a certificate. */
  readonly url: string;
  readonly heads: string[];
  /** Answers in place of the proxy; null: opens the tunnel. */
  answer: ((socket: Socket, target: string) => void) | null;
  /** Connections that are open at this moment. */
  readonly open: ReadonlySet<Socket>;
  close(): Promise<void>;
}

interface CompanyProxyOptions {
  /** The port on this machine that a target leads to; null: 502. */
  readonly leadTo: (target: string) => number | null;
  readonly certificate?: Certificate;
}

export async function startCompanyProxy({ leadTo, certificate }: CompanyProxyOptions): Promise<CompanyProxy> {
  const open = new Set<Socket>();
  const accept = (socket: Socket): void => {
    open.add(socket);
    socket.on('close', () => open.delete(socket));
    socket.on('error', () => socket.destroy());
    void serve(socket, proxy, leadTo);
  };
  const server: Server = certificate === undefined ? createTcpServer(accept) : createTlsServer(certificate, accept);
  server.on('tlsClientError', () => undefined);
  const port = await listen(server);
  const proxy: CompanyProxy = {
    port,
    url: certificate === undefined ? `http://127.0.0.1:${port}` : `https://localhost:${port}`,
    heads: [],
    answer: null,
    open,
    close: async () => {
      for (const socket of open) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return proxy;
}

async function serve(socket: Socket, proxy: CompanyProxy, leadTo: CompanyProxyOptions['leadTo']): Promise<void> {
  const head = await readHead(socket);
  if (head === null) return;
  proxy.heads.push(head);
  const target = /^CONNECT (\S+) /.exec(head)?.[1] ?? '';
  if (proxy.answer !== null) return proxy.answer(socket, target);
  const port = leadTo(target);
  if (port === null) return void socket.end('HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n');
  const upstream = connect(port, '127.0.0.1', () => {
    socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
    socket.pipe(upstream).pipe(socket);
  });
  upstream.on('error', () => socket.destroy());
  upstream.on('close', () => socket.destroy());
  socket.on('close', () => upstream.destroy());
}

function readHead(socket: Socket): Promise<string | null> {
  return new Promise((resolve) => {
    let text = '';
    const onData = (chunk: Buffer): void => {
      text += chunk.toString('latin1');
      if (!text.includes('\r\n\r\n')) return;
      socket.off('data', onData);
      socket.pause();
      resolve(text);
    };
    socket.on('data', onData);
    socket.once('close', () => resolve(null));
  });
}
