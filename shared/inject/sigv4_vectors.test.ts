import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { inject } from './inject.ts';
import { PLACEHOLDER_SIGNATURE, schemeBinding, sampleRequest } from './testing/sample_requests.ts';
import { EXAMPLE_CONTEXT, readMessage, readSuite, SUITES_FILE, type SigningVector } from './testing/signing_vectors.ts';
import { WebHash } from './web_hash.ts';
import { Secret } from '../model/secret.ts';

const SCOPE = 'AKIDEXAMPLE/20150830/us-east-1/service/aws4_request';
const QUERY_SCOPE = SCOPE.replaceAll('/', '%2F');

/** A few cases of the suite, so that this file always checks published values. */
const LITERAL_VECTORS: Readonly<Record<string, SigningVector>> = {
  'get-header-key-duplicate': {
    'context.json': EXAMPLE_CONTEXT,
    'request.txt':
      'GET / HTTP/1.1\nHost:example.amazonaws.com\nMy-Header1:value2\nMy-Header1:value2\nMy-Header1:value1\n',
    'header-signed-request.txt': `GET / HTTP/1.1\nHost:example.amazonaws.com\nMy-Header1:value2\nMy-Header1:value2\nMy-Header1:value1\nX-Amz-Date:20150830T123600Z\nAuthorization:AWS4-HMAC-SHA256 Credential=${SCOPE}, SignedHeaders=host;my-header1;x-amz-date, Signature=c9d5ea9f3f72853aea855b47ea873832890dbdd183b4468f858259531a5138ea\n\n`,
    'query-signed-request.txt': `GET /?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=${QUERY_SCOPE}&X-Amz-Date=20150830T123600Z&X-Amz-SignedHeaders=host%3Bmy-header1&X-Amz-Expires=3600&X-Amz-Signature=3349ee0b81b4b589da0ff28a395c3591e04de515651dd74f298fa992d1507a97 HTTP/1.1\nHost:example.amazonaws.com\nMy-Header1:value2\nMy-Header1:value2\nMy-Header1:value1\n\n`,
  },
  'get-utf8': {
    'context.json': EXAMPLE_CONTEXT,
    'request.txt': 'GET /\u1234 HTTP/1.1\nHost:example.amazonaws.com\n',
    'header-signed-request.txt': `GET /\u1234 HTTP/1.1\nHost:example.amazonaws.com\nX-Amz-Date:20150830T123600Z\nAuthorization:AWS4-HMAC-SHA256 Credential=${SCOPE}, SignedHeaders=host;x-amz-date, Signature=8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85\n\n`,
    'query-signed-request.txt': `GET /\u1234?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=${QUERY_SCOPE}&X-Amz-Date=20150830T123600Z&X-Amz-SignedHeaders=host&X-Amz-Expires=3600&X-Amz-Signature=10eae3f14a260bd3911cc6d008d3c576d143b05b62f09782a7a4b37f52178e44 HTTP/1.1\nHost:example.amazonaws.com\n\n`,
  },
};

async function signVector(vector: SigningVector, target: string, lines: readonly string[]) {
  const { credentials, region, service, timestamp } = vector['context.json'];
  const { method, body } = readMessage(vector['request.txt']);
  const result = await inject({
    binding: schemeBinding({ scheme: 'sigv4-resign', accessKeyId: credentials.access_key_id, region, service }),
    request: sampleRequest(target, lines, method),
    credential: new Secret(credentials.secret_access_key),
    ...(credentials.token === undefined ? {} : { sessionToken: new Secret(credentials.token) }),
    body: body === '' ? { kind: 'none' } : { kind: 'bytes', chunks: [new TextEncoder().encode(body)] },
    now: new Date(timestamp),
    hash: WebHash,
  });
  if (!result.ok) throw new Error(result.error.message);
  return result.value;
}

/** The signature of a client with a placeholder secret: correct headers, but an invalid signature. */
function placeholderLines(vector: SigningVector): string[] {
  const { lines } = readMessage(vector['request.txt']);
  const names = /SignedHeaders=([^,]+)/.exec(vector['header-signed-request.txt'])?.[1] ?? '';
  const digest = vector['context.json'].sign_body ? [`x-amz-content-sha256: ${PLACEHOLDER_SIGNATURE}`] : [];
  const value = `AWS4-HMAC-SHA256 Credential=PLACEHOLDER/20150101/eu-north-1/s3/aws4_request, SignedHeaders=${names}, Signature=${PLACEHOLDER_SIGNATURE}`;
  return [...lines, ...digest, 'X-Amz-Date: 20150101T000000Z', `Authorization: ${value}`];
}

function itSignsAsPublished(name: string, vector: SigningVector): void {
  it(`signs ${name} in the header as published`, async () => {
    const expected = /Authorization:(.*)/.exec(vector['header-signed-request.txt'])?.[1];
    const request = await signVector(vector, readMessage(vector['request.txt']).target, placeholderLines(vector));
    expect(request.fields.filter((field) => field.name === 'authorization').map((field) => field.value)).toEqual([
      expected,
    ]);
  });
  it(`signs ${name} as a presigned URL as published`, async () => {
    const published = readMessage(vector['query-signed-request.txt']);
    const stale = published.target
      .replace(/X-Amz-Signature=\w+/, `X-Amz-Signature=${PLACEHOLDER_SIGNATURE}`)
      .replace('20150830T123600Z', '20150101T000000Z');
    const { lines } = readMessage(vector['request.txt']);
    expect((await signVector(vector, stale, lines)).target).toBe(published.target);
  });
}

describe('AWS signing vectors, a few as literals', () => {
  for (const [name, vector] of Object.entries(LITERAL_VECTORS)) itSignsAsPublished(name, vector);
});

const SUITE = readSuite('v4', existsSync(SUITES_FILE) ? readFileSync(SUITES_FILE, 'utf8') : null);

describe('AWS signing vectors, the whole suite', () => {
  it(`the data ${SUITE.state}`, () => {
    expect(SUITE.isAsExpected).toBe(true);
  });
  for (const [name, vector] of SUITE.vectors) itSignsAsPublished(name, vector);
});
