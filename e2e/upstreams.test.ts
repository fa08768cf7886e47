import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { join } from 'node:path';
import { succeeds } from '../tools/system_parts.mjs';
import { run } from './support/program.ts';
import { connectDirect } from './support/raw_client.ts';
import { type S3Upstream, startS3Upstream } from './support/s3_upstream.ts';
import { type SignedRequest, verifySigV4 } from './support/sigv4_verifier.ts';
import { startGitUpstream } from './support/git_upstream.ts';
import { createTestCa, type TestCa } from './support/test_ca.ts';
import { reply, startTlsUpstream } from './support/tls_upstream.ts';

// Shows that the upstreams of these tests work without a proxy: if only this suite fails, an upstream is broken.

const CLIENTS = join(import.meta.dirname, 'clients');
const KEYS = { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY' };
let ca: TestCa;

beforeAll(async () => {
  ca = await createTestCa();
});

describe('the raw TLS upstream', () => {
  it('records a request byte for byte and sends exactly what the handler writes', async () => {
    const upstream = await startTlsUpstream(await ca.issue(['raw.example.test']));
    upstream.onRequest(async (exchange) => {
      await exchange.readBody();
      exchange.write(reply(299, 'héllo', ['X-Odd:  spaced ']));
    });
    const client = await connectDirect(upstream.port, 'raw.example.test', ca.pem);
    const sent = 'POST /a?b HTTP/1.1\r\nhOST: raw.example.test\r\nTransfer-Encoding: chunked\r\n\r\n';
    const seen = await client.exchange(`${sent}3;x=y\r\nabc\r\n0\r\nT: v\r\n\r\n`);
    expect(upstream.last()).toMatchObject({ text: sent, method: 'POST', serverName: 'raw.example.test' });
    expect(upstream.last().body.data.toString()).toBe('abc');
    expect(upstream.last().body.raw.toString()).toBe('3;x=y\r\nabc\r\n0\r\nT: v\r\n\r\n');
    expect(seen.raw.toString()).toBe('HTTP/1.1 299 Status\r\nContent-Length: 6\r\nX-Odd:  spaced \r\n\r\nhéllo');
    client.close();
    await upstream.close();
  });
});

describe('the signature verifier', () => {
  // The case `get-vanilla-query-order-key-case` of the published signing test suite.
  const published: SignedRequest = {
    method: 'GET',
    target: '/?Param2=value2&Param1=value1',
    headers: (name) => {
      const authorization =
        'AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, SignedHeaders=host;x-amz-date, ' +
        'Signature=b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500';
      return (
        { authorization: [authorization], host: ['example.amazonaws.com'], 'x-amz-date': ['20150830T123600Z'] }[name] ??
        []
      );
    },
    body: Buffer.alloc(0),
  };
  const secrets = new Map([[KEYS.accessKeyId, KEYS.secretAccessKey]]);
  const now = Date.parse('2015-08-30T12:36:00Z');

  it('accepts a published signature', () => {
    expect(verifySigV4(published, secrets, now)).toMatchObject({ ok: true, region: 'us-east-1', service: 'service' });
  });

  it.each([
    ['another method', { ...published, method: 'POST' }, 'SignatureDoesNotMatch'],
    ['another query', { ...published, target: '/?Param2=value2' }, 'SignatureDoesNotMatch'],
    ['another body', { ...published, body: Buffer.from('x') }, 'SignatureDoesNotMatch'],
    ['no signature', { ...published, headers: () => [] }, 'AuthorizationHeaderMalformed'],
  ])('refuses %s', (_, request, code) => {
    expect(verifySigV4(request, secrets, now)).toMatchObject({ ok: false, code });
  });

  it('refuses another secret and another time', () => {
    const other = new Map([[KEYS.accessKeyId, 'another']]);
    expect(verifySigV4(published, other, now)).toMatchObject({ ok: false, code: 'SignatureDoesNotMatch' });
    expect(verifySigV4(published, secrets, now + 3_600_000)).toMatchObject({ ok: false, code: 'RequestTimeTooSkewed' });
  });
});

describe('the S3 upstream', () => {
  let s3: S3Upstream;
  const client = (secret: string) =>
    run(process.execPath, [join(CLIENTS, 's3_client.mjs'), `https://localhost:${s3.port}`, 'bucket', 'eu-north-1'], {
      env: { NODE_EXTRA_CA_CERTS: ca.file, AWS_ACCESS_KEY_ID: KEYS.accessKeyId, AWS_SECRET_ACCESS_KEY: secret },
    });

  beforeAll(async () => {
    s3 = await startS3Upstream(await ca.issue(['localhost']), KEYS, 'bucket');
  });
  afterAll(() => s3.close());

  it('serves the AWS SDK with the right key', async () => {
    const done = await client(KEYS.secretAccessKey);
    expect(done.stderr).toBe('');
    expect(JSON.parse(done.stdout)).toEqual({
      body: 'a report',
      streamedBytes: 200_000,
      length: 8,
      listed: ['reports/2026 Q1 (final)/a+b=c.txt'],
      left: ['streamed.bin'],
    });
    expect(s3.verdicts.every((verdict) => verdict.ok)).toBe(true);
  });

  it('refuses the AWS SDK with a wrong key', async () => {
    const done = await client('placeholder');
    expect(done.code).not.toBe(0);
    expect(done.stderr).toContain('SignatureDoesNotMatch');
  });
});

describe.skipIf(!succeeds('test -x "$(git --exec-path)/git-http-backend"'))('the git upstream', () => {
  it('serves a clone with the right password only', async () => {
    const git = await startGitUpstream(await ca.issue(['localhost']), 'octo', 'right');
    const list = (password: string) =>
      run('git', ['ls-remote', `https://octo:${password}@localhost:${git.port}/project.git`], {
        env: { GIT_SSL_CAINFO: ca.file, GIT_TERMINAL_PROMPT: '0', GIT_CONFIG_GLOBAL: '/dev/null' },
      });
    expect((await list('right')).code).toBe(0);
    expect((await list('wrong')).code).not.toBe(0);
    await git.close();
  });
});
