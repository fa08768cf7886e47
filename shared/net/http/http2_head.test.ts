import fc from 'fast-check';
import { describe, expect, test } from 'vitest';

import { formatReplyHead, formatRequestHead } from './http1_head.ts';
import {
  formatTrailerList,
  interimFields,
  parseReplyFields,
  parseRequestFields,
  replyFieldList,
  requestFieldList,
  trailerFields,
} from './http2_head.ts';

const LIMITS = { maxHeaders: 20, maxHeadBytes: 1000 };
const GET = [':method', 'GET', ':scheme', 'https', ':authority', 'a.example', ':path', '/x?y=z'];

const name = fc.stringMatching(/^x[a-z0-9-]{0,8}$/);
const value = fc.stringMatching(/^(?:[!-~\xa0-\xff](?:[\t -~\xa0-\xff]{0,8}[!-~\xa0-\xff])?)?$/);
const fields = fc.array(fc.tuple(name, value), { maxLength: 10 }).map((pairs) => pairs.flat());

function parse(list: readonly string[]) {
  return parseRequestFields(list, [], LIMITS);
}

function headers(count: number): string[] {
  return Array.from({ length: count }, () => ['a', '1']).flat();
}

describe('a request of HTTP/2', () => {
  test('is a head of HTTP/1.1 with its authority as the first field', () => {
    const head = parse([...GET, 'x-a', '1']);
    expect(head).toMatchObject({ ok: true, value: { method: 'GET', target: '/x?y=z' } });
    const text = head.ok ? formatRequestHead({ ...head.value, fields: head.value.fields.slice(1) }) : '';
    expect(text).toContain('x-a: 1\r\n');
    expect(head.ok && head.value.fields[0]).toMatchObject({ name: 'host', value: 'a.example' });
  });

  test('survives the way there and back: order, duplicates and the order of pseudo-header fields', () => {
    const pseudo = fc.shuffledSubarray([':method', ':scheme', ':authority', ':path'], { minLength: 4 });
    const pairs = new Map([0, 2, 4, 6].map((at) => [GET[at] ?? '', GET[at + 1] ?? '']));
    fc.assert(
      fc.property(pseudo, fields, (order, more) => {
        const list = [...order.flatMap((each) => [each, pairs.get(each) ?? '']), ...more];
        const head = parse(list);
        expect(head.ok && requestFieldList(head.value)).toEqual(list);
      }),
    );
  });

  test('keeps a Host in the place of the authority', () => {
    const list = [':method', 'GET', ':scheme', 'https', ':path', '/', 'x-a', '1', 'host', 'a.example'];
    const head = parse(list);
    expect(head.ok && requestFieldList(head.value)).toEqual(list);
  });

  test.each([
    ['no method', GET.slice(2)],
    ['no path', GET.slice(0, 6)],
    ['a method twice', [':method', 'PUT', ...GET]],
    ['an unknown pseudo-header field', [...GET, ':status', '200']],
    ['a :protocol without CONNECT', [...GET, ':protocol', 'websocket']],
    ['a pseudo-header field after another', [...GET.slice(0, 6), 'x-a', '1', ':path', '/']],
    ['another scheme', GET.map((each) => (each === 'https' ? 'http' : each))],
    ['CONNECT', GET.map((each) => (each === 'GET' ? 'CONNECT' : each))],
    ['an absolute path', GET.map((each) => (each === '/x?y=z' ? 'https://b.example/' : each))],
    ['a star', GET.map((each) => (each === '/x?y=z' ? '*' : each))],
    ['an empty path', GET.map((each) => (each === '/x?y=z' ? '' : each))],
    ['a path with a space', GET.map((each) => (each === '/x?y=z' ? '/a b' : each))],
    ['a method with a line break', GET.map((each) => (each === 'GET' ? 'GET\r\nX: 1' : each))],
    ['a value with a line break', [...GET, 'x-a', '1\r\nx-b: 2']],
    ['a value with a NUL', [...GET, 'x-a', '\0']],
    ['a value beyond latin1', [...GET, 'x-a', '\u0100']],
    ['a name in upper case', [...GET, 'X-A', '1']],
    ['a name with a colon', [...GET, 'x:a', '1']],
    ['an empty name', [...GET, '', '1']],
    ['a header of a connection', [...GET, 'http2-settings', 'AAMAAABk']],
    ['another te than trailers', [...GET, 'te', 'gzip']],
    ['two content-lengths', [...GET, 'content-length', '1', 'content-length', '1']],
    ['a list as the content-length', [...GET, 'content-length', '1, 1']],
    ['a content-length with a sign', [...GET, 'content-length', '+1']],
    ['a content-length with a leading zero', [...GET, 'content-length', '01']],
    ['a content-length in hexadecimal', [...GET, 'content-length', '0x1']],
    ['an empty content-length', [...GET, 'content-length', '']],
    ['a content-length beyond any body', [...GET, 'content-length', '9'.repeat(17)]],
  ])('with %s is refused', (_what, list) => {
    expect(parse(list)).toMatchObject({ ok: false, error: { reason: 'invalid_fields' } });
  });

  test('has a limit of headers, and one of bytes', () => {
    expect(parse([...GET, ...headers(20)]).ok).toBe(true);
    expect(parse([...GET, ...headers(21)])).toMatchObject({ error: { reason: 'too_many_headers' } });
    expect(parse([...GET, 'a', 'x'.repeat(1000)])).toMatchObject({ error: { reason: 'head_too_large' } });
  });
});

describe('a reply of HTTP/2', () => {
  test('survives the way there and back', () => {
    fc.assert(
      fc.property(fc.integer({ min: 100, max: 599 }), fields, (status, more) => {
        const list = [':status', String(status), ...more];
        const head = parseReplyFields(list, [], LIMITS);
        expect(head.ok && replyFieldList(head.value)).toEqual(list);
        expect(head.ok && formatReplyHead(head.value)).toMatch(/^HTTP\/2 \d{3}\r\n/);
      }),
    );
  });

  test.each([
    [],
    ['x-a', '1'],
    [':status', '099'],
    [':status', '600'],
    [':status', '200 OK'],
    ['x', '1', ':status', '200'],
  ])('with %j, %j is refused', (...list) => {
    expect(parseReplyFields(list, [], LIMITS)).toMatchObject({ ok: false });
  });

  test('is written as it was masked: the line counts, not the value', () => {
    const field = { name: 'x-a', line: 'x-a: ****', value: 'secret' };
    const head = { version: '2', status: 200, reason: '', startLine: 'HTTP/2 200', fields: [field] } as const;
    expect(replyFieldList(head)).toEqual([':status', '200', 'x-a', '****']);
    expect(interimFields({ ...head, status: 103 })).toEqual({ ':status': '103', 'x-a': ['****'] });
  });
});

test('a reply has its names and values joined by a colon alone, as a credential of two parts is', () => {
  const head = parseReplyFields([':status', '200', 'user', 'password'], [], { maxHeaders: 9, maxHeadBytes: 999 });
  expect(head.ok && formatReplyHead(head.value)).toBe('HTTP/2 200\r\nuser:password\r\n\r\n');
  expect(head.ok && replyFieldList(head.value)).toEqual([':status', '200', 'user', 'password']);
  expect(formatTrailerList(['user', 'password'])).toBe('user:password\r\n');
});

test('trailers are header lines, and back by name', () => {
  const lines = formatTrailerList(['x-t', '1', 'u', '', 'x-t', '\xa03']);
  expect(lines).toBe('x-t:1\r\nu:\r\nx-t:\xa03\r\n');
  expect(trailerFields(lines)).toEqual({ 'x-t': ['1', '\xa03'], u: [''] });
  expect(trailerFields('')).toEqual({});
});
