import { createServer } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { plantSecret } from './support/planted_secret.ts';
import { connectThroughProxy, type SeenReply } from './support/raw_client.ts';
import { refusal, refusalOf } from './support/refusal_of.ts';
import type { Session } from './support/svc.ts';
import { createTestCa } from './support/test_ca.ts';
import { listen, startTlsUpstream, type TlsUpstream } from './support/tls_upstream.ts';
import { startWorld, type World } from './support/world.ts';

// The table of refusals of design section 5, for errors inside a tunnel: status, code and audit event of each, and nothing is
// forwarded.

const BOUND = 'bound.example.test';
const PLAIN = 'plain.example.test';
const OTHER = 'other.example.test';
const DOWN = 'down.example.test';
const EXPIRED = 'expired.example.test';
const WRONG_NAME = 'wrong-name.example.test';
const UNKNOWN_CA = 'unknown-ca.example.test';
const GARBAGE = 'garbage.example.test';
const ABSENT = 'absent.example.test';
const SECRET = plantSecret();
let world: World;
let extra: TlsUpstream[];
let session: Session;

beforeAll(async () => {
  const trusted = await createTestCa();
  const untrusted = await createTestCa();
  const expired = await startTlsUpstream(await trusted.issue([EXPIRED], { expired: true }));
  const misnamed = await startTlsUpstream(await trusted.issue(['another.example.test']));
  const unknown = await startTlsUpstream(await untrusted.issue([UNKNOWN_CA]));
  extra = [expired, misnamed, unknown];
  world = await startWorld([BOUND, PLAIN, OTHER, GARBAGE, ABSENT], {
    upstreamCaFiles: [trusted.file],
    resolve: [
      `${DOWN}:127.0.0.1:${await closedPort()}`,
      `${EXPIRED}:127.0.0.1:${expired.port}`,
      `${WRONG_NAME}:127.0.0.1:${misnamed.port}`,
      `${UNKNOWN_CA}:127.0.0.1:${unknown.port}`,
    ],
    env: { SVC_MAX_CREDENTIALED_BODY_BYTES: '65536', SVC_CONNECT_TIMEOUT_SECONDS: '2' },
  });
  await world.svc.secret('user/key', SECRET);
  await world.svc.binding({ host: ABSENT, scheme: 'bearer', credential_ref: 'vault://user/absent' });
  for (const host of [BOUND, OTHER, GARBAGE]) {
    await world.svc.binding({ host, scheme: 'bearer', credential_ref: 'vault://user/key' });
  }
});
afterAll(async () => {
  await world.stop();
  await Promise.all(extra.map((upstream) => upstream.close()));
});
beforeEach(async () => {
  for (const upstream of [world.upstream, ...extra]) upstream.reset();
  session = await world.svc.session();
});

/** A port without a listener. */
async function closedPort(): Promise<number> {
  const server = createServer();
  const port = await listen(server);
  await new Promise((resolve) => server.close(resolve));
  return port;
}

async function sendRaw(host: string, bytes: string | Buffer): Promise<SeenReply> {
  const client = await connectThroughProxy(session, host);
  const seen = await client.exchange(bytes);
  client.close();
  return seen;
}

describe('the authority of a credentialed request', () => {
  it.each([
    ['another Host', `GET / HTTP/1.1\r\nHost: ${OTHER}\r\n\r\n`],
    ['a Host with another port', `GET / HTTP/1.1\r\nHost: ${BOUND}:8443\r\n\r\n`],
    ['an absolute target of another host', `GET https://${OTHER}/ HTTP/1.1\r\nHost: ${BOUND}\r\n\r\n`],
    ['an unbound Host', `GET / HTTP/1.1\r\nHost: ${PLAIN}\r\n\r\n`],
  ])('is refused with %s', async (_, head) => {
    expect(await refusalOf(world.svc, session, await sendRaw(BOUND, head))).toEqual(refusal(421, 'authority_mismatch'));
    expect(world.upstream.requests).toEqual([]);
  });

  it('is refused if the TLS server name differs', async () => {
    const client = await connectThroughProxy(session, BOUND, { servername: OTHER });
    const seen = await client.exchange(`GET / HTTP/1.1\r\nHost: ${BOUND}\r\n\r\n`);
    client.close();
    expect(await refusalOf(world.svc, session, seen)).toEqual(refusal(421, 'authority_mismatch'));
    expect(world.upstream.requests).toEqual([]);
  });

  it('is checked on every request of a tunnel', async () => {
    const client = await connectThroughProxy(session, BOUND);
    expect((await client.exchange(`GET /1 HTTP/1.1\r\nHost: ${BOUND}\r\n\r\n`)).status).toBe(200);
    expect((await client.exchange(`GET /2 HTTP/1.1\r\nHost: ${OTHER}\r\n\r\n`)).status).toBe(421);
    client.close();
    expect(world.upstream.requests.map(({ target }) => target)).toEqual(['/1']);
  });

  it.each([BOUND.toUpperCase(), `${BOUND}:443`])('accepts the same host written %s', async (host) => {
    expect((await sendRaw(BOUND, `GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`)).status).toBe(200);
    expect(world.upstream.last().headers('authorization')).toEqual([`Bearer ${SECRET}`]);
  });

  it('gets no credential for its Host through a tunnel to another host', async () => {
    await sendRaw(PLAIN, `GET / HTTP/1.1\r\nHost: ${BOUND}\r\n\r\n`);
    for (const request of world.upstream.requests) expect(request.text).not.toContain(SECRET);
  });
});

describe('a request smuggling attempt', () => {
  const post = (lines: string, body: string): string => `POST / HTTP/1.1\r\nHost: ${BOUND}\r\n${lines}\r\n\r\n${body}`;

  it.each([
    ['both Content-Length and Transfer-Encoding', post('Content-Length: 5\r\nTransfer-Encoding: chunked', '0\r\n\r\n')],
    ['two different Content-Length', post('Content-Length: 5\r\nContent-Length: 6', 'hello')],
    ['a Content-Length list', post('Content-Length: 5, 6', 'hello')],
    ['a Content-Length with a sign', post('Content-Length: +5', 'hello')],
    ['a hexadecimal Content-Length', post('Content-Length: 0x5', 'hello')],
    ['an unknown Transfer-Encoding', post('Transfer-Encoding: gzip, chunked', '0\r\n\r\n')],
    ['Transfer-Encoding twice', post('Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked', '0\r\n\r\n')],
    ['Transfer-Encoding: xchunked', post('Transfer-Encoding: xchunked', '0\r\n\r\n')],
    ['a space before the colon', post('Content-Length : 5', 'hello')],
    ['a folded header', post('X-A: 1\r\n folded', '')],
    ['a bare line feed', `GET / HTTP/1.1\r\nHost: ${BOUND}\r\nX-A: 1\nX-B: 2\r\n\r\n`],
    ['a bare carriage return', `GET / HTTP/1.1\r\nHost: ${BOUND}\r\nX-A: 1\rX-B: 2\r\n\r\n`],
    ['a NUL in a header', `GET / HTTP/1.1\r\nHost: ${BOUND}\r\nX-A: a\0b\r\n\r\n`],
    ['two Hosts', `GET / HTTP/1.1\r\nHost: ${BOUND}\r\nHost: ${BOUND}\r\n\r\n`],
    ['no Host', 'GET / HTTP/1.1\r\nX-A: 1\r\n\r\n'],
    ['a bad version', `GET / HTTP/2.0\r\nHost: ${BOUND}\r\n\r\n`],
    ['a space in the target', `GET /a b HTTP/1.1\r\nHost: ${BOUND}\r\n\r\n`],
    ['no method', ` / HTTP/1.1\r\nHost: ${BOUND}\r\n\r\n`],
    ['a bad chunk size', post('Transfer-Encoding: chunked', 'xyz\r\nhello\r\n0\r\n\r\n')],
    ['a chunk without its line end', post('Transfer-Encoding: chunked', '5\r\nhelloXX0\r\n\r\n')],
  ])('with %s is refused and nothing is forwarded', async (_, bytes) => {
    expect(await refusalOf(world.svc, session, await sendRaw(BOUND, bytes))).toEqual(refusal(400, 'invalid_request'));
    expect(world.upstream.requests).toEqual([]);
  });
});

describe('sizes', () => {
  it('a credentialed body over the limit is refused with 413', async () => {
    const head = `POST / HTTP/1.1\r\nHost: ${BOUND}\r\nContent-Length: 65537\r\n\r\n`;
    expect(await refusalOf(world.svc, session, await sendRaw(BOUND, head))).toEqual(refusal(413, 'body_too_large'));
    expect(world.upstream.requests).toEqual([]);
  });

  it('a chunked credentialed body is refused once it exceeds the limit', async () => {
    const chunk = `8000\r\n${'x'.repeat(0x8000)}\r\n`;
    const bytes = `POST / HTTP/1.1\r\nHost: ${BOUND}\r\nTransfer-Encoding: chunked\r\n\r\n${chunk.repeat(3)}`;
    expect(await refusalOf(world.svc, session, await sendRaw(BOUND, bytes))).toEqual(refusal(413, 'body_too_large'));
    expect(world.upstream.requests).toEqual([]);
  });

  it('a credentialed body at the limit passes', async () => {
    const bytes = `POST / HTTP/1.1\r\nHost: ${BOUND}\r\nContent-Length: 65536\r\n\r\n${'x'.repeat(65536)}`;
    expect((await sendRaw(BOUND, bytes)).status).toBe(200);
    expect(world.upstream.last().body.data.length).toBe(65536);
  });

  it('a passthrough body has no limit', async () => {
    const bytes = `POST / HTTP/1.1\r\nHost: ${PLAIN}\r\nContent-Length: 1000000\r\n\r\n${'x'.repeat(1_000_000)}`;
    expect((await sendRaw(PLAIN, bytes)).status).toBe(200);
  });

  it.each([
    ['too long', `X-Long: ${'x'.repeat(70_000)}\r\n`],
    ['too many headers', 'X-A: 1\r\n'.repeat(201)],
  ])('a head that is %s is refused with 431', async (_, lines) => {
    const seen = await sendRaw(BOUND, `GET / HTTP/1.1\r\nHost: ${BOUND}\r\n${lines}\r\n`);
    expect(await refusalOf(world.svc, session, seen)).toEqual(refusal(431, 'head_too_large'));
    expect(world.upstream.requests).toEqual([]);
  });
});

describe('an unusable upstream', () => {
  it.each([
    ['does not listen', DOWN, 'upstream_unreachable'],
    ['has an expired certificate', EXPIRED, 'upstream_tls_failed'],
    ['has a certificate for another name', WRONG_NAME, 'upstream_tls_failed'],
    ['has a certificate of an unknown authority', UNKNOWN_CA, 'upstream_tls_failed'],
  ])('that %s is a 502, and nothing is sent to it', async (_, host, code) => {
    expect(await refusalOf(world.svc, session, await sendRaw(host, `GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`))).toEqual(
      refusal(502, code),
    );
    for (const upstream of extra) expect(upstream.requests).toEqual([]);
  });

  it('that does not answer in HTTP is a 502', async () => {
    world.upstream.onRequest((exchange) => {
      exchange.write('SSH-2.0-OpenSSH_9.2\r\n\r\n');
      exchange.socket.end();
    });
    const seen = await sendRaw(GARBAGE, `GET / HTTP/1.1\r\nHost: ${GARBAGE}\r\n\r\n`);
    expect(await refusalOf(world.svc, session, seen)).toEqual(refusal(502, 'upstream_invalid_reply'));
  });

  it('whose reply has two lengths is a 502', async () => {
    world.upstream.onRequest((exchange) => {
      exchange.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\nok');
      exchange.socket.end();
    });
    const seen = await sendRaw(GARBAGE, `GET / HTTP/1.1\r\nHost: ${GARBAGE}\r\n\r\n`);
    expect(await refusalOf(world.svc, session, seen)).toEqual(refusal(502, 'upstream_invalid_reply'));
  });
});

describe('a credential that is not in the vault', () => {
  it('is a 503, and the request is not sent without it', async () => {
    const seen = await sendRaw(ABSENT, `GET / HTTP/1.1\r\nHost: ${ABSENT}\r\n\r\n`);
    expect(await refusalOf(world.svc, session, seen)).toEqual(refusal(503, 'credential_unavailable'));
    expect(world.upstream.requests).toEqual([]);
  });
});
