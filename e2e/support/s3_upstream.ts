import { mkdtempSync, rmSync } from 'node:fs';
import { type IncomingMessage, request as httpRequest } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import S3rver from 's3rver';
import account from 's3rver/lib/models/account.js';
import { type SignedRequest, type Verdict, verifySigV4 } from './sigv4_verifier.ts';
import type { Certificate } from './test_ca.ts';
import { type Exchange, reply, startTlsUpstream, type TlsUpstream } from './tls_upstream.ts';

export interface S3Upstream {
  readonly port: number;
  readonly tls: TlsUpstream;
  /** The verdict on each request, in order. */
  readonly verdicts: Verdict[];
  close(): Promise<void>;
}

/**
 * s3rver behind TLS. It keeps the objects; the signatures are checked in front of it, because s3rver computes those of
 * version 2 only and takes any of version 4.
 */
export async function startS3Upstream(
  certificate: Certificate,
  keys: { accessKeyId: string; secretAccessKey: string },
  bucket: string,
): Promise<S3Upstream> {
  const directory = mkdtempSync(join(tmpdir(), 'svc-e2e-s3-'));
  account.DUMMY_ACCOUNT.createKeyPair(keys.accessKeyId, keys.secretAccessKey);
  const configureBuckets = [{ name: bucket }];
  const listening = { address: '127.0.0.1', port: 0, silent: true };
  const s3rver = new S3rver({ ...listening, directory, configureBuckets, vhostBuckets: false });
  const { port } = await s3rver.run();
  const tls = await startTlsUpstream(certificate);
  const secrets = new Map([[keys.accessKeyId, keys.secretAccessKey]]);
  const verdicts: Verdict[] = [];
  tls.onRequest(async (exchange) => {
    // A client that expects 100-continue may wait forever: botocore mistakes session tickets for its start.
    if (exchange.request.header('expect') !== undefined) exchange.write('HTTP/1.1 100 Continue\r\n\r\n');
    await exchange.readBody();
    const verdict = verifySigV4(signedRequest(exchange), secrets, Date.now());
    verdicts.push(verdict);
    exchange.write(verdict.ok ? await forward(exchange, port) : refuse(verdict.code));
  });
  const close = async (): Promise<void> => {
    await tls.close();
    await s3rver.close();
    rmSync(directory, { recursive: true, force: true });
  };
  return { port: tls.port, tls, verdicts, close };
}

function signedRequest({ request }: Exchange): SignedRequest {
  return {
    method: request.method,
    target: request.target,
    headers: (name) => request.headers(name),
    body: request.body.data,
  };
}

function refuse(code: string): Buffer {
  return reply(403, `<?xml version="1.0"?><Error><Code>${code}</Code></Error>`, ['Content-Type: application/xml']);
}

/** Passes the request to s3rver without chunk framing of either layer, and returns the reply with a length. */
function forward({ request }: Exchange, port: number): Promise<Buffer> {
  const awsChunked = request.header('content-encoding') === 'aws-chunked';
  const body = awsChunked ? decodeAwsChunks(request.body.data) : request.body.data;
  const kept = request.lines.filter((line) => !/^(content-length|transfer-encoding|content-encoding):/i.test(line));
  const headers = kept.flatMap((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1).trim()]);
  headers.push('Content-Length', String(body.length));
  const { method, target: path } = request;
  return new Promise((resolve, reject) => {
    const options = { host: '127.0.0.1', port, method, path, headers, setHost: false };
    const outgoing = httpRequest(options, (incoming) => {
      const chunks: Buffer[] = [];
      incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
      incoming.on('error', reject);
      incoming.on('end', () => resolve(formatReply(incoming, method, Buffer.concat(chunks))));
    });
    outgoing.on('error', reject);
    outgoing.end(body);
  });
}

/** A reply with its own headers, framed by its length; a reply to HEAD keeps the length it announces. */
function formatReply(incoming: IncomingMessage, method: string, data: Buffer): Buffer {
  const dropped = ['connection', 'keep-alive', 'transfer-encoding', ...(method === 'HEAD' ? [] : ['content-length'])];
  const lines = [`HTTP/1.1 ${incoming.statusCode} ${incoming.statusMessage}`];
  for (let at = 0; at < incoming.rawHeaders.length; at += 2) {
    const name = incoming.rawHeaders[at] ?? '';
    if (!dropped.includes(name.toLowerCase())) lines.push(`${name}: ${incoming.rawHeaders[at + 1]}`);
  }
  if (method !== 'HEAD') lines.push(`Content-Length: ${data.length}`);
  return Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), data]);
}

/** The payload of an `aws-chunked` body, without its trailer. */
function decodeAwsChunks(body: Buffer): Buffer {
  const chunks: Buffer[] = [];
  for (let at = 0; ;) {
    const lineEnd = body.indexOf('\r\n', at);
    const size = Number.parseInt(body.toString('latin1', at, lineEnd), 16);
    if (lineEnd < 0 || !(size > 0)) return Buffer.concat(chunks);
    chunks.push(body.subarray(lineEnd + 2, lineEnd + 2 + size));
    at = lineEnd + 4 + size;
  }
}
