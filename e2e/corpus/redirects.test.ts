import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { plantSecret } from '../support/planted_secret.ts';
import { runOk } from '../support/program.ts';
import { connectThroughProxy } from '../support/raw_client.ts';
import type { Session } from '../support/svc.ts';
import { reply, type SeenRequest } from '../support/tls_upstream.ts';
import { startWorld, type World } from '../support/world.ts';

// A credential goes to the host it is bound to and nowhere else: the client follows a redirect, and the request it then sends is
// treated like any other. A URL that is signed with a foreign key is left unchanged.

const BOUND = 'bound.example.test';
const SECOND = 'second-bound.example.test';
const PLAIN = 'plain.example.test';
const QUERY = 'query.example.test';
const S3 = 's3.example.test';
const S3_SWAPPED = 's3-swapped.example.test';
const SECRET = plantSecret();
const SECOND_SECRET = plantSecret();
let world: World;
let session: Session;

beforeAll(async () => {
  world = await startWorld([BOUND, SECOND, PLAIN, QUERY, S3, S3_SWAPPED]);
  await world.svc.secret('user/first', SECRET);
  await world.svc.secret('user/second', SECOND_SECRET);
  const first = { credential_ref: 'vault://user/first' };
  await world.svc.binding({ ...first, host: BOUND, scheme: 'bearer' });
  await world.svc.binding({ ...first, host: QUERY, scheme: 'query-param', query_param: 'key' });
  await world.svc.binding({ host: SECOND, scheme: 'bearer', credential_ref: 'vault://user/second' });
  const signing = {
    scheme: 'sigv4-resign',
    credential_ref: 'vault://user/signing',
    access_key_id: 'AKIAE2EEXAMPLE000009',
    region: 'eu-north-1',
    service: 's3',
  };
  await world.svc.secret('user/signing', plantSecret());
  await world.svc.binding({ ...signing, host: S3 });
  const sentinel = { value: 'AKIAPLACEHOLDER00001' };
  await world.svc.binding({ ...signing, host: S3_SWAPPED, emit_mechanism: 'sentinel-swap', sentinel });
  session = await world.svc.session();
});
afterAll(() => world.stop());
beforeEach(() => world.upstream.reset());

/** Runs curl through the proxy, following redirects. Returns what the upstream received. */
async function follow(url: string, args: readonly string[] = []): Promise<readonly SeenRequest[]> {
  const caFile = join(mkdtempSync(join(tmpdir(), 'svc-redirects-')), 'ca.pem');
  writeFileSync(caFile, session.caPem);
  const fixed = ['--silent', '--show-error', '--location', '--max-time', '20', '--cacert', caFile];
  await runOk('curl', [...fixed, ...args, url], { env: { HTTPS_PROXY: session.proxyUrl } });
  return world.upstream.requests;
}

/** The upstream answers `/start` with a redirect and everything else with 200. */
function redirecting(status: number, location: string): void {
  world.upstream.onRequest(async (exchange) => {
    await exchange.readBody();
    const answer = reply(status, 'moved', [`Location: ${location}`, 'Set-Cookie: s=1; Domain=example.test']);
    exchange.write(exchange.request.target.startsWith('/start') ? answer : reply(200));
  });
}

const credentials = (seen: SeenRequest | undefined): unknown[] => [
  seen?.header('host'),
  ...(seen?.headers('authorization') ?? []),
];

describe('a redirect', () => {
  it.each([301, 302, 303, 307, 308])('%i to an unbound host carries no credential there', async (status) => {
    redirecting(status, `https://${PLAIN}/next?a=b`);
    const [first, second] = await follow(`https://${BOUND}/start`);
    expect(credentials(first)).toEqual([BOUND, `Bearer ${SECRET}`]);
    expect(credentials(second)).toEqual([PLAIN]);
    expect(second?.text).not.toContain(SECRET);
  });

  it.each([307, 308])('%i of a request with a body carries none there either', async (status) => {
    redirecting(status, `https://${PLAIN}/next`);
    const [, second] = await follow(`https://${BOUND}/start`, ['--data', 'some=thing']);
    expect([second?.method, second?.body.data.toString()]).toEqual(['POST', 'some=thing']);
    expect(second?.text).not.toContain(SECRET);
  });

  it('to another bound host carries only that host’s own credential', async () => {
    redirecting(302, `https://${SECOND}/next`);
    const [, second] = await follow(`https://${BOUND}/start`);
    expect(credentials(second)).toEqual([SECOND, `Bearer ${SECOND_SECRET}`]);
  });

  it('of a host to itself carries its credential again', async () => {
    redirecting(302, '/next');
    const [, second] = await follow(`https://${BOUND}/start`);
    expect(credentials(second)).toEqual([BOUND, `Bearer ${SECRET}`]);
  });

  it('never shows the client a credential that was added to the query', async () => {
    world.upstream.onRequest((exchange) =>
      exchange.write(reply(302, '', [`Location: https://${PLAIN}${exchange.request.target}`])),
    );
    const client = await connectThroughProxy(session, QUERY);
    const seen = await client.exchange(`GET /start?a=b HTTP/1.1\r\nHost: ${QUERY}\r\n\r\n`);
    client.close();
    expect(new URL(`https://x${world.upstream.last().target}`).searchParams.get('key')).toBe(SECRET);
    expect(seen.header('location')).toMatch(/^https:\/\/plain\.example\.test\/start\?a=b&key=\*+$/);
  });

  it('is not followed by the proxy', async () => {
    redirecting(302, `https://${PLAIN}/next`);
    const client = await connectThroughProxy(session, BOUND);
    const seen = await client.exchange(`GET /start HTTP/1.1\r\nHost: ${BOUND}\r\n\r\n`);
    client.close();
    expect([seen.status, seen.header('location')]).toEqual([302, `https://${PLAIN}/next`]);
    expect(world.upstream.requests.length).toBe(1);
  });
});

const FOREIGN_QUERIES = {
  'version 4':
    'X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIASOMEBODYELSE0001%2F20260101%2Fus-east-1%2Fs3%2Faws4_request&X-Amz-Date=20260101T000000Z&X-Amz-Expires=900&X-Amz-SignedHeaders=host&X-Amz-Signature=ab12',
  'version 4 in odd case and order':
    'x-amz-signature=ab12&a=%2f+%20&X-AMZ-CREDENTIAL=AKIASOMEBODYELSE0001/x/y/s3/aws4_request',
  'version 2': 'AWSAccessKeyId=AKIASOMEBODYELSE0001&Expires=1&Signature=ab%2B12%3D',
  'another store': 'X-Goog-Algorithm=GOOG4-RSA-SHA256&X-Goog-Credential=x%40y%2F20260101&X-Goog-Signature=ab12',
};

describe.each([
  { kind: 'inject', host: S3 },
  { kind: 'sentinel-swap', host: S3_SWAPPED },
])('a URL that is signed with a foreign key, with $kind', ({ host }) => {
  it.each(Object.entries(FOREIGN_QUERIES))('is left unchanged: %s', async (_, query) => {
    const own = await world.svc.session();
    const client = await connectThroughProxy(own, host);
    const request = `GET /bucket//%7e/key?${query} HTTP/1.1\r\nHost: ${host}\r\nx-Amz-Date: 1\r\nX-b: 2\r\n\r\n`;
    expect((await client.exchange(request)).status).toBe(200);
    client.close();
    expect(world.upstream.last().text).toBe(request);
    await own.end();
    const events = await world.svc.eventsOf(own);
    expect(events.map(({ type }) => type)).toEqual(['sandbox.proxy.foreign_credential_kept']);
  });

  it('caused no credential lookup', async () => {
    const released = (await world.svc.events()).filter(({ type }) => type === 'control.credential.released');
    expect(released.map(({ data }) => data['svc.control.credential_ref'])).not.toContain('vault://user/signing');
  });
});
