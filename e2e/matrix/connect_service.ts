import { createSecureServer, type ServerHttp2Session } from 'node:http2';
import { Code, ConnectError, type ConnectRouter } from '@connectrpc/connect';
import { connectNodeAdapter } from '@connectrpc/connect-node';
import type { Certificate } from '../support/test_ca.ts';
import { listen } from '../support/tls_upstream.ts';
import { CONNECT_ECHO } from './connect_echo.ts';

/** A server of the protocols of Connect, gRPC and gRPC-Web over HTTP/2. */
export interface ConnectService {
  readonly port: number;
  readonly requests: { readonly type: string | undefined; readonly authorization: string | undefined }[];
  close(): Promise<void>;
}

interface Text {
  readonly value: string;
}

const METHODS = {
  unary: ({ value }: Text) => ({ value: `echo ${value}` }),
  async *down({ value }: Text) {
    for (let at = 0; at < Number(value); at += 1) yield { value: String(at) };
  },
  async *both(messages: AsyncIterable<Text>) {
    for await (const { value } of messages) yield { value };
  },
  fail: () => {
    throw new ConnectError('100% gone: ü', Code.NotFound);
  },
};

export async function startConnectService(certificate: Certificate): Promise<ConnectService> {
  const requests: { type: string | undefined; authorization: string | undefined }[] = [];
  const answer = connectNodeAdapter({ routes: (router: ConnectRouter) => router.service(CONNECT_ECHO, METHODS) });
  const sessions = new Set<ServerHttp2Session>();
  const server = createSecureServer(certificate, (request, response) => {
    const { 'content-type': type, authorization } = request.headers;
    requests.push({ type, authorization });
    answer(request, response);
  });
  server.on('session', (session) => sessions.add(session));
  const port = await listen(server);
  const close = async (): Promise<void> => {
    for (const session of sessions) session.destroy();
    await new Promise((resolve) => server.close(resolve));
  };
  return { port, requests, close };
}
