import { describe, expect, test } from 'vitest';

import { canStartRequest, START_BYTES } from './request_start.ts';

const bytesOf = (text: string): Uint8Array => Uint8Array.from(text, (character) => character.charCodeAt(0));

describe('every part of a request from its start', () => {
  test.each([
    'GET / HTTP/1.1\r\nHost: a\r\n\r\n',
    'GET / HTTP/1.0\r\n\r\n',
    '\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n',
    'CONNECT a.example:443 HTTP/1.1\r\n\r\n',
    "M-SEARCH'~ * HTTP/1.1\r\n\r\n",
    'GET http://a.example/?b=c&d=%00 HTTP/1.1\r\n\r\n',
    'GET /\xff\x80 HTTP/1.1\r\nX: \0\r\n',
  ])('%j', (request) => {
    const parts = Array.from(request, (_, index) => request.slice(0, index));
    expect(parts.filter((part) => !canStartRequest(bytesOf(part)))).toEqual([]);
  });

  test('a request line of any length', () => {
    expect(canStartRequest(bytesOf(`GET /${'a'.repeat(START_BYTES)} HTTP/9`))).toBe(true);
    expect(canStartRequest(bytesOf('A'.repeat(START_BYTES * 100)))).toBe(true);
  });
});

/** The bytes of other protocols, and after how many of them it is clear that they are none of HTTP. */
test.each([
  ['SSH', 'SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n', 31],
  ['SSH without a comment', 'SSH-2.0-Go\r\n', 11],
  ['TLS', '\x16\x03\x01\x02\x00', 1],
  ['HTTP/2 by prior knowledge', 'PRI * HTTP/2.0\r\n', 12],
  ['HTTP/0.9', 'GET /\r\n', 6],
  ['an unknown version', 'GET / HTTP/1.2\r\n', 14],
  ['SMTP', 'EHLO a.example\r\n', 15],
  ['IMAP', 'a1 CAPABILITY\r\n', 14],
  ['Redis', '*1\r\n$4\r\nPING\r\n', 3],
  ['Redis, inline', 'PING\r\n', 5],
  ['PostgreSQL', '\0\0\0\x08\x04\xd2\x16\x2f', 1],
  ['MySQL', '\x4a\0\0\0\x0a', 2],
  ['MQTT', '\x10\x0c\0\x04MQTT', 1],
  ['AMQP', 'AMQP\0\0\x09\x01', 5],
  ['SOCKS 5', '\x05\x01\0', 1],
  ['git', '0032git-upload-pack /a\0host=a\0', 23],
  ['PROXY', 'PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n', 12],
  ['zeros', '\0\0\0\0', 1],
  ['a space first', ' GET / HTTP/1.1\r\n', 1],
  ['two spaces', 'GET  / HTTP/1.1\r\n', 5],
  ['two empty lines', '\r\n\r\n', 4],
  ['a line feed alone', 'GET / HTTP/1.1\n', 15],
])('not %s', (_protocol, text, clearAfter) => {
  const first = Array.from(text, (_, index) => index + 1).find(
    (count) => !canStartRequest(bytesOf(text.slice(0, count))),
  );
  expect(first).toBe(clearAfter);
});
