import { createHash } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { plantSecret } from './support/planted_secret.ts';
import { connectThroughProxy } from './support/raw_client.ts';
import { chunkSeed, ChunkVerifier } from './support/sigv4_chunk_verifier.ts';
import { type SignedRequest, type Verdict, verifyPresigned, verifySigV4 } from './support/sigv4_verifier.ts';
import type { Session } from './support/svc.ts';
import type { SeenRequest } from './support/tls_upstream.ts';
import { startWorld, type World } from './support/world.ts';

// S3-compatible stores under their own names: region and service come from the binding, never from the host (specification
// section 2, Host binding). An independent verifier checks each signature.

const SECRET = plantSecret();
const TOKEN = plantSecret();
const AKID = 'AKIAE2EEXAMPLE000003';
const PLACEHOLDER = 'AKIAPLACEHOLDER00000';
const STORES = [
  { host: 'minio.example.test', region: 'us-east-1', service: 's3' },
  { host: 'acc0unt.r2.example.test', region: 'auto', service: 's3' },
  { host: 's3.eu-west-1.example.test', region: 'eu-central-1', service: 's3' },
  { host: 'vpce-1.execute-api.example.test', region: 'ap-southeast-2', service: 'execute-api' },
] as const;
const WITH_TOKEN = 'with-token.example.test';
const MINIO = STORES[0].host;
const secrets = new Map([[AKID, SECRET]]);
let world: World;
let session: Session;

beforeAll(async () => {
  world = await startWorld([...STORES.map(({ host }) => host), WITH_TOKEN]);
  await world.svc.secret('user/key', SECRET);
  await world.svc.secret('user/token', TOKEN);
  const common = { scheme: 'sigv4-resign', credential_ref: 'vault://user/key', access_key_id: AKID };
  for (const store of STORES) await world.svc.binding({ ...common, ...store });
  const temporary = { region: 'us-east-1', service: 's3', session_token_ref: 'vault://user/token' };
  await world.svc.binding({ ...common, ...temporary, host: WITH_TOKEN });
});
afterAll(() => world.stop());
beforeEach(async () => {
  world.upstream.reset();
  session = await world.svc.session();
});

const signedRequest = (request: SeenRequest): SignedRequest => ({
  method: request.method,
  target: request.target,
  headers: (name) => request.headers(name),
  body: request.body.raw,
});
const placeholder = (key = PLACEHOLDER): string =>
  `Authorization: AWS4-HMAC-SHA256 Credential=${key}/20200101/mars-1/s3/aws4_request, SignedHeaders=host;x-amz-date, Signature=${'0'.repeat(64)}`;

/** Sends one request; returns what the upstream received. */
async function send(host: string, start: string, lines: readonly string[], body = ''): Promise<SeenRequest> {
  const client = await connectThroughProxy(session, host);
  const length = body === '' ? [] : [`Content-Length: ${Buffer.byteLength(body, 'latin1')}`];
  const head = [`${start} HTTP/1.1`, `Host: ${host}`, ...lines, ...length, '', ''].join('\r\n');
  const reply = await client.exchange(head + body);
  client.close();
  expect([reply.status, reply.body.data.toString()]).toEqual([200, 'ok']);
  expect(world.upstream.last().text).not.toContain(SECRET);
  return world.upstream.last();
}

/** A URL signed with `key` and a made-up secret. */
const signedUrl = (path: string, key: string, more = ''): string =>
  `${path}?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=${key}%2F20200101%2Fmars-1%2Fs3%2Faws4_request` +
  `&X-Amz-Date=20200101T000000Z&X-Amz-Expires=900&X-Amz-SignedHeaders=host${more}&X-Amz-Signature=${'0'.repeat(64)}`;

describe.each(STORES)('$host', ({ host, region, service }) => {
  const admitted: Verdict = { ok: true, accessKeyId: AKID, region, service };

  it('gets requests signed for the region and service of its binding', async () => {
    const target = '/bucket/a%20b//c%3Dd/e+f/%C3%A4~?list-type=2&prefix=a%2Fb&empty=&delimiter';
    const seen = await send(host, `GET ${target}`, [placeholder(), 'X-Amz-Date: 20200101T000000Z']);
    expect(seen.target).toBe(target);
    expect(verifySigV4(signedRequest(seen), secrets, Date.now())).toEqual(admitted);
  });

  it('gets a newly computed body hash, whatever hash the client states', async () => {
    const stated = `X-Amz-Content-Sha256: ${'a'.repeat(64)}`;
    const seen = await send(host, 'PUT /bucket/object', [placeholder(), stated], 'the body');
    expect(seen.headers('x-amz-content-sha256')).toEqual([createHash('sha256').update('the body').digest('hex')]);
    expect(verifySigV4(signedRequest(seen), secrets, Date.now())).toEqual(admitted);
  });
});

describe('forms of S3', () => {
  const admitted: Verdict = { ok: true, accessKeyId: AKID, region: 'us-east-1', service: 's3' };

  it('a body that is not signed stays unsigned', async () => {
    const lines = [placeholder(), 'X-Amz-Content-Sha256: UNSIGNED-PAYLOAD'];
    const seen = await send(MINIO, 'PUT /bucket/object', lines, 'the body');
    expect(seen.headers('x-amz-content-sha256')).toEqual(['UNSIGNED-PAYLOAD']);
    expect(verifySigV4(signedRequest(seen), secrets, Date.now())).toEqual(admitted);
  });

  it('a body with an unsigned trailer passes unchanged', async () => {
    const lines = [
      placeholder(),
      'X-Amz-Content-Sha256: STREAMING-UNSIGNED-PAYLOAD-TRAILER',
      'Content-Encoding: aws-chunked',
      'X-Amz-Decoded-Content-Length: 4',
      'X-Amz-Trailer: x-amz-checksum-crc32',
    ];
    const body = '4\r\ndata\r\n0\r\nx-amz-checksum-crc32:rfPxYw==\r\n\r\n';
    const seen = await send(MINIO, 'PUT /bucket/object', lines, body);
    expect(seen.body.raw.toString('latin1')).toBe(body);
    expect(verifySigV4(signedRequest(seen), secrets, Date.now())).toEqual(admitted);
  });

  it('a body of signed chunks is re-signed chunk by chunk, including its trailer', async () => {
    const chunks = ['x'.repeat(8192), 'y'.repeat(100), ''];
    const lines = [
      placeholder(),
      'X-Amz-Content-Sha256: STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER',
      'Content-Encoding: aws-chunked',
      'X-Amz-Decoded-Content-Length: 8292',
      'X-Amz-Trailer: x-amz-checksum-crc32',
    ];
    const zeros = '0'.repeat(64);
    const body = chunks.map((data) => `${data.length.toString(16)};chunk-signature=${zeros}\r\n${data}`).join('\r\n');
    const trailer = `x-amz-checksum-crc32:AAAAAA==\r\nx-amz-trailer-signature:${zeros}\r\n\r\n`;
    const seen = await send(MINIO, 'PUT /bucket/object', lines, body + trailer);
    expect(verifySigV4(signedRequest(seen), secrets, Date.now())).toEqual(admitted);
    const got = seen.body.raw.toString('latin1');
    const seed = chunkSeed(SECRET, seen.header('authorization') ?? '', seen.header('x-amz-date') ?? '');
    const verifier = new ChunkVerifier(seed);
    const signatures = [...got.matchAll(/chunk-signature=([0-9a-f]{64})/g)].map(([, signature = '']) => signature);
    expect(chunks.map((data, index) => verifier.chunk(Buffer.from(data), signatures[index] ?? ''))).toEqual([
      true,
      true,
      true,
    ]);
    const last = /x-amz-trailer-signature:([0-9a-f]{64})\r\n\r\n$/.exec(got)?.[1] ?? '';
    expect(verifier.trailer(['x-amz-checksum-crc32:AAAAAA=='], last)).toBe(true);
    expect(got.replaceAll(/[0-9a-f]{64}/g, zeros)).toBe(body + trailer);
  });

  it('an unsupported form is refused by name, and nothing is sent', async () => {
    const client = await connectThroughProxy(session, MINIO);
    const form = 'STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD';
    const reply = await client.exchange(
      `PUT /o HTTP/1.1\r\nHost: ${MINIO}\r\nX-Amz-Content-Sha256: ${form}\r\nContent-Length: 2\r\n\r\nxx`,
    );
    client.close();
    expect(reply.status).toBe(501);
    expect(reply.json()).toMatchObject({ error: { code: 'signing_form_unsupported' } });
    expect(reply.body.data.toString()).toContain(form);
    expect(world.upstream.requests).toEqual([]);
  });

  it("a URL signed with the binding's key is re-signed, and keeps its other parameters", async () => {
    const more = '&response-content-type=text%2Fplain&partNumber=1';
    const seen = await send(MINIO, `GET ${signedUrl('/bucket/a%20b', AKID, more)}`, []);
    expect(verifyPresigned(signedRequest(seen), secrets, Date.now())).toEqual(admitted);
    expect(seen.target).toContain(more);
    expect(seen.target).toContain('&X-Amz-Expires=900&');
    expect(seen.headers('authorization')).toEqual([]);
  });

  it('a URL signed with another key is not changed, and no credential is added', async () => {
    const target = signedUrl('/bucket/theirs', 'AKIASOMEBODYELSE0000');
    const seen = await send(MINIO, `GET ${target}`, ['X-Note: 1']);
    expect(seen.text).toBe(`GET ${target} HTTP/1.1\r\nHost: ${MINIO}\r\nX-Note: 1\r\n\r\n`);
    await session.end();
    const types = (await world.svc.eventsOf(session)).map(({ type }) => type);
    expect(types).toEqual(['sandbox.proxy.foreign_credential_kept']);
  });

  it('temporary keys include their session token in the signature', async () => {
    const lines = [placeholder(), 'X-Amz-Security-Token: of-the-client'];
    const seen = await send(WITH_TOKEN, 'GET /bucket/object', lines);
    expect(seen.headers('x-amz-security-token')).toEqual([TOKEN]);
    expect(seen.header('authorization')).toMatch(/SignedHeaders=[^,]*x-amz-security-token/);
    expect(verifySigV4(signedRequest(seen), secrets, Date.now())).toEqual(admitted);
  });
});
