import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { connectDirect, connectThroughProxy, type RawConnection } from './support/raw_client.ts';
import type { Session } from './support/svc.ts';
import { reply } from './support/tls_upstream.ts';
import { startWorld, type World } from './support/world.ts';

// Specification section 4: passthrough returns the upstream's exact status, headers and body. Each exchange is made twice,
// directly and through the proxy, and both sides must receive the same bytes.

const HOST = 'plain.example.test';
let world: World;
let session: Session;

beforeAll(async () => {
  world = await startWorld([HOST]);
  session = await world.svc.session();
});
afterAll(() => world.stop());
beforeEach(() => world.upstream.reset());

interface Case {
  readonly name: string;
  readonly request: string | Buffer;
  readonly reply?: string | Buffer;
  /** The upstream ends the connection after its reply. */
  readonly closes?: boolean;
  /** How many replies the client reads, including interim ones. */
  readonly replies?: number;
}

const get = (lines: readonly string[] = [], target = '/'): string =>
  [`GET ${target} HTTP/1.1`, `Host: ${HOST}`, ...lines, '', ''].join('\r\n');
const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';
const megabytes = (count: number): Buffer => randomBytes(count * 1024 * 1024);

const CASES: readonly Case[] = [
  { name: 'a plain GET', request: get() },
  { name: 'header names, their case, order and duplicates', request: get(['x-B: 1', 'X-a: 2', 'X-B: 3', 'x-b:1']) },
  { name: 'empty values and odd white space', request: get(['X-Empty:', 'X-Space:   a  b ', 'X-Tab:\ta\t']) },
  { name: 'bytes outside ASCII in a header', request: get(['X-Latin: caf\xe9 \xff', 'X-Utf8: \xc3\xa9']) },
  { name: 'the own credential of the client', request: get(['Authorization: Bearer its-own', 'Cookie: a=b; a=c']) },
  { name: 'a method nobody knows', request: get().replace('GET', 'FrObNiCaTe') },
  { name: 'the target *', request: get([], '*').replace('GET', 'OPTIONS') },
  {
    name: 'a target with every odd sign',
    request: get([], `/a//b/../c/./%7e%2F;x=1?q=%zz&&=|"<>{}\\^\`'[]@:!$&()*+,`),
  },
  { name: 'HTTP/1.0', request: get().replace('HTTP/1.1', 'HTTP/1.0'), closes: true },
  { name: 'a body with a length', request: `POST / HTTP/1.1\r\nHost: ${HOST}\r\ncontent-LENGTH: 5\r\n\r\nhello` },
  { name: 'a GET with a body', request: `GET / HTTP/1.1\r\nHost: ${HOST}\r\nContent-Length: 5\r\n\r\nhello` },
  {
    name: 'a chunked body with extensions and trailers',
    request: `POST / HTTP/1.1\r\nHost: ${HOST}\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n5;ext="a;b"\r\nhello\r\n0006\r\n world\r\n0\r\nX-Sum: 1\r\n\r\n`,
  },
  {
    name: 'a large body both ways',
    request: Buffer.concat([
      Buffer.from(`PUT / HTTP/1.1\r\nHost: ${HOST}\r\nContent-Length: ${8 * 1024 * 1024}\r\n\r\n`),
      megabytes(8),
    ]),
    reply: Buffer.concat([Buffer.from(`HTTP/1.1 200 OK\r\nContent-Length: ${6 * 1024 * 1024}\r\n\r\n`), megabytes(6)]),
  },
  {
    name: 'an odd status and reason',
    request: get(),
    reply: 'HTTP/1.1 799 Caf\xe9 closed\r\nContent-Length: 0\r\n\r\n',
  },
  { name: 'an empty reason', request: get(), reply: 'HTTP/1.1 200 \r\nContent-Length: 0\r\n\r\n' },
  {
    name: 'reply headers, their case, order and duplicates',
    request: get(),
    reply:
      'HTTP/1.1 200 OK\r\nset-COOKIE: a=1\r\nX-Odd:   v \r\nSet-Cookie: b=2\r\nContent-Length: 2\r\nSERVER:\r\n\r\nok',
  },
  {
    name: 'a chunked reply with extensions and trailers',
    request: get(),
    reply: 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;x=y\r\nok\r\n0\r\nX-Sum: 1\r\nx-SUM: 2\r\n\r\n',
  },
  {
    name: 'a reply that ends with the connection',
    request: get(),
    reply: 'HTTP/1.1 200 OK\r\n\r\nto the end',
    closes: true,
  },
  {
    name: 'a reply to HEAD with a length',
    request: get().replace('GET', 'HEAD'),
    reply: 'HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n',
  },
  { name: '204 and 304', request: get(), reply: 'HTTP/1.1 204 No Content\r\nX-A: 1\r\n\r\n' },
  { name: '304 with a length', request: get(), reply: 'HTTP/1.1 304 Not Modified\r\nContent-Length: 99\r\n\r\n' },
  {
    name: 'interim replies',
    request: get(),
    reply: `HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n${OK}`,
    replies: 3,
  },
  {
    name: 'a redirect, not followed',
    request: get(),
    reply: 'HTTP/1.1 302 Found\r\nLocation: https://x.test/\r\nContent-Length: 0\r\n\r\n',
  },
  {
    name: 'a compressed body, not touched',
    request: get(['Accept-Encoding: gzip, br, zstd, x-unknown']),
    reply: Buffer.concat([
      Buffer.from('HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 20\r\n\r\n'),
      randomBytes(20),
    ]),
  },
];

async function play(client: RawConnection, one: Case) {
  world.upstream.reset();
  world.upstream.onRequest(async (exchange) => {
    await exchange.readBody();
    exchange.write(one.reply ?? OK);
    if (one.closes === true) exchange.socket.end();
  });
  const method = one.request.toString().slice(0, 20).split(' ')[0];
  client.send(one.request);
  const replies: Buffer[] = [];
  for (let count = one.replies ?? 1; count > 0; count -= 1) {
    replies.push((await client.reply(method))?.raw ?? Buffer.from('no reply'));
  }
  const ended = one.closes === true && (await client.reader.some()) === null;
  client.close();
  const seen = world.upstream.last();
  return { head: seen.text, body: seen.body.raw, reply: Buffer.concat(replies), ended };
}

describe('passthrough is exact to the byte for', () => {
  it.each(CASES)('$name', async (one) => {
    const straight = await play(await connectDirect(world.upstream.port, HOST, world.ca.pem), one);
    const proxied = await play(await connectThroughProxy(session, HOST), one);
    const expected = typeof one.request === 'string' ? Buffer.from(one.request, 'latin1') : one.request;
    expect(Buffer.concat([Buffer.from(straight.head, 'latin1'), straight.body]).equals(expected)).toBe(true);
    expect(proxied.head).toBe(straight.head);
    expect(proxied.body.equals(straight.body)).toBe(true);
    expect(proxied.reply.toString('latin1', 0, 2000)).toBe(straight.reply.toString('latin1', 0, 2000));
    expect(proxied.reply.equals(straight.reply)).toBe(true);
    expect(proxied.ended).toBe(straight.ended);
  });

  it('several requests on one connection, sent ahead of their replies', async () => {
    const client = await connectThroughProxy(session, HOST);
    client.send(get([], '/1') + get([], '/2') + get([], '/3'));
    for (const _ of [1, 2, 3]) expect((await client.reply())?.status).toBe(200);
    expect(world.upstream.requests.map(({ target }) => target)).toEqual(['/1', '/2', '/3']);
    client.close();
  });

  it('Expect: 100-continue, where the body waits for the upstream', async () => {
    world.upstream.onRequest(async (exchange) => {
      exchange.write('HTTP/1.1 100 Continue\r\nX-From: upstream\r\n\r\n');
      await exchange.readBody();
      exchange.write(OK);
    });
    const client = await connectThroughProxy(session, HOST);
    client.send(`POST / HTTP/1.1\r\nHost: ${HOST}\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n`);
    expect((await client.reply('POST'))?.raw.toString()).toBe('HTTP/1.1 100 Continue\r\nX-From: upstream\r\n\r\n');
    client.send('body');
    expect((await client.reply('POST'))?.raw.toString()).toBe(OK);
    expect(world.upstream.last().body.data.toString()).toBe('body');
    client.close();
  });

  it('Expect: 100-continue that the upstream refuses before the body', async () => {
    world.upstream.onRequest((exchange) => exchange.write(reply(417, 'no')));
    const client = await connectThroughProxy(session, HOST);
    const head = `POST / HTTP/1.1\r\nHost: ${HOST}\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n`;
    expect((await client.exchange(head)).status).toBe(417);
    client.close();
  });
});

describe('passthrough records', () => {
  it('host, path, method and status, and no query, header or body', async () => {
    const own = await world.svc.session();
    const client = await connectThroughProxy(own, HOST);
    world.upstream.onRequest((exchange) => exchange.write(reply(404)));
    await client.exchange(get(['Authorization: Bearer its-own-credential'], '/v1/items?token=in-the-query'));
    client.close();
    await own.end();
    const events = await world.svc.eventsOf(own);
    expect(events).toHaveLength(1);
    expect(events[0]).toMatchObject({
      type: 'sandbox.proxy.passthrough',
      data: {
        'svc.proxy.upstream.host': HOST,
        'svc.proxy.upstream.path': '/v1/items',
        'svc.proxy.upstream.status': 404,
        'svc.proxy.method': 'GET',
        'svc.proxy.source': 'transparent_connect_tls',
      },
    });
    expect(JSON.stringify(events)).not.toMatch(/its-own-credential|in-the-query/);
  });
});
