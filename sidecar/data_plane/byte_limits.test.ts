import { gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { bearerBinding } from '../../shared/model/testing/sample_binding.ts';
import type { DataPlane } from '../testing/data_plane.ts';
import { createAnswering, onlyInHttp1, readUntil, startDataPlane } from '../testing/data_plane.ts';

const HOST = 'api.example.test';
const SECRET = 'planted-secret-0123456789';
const BINDING = bearerBinding(HOST, { bytesPerDay: 1000 });
const OK = 'HTTP/1.1 200 OK\r\n';

let plane: DataPlane;

beforeEach(async () => {
  plane = await startDataPlane();
  plane.credentials.set({ owner: 'personal', path: 'user/demo' }, SECRET);
  plane.policy.use([BINDING]);
});

afterEach(async () => {
  await plane.stop();
  expect(plane.errors).toEqual([]);
});

async function answerWith(reply: string): Promise<void> {
  await plane.upstream(
    HOST,
    createAnswering(() => reply),
  );
}

/** Sends a request, reads until the text is enough, and leaves. */
async function ask(request: string, enough: (got: string) => boolean): Promise<string> {
  const client = await plane.open(HOST);
  client.write(request.replace('\r\n', `\r\nHost: ${HOST}\r\n`), 'latin1');
  const got = await readUntil(client, enough);
  client.destroy();
  return got;
}

const GET = 'GET / HTTP/1.1\r\n\r\n';
const isRefused = (got: string): boolean => got.includes('request_limit_reached');

describe('a limit of bytes', () => {
  test('refuses the next request once it is reached, and cuts no reply off', async () => {
    const body = 'x'.repeat(1500);
    await answerWith(`${OK}Content-Length: ${body.length}\r\n\r\n${body}`);
    expect(await ask(GET, (got) => got.endsWith(body))).toMatch(/^HTTP\/1\.1 200 /);
    const before = plane.credentials.asked.length;
    const refused = await ask(GET, isRefused);
    expect(refused).toMatch(/^HTTP\/1\.1 429 /);
    expect(refused).toMatch(/\r\nretry-after: \d+\r\n/i);
    expect(refused).toContain(`the binding of ${HOST} allows 1 kB a day on this machine`);
    expect(plane.credentials.asked).toHaveLength(before);
    const { type, data } = plane.audit.events.at(-1) ?? {};
    expect(type).toBe('sandbox.proxy.trust_denied');
    expect(data).toMatchObject({ 'svc.proxy.reason': 'request_limit_reached', 'svc.proxy.binding.host': HOST });
  });

  test('counts the bodies of a request and its reply together, and no heads', async () => {
    await answerWith(`${OK}X-Long: ${'x'.repeat(500)}\r\nContent-Length: 5\r\n\r\nreply`);
    await ask('POST / HTTP/1.1\r\nContent-Length: 7\r\n\r\nrequest', (got) => got.endsWith('reply'));
    expect(plane.bytesCounted(BINDING.id)).toBe(12);
  });

  test.each([
    ['a declared length', 'Content-Length: 5\r\n\r\nhello', 'hello', 5],
    ['chunks and trailers', 'Transfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\nX-T: 1\r\n\r\n', 'lo', 5],
    ['a masked credential', `Content-Length: ${SECRET.length}\r\n\r\n${SECRET}`, '*'.repeat(9), SECRET.length],
  ])('counts the payload of a reply with %s', async (_what, rest, end, bytes) => {
    await answerWith(OK + rest);
    await ask(GET, (got) => got.includes(end));
    await vi.waitFor(() => expect(plane.bytesCounted(BINDING.id)).toBe(bytes), { timeout: 60_000 });
  });

  test('counts a compressed reply as it is given to the agent: its size before would tell of the credential in it', async () => {
    const counts: number[] = [];
    for (const guess of [SECRET, SECRET.toUpperCase()]) {
      const body = gzipSync(`${SECRET} ${guess}`);
      await answerWith(
        `${OK}Content-Encoding: gzip\r\nContent-Length: ${body.length}\r\n\r\n${body.toString('latin1')}`,
      );
      const before = plane.bytesCounted(BINDING.id);
      await ask(GET, (got) => got.endsWith('0\r\n\r\n'));
      counts.push(plane.bytesCounted(BINDING.id) - before);
    }
    expect(counts).toEqual([SECRET.length * 2 + 1, SECRET.length * 2 + 1]);
  });

  test('counts what the agent was given, and not what is still held back from it', async () => {
    const begun = 'y'.repeat(0x5000);
    await plane.upstream(HOST, (socket) =>
      socket.once('data', () => socket.write(`${OK}Transfer-Encoding: chunked\r\n\r\n5000\r\n${begun}\r\n`)),
    );
    const client = await plane.open(HOST);
    client.write(`GET / HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`);
    const received: string[] = [];
    client.on('data', (data: Buffer) => received.push(data.toString('latin1')));
    await vi.waitFor(
      () => {
        const given = received.join('').split('y').length - 1;
        expect(given).toBeGreaterThan(0);
        expect(plane.bytesCounted(BINDING.id)).toBe(given);
      },
      { timeout: 60_000 },
    );
    expect(plane.bytesCounted(BINDING.id)).toBeLessThan(begun.length);
    client.destroy();
  });

  test('counts a body that is streamed, while it is', async () => {
    plane.policy.use([{ ...BINDING, body: 'stream' }]);
    await plane.upstream(HOST, () => undefined);
    const client = await plane.open(HOST);
    client.write(`POST / HTTP/1.1\r\nHost: ${HOST}\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n`);
    await vi.waitFor(() => expect(plane.bytesCounted(BINDING.id)).toBe(5), { timeout: 60_000 });
    client.destroy();
  });

  test.for(onlyInHttp1([null]))('counts a WebSocket in both directions', async () => {
    const frame = Buffer.from([0x81, 2, 0x68, 0x69]);
    await plane.upstream(HOST, (socket) =>
      socket.once('data', () => {
        socket.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n');
        socket.write(frame);
      }),
    );
    const client = await plane.open(HOST);
    client.write(`GET / HTTP/1.1\r\nHost: ${HOST}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n`);
    await readUntil(client, (got) => got.endsWith('hi'));
    client.write(Buffer.alloc(7));
    await vi.waitFor(() => expect(plane.bytesCounted(BINDING.id)).toBe(frame.length + 7), { timeout: 60_000 });
    client.destroy();
  });

  test('of a session counts over all bindings', async () => {
    plane.policy.use([bearerBinding(HOST)]);
    plane.sessionLimits.set('ses_test', { bytesPerDay: 5 });
    await answerWith(`${OK}Content-Length: 5\r\n\r\nhello`);
    await ask(GET, (got) => got.endsWith('hello'));
    expect(await ask(GET, isRefused)).toContain('this session allows 5 bytes a day');
  });

  test('counts nothing of a request without a credential', async () => {
    plane.policy.use([]);
    plane.sessionLimits.set('ses_test', { bytesPerDay: 5 });
    await answerWith(`${OK}Content-Length: 5\r\n\r\nhello`);
    await ask(GET, (got) => got.endsWith('hello'));
    expect(await ask(GET, (got) => got.endsWith('hello'))).toContain('200 OK');
    expect(plane.bytesCounted('ses_test')).toBe(0);
  });
});
