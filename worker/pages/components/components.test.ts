import { describe, expect, test } from 'vitest';
import { flash } from './alert.ts';
import { foreignLink, foreignText } from './foreign_text.ts';
import { formRefusal, textField } from './form_field.ts';
import { pathWith } from './pager.ts';
import { relativeTime } from './time.ts';

const text = (content: unknown) => String(content);

describe('foreign text', () => {
  test('is escaped, and its invisible characters are shown by name', () => {
    const shown = text(foreignText('<b>pay\u202etxt\u200b'));
    expect(shown).toContain('&lt;b&gt;pay');
    expect(shown).toContain('<span class="revealed">&lt;U+202E&gt;</span>');
    expect(shown).toContain('<span class="revealed">&lt;U+200B&gt;</span>');
    expect(shown).not.toMatch(/[\u202e\u200b]/);
  });

  test('is a link only for http(s), without a referrer', () => {
    expect(text(foreignLink('https://example.com/"x'))).toContain(
      '<a href="https://example.com/%22x" rel="noopener noreferrer nofollow">',
    );
    for (const url of ['javascript:alert(1)', 'data:text/html,x', '//example.com', 'https:', ' https://example.com']) {
      expect(text(foreignLink(url))).not.toContain('<a ');
    }
  });
});

describe('a message after a change', () => {
  test('comes by a code of the table, never by a text or an inherited property name', () => {
    expect(text(flash('secret_stored'))).toContain('The secret is stored');
    for (const code of ['<b>hello</b>', 'toString', '__proto__', '', undefined]) expect(text(flash(code))).toBe('');
  });
});

describe('a field', () => {
  const form = {
    values: { path: 'a"b', value: 'planted' },
    problems: [{ field: 'path', message: 'is no path' }],
    refusal: null,
  };

  test('shows its problem where it is announced, and has the focus', () => {
    const field = text(textField(form, { name: 'path', label: 'Path', hint: 'Such as user/demo' }));
    expect(field).toContain('value="a&quot;b"');
    expect(field).toMatch(/aria-describedby="path-hint path-problem"\s+aria-invalid="true"\s+autofocus/);
    expect(field).toMatch(/id="path-problem">\s*It is no path\.\s*</);
  });

  test('with a secret is never returned', () => {
    const field = text(textField(form, { name: 'value', label: 'Value', isSecret: true }));
    expect(field).toContain('type="password"');
    expect(field).not.toContain('planted');
  });

  test('that is not in the form is named above it', () => {
    expect(text(formRefusal(form, ['value']))).toContain('path is no path');
    expect(text(formRefusal(form, ['path']))).toBe('');
  });
});

test.each([
  [0, 'now'],
  [59, '59 s ago'],
  [60, '1 min ago'],
  [7_200, '2 h ago'],
  [200_000, '2 d ago'],
  [-90, 'in 1 min'],
])('%d seconds are "%s"', (seconds, words) => {
  const now = Date.parse('2026-01-02T03:04:05.000Z');
  expect(relativeTime(new Date(now - seconds * 1000).toISOString(), now)).toBe(words);
});

test('a path has the non-empty parameters, encoded', () => {
  expect(pathWith('/audit', { type: 'a.,b', host: '', session: undefined })).toBe('/audit?type=a.%2Cb');
  expect(pathWith('/audit', {})).toBe('/audit');
});

test('a time says in the browser what it said on the server', async () => {
  const island = new URL('../../islands/relative_time.js', import.meta.url).href;
  const { relativeTime: relativeTimeOfPage }: { relativeTime: typeof relativeTime } = await import(island);
  const now = Date.parse('2026-03-01T12:00:00.000Z');
  for (const seconds of [0, 4, 5, 59, 60, 3_599, 3_600, 86_399, 86_400, 900_000, -4, -5, -61, -90_000]) {
    const time = new Date(now - seconds * 1000).toISOString();
    expect(relativeTimeOfPage(time, now)).toBe(relativeTime(time, now));
  }
});
