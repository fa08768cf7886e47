import { expect, test } from 'vitest';
import { parseReplyHead } from '../../shared/net/http/http1_head.ts';
import { listWithheldHeaders, sanitiseHead, sanitiseTrailers } from './sanitise_head.ts';

function parseHead(text: string): Parameters<typeof sanitiseHead>[0] {
  const head = parseReplyHead(text, { maxHeaders: 10 });
  if (!head.ok) throw new Error(head.error.message);
  return { head: head.value, raw: Buffer.from(text, 'latin1') };
}

test('removes withheld headers in any spelling, every copy; the rest keeps its bytes', () => {
  const kept = 'HTTP/1.1 200  odd\r\nx-A:  1\r\nLOCATION: https://x/\r\n\r\n';
  expect(sanitiseHead(parseHead(kept), false).raw.toString('latin1')).toBe(kept);
  const more = kept.replace('LOC', 'SET-COOKIE: a\r\nset-cookie2: b\r\nAlt-Svc: c\r\nLOC');
  const { raw, head } = sanitiseHead(parseHead(more), false);
  expect(raw.toString('latin1')).toBe(kept);
  expect(head.fields.map(({ name }) => name)).toEqual(['x-a', 'location']);
});

test('keeps cookies and challenges together, and never an alternative service', () => {
  const text = 'HTTP/1.1 401 x\r\nSET-COOKIE:  a\r\nWWW-Authenticate: Basic\r\nAlt-Svc: c\r\n\r\n';
  const { raw } = sanitiseHead(parseHead(text), true);
  expect(raw.toString('latin1')).toBe(text.replace('Alt-Svc: c\r\n', ''));
  expect(sanitiseTrailers('Set-Cookie: a=b\r\nalt-svc: x\r\n', true)).toBe('Set-Cookie: a=b\r\n');
});

test('names the withheld and the kept headers, each once, without values', () => {
  const { fields } = parseHead('HTTP/1.1 200 x\r\nSet-Cookie: a\r\nset-cookie: b\r\nX-A: 1\r\nAlt-Svc: c\r\n\r\n').head;
  expect(listWithheldHeaders(fields, false)).toEqual({ withheld: ['set-cookie', 'alt-svc'], kept: [] });
  expect(listWithheldHeaders(fields, true)).toEqual({ withheld: ['alt-svc'], kept: ['set-cookie'] });
  expect(listWithheldHeaders([], false)).toEqual({ withheld: [], kept: [] });
});

test.each([
  ['', ''],
  ['X-T: 1\r\n', 'X-T: 1\r\n'],
  ['Set-Cookie: a=b\r\nX-T: 1\r\nset-cookie: c\r\n', 'X-T: 1\r\n'],
  ['WWW-Authenticate : x\r\n', ''],
])('also removes them from trailers: %j', (trailers, expected) => {
  expect(sanitiseTrailers(trailers, false)).toBe(expected);
});
