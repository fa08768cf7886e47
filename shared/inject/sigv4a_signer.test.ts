import { existsSync, readFileSync } from 'node:fs';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Secret } from '../model/secret.ts';
import { fieldValues } from '../net/http/http1_head.ts';
import { byteTextOf, latin1Bytes, latin1Text } from './byte_text.ts';
import { inject } from './inject.ts';
import { joinBytes } from './join_bytes.ts';
import type { InjectedRequest } from './outgoing_request.ts';
import { hexOf } from './sigv4_signer.ts';
import { derivePrivateNumber, derSignature } from './sigv4a_signer.ts';
import { PLACEHOLDER_SIGNATURE, sampleRequest, schemeBinding } from './testing/sample_requests.ts';
import {
  EXAMPLE_CONTEXT,
  readMessage,
  readSuite,
  SUITES_FILE,
  type SigningCredentials,
  type SigningVector,
} from './testing/signing_vectors.ts';
import { WebHash } from './web_hash.ts';

/** A case of the suite for version 4a. Its signatures are one of many that are valid. */
interface Vector extends SigningVector {
  readonly 'header-string-to-sign.txt': string;
  readonly 'query-string-to-sign.txt': string;
  readonly 'header-signature.txt': string;
  readonly 'public-key.json': { readonly X: string; readonly Y: string };
}

const { credentials: EXAMPLE } = EXAMPLE_CONTEXT;
const EXAMPLE_KEY = {
  X: 'b6618f6a65740a99e650b33b6b4b5bd0d43b176d721a3edfea7e7d2d56d936b1',
  Y: '865ed22a7eadc9c5cb9d2cbaca1b3699139fedc5043dc6661864218330c8e518',
};
const SCOPE = '20150830/service/aws4_request';
const QUERY = `X-Amz-Algorithm=AWS4-ECDSA-P256-SHA256&X-Amz-Credential=AKIDEXAMPLE%2F${SCOPE.replaceAll('/', '%2F')}&X-Amz-Date=20150830T123600Z&X-Amz-SignedHeaders=host&X-Amz-Expires=3600&X-Amz-Region-Set=us-east-1`;
const VANILLA: Vector = {
  'context.json': EXAMPLE_CONTEXT,
  'request.txt': 'GET / HTTP/1.1\nHost:example.amazonaws.com\n',
  'header-string-to-sign.txt': `AWS4-ECDSA-P256-SHA256\n20150830T123600Z\n${SCOPE}\ncf59db423e841c8b7e3444158185aa261b724a5c27cbe762676f3eed19f4dc02`,
  'query-string-to-sign.txt': `AWS4-ECDSA-P256-SHA256\n20150830T123600Z\n${SCOPE}\n890c4ed28c1a1ac10b5862719b537afbe392e987dc1aab1efa16fe7de41d3c81`,
  'header-signed-request.txt': `GET / HTTP/1.1\nHost:example.amazonaws.com\nX-Amz-Date:20150830T123600Z\nX-Amz-Region-Set:us-east-1\nAuthorization:AWS4-ECDSA-P256-SHA256 Credential=AKIDEXAMPLE/${SCOPE}, SignedHeaders=host;x-amz-date;x-amz-region-set, Signature=3046022100fddaaf816a31e30d04973875b13bc27b98da10907a3a1872fd5819a221334abc022100de2ee81d83b54f31efc82834de07e6cd4d5c6f25bfa08e0f29a15bb0977c343e\n\n`,
  'query-signed-request.txt': `GET /?${QUERY}&X-Amz-Signature=3045022100a28466db6c76223d5aa6ed436a8451b30e21ba0a076e7f2f943dd1f3d2816249022049e4b3746929cd2a2cb7b7984dbe0f5d40a300e7d9a7a7f1307c196b6f96b61a HTTP/1.1\nHost:example.amazonaws.com\n\n`,
  'header-signature.txt':
    '3045022018b4e277d0281864beb51d3600e23f88510ea5031d68ddfbb68614b82a5eb7d2022100effb9c5f22ed9ef3ae0ab243d21f06bce82365bbb79529a07b6888c343ae5f8c',
  'public-key.json': EXAMPLE_KEY,
};
const FORM = 'STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD';
const PADDED_PLACEHOLDER = PLACEHOLDER_SIGNATURE.padEnd(144, '*');

const bytesOf = (hex: string): Uint8Array<ArrayBuffer> =>
  Uint8Array.from(hex.match(/../g) ?? [], (byte) => Number.parseInt(byte, 16));
const base64Of = (hex: string): string =>
  btoa(latin1Text(bytesOf(hex)))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replaceAll('=', '');

/** Whether a DER signature in hex is that of a text, by the public key. */
async function isSignatureOf(text: string, signature: string, { X, Y } = EXAMPLE_KEY): Promise<boolean> {
  const algorithm = { name: 'ECDSA', namedCurve: 'P-256' };
  const jwk = { kty: 'EC', crv: 'P-256', x: base64Of(X), y: base64Of(Y) };
  const key = await crypto.subtle.importKey('jwk', jwk, algorithm, false, ['verify']);
  return crypto.subtle.verify(
    { name: 'ECDSA', hash: 'SHA-256' },
    key,
    pairOf(signature),
    latin1Bytes(byteTextOf(text)),
  );
}

/** The two numbers of a DER signature, 32 bytes each. */
function pairOf(signature: string): Uint8Array<ArrayBuffer> {
  const der = bytesOf(signature);
  const number = (at: number): Uint8Array => {
    const bytes = der.subarray(at + 2, at + 2 + (der[at + 1] ?? 0));
    return joinBytes([new Uint8Array(32), bytes]).subarray(-32);
  };
  return joinBytes([number(2), number(4 + (der[3] ?? 0))]);
}

interface Wanted {
  readonly region?: string;
  readonly service?: string;
  readonly target?: string;
  readonly lines?: readonly string[];
  readonly method?: string;
  readonly body?: string;
  readonly credentials?: SigningCredentials;
  readonly now?: string;
}

function sign(wanted: Wanted) {
  const { region = 'us-east-1', service = 'service', target = '/', lines = [], method = 'GET', body = '' } = wanted;
  const { credentials = EXAMPLE, now = '2015-08-30T12:36:00Z' } = wanted;
  const isChunked = lines.some((line) => line.includes('STREAMING-'));
  const known = body === '' ? ({ kind: 'none' } as const) : { kind: 'bytes' as const, chunks: [latin1Bytes(body)] };
  return inject({
    binding: schemeBinding({ scheme: 'sigv4-resign', accessKeyId: credentials.access_key_id, region, service }),
    request: sampleRequest(target, lines, method),
    credential: new Secret(credentials.secret_access_key),
    ...(credentials.token === undefined ? {} : { sessionToken: new Secret(credentials.token) }),
    body: isChunked ? { kind: 'stream' } : known,
    now: new Date(now),
    hash: WebHash,
  });
}

async function signed(wanted: Wanted): Promise<InjectedRequest> {
  const result = await sign(wanted);
  if (!result.ok) throw new Error(result.error.message);
  return result.value;
}

/** A client's Authorization line with a signature that is no signature. */
function clientLine(algorithm: string, names = 'host;x-amz-date;x-amz-region-set'): string {
  return `Authorization: ${algorithm} Credential=PLACEHOLDER/20150101/service/aws4_request, SignedHeaders=${names}, Signature=${PLACEHOLDER_SIGNATURE}`;
}

const headerOf = (request: InjectedRequest, name: string): string => fieldValues(request.fields, name).join();
const ECDSA = 'AWS4-ECDSA-P256-SHA256';

describe('the key of version 4a', () => {
  it.each([
    ['AKIDEXAMPLE', EXAMPLE.secret_access_key, '7efc8c0e65a324242818c5a50c891c6060b6a00717b7ba3cbe3c5d765be9259c'],
  ])('of %s is the published one', async (id, secret, number) => {
    expect((await derivePrivateNumber(id, secret, WebHash)).toString(16)).toBe(number);
  });

  it('is derived again if a candidate is above the order of the curve', async () => {
    const counters: number[] = [];
    class Hash extends WebHash {
      #counter = 0;
      override update(data: string | ArrayBuffer | ArrayBufferView): void {
        if (data instanceof Uint8Array) this.#counter = data.at(-5) ?? 0;
      }
      override digest(): Promise<Uint8Array> {
        counters.push(this.#counter);
        return Promise.resolve(this.#counter < 3 ? new Uint8Array(32).fill(0xff) : new Uint8Array(32).fill(7));
      }
    }
    expect(await derivePrivateNumber('AKID', 'secret', Hash)).toBe(BigInt(`0x${'07'.repeat(32)}`) + 1n);
    expect(counters).toEqual([1, 2, 3]);
  });
});

it.each([
  ['numbers without zeros in front', ['01'.padEnd(64, '2'), '7f'.padEnd(64, '3')]],
  ['a number that would be negative', ['80'.padEnd(64, '0'), 'ff'.repeat(32)]],
  ['short numbers', ['05'.padStart(64, '0'), '00'.repeat(31) + '80']],
])('a signature is DER: %s', (_what, [first = '', second = '']) => {
  const der = derSignature(bytesOf(first + second));
  expect(der[1]).toBe(der.length - 2);
  expect(hexOf(pairOf(hexOf(der)))).toBe(first + second);
});

function itSignsAsPublished(name: string, vector: Vector): void {
  const { credentials, region, service, timestamp, sign_body } = vector['context.json'];
  const { method, lines, body, target } = readMessage(vector['request.txt']);
  const context = { credentials, region, service, now: timestamp, method, body };

  it(`signs ${name} in the header as published`, async () => {
    const published = /Authorization:(.*)/.exec(vector['header-signed-request.txt'])?.[1] ?? '';
    const names = /SignedHeaders=([^,]+)/.exec(published)?.[1] ?? '';
    const digest = sign_body ? [`x-amz-content-sha256: ${PLACEHOLDER_SIGNATURE}`] : [];
    const all = [...lines, ...digest, 'X-Amz-Region-Set: eu-north-1', clientLine(ECDSA, names)];
    const [value = '', signature = ''] = headerOf(
      await signed({ ...context, target, lines: all }),
      'authorization',
    ).split(', Signature=');
    expect(value).toBe(published.split(', Signature=')[0]);
    expect(await isSignatureOf(vector['header-string-to-sign.txt'], signature, vector['public-key.json'])).toBe(true);
  });

  it(`signs ${name} as a presigned URL as published`, async () => {
    const published = readMessage(vector['query-signed-request.txt']).target;
    const stale = published
      .replace(/X-Amz-Signature=\w+/, `X-Amz-Signature=${PLACEHOLDER_SIGNATURE}`)
      .replace('X-Amz-Region-Set=us-east-1', 'X-Amz-Region-Set=eu-north-1');
    const [start, signature = ''] = (await signed({ ...context, target: stale, lines })).target.split(
      '&X-Amz-Signature=',
    );
    // The token comes last here.
    expect(start?.split('&').toSorted()).toEqual(published.split('&X-Amz-Signature=')[0]?.split('&').toSorted());
    expect(await isSignatureOf(vector['query-string-to-sign.txt'], signature, vector['public-key.json'])).toBe(true);
  });
}

describe('AWS signing vectors for version 4a, one as literals', () => {
  itSignsAsPublished('get-vanilla', VANILLA);

  it('the published signature is valid, and of no other text', async () => {
    const text = VANILLA['header-string-to-sign.txt'];
    expect(await isSignatureOf(text, VANILLA['header-signature.txt'])).toBe(true);
    expect(await isSignatureOf(`${text}0`, VANILLA['header-signature.txt'])).toBe(false);
  });
});

const SUITE = readSuite<Vector>('v4a', existsSync(SUITES_FILE) ? readFileSync(SUITES_FILE, 'utf8') : null);

describe('AWS signing vectors for version 4a, the whole suite', () => {
  it(`the data ${SUITE.state}`, () => {
    expect(SUITE.isAsExpected).toBe(true);
  });
  for (const [name, vector] of SUITE.vectors) itSignsAsPublished(name, vector);
});

describe('the version of a signature', () => {
  it.each([
    ['4 for a client without a signature', 'us-east-1', [], 'AWS4-HMAC-SHA256', ''],
    ['4 for a client that used it', 'us-east-1', [clientLine('AWS4-HMAC-SHA256')], 'AWS4-HMAC-SHA256', ''],
    ['4a for a client that used it', 'us-east-1', [clientLine(ECDSA)], ECDSA, 'us-east-1'],
    ["4a where the binding's region is a set", '*', [], ECDSA, '*'],
    [
      '4a where it is a list, also for a client of version 4',
      'us-east-1,eu-*',
      [clientLine('AWS4-HMAC-SHA256')],
      ECDSA,
      'us-east-1,eu-*',
    ],
  ])("is %s; the set of regions is the binding's", async (_what, region, more, algorithm, set) => {
    const request = await signed({ region, lines: ['X-Amz-Region-Set: cn-north-1', ...more] });
    expect(headerOf(request, 'authorization').split(' ')[0]).toBe(algorithm);
    expect(headerOf(request, 'x-amz-region-set')).toBe(set);
  });

  it("of a signed URL is the binding's too", async () => {
    const target = `/?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIDEXAMPLE%2F20150101%2Fus-east-1%2Fservice%2Faws4_request&X-Amz-Date=20150101T000000Z&X-Amz-SignedHeaders=host&X-Amz-Expires=60&X-Amz-Signature=${PLACEHOLDER_SIGNATURE}`;
    const query = new URL((await signed({ region: 'eu-*', target })).target, 'https://x.test').searchParams;
    expect([query.get('X-Amz-Algorithm'), query.get('X-Amz-Region-Set')]).toEqual([ECDSA, 'eu-*']);
    expect(query.get('X-Amz-Credential')).toBe(`AKIDEXAMPLE/${SCOPE}`);
  });

  it.each([
    ['a signed body of version 4', '*', clientLine('AWS4-HMAC-SHA256'), 'STREAMING-AWS4-HMAC-SHA256-PAYLOAD', ECDSA],
    ['a signed body of version 4a', 'us-east-1', clientLine('AWS4-HMAC-SHA256'), FORM, 'AWS4-HMAC-SHA256'],
    ['an unknown algorithm', 'us-east-1', clientLine('AWS4-ECDSA-P384-SHA384'), 'UNSIGNED-PAYLOAD', 'AWS4-HMAC-SHA256'],
  ])('that cannot be made of %s is refused with the one that can', async (_what, region, line, form, wanted) => {
    const result = await sign({ region, service: 's3', lines: [line, `x-amz-content-sha256: ${form}`] });
    expect(result.ok ? null : result.error).toMatchObject({
      reason: 'signing_form_unsupported',
      message: expect.stringContaining(`configure the client for ${wanted}`),
    });
  });
});

const startBody = (form: string): Promise<InjectedRequest> =>
  signed({
    service: 's3',
    method: 'PUT',
    lines: ['Content-Encoding: aws-chunked', `x-amz-content-sha256: ${form}`, clientLine(ECDSA)],
  });

async function passBody(request: InjectedRequest, body: string, cuts: readonly number[]): Promise<string> {
  const out: Uint8Array[] = [];
  const bytes = latin1Bytes(body);
  const edges = [0, ...cuts.toSorted((one, other) => one - other), bytes.length];
  for (const [at, from] of edges.slice(0, -1).entries()) {
    const step = await request.bodyTransform?.push(bytes.subarray(from, edges[at + 1]));
    if (step?.ok !== true) throw new Error(step?.error.message ?? 'the body is not transformed');
    out.push(...step.value);
  }
  const last = await request.bodyTransform?.end();
  if (last?.ok !== true) throw new Error(last?.error.message ?? 'the body does not end');
  return latin1Text(joinBytes([...out, ...last.value]));
}

const sha256 = async (text: string): Promise<string> =>
  hexOf(new Uint8Array(await crypto.subtle.digest('SHA-256', latin1Bytes(text))));

const chunkLine = (data: string, signature: string): string =>
  `${data.length.toString(16)};chunk-signature=${signature}\r\n`;

describe('an aws-chunked body of version 4a', () => {
  it('has the same length, and a chain of valid signatures that ends with the trailer', async () => {
    const chunks = ['a'.repeat(65_536), 'b'.repeat(1024), ''];
    const trailer = 'x-amz-checksum-crc32c:sOO8/Q==';
    const client = [
      ...chunks.map((data) => `${chunkLine(data, PADDED_PLACEHOLDER)}${data === '' ? '' : `${data}\r\n`}`),
      `${trailer}\r\nx-amz-trailer-signature:${PADDED_PLACEHOLDER}\r\n\r\n`,
    ].join('');
    const request = await startBody(`${FORM}-TRAILER`);
    const sent = await passBody(request, client, [1, 70, 65_000]);
    expect(sent).toHaveLength(client.length);
    const found = [...sent.matchAll(/signature[=:]([0-9a-f]+)\**\r\n/g)].map(([, signature = '']) => signature);
    expect(found).toHaveLength(4);
    let previous = headerOf(request, 'authorization').split('Signature=')[1] ?? '';
    const parts = [...chunks.map((data) => ['PAYLOAD', '', data] as const), ['TRAILER', `${trailer}\n`] as const];
    for (const [at, [part, ...texts]] of parts.entries()) {
      const hashes = await Promise.all(texts.map(sha256));
      const text = [`${ECDSA}-${part}`, '20150830T123600Z', '20150830/s3/aws4_request', previous, ...hashes].join('\n');
      expect(await isSignatureOf(text, found[at] ?? '')).toBe(true);
      previous = found[at] ?? '';
    }
  });

  it('keeps its length however it arrives', async () => {
    const client = `5;chunk-signature=${PADDED_PLACEHOLDER}\r\nhello\r\n0;chunk-signature=${PADDED_PLACEHOLDER}\r\n\r\n`;
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(client.length), { maxLength: 4 }), async (cuts) => {
        expect(await passBody(await startBody(FORM), client, cuts)).toHaveLength(client.length);
      }),
      { numRuns: 20 },
    );
  });

  it('of which a signature has another length is refused', async () => {
    const step = await (
      await startBody(FORM)
    ).bodyTransform?.push(latin1Bytes(`5;chunk-signature=${PLACEHOLDER_SIGNATURE}\r\nhello`));
    expect(step?.ok === false ? step.error.message : '').toContain('a chunk without a chunk-signature');
  });
});
