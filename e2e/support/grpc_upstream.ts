import type { Metadata, ServerDuplexStream, ServerReadableStream, ServerWritableStream } from '@grpc/grpc-js';
import { Metadata as MetadataOf, Server, ServerCredentials, status } from '@grpc/grpc-js';
import { ECHO } from './grpc_echo.ts';
import type { Certificate } from './test_ca.ts';

/** A call as the server received it. */
export interface SeenCall {
  readonly method: string;
  readonly metadata: Readonly<Record<string, Buffer | string>>;
}

/** A server of gRPC with TLS, whose methods are of every form: unary, streams in one direction, and in both. */
export interface GrpcUpstream {
  readonly port: number;
  readonly calls: SeenCall[];
  /** How many calls ended before their answer. */
  readonly cancelled: () => number;
  close(): void;
}

export async function startGrpcUpstream({ key, cert }: Certificate): Promise<GrpcUpstream> {
  const calls: SeenCall[] = [];
  let cancelled = 0;
  const note = (name: string, { metadata }: { readonly metadata: Metadata }): void =>
    void calls.push({ method: name, metadata: metadata.getMap() });
  const server = new Server({ 'grpc.max_concurrent_streams': 100 });
  server.addService(ECHO, {
    unary: (call: UnaryCall, reply: Reply) => {
      note('unary', call);
      call.sendMetadata(metadataOf('x-head', 'head'));
      reply(null, Buffer.from(`echo ${call.request.toString()}`), metadataOf('x-tail', 'tail'));
    },
    down: (call: ServerWritableStream<Buffer, Buffer>) => {
      note('down', call);
      for (let at = 0; at < Number(call.request); at += 1) call.write(Buffer.from(String(at)));
      call.end();
    },
    up: (call: ServerReadableStream<Buffer, Buffer>, reply: Reply) => {
      note('up', call);
      const got: string[] = [];
      call.on('data', (message: Buffer) => got.push(message.toString()));
      call.on('end', () => reply(null, Buffer.from(got.join())));
    },
    both: (call: ServerDuplexStream<Buffer, Buffer>) => {
      note('both', call);
      call.on('data', (message: Buffer) => {
        if (call.write(message)) return;
        call.pause();
        call.once('drain', () => call.resume());
      });
      call.on('end', () => call.end());
    },
    fail: (call: UnaryCall, reply: Reply) => {
      note('fail', call);
      reply({ code: status.NOT_FOUND, details: '100% gone: ü', metadata: metadataOf('x-tail', 'why') });
    },
    wait: (call: UnaryCall) => {
      note('wait', call);
      call.on('cancelled', () => (cancelled += 1));
    },
  });
  const credentials = ServerCredentials.createSsl(null, [
    { private_key: Buffer.from(key), cert_chain: Buffer.from(cert) },
  ]);
  const port = await new Promise<number>((resolve, reject) =>
    server.bindAsync('127.0.0.1:0', credentials, (error, bound) => (error === null ? resolve(bound) : reject(error))),
  );
  return { port, calls, cancelled: () => cancelled, close: () => server.forceShutdown() };
}

interface UnaryCall {
  readonly request: Buffer;
  readonly metadata: Metadata;
  sendMetadata(metadata: Metadata): void;
  on(event: 'cancelled', listener: () => void): unknown;
}

type Reply = (
  error: { readonly code: number; readonly details: string; readonly metadata: Metadata } | null,
  value?: Buffer,
  trailer?: Metadata,
) => void;

function metadataOf(name: string, value: string): Metadata {
  const metadata = new MetadataOf();
  metadata.set(name, value);
  return metadata;
}
