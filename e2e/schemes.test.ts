import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { plantSecret } from './support/planted_secret.ts';
import { connectThroughProxy } from './support/raw_client.ts';
import type { SeenRequest } from './support/tls_upstream.ts';
import type { Event, Session } from './support/svc.ts';
import { type SignedRequest, verifySigV4 } from './support/sigv4_verifier.ts';
import { startWorld, type World } from './support/world.ts';

// Each scheme (specification section 2, Injection schemes) with each emit mechanism, in the four possible states of its place.

const SECRET = plantSecret();
const SENTINEL = 'svc-sentinel-4f9a1c7e2b';
const AKID = 'AKIAE2EEXAMPLE000002';
const base64 = (text: string): string => Buffer.from(text).toString('base64');

interface SchemeCase {
  readonly scheme: string;
  readonly parameters: Readonly<Record<string, string>>;
  /** A client's request parts with `value` in the binding's place: extra header lines, or a query. */
  readonly sends: (value: string) => { readonly lines?: readonly string[]; readonly query?: string };
  /** What the upstream receives in that place. */
  readonly sees: (request: SeenRequest) => readonly string[];
  /** The form of `value` there. */
  readonly expectedLines: (value: string) => readonly string[];
}

const SCHEME_CASES: readonly SchemeCase[] = [
  {
    scheme: 'bearer',
    parameters: {},
    sends: (value) => ({ lines: [`Authorization: Bearer ${value}`] }),
    sees: (request) => request.headers('authorization'),
    expectedLines: (value) => [`Bearer ${value}`],
  },
  {
    scheme: 'basic',
    parameters: { username: 'octo' },
    sends: (value) => ({ lines: [`Authorization: Basic ${base64(`octo:${value}`)}`] }),
    sees: (request) => request.headers('authorization'),
    expectedLines: (value) => [`Basic ${base64(`octo:${value}`)}`],
  },
  {
    scheme: 'header-template',
    parameters: { header: 'X-Api-Key', template: 'Token token={token};v=2' },
    sends: (value) => ({ lines: [`X-Api-Key: Token token=${value};v=2`] }),
    sees: (request) => request.headers('x-api-key'),
    expectedLines: (value) => [`Token token=${value};v=2`],
  },
  {
    scheme: 'query-param',
    parameters: { query_param: 'key' },
    sends: (value) => ({ query: `key=${encodeURIComponent(value)}` }),
    sees: (request) => new URL(request.target, 'https://x.test').searchParams.getAll('key'),
    expectedLines: (value) => [value],
  },
];

const hostOf = (scheme: string, emit: string): string => `${scheme}-${emit}.example.test`;
const EMITS = ['inject', 'sentinel-swap'] as const;
const SIGV4 = 'sigv4-resign';
let world: World;
let session: Session;

beforeAll(async () => {
  const hosts = [...SCHEME_CASES.map(({ scheme }) => scheme), SIGV4].flatMap((scheme) =>
    EMITS.map((emit) => hostOf(scheme, emit)),
  );
  world = await startWorld(hosts);
  await world.svc.secret('user/key', SECRET);
  const signing = { scheme: SIGV4, parameters: { access_key_id: AKID, region: 'eu-north-1', service: 'execute-api' } };
  for (const { scheme, parameters } of [...SCHEME_CASES, signing]) {
    const common = { scheme, ...parameters, credential_ref: 'vault://user/key' };
    await world.svc.binding({ ...common, host: hostOf(scheme, 'inject') });
    await world.svc.binding({
      ...common,
      host: hostOf(scheme, 'sentinel-swap'),
      emit_mechanism: 'sentinel-swap',
      sentinel: { value: SENTINEL },
    });
  }
});
afterAll(() => world.stop());
beforeEach(async () => {
  world.upstream.reset();
  session = await world.svc.session();
});

/** Sends one request in its own session. Returns what the upstream received and what was recorded. */
async function send(host: string, sent: { lines?: readonly string[]; query?: string; path?: string }, body = '') {
  const client = await connectThroughProxy(session, host);
  const lines = [`Host: ${host}`, 'X-Before: 1', ...(sent.lines ?? []), 'X-After: 2'];
  if (body !== '') lines.push(`Content-Length: ${body.length}`);
  const query = sent.query === undefined ? '' : `&${sent.query}`;
  const target = sent.path ?? `/a/%7e?first=%7e+x${query}&last=`;
  const method = body === '' ? 'GET' : 'POST';
  const reply = await client.exchange(`${method} ${target} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n${body}`);
  client.close();
  expect(reply.raw.toString()).toContain(' 200 ');
  await session.end();
  const events: Event[] = await world.svc.eventsOf(session);
  return { request: world.upstream.last(), events };
}

describe.each(SCHEME_CASES)('$scheme', ({ scheme, sends, sees, expectedLines: written }) => {
  it('writes the credential if the client sent none, and records that', async () => {
    for (const emit of EMITS) {
      session = await world.svc.session();
      const { request, events } = await send(hostOf(scheme, emit), {});
      expect(sees(request)).toEqual(written(SECRET));
      expect(events.map(({ type }) => type)).toEqual(['sandbox.proxy.binding_injected']);
      expect(events[0]?.data).toMatchObject({ 'svc.proxy.binding.scheme': scheme, 'svc.proxy.emit': emit });
    }
  });

  it('does not change any other byte of the target and the headers', async () => {
    const { request } = await send(hostOf(scheme, 'inject'), {});
    expect(request.target.startsWith('/a/%7e?first=%7e+x&last=')).toBe(true);
    expect(request.lines.filter((line) => /^x-(before|after)/i.test(line))).toEqual(['X-Before: 1', 'X-After: 2']);
  });

  it('with inject, removes everything that the client sent in the place', async () => {
    const one = sends('mine');
    const other = sends('other');
    const lines = [...(one.lines ?? []), ...(other.lines ?? []).map((line) => line.toUpperCase())];
    const query = one.query === undefined ? {} : { query: `${one.query}&${other.query}` };
    const { request } = await send(hostOf(scheme, 'inject'), { lines, ...query });
    expect(sees(request)).toEqual(written(SECRET));
    expect(request.text).not.toMatch(/mine|other/i);
  });

  it('with sentinel-swap, swaps the sentinel', async () => {
    const { request, events } = await send(hostOf(scheme, 'sentinel-swap'), sends(SENTINEL));
    expect(sees(request)).toEqual(written(SECRET));
    expect(request.text).not.toContain(SENTINEL);
    expect(events[0]).toMatchObject({
      type: 'sandbox.proxy.binding_injected',
      data: { 'svc.proxy.emit': 'sentinel-swap' },
    });
  });

  it('with sentinel-swap, keeps a foreign credential and adds none', async () => {
    const { request, events } = await send(hostOf(scheme, 'sentinel-swap'), sends('foreign'));
    expect(sees(request)).toEqual(written('foreign'));
    expect(request.text).not.toContain(SECRET);
    expect(events.map(({ type }) => type)).toEqual(['sandbox.proxy.foreign_credential_kept']);
  });

  it('does not swap a sentinel outside its place', async () => {
    const chat = JSON.stringify({ message: `what is ${SENTINEL}?` });
    const { request } = await send(hostOf(scheme, 'sentinel-swap'), { lines: [`X-Note: ${SENTINEL}`] }, chat);
    expect(request.body.data.toString()).toBe(chat);
    expect(request.header('x-note')).toBe(SENTINEL);
    expect(sees(request)).toEqual(written(SECRET));
  });

  it('cannot lose the credential to a Connection header that names its place', async () => {
    const { request } = await send(hostOf(scheme, 'inject'), { lines: ['Connection: authorization, x-api-key, key'] });
    expect(sees(request)).toEqual(written(SECRET));
  });
});

const signedLines = (accessKeyId: string): string[] => [
  `Authorization: AWS4-HMAC-SHA256 Credential=${accessKeyId}/20200101/us-east-1/s3/aws4_request, SignedHeaders=host;x-amz-date, Signature=${'0'.repeat(64)}`,
  'X-Amz-Date: 20200101T000000Z',
];
const signedRequest = (request: SeenRequest): SignedRequest => ({
  method: request.method,
  target: request.target,
  headers: (name) => request.headers(name),
  body: request.body.data,
});

describe('sigv4-resign', () => {
  const secrets = new Map([[AKID, SECRET]]);
  it.each([
    ['inject', 'a request without a signature', []],
    ['inject', 'a placeholder signature, its date and its region', signedLines('AKIAPLACEHOLDER')],
    [
      'inject',
      'a hash and a session token of the client',
      [...signedLines('AKIAPLACEHOLDER'), `X-Amz-Content-Sha256: ${'0'.repeat(64)}`, 'X-Amz-Security-Token: mine'],
    ],
    ['sentinel-swap', 'a request without a signature', []],
    ['sentinel-swap', 'a signature under the sentinel', signedLines(SENTINEL)],
  ])('with %s, signs again over %s', async (emit, _, lines) => {
    const { request, events } = await send(
      hostOf(SIGV4, emit),
      { lines, path: '/a%20b//c?z=1&a=%20%2F&a=&z=' },
      '{"a":1}',
    );
    expect(verifySigV4(signedRequest(request), secrets, Date.now())).toEqual({
      ok: true,
      accessKeyId: AKID,
      region: 'eu-north-1',
      service: 'execute-api',
    });
    expect(request.headers('x-amz-security-token')).toEqual([]);
    expect(request.text).not.toMatch(/20200101|AKIAPLACEHOLDER|sentinel-4f/);
    expect(request.text).not.toContain(SECRET);
    expect(events.map(({ type }) => type)).toEqual(['sandbox.proxy.binding_injected']);
  });

  it('with sentinel-swap, keeps a foreign signature untouched', async () => {
    const { request, events } = await send(hostOf(SIGV4, 'sentinel-swap'), { lines: signedLines('AKIAFOREIGN') });
    expect(request.lines).toContain(signedLines('AKIAFOREIGN')[0]);
    expect(request.lines).toContain(signedLines('AKIAFOREIGN')[1]);
    expect(events.map(({ type }) => type)).toEqual(['sandbox.proxy.foreign_credential_kept']);
  });
});
