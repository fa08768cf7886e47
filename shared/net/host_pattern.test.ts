import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { covers, formatHostPattern, matchesHostPattern, parseHostPattern } from './host_pattern.ts';
import { hostOnPort } from './host_port.ts';

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
    ['api.example.com:443', 'api.example.com'],
    ['*.example.com:443', '*.example.com'],
    ['API.example.com.:8443', 'api.example.com:8443'],
    ['*.Bücher.example:8443', '*.xn--bcher-kva.example:8443'],
    ['[2001:db8::1]:8443', '[2001:db8::1]:8443'],
    ['10.0.0.5:1', '10.0.0.5:1'],
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
    ['*.com:8443', 'covers all of ".com"'],
    ['*.10.0.0.1:8443', 'over an IP address'],
    ['*.example.com:80', 'has port 80'],
    ['api.example.com:', 'port that is not a number'],
    ['api.example.com:08443', 'port that is not a number'],
    ['api.example.com:65536', 'port that is not a number'],
    ['2001:db8::1', 'without brackets'],
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

  test('a pattern covers a host at exactly its own port (property)', () => {
    const name = fc.constantFrom(
      'api.example.com',
      'a.b.example.com',
      'example.com',
      'other.test',
      '10.0.0.5',
      '[::1]',
    );
    const port = fc.oneof(fc.constantFrom(443, 8443, 844, 84, 43), fc.integer({ min: 81, max: 65_535 }));
    const entry = fc.constantFrom('api.example.com', '*.example.com', '*.b.example.com', '10.0.0.5', '[::1]');
    fc.assert(
      fc.property(name, port, entry, port, (host, hostPort, written, writtenPort) => {
        const typed = pattern(writtenPort === 443 ? written : `${written}:${writtenPort}`);
        const found = matchesHostPattern(typed, hostOnPort(host, hostPort));
        expect(found).toBe(hostPort === writtenPort && matchesHostPattern(pattern(written), host));
        expect(covers(formatHostPattern(typed), hostOnPort(host, hostPort))).toBe(found);
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
