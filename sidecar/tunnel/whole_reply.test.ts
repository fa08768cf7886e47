import { expect, test } from 'vitest';

import { SAMPLE_SEARCH_KEY } from '../../shared/inject/testing/sample_requests.ts';
import { compileScrubPatterns } from '../../shared/inject/scrub/patterns.ts';
import { Connection } from '../../machine/connection/connection.ts';
import type { Reply } from '../exchange/outgoing.ts';
import { readReply } from '../testing/read_reply.ts';
import { ScriptedStream, turns } from '../testing/scripted_stream.ts';
import { takeWholeReply } from './whole_reply.ts';

const SECRET = 'planted-secret-0123456789';
const PATTERNS = compileScrubPatterns([SECRET], SAMPLE_SEARCH_KEY);

/** A reply whose bytes arrived in these pieces; `rest` reads what is left in its connection. */
async function replyOf(...pieces: readonly string[]): Promise<{ reply: Reply; rest: () => string }> {
  const stream = new ScriptedStream();
  const upstream = new Connection(stream);
  for (const piece of pieces) {
    stream.send(piece);
    await turns(2);
  }
  return { reply: await readReply(upstream), rest: () => upstream.take()?.toString() ?? '' };
}

const lengthOf = (body: string, more = ''): string =>
  `HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n${more}\r\n`;

test.each([
  ['with a body', lengthOf('hello') + 'hello'],
  ['without one', 'HTTP/1.1 204 No Content\r\n\r\n'],
  ['with an empty one', lengthOf('')],
])('a reply %s that arrived in one piece is sent as it arrived, scrubbed or not', async (_what, text) => {
  for (const scrub of [null, PATTERNS]) {
    const { reply, rest } = await replyOf(text);
    expect(takeWholeReply(reply, scrub)?.bytes.toString('latin1')).toBe(text);
    expect(rest()).toBe('');
  }
});

test.each([
  ['arrived in two pieces', [lengthOf('hello'), 'hello']],
  ['is incomplete', [`${lengthOf('hello')}hel`]],
  ['is followed by surplus bytes', [`${lengthOf('hello')}helloHTTP/1.1 200`]],
])('a reply that %s is left in its connection', async (_what, pieces) => {
  const { reply, rest } = await replyOf(...pieces);
  expect(takeWholeReply(reply, PATTERNS)).toBeNull();
  expect(reply.raw.toString('latin1') + rest()).toBe(pieces.join(''));
});

test.each([
  ['in its body', lengthOf(SECRET) + SECRET],
  ['in its head', `HTTP/1.1 200 OK\r\nX-Token: ${SECRET}\r\nContent-Length: 2\r\n\r\nok`],
  ['in a reason without a body', `HTTP/1.1 204 ${SECRET}\r\n\r\n`],
])('a reply with the credential %s is masked, and sent in one piece like any other', async (_where, text) => {
  const { reply, rest } = await replyOf(text);
  const whole = takeWholeReply(reply, PATTERNS);
  expect([whole?.bytes.toString('latin1'), whole?.masked]).toEqual([
    text.replaceAll(SECRET, '*'.repeat(SECRET.length)),
    true,
  ]);
  expect(rest()).toBe('');
});

test.each([
  ['is compressed', lengthOf('hello', 'Content-Encoding: gzip\r\n') + 'hello', PATTERNS],
  ['is chunked', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n', null],
  ['ends with its connection', 'HTTP/1.1 200 OK\r\n\r\nhello', null],
])('a reply that %s is read further', async (_what, text, scrub) => {
  expect(takeWholeReply((await replyOf(text)).reply, scrub)).toBeNull();
});

test('a compressed reply on passthrough is not decoded', async () => {
  const text = `${lengthOf('hello', 'Content-Encoding: gzip\r\n')}hello`;
  expect(takeWholeReply((await replyOf(text)).reply, null)?.bytes.toString('latin1')).toBe(text);
});
