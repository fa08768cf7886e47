import { randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:http2';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect as connectTls } from 'node:tls';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type Http2Upstream, startHttp2Upstream } from './support/http2_upstream.ts';
import { plantSecret } from './support/planted_secret.ts';
import { openTunnel } from './support/raw_client.ts';
import { expectSuccess } from './support/program.ts';
import { curlInSession } from './support/session_curl.ts';
import { type Session, Svc } from './support/svc.ts';
import { createTestCa } from './support/test_ca.ts';

// Programs that speak HTTP/2, through the real proxy to an upstream that speaks nothing else.

const PLAIN = 'plain.example.test';
const BOUND = 'bound.example.test';
const READ = 'read.example.test';
const TOKEN = plantSecret();
const folder = mkdtempSync(join(tmpdir(), 'svc-http2-'));
let upstream: Http2Upstream;
let svc: Svc;
let session: Session;

async function curl(...args: string[]): Promise<string> {
  const done = await curlInSession(svc, ['-w', ' %{http_version} %{http_code}', ...args]);
  return expectSuccess(done, 'curl').stdout;
}

beforeAll(async () => {
  const ca = await createTestCa();
  upstream = await startHttp2Upstream(await ca.issue([PLAIN, BOUND, READ]));
  const resolve = [PLAIN, BOUND, READ].map((host) => `${host}:127.0.0.1:${upstream.port}`);
  svc = await Svc.up({ upstreamCaFiles: [ca.file], resolve });
  await svc.secret('user/api', TOKEN);
  await svc.binding({ host: BOUND, scheme: 'bearer', credential_ref: 'vault://user/api' });
  await svc.binding({ host: READ, scheme: 'bearer', credential_ref: 'vault://user/api', effect: 'read' });
  session = await svc.session();
});
afterAll(async () => {
  await svc.stop();
  await upstream.close();
  rmSync(folder, { recursive: true });
});
beforeEach(() => upstream.reset());

describe('curl over HTTP/2', () => {
  it('passes a host without a binding through, and the event has method, path and status', async () => {
    expect(await curl(`https://${PLAIN}/a?token=x`, '-H', 'X-One: 1', '-H', 'x-two: 2')).toBe('ok 2 200');
    const [request] = upstream.requests;
    expect(request?.value(':path')).toBe('/a?token=x');
    expect(request?.value('authorization')).toBeUndefined();
    expect(request?.fields.slice(-4)).toEqual(['x-one', '1', 'x-two', '2']);
    const event = (await svc.events()).find(({ type }) => type === 'sandbox.proxy.passthrough');
    expect(event?.data).toMatchObject({
      'svc.proxy.method': 'GET',
      'svc.proxy.upstream.path': '/a',
      'svc.proxy.upstream.status': 200,
    });
  });

  it('gets the credential of a bound host, and never sees it', async () => {
    upstream.onRequest((stream, request) => {
      stream.respond({ ':status': 200, 'x-echo': request.value('authorization') ?? '' });
      stream.end(`you sent ${request.value('authorization')}`);
    });
    const got = await curl('-i', '-d', 'x=1', `https://${BOUND}/b`);
    expect(got).toContain(`you sent Bearer ${'*'.repeat(TOKEN.length)} 2 200`);
    expect(got).not.toContain(TOKEN);
    expect(upstream.requests.map((each) => [each.value('authorization'), each.body.toString()])).toEqual([
      [`Bearer ${TOKEN}`, 'x=1'],
    ]);
  });

  it('is refused in its version', async () => {
    const got = await curl('-d', 'x=1', `https://${READ}/c`);
    expect(got).toMatch(/"code":"effect_not_allowed".* 2 403$/s);
    expect(upstream.requests).toEqual([]);
  });

  it('uploads and downloads a large body', async () => {
    const body = randomBytes(8 * 1024 * 1024);
    const file = join(folder, 'upload');
    writeFileSync(file, body);
    upstream.onRequest((stream, request) => {
      stream.respond({ ':status': 200 });
      stream.end(request.body);
    });
    const got = join(folder, 'download');
    expect(await curl('-T', file, '-o', got, `https://${PLAIN}/large`)).toBe(' 2 200');
    expect(readFileSync(got).equals(body)).toBe(true);
  });

  it('shares one tunnel and one upstream connection between many requests at once', async () => {
    const urls = Array.from({ length: 30 }, (_, at) => ['-o', '/dev/null', `https://${BOUND}/${at}`]);
    const got = await curl('--parallel', '--parallel-max', '30', ...urls.flat());
    expect(got.match(/2 200/g)).toHaveLength(30);
    expect(new Set(upstream.requests.map(({ connection }) => connection)).size).toBeLessThan(30);
    expect(upstream.requests.every((each) => each.value('authorization') === `Bearer ${TOKEN}`)).toBe(true);
  });
});

describe('a client that speaks only HTTP/2', () => {
  it('gets trailers and interim replies, as gRPC needs them', async () => {
    upstream.onRequest((stream) => {
      stream.additionalHeaders({ ':status': 103, link: '</a>' });
      stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
      stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
      stream.end('message');
    });
    const { connection } = await openTunnel(session, `${BOUND}:443`);
    await connection.reader.release();
    const socket = connectTls({
      socket: connection.socket,
      servername: BOUND,
      ca: session.caPem,
      ALPNProtocols: ['h2'],
    });
    const http2 = connect(`https://${BOUND}`, { createConnection: () => socket });
    const stream = http2.request({ ':method': 'POST', ':path': '/package.Service/Method', te: 'trailers' });
    const seen: unknown[] = [];
    stream.on('headers', (headers) => seen.push(headers[':status'], headers['link']));
    stream.on('response', (headers) => seen.push(headers[':status']));
    stream.on('trailers', (headers) => seen.push(headers['grpc-status']));
    let body = '';
    stream.on('data', (data: Buffer) => (body += data.toString()));
    stream.end('call');
    await new Promise<void>((resolve) => stream.on('close', resolve));
    http2.destroy();
    expect([seen, body, socket.alpnProtocol]).toEqual([[103, '</a>', 200, '0'], 'message', 'h2']);
    expect(upstream.requests[0]?.value('te')).toBe('trailers');
  });
});
