import { expect, test } from 'vitest';
import { parseReplyHead } from '../../shared/net/http1_head.ts';
import { sanitised, sanitisedTrailers } from './sanitised_head.ts';

function head(text: string): ReturnType<typeof sanitised> {
  const parsed = parseReplyHead(text, { maxHeaders: 10 });
  if (!parsed.ok) throw new Error(parsed.error.message);
  return sanitised({ head: parsed.value, raw: Buffer.from(text, 'latin1') });
}

test('what is withheld is taken out, in any spelling and every copy; the rest keeps its bytes', () => {
  const kept = 'HTTP/1.1 200  odd\r\nx-A:  1\r\nLOCATION: https://x/\r\n\r\n';
  expect(head(kept).raw.toString('latin1')).toBe(kept);
  const { raw, head: parsed } = head(kept.replace('LOC', 'SET-COOKIE: a\r\nset-cookie2: b\r\nAlt-Svc: c\r\nLOC'));
  expect(raw.toString('latin1')).toBe(kept);
  expect(parsed.fields.map(({ name }) => name)).toEqual(['x-a', 'location']);
});

test.each([
  ['', ''],
  ['X-T: 1\r\n', 'X-T: 1\r\n'],
  ['Set-Cookie: a=b\r\nX-T: 1\r\nset-cookie: c\r\n', 'X-T: 1\r\n'],
  ['WWW-Authenticate : x\r\n', ''],
])('of trailers too: %j', (trailers, expected) => {
  expect(sanitisedTrailers(trailers)).toBe(expected);
});
