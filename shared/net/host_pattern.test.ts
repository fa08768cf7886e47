import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { formatHostPattern, matchesHostPattern, parseHostPattern } from './host_pattern.ts';

function pattern(text: string) {
  const parsed = parseHostPattern(text);
  if (!parsed.ok) throw new Error(parsed.error.message);
  return parsed.value;
}

describe('host pattern', () => {
  test.each([
    ['api.example.com', 'api.example.com'],
    ['API.EXAMPLE.COM', 'api.example.com'],
    ['*.Example.com', '*.example.com'],
    ['*.bücher.example', '*.xn--bcher-kva.example'],
    ['localhost', 'localhost'],
    ['10.0.0.5', '10.0.0.5'],
    ['[2001:db8::1]', '[2001:db8::1]'],
  ])('%s is normalised to %s', (text, kept) => {
    expect(formatHostPattern(pattern(text))).toBe(kept);
  });

  test.each([
    ['*', 'every host'],
    ['*.com', 'covers all of ".com"'],
    ['*.', 'is empty'],
    ['**.example.com', 'one leading label'],
    ['*.*.example.com', 'one leading label'],
    ['api.*.com', 'one leading label'],
    ['*api.example.com', 'one leading label'],
    ['api*.example.com', 'one leading label'],
    ['*.10.0.0.1', 'over an IP address'],
    ['*.example.com:443', 'has a port'],
    ['https://*.example.com', 'one leading label'],
    ['*.ex ample.com', 'has a space'],
    ['*.\u0435xample.com', 'U+0435'],
  ])('refuses %j: %s', (text, problem) => {
    const parsed = parseHostPattern(text);
    expect(parsed.ok ? parsed.value : parsed.error.message).toContain(problem);
  });

  test.each([
    ['*.example.com', 'api.example.com', true],
    ['*.example.com', 'a.b.c.example.com', true],
    ['*.example.com', 'example.com', false],
    ['*.example.com', '.example.com', false],
    ['*.example.com', 'evilexample.com', false],
    ['*.example.com', 'api.example.com.evil.test', false],
    ['api.example.com', 'api.example.com', true],
    ['api.example.com', 'x.api.example.com', false],
  ])('%s over %s: %s', (text, host, matches) => {
    expect(matchesHostPattern(pattern(text), host)).toBe(matches);
  });

  test('a wildcard covers exactly the hosts below its suffix (property)', () => {
    const label = fc.stringMatching(/^[a-z][a-z0-9]{0,5}$/);
    const labels = fc.array(label, { minLength: 2, maxLength: 4 });
    fc.assert(
      fc.property(labels, fc.array(label, { maxLength: 3 }), labels, (suffix, below, other) => {
        const wildcard = pattern(`*.${suffix.join('.')}`);
        expect(matchesHostPattern(wildcard, [...below, ...suffix].join('.'))).toBe(below.length > 0);
        const isBelow = other.length > suffix.length && other.slice(-suffix.length).join('.') === suffix.join('.');
        expect(matchesHostPattern(wildcard, other.join('.'))).toBe(isBelow);
      }),
    );
  });

  test('formatting and parsing again changes nothing (property)', () => {
    fc.assert(
      fc.property(fc.domain(), fc.boolean(), (domain, isWildcard) => {
        const parsed = parseHostPattern(isWildcard ? `*.${domain}` : domain);
        fc.pre(parsed.ok);
        expect(parseHostPattern(formatHostPattern(parsed.value))).toEqual(parsed);
      }),
    );
  });
});
