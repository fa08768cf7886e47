import { describe, expect, test } from 'vitest';
import { compileScrubPatterns } from '../../shared/inject/scrub/patterns.ts';
import { SAMPLE_SEARCH_KEY } from '../../shared/inject/testing/sample_requests.ts';
import { MOST_SHOWN_BYTES } from '../../shared/wire/approval_views.ts';
import { heldContent } from './held_content.ts';

const SECRET = 'planted-secret-of-a-test';
const SCRUB = compileScrubPatterns([SECRET], SAMPLE_SEARCH_KEY);
const request = (more: object = {}) => ({
  method: 'POST',
  host: 'api.example.test',
  target: '/items?dry=1',
  contentType: 'application/json',
  body: [Buffer.from('{"name":'), Buffer.from('"Käse"}')],
  ...more,
});
const content = (more?: object) => heldContent(request(more), SCRUB);
const ofBody = (text: string | Uint8Array) => content({ body: [Buffer.from(text)] });

describe('what is shown of a held request', () => {
  test('is the request as sent', () => {
    expect(content()).toEqual({
      line: 'POST https://api.example.test/items?dry=1',
      content_type: 'application/json',
      text: '{"name":"Käse"}',
      bytes: 16,
    });
  });

  test.each([
    ['the body', { body: [Buffer.from(`{"a":"${SECRET.slice(0, 9)}`), Buffer.from(`${SECRET.slice(9)}"}`)] }],
    ['its base64', { body: [Buffer.from(Buffer.from(SECRET).toString('base64'))] }],
    ['the query', { target: `/items?key=${SECRET}` }],
    ['the type', { contentType: `text/plain; a=${SECRET}` }],
  ])('never has the credential in %s', (_, more) => {
    const shown = JSON.stringify(content(more));
    expect(shown).not.toContain(SECRET);
    expect(shown).not.toContain(Buffer.from(SECRET).toString('base64').slice(0, 12));
    expect(shown).toContain('****');
  });

  test('ends after 64 KiB, where a credential across the end is masked too', () => {
    const before = 'a'.repeat(MOST_SHOWN_BYTES - 12);
    const { text, bytes } = ofBody(`${before}${SECRET}${'b'.repeat(100_000)}`);
    expect(text).toBe(`${before}${'*'.repeat(12)}`);
    expect(bytes).toBe(before.length + SECRET.length + 100_000);
  });

  test('may end within a character', () => {
    expect(ofBody(`${'a'.repeat(MOST_SHOWN_BYTES - 1)}ä and more`).text).toBe('a'.repeat(MOST_SHOWN_BYTES - 1));
  });

  test('writes hidden characters out', () => {
    expect(ofBody('a\u202eb\u200bc\u001b[2J').text).toBe('a<U+202E>b<U+200B>c<U+001B>[2J');
    expect(content({ target: '/a\u001b[2J' }).line).not.toContain('\u001b');
  });

  test('is no text for bytes that are none', () => {
    expect(ofBody(Buffer.from([0xff, 0xfe, 0x00, 0x41]))).toMatchObject({ text: null, bytes: 4 });
    expect(ofBody(Buffer.from('cut ä').subarray(0, 5)).text).toBeNull();
  });
});
