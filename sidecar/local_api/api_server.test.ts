import type { Server as HttpServer } from 'node:http';
import { connect, createServer, type Server } from 'node:net';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { listen } from '../../machine/connection/listen.ts';
import { createApiServer } from './api_server.ts';

const GET = 'GET /one HTTP/1.1\r\nHost: localhost\r\n\r\n';

let listener: Server;
let port: number;
let asked: string[];
let answer: () => void;

beforeEach(async () => {
  asked = [];
  const held = new Promise<void>((resolve) => {
    answer = resolve;
  });
  const api: HttpServer = createApiServer((request, response) => {
    asked.push(request.url ?? '');
    if (request.url !== '/held') request.resume().once('end', () => response.end('answered'));
    else void held.then(() => response.end('answered late'));
  }, 30_000);
  listener = createServer((socket) => api.emit('connection', socket));
  port = await listen(listener, 0, '127.0.0.1');
});

afterEach(async () => {
  vi.useRealTimers();
  await new Promise((resolve) => listener.close(resolve));
});

/** Sends text and returns everything received until the connection ends. */
function exchange(text: string, more?: (send: (text: string) => void, got: string) => void): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    let got = '';
    socket.on('data', (data) => {
      got += data.toString();
      more?.((next) => socket.write(next), got);
    });
    socket.on('error', () => undefined);
    socket.on('close', () => resolve(got));
    socket.write(text);
  });
}

describe("the local API's server", () => {
  it('answers one request and closes', async () => {
    const got = await exchange(GET);
    expect(got).toMatch(/^HTTP\/1\.1 200 OK\r\n[^]*Connection: close\r\n[^]*answered$/);
  });

  it.each([
    ['in proxy form', 'GET http://upstream.example/ HTTP/1.1\r\nHost: upstream.example\r\n\r\n'],
    ['with proxy credentials', 'GET / HTTP/1.1\r\nHost: localhost\r\nProxy-Authorization: Basic eA==\r\n\r\n'],
    ['a second one', GET],
  ])('never sees a second request of a connection: %s, pipelined or later', async (_what, second) => {
    const pipelined = await exchange(GET + second);
    const later = await exchange(GET, (send) => send(second));
    expect([pipelined.match(/answered/g), later.match(/answered/g)]).toEqual([['answered'], ['answered']]);
    expect(asked).toEqual(['/one', '/one']);
  });

  it('does not answer a CONNECT after a first request', async () => {
    const got = await exchange(`${GET}CONNECT upstream.example:443 HTTP/1.1\r\nHost: upstream.example:443\r\n\r\n`);
    expect([got.match(/HTTP\/1\.1/g)?.length ?? 0, asked.length]).not.toContain(2);
  });

  it('drops a request whose body does not arrive in time', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const got = exchange('POST /slow HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nabc');
    await vi.waitUntil(() => asked.length === 1, { timeout: 60_000 });
    await vi.advanceTimersByTimeAsync(30_000);
    expect(await got).toBe('');
  });

  it('does not time out while the answer is being made', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const got = exchange('GET /held HTTP/1.1\r\nHost: localhost\r\n\r\n');
    await vi.waitUntil(() => asked.length === 1, { timeout: 60_000 });
    await vi.advanceTimersByTimeAsync(300_000);
    answer();
    expect(await got).toContain('answered late');
  });
});
