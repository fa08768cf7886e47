import fc from 'fast-check';
import { afterEach, expect, test, vi } from 'vitest';

import type { BodyTransform } from '../../shared/inject/outgoing_request.ts';
import { refusal } from '../../shared/model/refusal.ts';
import { err, ok } from '../../shared/model/result.ts';
import { Connection } from '../../machine/connection/connection.ts';
import { ScriptedStream, turns } from '../testing/scripted_stream.ts';
import { BODY_STALL_MS, BodyBudget, bufferBody } from './body.ts';
import { ByteCollector } from './byte_collector.ts';
import { streamBody } from './stream_body.ts';

const CHUNKED = { kind: 'chunked' } as const;

afterEach(() => {
  vi.useRealTimers();
});

function sides() {
  const client = new ScriptedStream();
  const upstream = new ScriptedStream();
  return { client, upstream, from: new Connection(client), to: new Connection(upstream) };
}

test('buffers a body and leaves the bytes after it', async () => {
  const { client, from } = sides();
  client.send('3\r\nabc\r\n2\r\nde\r\n0\r\n\r\nGET /next');
  const budget = new BodyBudget(100);
  const body = await bufferBody(from, CHUNKED, { maxBytes: 10, advice: '', budget, sessionId: null });
  if (!body.ok) throw new Error(body.error.message);
  expect(Buffer.concat(body.value.chunks).toString()).toBe('abcde');
  expect(from.take()?.toString()).toBe('GET /next');
  expect(budget.heldBytes).toBe(5);
  body.value.release();
  body.value.release();
  expect(budget.heldBytes).toBe(0);
});

test.each([
  ['over the limit', 'b\r\nhello world\r\n', null, 'body_too_large'],
  ['over the budget of all bodies', '7\r\n1234567\r\n', null, 'body_too_large'],
  ['with a broken chunk', '2\r\nab\r\nzz\r\n', null, 'invalid_request'],
  ['whose client ends early', '2\r\nab\r\n', 'finish', 'invalid_request'],
  ['whose client disconnects', '2\r\nab\r\n', 'lose', 'invalid_request'],
])('returns the budget for a body %s', async (_name, text, end, reason) => {
  const { client, from } = sides();
  const budget = new BodyBudget(6);
  client.send(text);
  const body = bufferBody(from, CHUNKED, { maxBytes: 10, advice: '', budget, sessionId: null });
  await turns(2);
  if (end === 'finish') client.send(null);
  if (end === 'lose') client.destroy();
  expect(await body).toMatchObject({ ok: false, error: { reason } });
  expect(budget.heldBytes).toBe(0);
});

test('lets one session hold half of the total budget, and returns it', async () => {
  const budget = new BodyBudget(6);
  const bufferText = (sessionId: string, text: string) => {
    const { client, from } = sides();
    client.send(text);
    return bufferBody(from, { kind: 'length', length: text.length }, { maxBytes: 10, advice: '', budget, sessionId });
  };
  const first = await bufferText('ses_a', 'abc');
  expect(await bufferText('ses_a', 'd')).toMatchObject({ ok: false, error: { reason: 'body_too_large' } });
  expect(await bufferText('ses_b', 'efg')).toMatchObject({ ok: true });
  if (first.ok) first.value.release();
  expect(await bufferText('ses_a', 'hij')).toMatchObject({ ok: true });
});

test('waits a minute for the next byte of a body and no longer, and returns the budget', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const { client, from } = sides();
  const budget = new BodyBudget(6);
  const body = bufferBody(
    from,
    { kind: 'length', length: 4 },
    { maxBytes: 10, advice: '', budget, sessionId: 'ses_a' },
  );
  for (const text of ['a', 'b']) {
    client.send(text);
    await vi.advanceTimersByTimeAsync(BODY_STALL_MS - 1);
  }
  expect(budget.heldBytes).toBe(2);
  await vi.advanceTimersByTimeAsync(1);
  expect(await body).toMatchObject({ ok: false, error: { reason: 'invalid_request' } });
  expect(budget.heldBytes).toBe(0);
});

test('stores a body that arrives byte by byte in few blocks', () => {
  const collector = new ByteCollector();
  for (let at = 0; at < 200_000; at += 1) collector.add(Uint8Array.of(at & 0xff));
  const chunks = collector.chunks();
  expect(chunks.length).toBeLessThan(16);
  expect(chunks.reduce((sum, chunk) => sum + chunk.length, 0)).toBe(200_000);
});

test('keeps the order of bytes for pieces of any size', () => {
  const sizes = fc.array(fc.oneof(fc.nat(40), fc.integer({ min: 16_000, max: 70_000 })), { maxLength: 12 });
  fc.assert(
    fc.property(sizes, (lengths) => {
      const pieces = lengths.map((length, index) => Buffer.alloc(length, index + 1));
      const collector = new ByteCollector();
      for (const piece of pieces) collector.add(piece);
      return Buffer.concat(collector.chunks()).equals(Buffer.concat(pieces));
    }),
    { numRuns: 60 },
  );
});

test('copies a body with its framing as it arrives, and stops an upstream that does not read', async () => {
  const { client, from } = sides();
  const upstream = new ScriptedStream({ reading: false });
  const done = streamBody(from, new Connection(upstream), { kind: 'length', length: 10_000_000_000 }, null);
  client.sendForEver(Buffer.alloc(64 * 1024));
  await turns();
  const sent = client.sentBytes;
  expect(sent).toBeLessThan(1024 * 1024);
  await turns();
  expect(client.sentBytes).toBe(sent);
  upstream.destroy();
  expect(await done).toBe('upstream_gone');
});

test.each([
  ['a client that disconnects', 'lose', 'client_gone'],
  ['a client that ends early', 'finish', 'invalid_request'],
  ['a broken chunk', 'zz\r\n', 'invalid_request'],
])('destroys the upstream connection for %s, so that a partial body never looks complete', async (_name, what, end) => {
  const { client, upstream, from, to } = sides();
  const done = streamBody(from, to, CHUNKED, null);
  client.send('3\r\nabc\r\n');
  await turns(2);
  if (what === 'lose') client.destroy();
  else client.send(what === 'finish' ? null : what);
  const ended = await done;
  expect(typeof ended === 'string' ? ended : ended.reason).toBe(end);
  expect(upstream.destroyed).toBe(true);
});

test('frames a transformed body as the client framed it', async () => {
  const { client, upstream, from, to } = sides();
  const upper: BodyTransform = {
    push: (data) => Promise.resolve(ok([Buffer.from(Buffer.from(data).toString().toUpperCase())])),
    end: () => Promise.resolve(ok([])),
  };
  client.send('3\r\nabc\r\n0\r\nX-T: 1\r\n\r\n');
  expect(await streamBody(from, to, CHUNKED, upper)).toBe('sent');
  await turns();
  expect(upstream.text).toBe('3\r\nABC\r\n0\r\nX-T: 1\r\n\r\n');
});

test('refuses if the transform refuses, and destroys the upstream connection', async () => {
  const { client, upstream, from, to } = sides();
  const why = refusal('invalid_request', 'no');
  const never: BodyTransform = { push: () => Promise.resolve(err(why)), end: () => Promise.resolve(ok([])) };
  client.send('3\r\nabc\r\n0\r\n\r\n');
  expect(await streamBody(from, to, CHUNKED, never)).toBe(why);
  expect(upstream.destroyed).toBe(true);
});
