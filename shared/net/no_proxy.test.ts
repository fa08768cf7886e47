import { describe, expect, test } from 'vitest';
import type { HostPattern } from './host_pattern.ts';
import { isExempt, parseNoProxy, withoutBoundHosts } from './no_proxy.ts';

const exact = (host: string): HostPattern => ({ kind: 'exact', host });

describe('a host is called without the proxy', () => {
  test.each([
    ['*', 'api.example.com', 443, true],
    ['example.com', 'example.com', 443, true],
    ['example.com', 'api.example.com', 443, true],
    ['.example.com', 'api.example.com', 443, true],
    ['*.example.com', 'api.example.com', 443, true],
    ['EXAMPLE.com.', 'api.example.com', 443, true],
    ['example.com', 'notexample.com', 443, false],
    ['api.example.com', 'example.com', 443, false],
    ['other.test, api.example.com', 'api.example.com', 443, true],
    ['other.test api.example.com', 'api.example.com', 443, true],
    ['example.com:443', 'example.com', 443, true],
    ['example.com:8443', 'example.com', 443, false],
    ['10.0.0.0/8', '10.1.2.3', 443, true],
    ['10.0.0.0/8', '11.1.2.3', 443, false],
    ['0.0.0.0/0', '11.1.2.3', 443, true],
    ['10.0.0.0/33', '10.1.2.3', 443, false],
    ['10.0.0.7', '10.0.0.7', 443, true],
    ['10.0.0.7', '10.0.0.70', 443, false],
    ['0.0.0.0/0', 'api.example.com', 443, false],
    ['fd00::/8', '[fd00::1]', 443, true],
    ['fd00::1', '[fd00::1]', 443, true],
    ['[fd00::1]:443', '[fd00::1]', 443, true],
    ['fd00::/8', '[fe00::1]', 443, false],
    ['::/0', '10.0.0.7', 443, false],
    ['a*.example.com', 'api.example.com', 443, false],
    ['<local>', 'intranet', 443, false],
    ['', 'api.example.com', 443, false],
  ])('by %j: %s:%d %s', (text, host, port, expected) => {
    expect(isExempt(parseNoProxy(text), host, port)).toBe(expected);
  });
});

describe('a command inherits no entry that some client reads as a bound host', () => {
  const below: HostPattern = { kind: 'suffix', suffix: '.example.com' };
  const belowPorted: HostPattern = { kind: 'suffix', suffix: '.example.com:8443' };

  test.each([
    ['*', exact('api.example.com')],
    ['api.example.com', exact('api.example.com')],
    ['.example.com', exact('api.example.com')],
    ['*.example.com', exact('api.example.com')],
    ['api.example.com:8443', exact('api.example.com')],
    // Python's requests compares the ends of names, without their dots.
    ['ample.com', exact('api.example.com')],
    ['com', exact('api.example.com')],
    ['a*.example.com', exact('api.example.com')],
    ['<local>', exact('api.example.com')],
    ['10.0.0.0/8', exact('10.1.2.3')],
    ['example.com', below],
    ['example.com', exact('api.example.com:8443')],
    ['api.example.com:443', exact('api.example.com:8443')],
    ['10.0.0.0/8', exact('10.1.2.3:8443')],
    ['api.example.com', belowPorted],
    ['deep.api.example.com', below],
    ['com', below],
  ])('%j', (entry, pattern) => {
    expect(withoutBoundHosts(parseNoProxy(`intranet.test,${entry}`), [exact('x.test'), pattern])).toEqual({
      kept: ['intranet.test'],
      dropped: [entry],
    });
  });

  test('and keeps the others as they are written', () => {
    const text = '.corp.test, 10.0.0.0/8 Build.Corp.test:8443';
    expect(withoutBoundHosts(parseNoProxy(text), [exact('api.example.com'), below]).kept).toEqual([
      '.corp.test',
      '10.0.0.0/8',
      'Build.Corp.test:8443',
    ]);
  });

  test('and never every host, also where none is bound', () => {
    expect(withoutBoundHosts(parseNoProxy('*'), [])).toEqual({ kept: [], dropped: ['*'] });
  });
});
