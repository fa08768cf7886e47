import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Secret } from '../model/secret.ts';
import { fieldValues } from '../net/http/http1_head.ts';
import { latin1Bytes, latin1Text } from './byte_text.ts';
import { inject } from './inject.ts';
import type { BodyTransform, InjectedRequest } from './outgoing_request.ts';
import { PLACEHOLDER_SIGNATURE, schemeBinding, sampleRequest } from './testing/sample_requests.ts';
import { joinBytes } from './join_bytes.ts';
import { WebHash } from './web_hash.ts';
import { MAX_SIGNED_CHUNK_BYTES } from './sigv4_chunks.ts';

/** The example of the S3 documentation, "Signature calculations for the Authorization header: chunked upload". */
const SIGNED_HEADERS =
  'content-encoding;content-length;host;x-amz-content-sha256;x-amz-date;x-amz-decoded-content-length;x-amz-storage-class';
const TRAILER_SIGNED_HEADERS =
  'content-encoding;host;x-amz-content-sha256;x-amz-date;x-amz-decoded-content-length;x-amz-storage-class;x-amz-trailer';

async function injectChunked(form: string, lines: readonly string[], signedHeaders: string): Promise<InjectedRequest> {
  const result = await inject({
    binding: schemeBinding({
      scheme: 'sigv4-resign',
      accessKeyId: 'AKIAIOSFODNN7EXAMPLE',
      region: 'us-east-1',
      service: 's3',
    }),
    request: sampleRequest(
      '/examplebucket/chunkObject.txt',
      [
        'Host: s3.amazonaws.com',
        'x-amz-storage-class: REDUCED_REDUNDANCY',
        'Content-Encoding: aws-chunked',
        'x-amz-decoded-content-length: 66560',
        ...lines,
        `x-amz-content-sha256: ${form}`,
        `Authorization: AWS4-HMAC-SHA256 Credential=PLACEHOLDER/20130101/eu-north-1/s3/aws4_request,SignedHeaders=${signedHeaders},Signature=${PLACEHOLDER_SIGNATURE}`,
      ],
      'PUT',
    ),
    credential: new Secret('wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY'),
    body: { kind: 'stream' },
    now: new Date('2013-05-24T00:00:00Z'),
    hash: WebHash,
  });
  if (!result.ok) throw new Error(result.error.message);
  return result.value;
}

function withTrailer(): Promise<InjectedRequest> {
  return injectChunked(
    'STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER',
    ['x-amz-trailer: x-amz-checksum-crc32c'],
    TRAILER_SIGNED_HEADERS,
  );
}

function withoutTrailer(): Promise<InjectedRequest> {
  return injectChunked('STREAMING-AWS4-HMAC-SHA256-PAYLOAD', ['Content-Length: 66824'], SIGNED_HEADERS);
}

function chunk(size: number, signature: string): string {
  return `${size.toString(16)};chunk-signature=${signature}\r\n${'a'.repeat(size)}${size === 0 ? '' : '\r\n'}`;
}

const LAST_OF_PAYLOAD = '\r\n';

function body(signatures: readonly [string, string, string], end: string): string {
  return chunk(65_536, signatures[0]) + chunk(1024, signatures[1]) + chunk(0, signatures[2]) + end;
}

const PLACEHOLDERS = [PLACEHOLDER_SIGNATURE, PLACEHOLDER_SIGNATURE, PLACEHOLDER_SIGNATURE] as const;

const PUBLISHED_PAYLOAD = body(
  [
    'ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648',
    '0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497',
    'b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9',
  ],
  LAST_OF_PAYLOAD,
);

function trailer(signature: string): string {
  return `x-amz-checksum-crc32c:sOO8/Q==\r\nx-amz-trailer-signature:${signature}\r\n\r\n`;
}

const PUBLISHED_TRAILER = body(
  [
    'b474d8862b1487a5145d686f57f013e54db672cee1c953b3010fb58501ef5aa2',
    '1c1344b170168f8e65b41376b44b20fe354e373826ccbbe2c1d40a8cae51e5c7',
    '2ca2aba2005185cf7159c6277faf83795951dd77a3a99e6e65d5c9f85863f992',
  ],
  trailer('d81f82fc3505edab99d459891051a732e8730629a2e4a59689829ca17fe2e435'),
);

/** The re-signed body, for input split at `cuts`; or the refusal's reason. */
async function resign(transform: BodyTransform | undefined, text: string, cuts: readonly number[]): Promise<string> {
  if (transform === undefined) throw new Error('the request has no body transform');
  const bytes = latin1Bytes(text);
  const output: Uint8Array[] = [];
  const ends = [...cuts].map((cut) => cut % (bytes.length + 1)).toSorted((a, b) => a - b);
  let from = 0;
  for (const end of [...ends, bytes.length]) {
    const step = await transform.push(bytes.subarray(from, end));
    if (!step.ok) return step.error.reason;
    output.push(...step.value);
    from = end;
  }
  const last = await transform.end();
  return last.ok ? latin1Text(joinBytes([...output, ...last.value])) : last.error.reason;
}

describe('chunk signatures', () => {
  it('signs the seed request of the S3 documentation as published', async () => {
    const [authorization] = fieldValues((await withoutTrailer()).fields, 'authorization');
    expect(authorization).toContain('Signature=4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9');
  });

  it('signs the seed request with a trailer as published', async () => {
    const [authorization] = fieldValues((await withTrailer()).fields, 'authorization');
    expect(authorization).toContain('Signature=106e2a8a18243abcf37539882f36619c00e2dfc72633413f02d3b74544bfeb8e');
  });

  it('signs the chunks of the S3 documentation as published', async () => {
    const { bodyTransform } = await withoutTrailer();
    expect(await resign(bodyTransform, body(PLACEHOLDERS, LAST_OF_PAYLOAD), [])).toBe(PUBLISHED_PAYLOAD);
  });

  it('signs chunks and trailer of the S3 documentation as published', async () => {
    const { bodyTransform } = await withTrailer();
    const sent = body(PLACEHOLDERS, trailer(PLACEHOLDER_SIGNATURE));
    expect(await resign(bodyTransform, sent, [])).toBe(PUBLISHED_TRAILER);
  });

  it('gives the same bytes for any split of the body', async () => {
    const sent = body(PLACEHOLDERS, trailer(PLACEHOLDER_SIGNATURE));
    const edge = fc.oneof(
      fc.nat(sent.length),
      fc.integer({ min: 65_530, max: 65_710 }),
      fc.integer({ min: sent.length - 240, max: sent.length }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(edge, { maxLength: 8 }), async (cuts) => {
        const { bodyTransform } = await withTrailer();
        expect(await resign(bodyTransform, sent, cuts)).toBe(PUBLISHED_TRAILER);
      }),
      { numRuns: 30 },
    );
  });

  it('keeps the length of the body, so that Content-Length stays correct', async () => {
    const { bodyTransform } = await withoutTrailer();
    expect((await resign(bodyTransform, body(PLACEHOLDERS, LAST_OF_PAYLOAD), [])).length).toBe(66_824);
  });

  it('holds a chunk that arrives byte by byte in one block', async () => {
    const { bodyTransform } = await withoutTrailer();
    const output: Uint8Array[] = [];
    for (const byte of latin1Bytes(chunk(10_000, PLACEHOLDER_SIGNATURE))) {
      const step = await bodyTransform?.push(Uint8Array.of(byte));
      if (step?.ok === true) output.push(...step.value);
    }
    expect(output.map(({ length }) => length)).toEqual(['2710;chunk-signature='.length + 64 + 2, 10_000, 2]);
  });

  it('does not keep the caller’s buffer, which may be reused', async () => {
    const { bodyTransform } = await withoutTrailer();
    const bytes = latin1Bytes(body(PLACEHOLDERS, LAST_OF_PAYLOAD));
    const half = bytes.slice(0, 40_000);
    const first = await bodyTransform?.push(half);
    half.fill(0);
    const second = await bodyTransform?.push(bytes.subarray(40_000));
    if (first?.ok !== true || second?.ok !== true) throw new Error('refused');
    expect(latin1Text(joinBytes([...first.value, ...second.value]))).toBe(PUBLISHED_PAYLOAD);
  });
});

/** The body with zeros for its signatures if it is valid, according to a slow second parser; else null. */
function slowReading(text: string, form: 'plain' | 'trailer'): string | null {
  let rest = text;
  let read = '';
  for (let size = -1; size !== 0;) {
    const line = /^([0-9a-f]{1,8});chunk-signature=[0-9a-f]{64}\r\n/i.exec(rest);
    if (line === null) return null;
    size = Number.parseInt(line[1] ?? '', 16);
    const data = rest.slice(line[0].length, line[0].length + size);
    const isLastWithTrailer = size === 0 && form === 'trailer';
    const end = isLastWithTrailer ? '' : '\r\n';
    rest = rest.slice(line[0].length + size);
    if (size > MAX_SIGNED_CHUNK_BYTES || data.length < size || !rest.startsWith(end)) return null;
    rest = rest.slice(end.length);
    read += `${line[1]};chunk-signature=${PLACEHOLDER_SIGNATURE}\r\n${data}${end}`;
  }
  if (form === 'plain') return rest === '' ? read : null;
  const [, lines = '', name] =
    /^((?:[^\r\n:]+:[^\r\n]*\r\n)*)(x-amz-trailer-signature:[ \t]*)[0-9a-f]{64}\r\n\r\n$/i.exec(rest) ?? [];
  return name === undefined ? null : `${read}${lines}${name}${PLACEHOLDER_SIGNATURE}\r\n\r\n`;
}

describe('any body that claims to be a stream of signed chunks', () => {
  const parts = fc.oneof(
    fc.constantFrom(
      chunk(3, PLACEHOLDER_SIGNATURE),
      chunk(17, PLACEHOLDER_SIGNATURE).replace('11;', '0011;'),
      chunk(0, PLACEHOLDER_SIGNATURE),
      trailer(PLACEHOLDER_SIGNATURE),
      '\r\n',
      ';chunk-signature=',
      'x-amz-checksum-crc32c:AAAAAA==\r\n',
      'a',
      '\n',
    ),
    fc.string({ maxLength: 3, unit: fc.constantFrom('0', 'f', ';', '\r', '\n', ':', 'a') }),
  );
  const bodies = fc.oneof(
    fc.array(parts, { maxLength: 6 }).map((list) => list.join('')),
    fc
      .tuple(fc.array(parts, { maxLength: 2 }), fc.constantFrom(LAST_OF_PAYLOAD, trailer(PLACEHOLDER_SIGNATURE)))
      .map(([list, end]) => chunk(3, PLACEHOLDER_SIGNATURE) + list.join('') + chunk(0, PLACEHOLDER_SIGNATURE) + end),
  );

  it.each(['plain', 'trailer'] as const)('is read like a slow second parser does (%s)', async (form) => {
    const verdicts = new Set<boolean>();
    await fc.assert(
      fc.asyncProperty(bodies, fc.array(fc.nat(400), { maxLength: 4 }), async (text, cuts) => {
        const { bodyTransform } = await (form === 'plain' ? withoutTrailer() : withTrailer());
        const got = await resign(bodyTransform, text, cuts);
        const due = slowReading(text, form);
        verdicts.add(due !== null);
        const refused = got === 'invalid_request' || got === 'body_too_large';
        const zeroed = refused
          ? null
          : got.replaceAll(/(signature[=:][ \t]*)[0-9a-f]{64}/gi, `$1${PLACEHOLDER_SIGNATURE}`);
        expect(zeroed).toBe(due);
      }),
      { numRuns: 200 },
    );
    expect(verdicts.size).toBe(2);
  });
});

describe('a body that is not a stream of signed chunks', () => {
  const one = chunk(3, PLACEHOLDER_SIGNATURE);
  const last = chunk(0, PLACEHOLDER_SIGNATURE);
  const cases: Readonly<Record<string, readonly [form: 'plain' | 'trailer', text: string, reason: string]>> = {
    'ends before its last chunk': ['plain', one, 'invalid_request'],
    'ends within a chunk': ['plain', one.slice(0, -3), 'invalid_request'],
    'goes on after its last chunk': ['plain', `${last}\r\nGET / HTTP/1.1`, 'invalid_request'],
    'has a chunk without a signature': ['plain', '3\r\naaa\r\n', 'invalid_request'],
    'has a signature that is too short': ['plain', '3;chunk-signature=00\r\naaa\r\n', 'invalid_request'],
    'has no line end after its data': ['plain', `${one.slice(0, -2)}xx`, 'invalid_request'],
    'never ends its line': ['plain', '0'.repeat(300), 'invalid_request'],
    'has a size that is no number': ['plain', chunk(3, PLACEHOLDER_SIGNATURE).replace('3;', '-3;'), 'invalid_request'],
    'has a trailer without its signature': [
      'trailer',
      `${last}x-amz-checksum-crc32c:sOO8/Q==\r\n\r\n`,
      'invalid_request',
    ],
    'has a bare carriage return in its trailer': [
      'trailer',
      `${last}\rx-amz-checksum-crc32c:sOO8/Q==\r\nx-amz-trailer-signature:${PLACEHOLDER_SIGNATURE}\r\n\r\n`,
      'invalid_request',
    ],
    'has a trailer that never ends': ['trailer', `${last}${'x'.repeat(20_000)}`, 'invalid_request'],
    'has a chunk larger than what is held': [
      'plain',
      `${(MAX_SIGNED_CHUNK_BYTES + 1).toString(16)};chunk-signature=${PLACEHOLDER_SIGNATURE}\r\n`,
      'body_too_large',
    ],
  };
  for (const [name, [form, text, reason]] of Object.entries(cases)) {
    it(`refuses one that ${name}`, async () => {
      const { bodyTransform } = await (form === 'plain' ? withoutTrailer() : withTrailer());
      expect(await resign(bodyTransform, text, [])).toBe(reason);
    });
  }
});
