import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { HostBinding } from '../model/host_binding.ts';
import { Secret } from '../model/secret.ts';
import { fieldValues } from '../net/http/http1_head.ts';
import { latin1Bytes } from './byte_text.ts';
import { needsBufferedBody } from './body_need.ts';
import { emitDecision } from './emit_decision.ts';
import { inject } from './inject.ts';
import type { PayloadBody } from './outgoing_request.ts';
import { findPresentedCredential } from './find_presented.ts';
import { linesOf, PLACEHOLDER_SIGNATURE, schemeBinding, sampleRequest } from './testing/sample_requests.ts';
import { WebHash } from './web_hash.ts';

const KEY_ID = 'AKIAIOSFODNN7EXAMPLE';
const S3 = { scheme: 'sigv4-resign', accessKeyId: KEY_ID, region: 'us-east-1', service: 's3' } as const;
const INJECT = schemeBinding(S3);
const SWAP = schemeBinding(S3, { mechanism: 'sentinel-swap', sentinel: 'AKIASENTINEL' });
const OTHER = schemeBinding({ ...S3, service: 'execute-api' });
const SECRET_KEY = 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY';
const EMPTY_HASH = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855';

interface Call {
  readonly method?: string;
  readonly target?: string;
  readonly lines?: readonly string[];
  readonly body?: PayloadBody;
  readonly binding?: HostBinding;
  readonly sessionToken?: string;
  readonly accessKeyId?: string;
  readonly secretKey?: string;
}

function resultOf(call: Call) {
  const { method = 'GET', target = '/test.txt', lines = [], sessionToken, accessKeyId } = call;
  return Promise.resolve(
    inject({
      binding: call.binding ?? INJECT,
      request: sampleRequest(target, ['Host: examplebucket.s3.amazonaws.com', ...lines], method),
      credential: new Secret(call.secretKey ?? SECRET_KEY),
      ...(sessionToken === undefined ? {} : { sessionToken: new Secret(sessionToken) }),
      ...(accessKeyId !== undefined && { accessKeyId }),
      body: call.body ?? { kind: 'none' },
      now: new Date('2013-05-24T00:00:00Z'),
      hash: WebHash,
    }),
  );
}

async function sign(call: Call) {
  const result = await resultOf(call);
  if (!result.ok) throw new Error(result.error.message);
  return result.value;
}

async function reasonOf(call: Call): Promise<string> {
  const result = await resultOf(call);
  return result.ok ? 'signed' : result.error.reason;
}

async function header(name: string, call: Call): Promise<string | undefined> {
  const values = fieldValues((await sign(call)).fields, name);
  expect(values.length).toBeLessThanOrEqual(1);
  return values[0];
}

function authorization(keyId: string, signedHeaders = 'host;x-amz-date', algorithm = 'AWS4-HMAC-SHA256'): string {
  return `Authorization: ${algorithm} Credential=${keyId}/20200101/eu-north-1/ec2/aws4_request, SignedHeaders=${signedHeaders}, Signature=${PLACEHOLDER_SIGNATURE}`;
}

function presignedTarget(keyId: string, more = ''): string {
  return `/test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=${keyId}%2F20200101%2Feu-north-1%2Fs3%2Faws4_request&X-Amz-Date=20200101T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host${more}&X-Amz-Signature=${PLACEHOLDER_SIGNATURE}`;
}

function version2(keyId: string): string {
  return `/a?AWSAccessKeyId=${keyId}&Expires=1&Signature=abc%3D`;
}

function findPresented(...lines: string[]): string {
  return findPresentedCredential(SWAP, sampleRequest('/', lines));
}

function bytes(text: string): PayloadBody {
  return { kind: 'bytes', chunks: [latin1Bytes(text.slice(0, 3)), latin1Bytes(text.slice(3))] };
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

/** The examples of the S3 documentation, "Authenticating requests (AWS Signature Version 4)". */
describe('sigv4-resign: the examples of the S3 documentation', () => {
  const examples: readonly (readonly [what: string, call: Call, signature: string])[] = [
    [
      'GET of an object with a Range that the client signs',
      { lines: ['Range: bytes=0-9', authorization('PLACEHOLDER', 'host;range;x-amz-content-sha256;x-amz-date')] },
      'f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41',
    ],
    [
      'PUT of an object',
      {
        method: 'PUT',
        target: '/test$file.text',
        lines: [
          'Date: Fri, 24 May 2013 00:00:00 GMT',
          'x-amz-storage-class: REDUCED_REDUNDANCY',
          authorization('PLACEHOLDER', 'date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class'),
        ],
        body: bytes('Welcome to Amazon S3.'),
      },
      '98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd',
    ],
    [
      'GET of a sub-resource',
      { target: '/?lifecycle' },
      'fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543',
    ],
    [
      'GET of a list',
      { target: '/?max-keys=2&prefix=J' },
      '34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7',
    ],
  ];
  for (const [what, call, signature] of examples) {
    it(`signs ${what} as published`, async () => {
      expect(await header('authorization', call)).toMatch(new RegExp(`Signature=${signature}$`));
    });
  }

  it('signs a presigned URL as published, keeping the order of its parameters', async () => {
    const published = presignedTarget(KEY_ID)
      .replace('20200101%2Feu-north-1', '20130524%2Fus-east-1')
      .replace('20200101T', '20130524T')
      .replace(PLACEHOLDER_SIGNATURE, 'aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404');
    expect((await sign({ target: presignedTarget(KEY_ID) })).target).toBe(published);
  });
});

describe('sigv4-resign: headers', () => {
  it('replaces every trace of the client’s own signing and keeps the rest in order', async () => {
    const lines = [
      'X-First: 1',
      authorization('PLACEHOLDER'),
      'X-AMZ-DATE: 20200101T000000Z',
      'x-amz-content-sha256: ffff',
      'X-Amz-Security-Token: mine',
      'authorization: Bearer mine',
      'X-Last: 2',
    ];
    const out = linesOf(await sign({ lines }));
    expect(out.slice(0, 2)).toEqual(['X-First: 1', 'X-Last: 2']);
    expect(out.slice(2).map((line) => line.split(':')[0])).toEqual([
      'X-Amz-Date',
      'x-amz-content-sha256',
      'Authorization',
    ]);
    expect(out.join('\n')).not.toMatch(/mine|PLACEHOLDER|2020|ffff/);
  });

  it('takes region, service and key from the binding and nothing from the request', async () => {
    const scope = 'Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request';
    expect(await header('authorization', { lines: [authorization('PLACEHOLDER')] })).toContain(scope);
  });

  it('never sends the secret key', async () => {
    for (const call of [{}, { target: presignedTarget(KEY_ID) }]) {
      expect(JSON.stringify(await sign(call))).not.toContain('wJalrXUtnFEMI');
    }
  });

  it("hashes the body and ignores the client's stated hash", async () => {
    const call: Call = { method: 'PUT', lines: [`x-amz-content-sha256: ${EMPTY_HASH}`], body: bytes('payload') };
    expect(await header('x-amz-content-sha256', call)).toBe(sha256('payload'));
    expect(await header('x-amz-content-sha256', {})).toBe(EMPTY_HASH);
  });

  it('states the hash to a service other than S3 only if the client does', async () => {
    expect(await header('x-amz-content-sha256', { binding: OTHER })).toBeUndefined();
    expect(await header('x-amz-content-sha256', { binding: OTHER, lines: ['x-amz-content-sha256: x'] })).toBe(
      EMPTY_HASH,
    );
  });

  it('sends and signs the session token', async () => {
    expect(await header('x-amz-security-token', { sessionToken: 'TOKEN' })).toBe('TOKEN');
    expect(await header('authorization', { sessionToken: 'TOKEN' })).toContain('x-amz-date;x-amz-security-token,');
  });

  it('names the access key id of the key set, not that of the binding', async () => {
    expect(await header('authorization', { accessKeyId: 'ASIAMINTED' })).toMatch(
      /^AWS4-HMAC-SHA256 Credential=ASIAMINTED\//,
    );
    const presigned =
      '/k?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2Fx&X-Amz-Signature=00';
    expect((await sign({ target: presigned, accessKeyId: 'ASIAMINTED' })).target).toContain('Credential=ASIAMINTED%2F');
  });

  it('does not sign a header that a hop may change, even if the client did', async () => {
    const lines = [
      'Accept-Encoding: gzip',
      'User-Agent: x',
      authorization('P', 'accept-encoding;host;user-agent;x-gone'),
    ];
    expect(await header('authorization', { lines })).toContain('SignedHeaders=host;x-amz-content-sha256;x-amz-date,');
  });

  it('signs every x-amz header, so that none can be added in transit', async () => {
    expect(await header('authorization', { lines: ['X-Amz-Acl: private'] })).toContain('host;x-amz-acl;x-amz-content');
  });

  it("signs S3 keys by their decoded form, in any spelling of the client's", async () => {
    const spelled = await Promise.all(
      ['/a%20b%2Fc/~%C3%A9+', '/a%20b/c/%7e%c3%a9%2B'].map((target) => header('authorization', { target })),
    );
    expect(spelled[0]).toBe(spelled[1]);
    expect(await header('authorization', { target: '/a//b/../c' })).not.toBe(
      await header('authorization', { target: '/a/c' }),
    );
  });

  it('signs the path of other services normalised and encoded again', async () => {
    const [raw, plain] = await Promise.all(
      ['/a//b/../c', '/a/c'].map((target) => header('authorization', { binding: OTHER, target })),
    );
    expect(raw).toBe(plain);
  });

  it('refuses a fragment and a target that is not in origin form', async () => {
    expect(await reasonOf({ target: '/a#b' })).toBe('invalid_request');
    expect(await reasonOf({ target: '*' })).toBe('invalid_request');
  });

  it.each(['/?session', '/?session=', '/?x-id=CreateSession&%73ession', '/?SESSION'])(
    'is not given for a session of S3 Express, whose reply has a key: %s',
    async (target) => {
      const binding = schemeBinding({ ...S3, service: 's3express' });
      const result = await resultOf({ target, binding });
      expect(result.ok ? '' : result.error.message).toContain('AWS_S3_DISABLE_EXPRESS_SESSION_AUTH=true');
      expect([await reasonOf({ target }), await reasonOf({ target: '/a?x=session', binding })]).toEqual([
        'signed',
        'signed',
      ]);
    },
  );

  it('is not given for such a session at a host of S3 Express, if the binding names S3', async () => {
    const host = 'a--eun1-az1--x-s3.s3express-eun1-az1.eu-north-1.amazonaws.com';
    const resultAt = (target: string) =>
      inject({
        binding: INJECT,
        request: { ...sampleRequest(target), host },
        credential: new Secret(SECRET_KEY),
        body: { kind: 'none' },
        now: new Date('2013-05-24T00:00:00Z'),
        hash: WebHash,
      });
    expect([(await resultAt('/?session')).ok, (await resultAt('/a')).ok]).toEqual([false, true]);
  });

  it('refuses a stored key with a line break, and does not show it', async () => {
    const result = await resultOf({ secretKey: 'TOPSECRET\n' });
    expect(result).toMatchObject({ ok: false, error: { reason: 'credential_unavailable' } });
    expect(JSON.stringify(result)).not.toContain('TOPSECRET');
    expect(await reasonOf({ sessionToken: 'TOKEN\r\nX: 1' })).toBe('credential_unavailable');
  });
});

describe('sigv4-resign: payload forms', () => {
  for (const form of ['UNSIGNED-PAYLOAD', 'STREAMING-UNSIGNED-PAYLOAD-TRAILER']) {
    it(`forwards ${form} without reading the body`, async () => {
      const lines = [`X-Amz-Content-Sha256: ${form}`];
      expect(await header('x-amz-content-sha256', { method: 'PUT', lines, body: { kind: 'stream' } })).toBe(form);
      expect(needsBufferedBody(INJECT, sampleRequest('/', lines, 'PUT'))).toBe(false);
    });
  }

  for (const form of [
    'STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD',
    'STREAMING-AWS4-HMAC-SHA256-EVENTS',
    'STREAMING-NEW',
  ]) {
    it(`refuses ${form} by its name`, async () => {
      const result = await resultOf({ method: 'PUT', lines: [`x-amz-content-sha256: ${form}`] });
      expect(result).toMatchObject({ ok: false, error: { reason: 'signing_form_unsupported' } });
      expect(JSON.stringify(result)).toContain(form);
    });
  }

  it('refuses another algorithm by its name', async () => {
    const lines = [authorization('PLACEHOLDER', 'host', 'AWS4-ECDSA-P384-SHA384')];
    const result = await resultOf({ lines });
    expect(JSON.stringify(result)).toContain('AWS4-ECDSA-P384-SHA384');
    expect(await reasonOf({ lines })).toBe('signing_form_unsupported');
  });

  it('refuses two different stated hashes', async () => {
    const lines = ['x-amz-content-sha256: UNSIGNED-PAYLOAD', `x-amz-content-sha256: ${EMPTY_HASH}`];
    expect(await reasonOf({ lines })).toBe('invalid_request');
  });

  it('leaves a streamed body unsigned for S3 and refuses it for a service that needs the hash', async () => {
    const body: PayloadBody = { kind: 'stream' };
    expect(await header('x-amz-content-sha256', { body })).toBe('UNSIGNED-PAYLOAD');
    expect(await reasonOf({ body, binding: OTHER })).toBe('signing_form_unsupported');
  });

  it('needs the whole body only if it is hashed', () => {
    const request = sampleRequest('/', [], 'PUT');
    expect(needsBufferedBody(INJECT, request)).toBe(true);
    expect(needsBufferedBody({ ...INJECT, body: 'stream' }, request)).toBe(false);
    expect(needsBufferedBody(schemeBinding({ scheme: 'bearer' }), request)).toBe(true);
    const chunked = sampleRequest('/', ['x-amz-content-sha256: STREAMING-AWS4-HMAC-SHA256-PAYLOAD'], 'PUT');
    expect(needsBufferedBody(INJECT, chunked)).toBe(false);
    expect(needsBufferedBody(schemeBinding({ scheme: 'bearer' }), chunked)).toBe(true);
  });
});

describe('sigv4-resign: presigned URLs', () => {
  const cases: readonly (readonly [what: string, target: string, presented: string])[] = [
    ['the binding’s key', presignedTarget(KEY_ID), 'sentinel'],
    ['the sentinel', presignedTarget('AKIASENTINEL'), 'sentinel'],
    ['a foreign key', presignedTarget('AKIAFOREIGN'), 'foreign_presigned'],
    ['a key that begins like the binding’s', presignedTarget(`${KEY_ID}2`), 'foreign_presigned'],
    ['two keys', presignedTarget(KEY_ID, '&x-amz-credential=AKIAFOREIGN%2F1'), 'foreign_presigned'],
    ['no key', '/a?X-Amz-Signature=abc', 'foreign_presigned'],
    [
      'an encoded signature parameter',
      presignedTarget('AKIAFOREIGN').replace('X-Amz-Sig', 'X%2DAmz-%53ig'),
      'foreign_presigned',
    ],
    ['a foreign key in version 2', version2('AKIAFOREIGN'), 'foreign_presigned'],
    ['a foreign key of another store', '/a?X-Goog-Credential=x%2F1&X-Goog-Signature=ab', 'foreign_presigned'],
    ['a signature parameter that is no URL signature', '/a?signature=abc', 'absent'],
  ];
  for (const [what, target, expected] of cases) {
    it(`recognises ${what}`, () => {
      expect(findPresentedCredential(SWAP, sampleRequest(target))).toBe(expected);
    });
  }

  it('keeps a URL signed with a foreign key, also under inject', async () => {
    const request = sampleRequest(presignedTarget('AKIAFOREIGN'));
    expect(emitDecision(INJECT, findPresentedCredential(INJECT, request))).toBe('keep_foreign');
    expect(await reasonOf({ target: presignedTarget('AKIAFOREIGN') })).toBe('invalid_request');
  });

  it('does not treat another emit’s sentinel as its own', () => {
    expect(findPresentedCredential(INJECT, sampleRequest(presignedTarget('AKIASENTINEL')))).toBe('foreign_presigned');
  });

  it('drops the client’s session token, header signature and date, and adds our token', async () => {
    const out = await sign({
      target: presignedTarget('AKIASENTINEL', '&X-Amz-Security-Token=mine&response-content-type=a%2Fb'),
      lines: [authorization('AKIASENTINEL'), 'x-amz-date: 20200101T000000Z', 'X-Amz-Security-Token: mine'],
      binding: SWAP,
      sessionToken: 'TO/KEN',
    });
    expect(linesOf(out)).toEqual([]);
    expect(out.target).toMatch(
      /&response-content-type=a%2Fb&X-Amz-Security-Token=TO%2FKEN&X-Amz-Signature=[0-9a-f]{64}$/,
    );
    expect(out.target).not.toMatch(/mine|SENTINEL|2020/);
  });

  it('signs the other x-amz headers of the request too', async () => {
    const out = await sign({ target: presignedTarget(KEY_ID), lines: ['x-amz-acl: private'] });
    expect(out.target).toContain('X-Amz-SignedHeaders=host%3Bx-amz-acl&');
  });

  it('refuses version 2 URLs, and those of another algorithm, of its own key by name', async () => {
    expect(await reasonOf({ target: version2(KEY_ID) })).toBe('signing_form_unsupported');
    const target = presignedTarget(KEY_ID).replace('AWS4-HMAC-SHA256', 'AWS4-ECDSA-P384-SHA384');
    expect(await reasonOf({ target })).toBe('signing_form_unsupported');
  });
});

describe('sigv4-resign: sentinel-swap in the header', () => {
  it('recognises its own placeholder, the binding’s key and a foreign key', () => {
    expect(findPresented()).toBe('absent');
    expect(findPresented(authorization('AKIASENTINEL'))).toBe('sentinel');
    expect(findPresented(authorization(KEY_ID))).toBe('sentinel');
    expect(findPresented('Authorization: AWS AKIASENTINEL:c2ln')).toBe('sentinel');
    expect(findPresented(authorization('AKIAFOREIGN'))).toBe('foreign');
    expect(findPresented(authorization('AKIASENTINEL'), authorization('AKIAFOREIGN'))).toBe('foreign');
    expect(findPresented('Authorization: Bearer AKIASENTINEL')).toBe('foreign');
    expect(findPresented('X-Note: AKIASENTINEL')).toBe('absent');
  });

  it('signs over a foreign header under inject', async () => {
    const lines = [authorization('AKIAFOREIGN')];
    expect(emitDecision(INJECT, findPresentedCredential(INJECT, sampleRequest('/', lines)))).toBe('write');
    expect(await header('authorization', { lines })).toContain(`Credential=${KEY_ID}/`);
  });
});
