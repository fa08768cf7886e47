import {
  brotliCompressSync,
  deflateSync,
  gunzipSync,
  gzipSync,
  brotliDecompressSync,
  inflateSync,
  zstdCompressSync,
  zstdDecompressSync,
} from 'node:zlib';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { foundIn, plantSecret } from './support/planted_secret.ts';
import { connectThroughProxy, type SeenReply } from './support/raw_client.ts';
import { formatChunks, type Handler, reply } from './support/tls_upstream.ts';
import type { Session } from './support/svc.ts';
import { startWorld, type World } from './support/world.ts';

// Design section 5, invariant 4: the reply on a credentialed path is scrubbed of the credential. The upstream here returns the
// credential in every form that a server might use.

const SECRET = plantSecret();
const HOST = 'echo.example.test';
const BASIC = 'basic.example.test';
const SIGNED = 'signed.example.test';
const MASK = '*'.repeat(SECRET.length);
let world: World;
let session: Session;

beforeAll(async () => {
  world = await startWorld([HOST, BASIC, SIGNED]);
  await world.svc.secret('user/key', SECRET);
  const key = { credential_ref: 'vault://user/key' };
  await world.svc.binding({ ...key, host: HOST, scheme: 'bearer', keep_cookies: true });
  await world.svc.secret('user/basic', SECRET);
  await world.svc.binding({ host: BASIC, scheme: 'basic', username: 'octo', credential_ref: 'vault://user/basic' });
  const signing = { access_key_id: 'AKIAE2EEXAMPLE000003', region: 'eu-north-1', service: 's3' };
  await world.svc.binding({ ...key, ...signing, host: SIGNED, scheme: 'sigv4-resign' });
  session = await world.svc.session();
});
afterAll(() => world.stop());
beforeEach(() => world.upstream.reset());

async function get(handler: Handler, host = HOST): Promise<SeenReply> {
  world.upstream.onRequest(handler);
  const client = await connectThroughProxy(session, host);
  const head = `GET / HTTP/1.1\r\nHost: ${host}\r\nAccept-Encoding: gzip, deflate, br, zstd, x-odd\r\n\r\n`;
  const seen = await client.exchange(head);
  client.close();
  return seen;
}

const echoAuthorization: Handler = (exchange) =>
  exchange.write(reply(200, exchange.request.header('authorization') ?? ''));

const BODY = `{"you":"sent ${SECRET}","again":"${SECRET}"}`;

describe('a session that the upstream gives', () => {
  const lines = ['Set-Cookie: session=its-own', 'WWW-Authenticate: Basic realm="x"', 'Alt-Svc: h3=":443"'];

  beforeEach(async () => {
    session = await world.svc.session();
  });
  afterAll(async () => {
    session = await world.svc.session();
  });

  it('does not reach the agent, and the event names what was withheld', async () => {
    const seen = await get((exchange) => exchange.write(reply(401, 'no', lines)), BASIC);
    expect([seen.status, seen.body.data.toString()]).toEqual([401, 'no']);
    expect(seen.raw.toString('latin1')).not.toMatch(/set-cookie|authenticate|alt-svc|its-own/i);
    await session.end();
    const events = await world.svc.eventsOf(session);
    const withheld = events.map(({ data }) => data['svc.proxy.reply.withheld']).find((names) => names !== undefined);
    expect(withheld).toEqual(['set-cookie', 'www-authenticate', 'alt-svc']);
  });

  it('reaches it if the binding keeps cookies, and the event names what was kept', async () => {
    const seen = await get((exchange) => exchange.write(reply(401, 'no', lines)), HOST);
    expect([seen.header('set-cookie'), seen.header('alt-svc')]).toEqual(['session=its-own', undefined]);
    await session.end();
    const events = await world.svc.eventsOf(session);
    const kept = events.map(({ data }) => data['svc.proxy.reply.kept']).find((names) => names !== undefined);
    expect(kept).toEqual(['set-cookie', 'www-authenticate']);
  });
});

describe('a credential that the upstream sends back', () => {
  it('is masked in headers and cookies', async () => {
    const echo = [`X-Echo: Bearer ${SECRET}`, `Set-Cookie: token=${encodeURIComponent(SECRET)}; Path=/`];
    const seen = await get((exchange) => exchange.write(reply(200, 'ok', echo)));
    expect(seen.header('x-echo')).toBe(`Bearer ${MASK}`);
    expect(seen.header('set-cookie')).toMatch(/^token=\*+; Path=\/$/);
    expect(foundIn(seen.raw, SECRET)).toEqual([]);
    expect(seen.body.data.toString()).toBe('ok');
  });

  it('is masked in the reason phrase', async () => {
    const seen = await get((exchange) => exchange.write(`HTTP/1.1 400 Bad ${SECRET}\r\nContent-Length: 0\r\n\r\n`));
    expect(foundIn(seen.raw, SECRET)).toEqual([]);
  });

  it('is masked in a body with a length, which stays correct', async () => {
    const seen = await get((exchange) => exchange.write(reply(200, BODY)));
    expect(seen.body.data.toString()).toBe(BODY.replaceAll(SECRET, MASK));
  });

  it.each([
    ['base64', Buffer.from(`x:${SECRET}`).toString('base64')],
    ['base64url', Buffer.from(`xy${SECRET}z`).toString('base64url')],
    ['hex', Buffer.from(SECRET).toString('hex')],
    ['percent', encodeURIComponent(SECRET)],
    ['JSON', JSON.stringify({ said: SECRET })],
  ])('is masked in a body as %s', async (_, text) => {
    const seen = await get((exchange) => exchange.write(reply(200, `before ${text} after`)));
    expect(foundIn(seen.raw, SECRET)).toEqual([]);
    expect(seen.body.data.length).toBe(`before ${text} after`.length);
    expect(seen.body.data.toString()).toMatch(/^before .* after$/);
  });

  it('is masked in a chunked body and its trailers, wherever the chunks end', async () => {
    for (const size of [1, 7, SECRET.length - 1, 1000]) {
      const seen = await get((exchange) => {
        exchange.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n');
        exchange.write(formatChunks(Buffer.from(BODY), size, `X-Sum: ${SECRET}\r\n`));
      });
      expect(seen.body.data.toString()).toBe(BODY.replaceAll(SECRET, MASK));
      expect(foundIn(seen.raw, SECRET)).toEqual([]);
    }
  });

  it('is masked if the connection breaks inside it', async () => {
    const seen = await get((exchange) => {
      exchange.write(`HTTP/1.1 200 OK\r\n\r\nthe key is ${SECRET}`);
      exchange.socket.end();
    });
    expect(seen.body.data.toString()).toBe(`the key is ${MASK}`);
  });

  it.each([
    ['gzip', gzipSync, gunzipSync],
    ['deflate', deflateSync, inflateSync],
    ['br', brotliCompressSync, brotliDecompressSync],
    ['zstd', zstdCompressSync, zstdDecompressSync],
  ])('is masked in a body compressed with %s', async (coding, compress, expand) => {
    const packed = compress(Buffer.from(BODY));
    const seen = await get((exchange) => exchange.write(reply(200, packed, [`Content-Encoding: ${coding}`])));
    const got = seen.header('content-encoding') === coding ? expand(seen.body.data) : seen.body.data;
    expect(got.toString()).toBe(BODY.replaceAll(SECRET, MASK));
  });

  it('is masked as the payload of basic authentication, whatever its form', async () => {
    for (let round = 0; round < 16; round += 1) {
      const secret = plantSecret();
      await world.svc.secret('user/basic', secret);
      session = await world.svc.session();
      const seen = await get(echoAuthorization, BASIC);
      const payload = Buffer.from(`octo:${secret}`).toString('base64');
      expect(world.upstream.last().header('authorization')).toBe(`Basic ${payload}`);
      expect(seen.body.data.toString()).toBe(`Basic ${'*'.repeat(payload.length)}`);
    }
  });

  it('is never sent if it signs requests', async () => {
    const seen = await get((exchange) => exchange.write(reply(200, exchange.request.text)), SIGNED);
    expect(seen.body.data.toString()).toContain('AWS4-HMAC-SHA256');
    expect(foundIn(seen.raw, SECRET)).toEqual([]);
  });
});

describe('compressed replies', () => {
  it('requests no content coding that the scrubber cannot read', async () => {
    await get((exchange) => exchange.write(reply(200)));
    const asked = world.upstream.last().header('accept-encoding') ?? '';
    expect(asked).not.toContain('x-odd');
    expect(asked).toContain('gzip');
  });

  it('searches a reply of unknown coding unchanged', async () => {
    const seen = await get((exchange) => exchange.write(reply(200, BODY, ['Content-Encoding: x-odd'])));
    expect(foundIn(seen.raw, SECRET)).toEqual([]);
  });

  it('limits the inflation of a compression bomb', async () => {
    const bomb = zstdCompressSync(Buffer.alloc(400 * 1024 * 1024));
    const packed = reply(200, bomb, ['Content-Encoding: zstd']);
    const seen = await get((exchange) => exchange.write(packed)).catch(() => null);
    expect(seen === null || seen.body.data.length < 100 * 1024 * 1024).toBe(true);
    expect((await get((exchange) => exchange.write(reply(200)))).status).toBe(200);
  });
});
