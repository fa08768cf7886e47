import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { plantSecret } from './support/planted_secret.ts';
import { connectThroughProxy } from './support/raw_client.ts';
import type { Session } from './support/svc.ts';
import type { Exchange } from './support/tls_upstream.ts';
import { startWorld, type World } from './support/world.ts';

// Nothing is held back: each side sends its next piece only after the other has received the previous one.

const SECRET = plantSecret();
const PLAIN = 'plain.example.test';
const BOUND = 'bound.example.test';
const STREAMED = 'streamed.example.test';
let world: World;
let session: Session;

beforeAll(async () => {
  world = await startWorld([PLAIN, BOUND, STREAMED]);
  await world.svc.secret('user/key', SECRET);
  const bearer = { scheme: 'bearer', credential_ref: 'vault://user/key' };
  await world.svc.binding({ ...bearer, host: BOUND });
  await world.svc.binding({ ...bearer, host: STREAMED, body: 'stream' });
  session = await world.svc.session();
});
afterAll(() => world.stop());
beforeEach(() => world.upstream.reset());

/** The exchange of the next request, whose handler lasts until `finish` is called. */
function nextExchange(): Promise<{ exchange: Exchange; finish: () => void }> {
  return new Promise((resolve) => {
    world.upstream.onRequest((exchange) => new Promise<void>((finish) => resolve({ exchange, finish })));
  });
}

/** A masked text frame of a client (RFC 6455 section 5), or an unmasked one of a server. */
function textFrame(text: string, mask?: Buffer): Buffer {
  const data = Buffer.from(text);
  const head = Buffer.from([0x81, data.length | (mask === undefined ? 0 : 0x80)]);
  if (mask === undefined) return Buffer.concat([head, data]);
  return Buffer.concat([head, mask, data.map((byte, at) => byte ^ (mask[at % 4] ?? 0))]);
}

describe.each([
  { kind: 'passthrough', host: PLAIN },
  { kind: 'credentialed', host: BOUND },
])('$kind', ({ kind, host }) => {
  it('delivers each server-sent event before the next one is sent', async () => {
    const arrival = nextExchange();
    const client = await connectThroughProxy(session, host);
    client.send(`GET /events HTTP/1.1\r\nHost: ${host}\r\nAccept: text/event-stream\r\n\r\n`);
    const { exchange, finish } = await arrival;
    exchange.write('HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n');
    expect((await client.reader.until('\r\n\r\n'))?.toString()).toContain('text/event-stream');
    for (const count of [1, 2, 3]) {
      const event = `data: ${count} ${'.'.repeat(20)}\n\n`;
      exchange.write(`${event.length.toString(16)}\r\n${event}\r\n`);
      expect((await client.reader.until('\n\n'))?.toString()).toContain(`data: ${count} `);
    }
    exchange.write('0\r\n\r\n');
    expect((await client.reader.until('0\r\n\r\n'))?.toString().endsWith('0\r\n\r\n')).toBe(true);
    finish();
    client.close();
  });

  it('upgrades to a WebSocket and passes frames in both directions', async () => {
    const arrival = nextExchange();
    const client = await connectThroughProxy(session, host);
    const key = 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13';
    client.send(`GET /ws HTTP/1.1\r\nHost: ${host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n${key}\r\n\r\n`);
    const { exchange, finish } = await arrival;
    expect(exchange.request.header('upgrade')).toBe('websocket');
    expect(exchange.request.header('connection')?.toLowerCase()).toBe('upgrade');
    expect(exchange.request.headers('authorization')).toEqual(kind === 'credentialed' ? [`Bearer ${SECRET}`] : []);
    exchange.write(
      'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n',
    );
    const switched = await client.reader.until('\r\n\r\n');
    expect(switched?.toString()).toMatch(/^HTTP\/1\.1 101 [^]*Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK\+xOo=/);
    for (const word of ['hello', 'again']) {
      const sent = textFrame(word, Buffer.from([1, 2, 3, 4]));
      client.send(sent);
      expect((await exchange.reader.exactly(sent.length)).equals(sent)).toBe(true);
      exchange.write(textFrame(word.toUpperCase()));
      expect((await client.reader.exactly(word.length + 2)).equals(textFrame(word.toUpperCase()))).toBe(true);
    }
    const leak = `you said Bearer ${SECRET}!`;
    exchange.write(textFrame(leak));
    const got = (await client.reader.exactly(leak.length + 2)).subarray(2).toString();
    expect(got).toBe(kind === 'credentialed' ? leak.replace(SECRET, '*'.repeat(SECRET.length)) : leak);
    exchange.socket.end();
    expect(await client.reader.some()).toBeNull();
    finish();
    client.close();
  });
});

describe('a request body', () => {
  it.each([
    { kind: 'passthrough', host: PLAIN },
    { kind: 'binding with body: stream', host: STREAMED },
  ])('of a $kind reaches the upstream as it is sent', async ({ host }) => {
    const arrival = nextExchange();
    const client = await connectThroughProxy(session, host);
    client.send(`POST / HTTP/1.1\r\nHost: ${host}\r\nTransfer-Encoding: chunked\r\n\r\n`);
    const { exchange, finish } = await arrival;
    for (const piece of ['one', 'two']) {
      client.send(`3\r\n${piece}\r\n`);
      expect((await exchange.reader.until('\r\n'))?.toString()).toBe('3\r\n');
      expect((await exchange.reader.until('\r\n'))?.toString()).toBe(`${piece}\r\n`);
    }
    client.send('0\r\n\r\n');
    expect((await exchange.reader.until('0\r\n\r\n'))?.toString()).toBe('0\r\n\r\n');
    exchange.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n');
    expect((await client.reply('POST'))?.status).toBe(200);
    finish();
    client.close();
  });

  it('of a plain binding is read in full before the upstream is called', async () => {
    const client = await connectThroughProxy(session, BOUND);
    client.send(`POST / HTTP/1.1\r\nHost: ${BOUND}\r\nContent-Length: 6\r\n\r\none`);
    client.send('two');
    expect((await client.reply('POST'))?.status).toBe(200);
    expect(world.upstream.last().body.data.toString()).toBe('onetwo');
    expect(world.upstream.last().headers('authorization')).toEqual([`Bearer ${SECRET}`]);
    client.close();
  });
});

describe('a connection that breaks', () => {
  it('ends the other side, and does not look like a complete reply', async () => {
    const arrival = nextExchange();
    const client = await connectThroughProxy(session, PLAIN);
    client.send(`GET / HTTP/1.1\r\nHost: ${PLAIN}\r\n\r\n`);
    const { exchange, finish } = await arrival;
    exchange.write('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf');
    expect((await client.reader.until('half'))?.toString()).toContain('half');
    exchange.socket.destroy();
    expect(await client.reader.some()).toBeNull();
    finish();
    client.close();
  });

  it('of a client ends the request at the upstream', async () => {
    const arrival = nextExchange();
    const client = await connectThroughProxy(session, PLAIN);
    client.send(`POST / HTTP/1.1\r\nHost: ${PLAIN}\r\nContent-Length: 100\r\n\r\nhalf`);
    const { exchange, finish } = await arrival;
    expect((await exchange.reader.exactly(4)).toString()).toBe('half');
    client.close();
    expect(await exchange.reader.some()).toBeNull();
    finish();
  });
});
