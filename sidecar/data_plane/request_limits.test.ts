import { afterEach, beforeEach, expect, test } from 'vitest';
import { bearerBinding } from '../../shared/model/testing/sample_binding.ts';
import type { DataPlane } from '../testing/data_plane.ts';
import { createAnswering, readUntil, startDataPlane } from '../testing/data_plane.ts';

const HOST = 'api.example.test';
const SECRET = 'planted-secret-0123456789';
const REFERENCE = { owner: 'personal', path: 'user/demo' } as const;

let plane: DataPlane;
let received: number;

beforeEach(async () => {
  plane = await startDataPlane();
  plane.credentials.set(REFERENCE, SECRET);
  plane.policy.use([bearerBinding(HOST, { requestsPerMinute: 2 })]);
  received = 0;
  await plane.upstream(
    HOST,
    createAnswering(() => {
      received += 1;
      return 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';
    }),
  );
});

afterEach(async () => {
  await plane.stop();
  expect(plane.errors).toEqual([]);
});

async function send(method = 'GET', body = ''): Promise<string> {
  const client = await plane.open(HOST);
  const length = body === '' ? '' : `Content-Length: ${body.length}\r\n`;
  client.write(`${method} / HTTP/1.1\r\nHost: ${HOST}\r\n${length}\r\n${body}`);
  const got = await readUntil(client, (text) => /\r\n\r\n[^]+/.test(text));
  client.destroy();
  return got;
}

test('a request over the limit of its binding is refused: 429, and when to try again', async () => {
  expect(await send()).toContain('200');
  expect(await send('POST', 'x')).toContain('200');
  const refused = await send('POST', 'y');
  expect(refused).toMatch(/^HTTP\/1\.1 429 /);
  expect(refused).toMatch(/\r\nretry-after: \d+\r\n/i);
  expect(refused).toContain('"code":"request_limit_reached"');
  expect(received).toBe(2);
  const { type, data } = plane.audit.events.at(-1) ?? {};
  expect(type).toBe('sandbox.proxy.trust_denied');
  expect(data).toMatchObject({ 'svc.proxy.reason': 'request_limit_reached', 'svc.proxy.binding.host': HOST });
});

test('the limit comes before the credential', async () => {
  await Promise.all([send(), send()]);
  const before = plane.credentials.asked.length;
  expect(await send()).toContain('429');
  expect(plane.credentials.asked).toHaveLength(before);
});

test('requests at the same moment do not exceed it', async () => {
  const replies = await Promise.all(Array.from({ length: 8 }, () => send()));
  expect(replies.filter((reply) => reply.includes('200 '))).toHaveLength(2);
  expect(received).toBe(2);
});

test('a session with a limit gets no credential over it, whatever its binding allows', async () => {
  plane.policy.use([bearerBinding(HOST)]);
  plane.sessionLimits.set('ses_test', { requestsPerDay: 1 });
  expect(await send()).toContain('200');
  const before = plane.credentials.asked.length;
  const refused = await send();
  expect(refused).toMatch(/^HTTP\/1\.1 429 /);
  expect(refused).toContain('this session allows 1 request a day');
  expect([received, plane.credentials.asked.length]).toEqual([1, before]);
});
