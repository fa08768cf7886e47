import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { normaliseHost, parseAuthority } from './host.ts';

describe('authority', () => {
  test.each([
    ['api.example.com', 'api.example.com', null],
    ['API.Example.COM:443', 'api.example.com', 443],
    ['api.example.com.:443', 'api.example.com', 443],
    ['localhost:1', 'localhost', 1],
    ['a_b.example.com', 'a_b.example.com', null],
    ['xn--bcher-kva.example:65535', 'xn--bcher-kva.example', 65535],
    ['127.0.0.1:443', '127.0.0.1', 443],
    ['0x7f.1:443', '127.0.0.1', 443],
    ['[::1]:443', '[::1]', 443],
    ['[2001:DB8::0:1]', '[2001:db8::1]', null],
  ])('reads %s', (text, host, port) => {
    expect(parseAuthority(text)).toEqual({ ok: true, value: { host, port } });
  });

  test.each([
    '',
    ':443',
    '.',
    'a..b',
    '.a',
    'a..',
    'user@host:443',
    'a b',
    'a\t',
    'a/b',
    'a?b',
    'a#b',
    'a\\b',
    'a,b',
    'a%2eb',
    'bücher.example',
    '\u2460.0.0.1',
    '[::1',
    '::1',
    '[::1]x',
    '[::1]x:443',
    '[fe80::1%eth0]',
    '[127.0.0.1]',
    '1.2.3.4.5',
    '256.0.0.1',
    'a'.repeat(64),
    `${'a.'.repeat(127)}ab`,
  ])('refuses the host of %j', (text) => {
    expect(parseAuthority(text)).toMatchObject({ ok: false, error: { reason: 'invalid_host' } });
  });

  test.each([
    'a:',
    'user:pw@host',
    'a:0',
    'a:65536',
    'a:0443',
    'a:+443',
    'a:443 ',
    'a:443:443',
    'a:4e2',
    'a:٤٤٣',
    '[::1]:',
  ])('refuses the port of %j', (text) => {
    expect(parseAuthority(text)).toMatchObject({ ok: false, error: { reason: 'invalid_port' } });
  });

  test('a parsed host is stable: the canonical host parses to itself (property)', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.domain(),
          fc.ipV4(),
          fc.ipV4Extended(),
          fc.ipV6().map((ip) => `[${ip}]`),
          fc.string(),
        ),
        (text) => {
          const first = parseAuthority(text);
          fc.pre(first.ok);
          expect(parseAuthority(first.value.host)).toEqual({ ok: true, value: { host: first.value.host, port: null } });
          expect(first.value.host).toMatch(/^[a-z0-9._:[\]-]+$/);
        },
      ),
    );
  });
});

describe('typed host', () => {
  test.each([
    ['API.Example.com', 'api.example.com'],
    ['bücher.example', 'xn--bcher-kva.example'],
    ['BÜCHER.example', 'xn--bcher-kva.example'],
    ['bu\u0308cher.example', 'xn--bcher-kva.example'],
    ['пример.com', 'xn--e1afmkfd.com'],
    ['日本語.jp', 'xn--wgv71a119e.jp'],
    ['παράδειγμα.gr', 'xn--hxajbheg2az3al.gr'],
    ['xn--80ak6aa92e.com', 'xn--80ak6aa92e.com'],
    ['localhost', 'localhost'],
    ['10.0.0.5', '10.0.0.5'],
    ['[2001:db8::1]', '[2001:db8::1]'],
  ])('%s becomes %s', (text, host) => {
    expect(normaliseHost(text)).toEqual({ ok: true, value: host });
  });

  test.each([
    ['', 'is empty'],
    ['https://api.example.com', 'is a URL'],
    ['api.example.com/v1', 'is a URL'],
    ['api.example.com:8443', 'has a port'],
    ['api.example.com:443', 'has a port'],
    ['api example.com', 'has a space'],
    ['me@example.com', 'user name'],
    ['*.example.com', '"*"'],
    ['2001:db8::1', 'brackets'],
    ['127.1', 'another spelling of the address 127.0.0.1'],
    ['0x7f000001', 'another spelling of the address 127.0.0.1'],
    ['[2001:DB8:0::1]', 'another spelling of the address [2001:db8::1]'],
    ['300.1.1.1', 'looks like an IP address'],
    ['-a.example', 'begins or ends with "-"'],
    ['a-.example', 'begins or ends with "-"'],
    ['a%41.example', 'character'],
    ['a..example', 'empty label'],
    ['xn--\u00fc.example', 'ASCII form'],
  ])('refuses %j: %s', (text, problem) => {
    const host = normaliseHost(text);
    expect(host.ok ? host.value : host.error.message).toContain(problem);
    expect(host.ok).toBe(false);
  });

  test.each([
    ['\u0430pi.github.com', 'U+0430', 'looks like "a"'],
    ['api.gith\u03c5b.com', 'U+03C5', 'looks like "u"'],
    ['\u0430\u0440\u0440\u04cf\u0435.com', 'U+0430', 'reads like "apple"'],
    ['g\u0131thub.com', 'U+0131', 'passes for an ASCII letter'],
    ['\uff41pi.example', 'U+FF41', 'another form of "a"'],
    ['\u{1d5ba}pi.example', 'U+1D5BA', 'another form of "a"'],
    ['api\u200b.example', 'U+200B', 'invisible'],
    ['a\u00adpi.example', 'U+00AD', 'invisible'],
    ['api\u3002example', 'U+3002', 'no letter'],
    ['api.example\u2044x', 'U+2044', 'no letter'],
    ['pa\u0338ypal.com', 'U+0338', 'combining mark'],
    ['\u0661.example', 'U+0661', 'no letter'],
    ['google\u30ce.com', 'U+30CE', 'Katakana'],
    ['\u043f\u03b1.com', 'U+03B1', 'Greek'],
  ])('refuses the look-alike %j, naming %s', (text, codePoint, why) => {
    const host = normaliseHost(text);
    expect(host).toMatchObject({ ok: false, error: { reason: 'look_alike_host' } });
    expect(host.ok ? '' : host.error.message).toContain(codePoint);
    expect(host.ok ? '' : host.error.message).toContain(why);
  });

  test('an ASCII host with one foreign letter is never accepted (property)', () => {
    const foreign = fc.constantFrom(
      ...Array.from('\u0430\u0435\u043e\u0440\u0441\u0501\u03bf\u03bd\u0585\u0131\uff4f\u13a0\u05d0\u200d'),
    );
    fc.assert(
      fc.property(
        fc.stringMatching(/^[a-z]{1,10}$/),
        foreign,
        fc.stringMatching(/^[a-z]{0,10}$/),
        (before, letter, after) => {
          expect(normaliseHost(`${before}${letter}${after}.com`)).toMatchObject({
            error: { reason: 'look_alike_host' },
          });
        },
      ),
    );
  });

  test('an accepted host is an authority that parses to itself (property)', () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.domain(), fc.string({ unit: 'grapheme' }), fc.stringMatching(/^[\p{L}.\-0-9]{1,20}$/u)),
        (text) => {
          const host = normaliseHost(text);
          fc.pre(host.ok);
          expect(parseAuthority(host.value)).toEqual({ ok: true, value: { host: host.value, port: null } });
        },
      ),
    );
  });
});
