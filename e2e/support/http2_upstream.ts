import type { ServerHttp2Session, ServerHttp2Stream } from 'node:http2';
import { createSecureServer } from 'node:http2';
import type { Certificate } from './test_ca.ts';
import { listen } from './tls_upstream.ts';

/** A request as the upstream received it. */
export interface SeenStream {
  /** Names and values in turn, in order. */
  readonly fields: readonly string[];
  readonly body: Buffer;
  /** The connection's number, from 0. */
  readonly connection: number;
  value(name: string): string | undefined;
}

/** Answers a request whose body has arrived. */
export type StreamAnswer = (stream: ServerHttp2Stream, request: SeenStream) => void;

/** A TLS server that speaks only HTTP/2. */
export interface Http2Upstream {
  readonly port: number;
  readonly requests: SeenStream[];
  /** Sets the answer of all requests from now on. */
  onRequest(answer: StreamAnswer): void;
  /** Clears the recorded requests and restores the default answer. */
  reset(): void;
  close(): Promise<void>;
}

const answerPlainly: StreamAnswer = (stream) => {
  stream.respond({ ':status': 200, 'content-type': 'text/plain' });
  stream.end('ok');
};

export async function startHttp2Upstream(certificate: Certificate): Promise<Http2Upstream> {
  const requests: SeenStream[] = [];
  const sessions: ServerHttp2Session[] = [];
  let answer = answerPlainly;
  const server = createSecureServer({ ...certificate, allowHTTP1: false });
  server.on('session', (session) => {
    sessions.push(session);
    session.on('error', () => undefined);
  });
  server.on('stream', (stream: ServerHttp2Stream, _headers: unknown, _flags: number, fields: readonly string[]) => {
    const pieces: Buffer[] = [];
    stream.on('error', () => undefined);
    stream.on('data', (piece: Buffer) => pieces.push(piece));
    stream.on('end', () => {
      const request: SeenStream = {
        fields,
        body: Buffer.concat(pieces),
        connection: sessions.findIndex((session) => session === stream.session),
        value: (name) => (fields.includes(name) ? fields[fields.indexOf(name) + 1] : undefined),
      };
      requests.push(request);
      if (!stream.destroyed) answer(stream, request);
    });
  });
  const port = await listen(server);
  return {
    port,
    requests,
    onRequest: (next) => (answer = next),
    reset: () => {
      answer = answerPlainly;
      requests.length = 0;
    },
    close: async () => {
      for (const session of sessions) session.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
