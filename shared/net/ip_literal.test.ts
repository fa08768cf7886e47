import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  canonicalIpLiteral,
  isIpLiteral,
  isMachineAddress,
  isRefusedAddress,
  isRefusedIpLiteral,
} from './ip_literal.ts';

/** First and last address of each refused IPv4 range, and the adjacent addresses (if those are public). */
const V4_EDGES = [
  { range: '0.0.0.0/8', inside: ['0.0.0.0', '0.255.255.255'], outside: ['1.0.0.0'] },
  { range: '10.0.0.0/8', inside: ['10.0.0.0', '10.255.255.255'], outside: ['9.255.255.255', '11.0.0.0'] },
  { range: '100.64.0.0/10', inside: ['100.64.0.0', '100.127.255.255'], outside: ['100.63.255.255', '100.128.0.0'] },
  {
    range: '127.0.0.0/8',
    inside: ['127.0.0.0', '127.0.0.1', '127.255.255.255'],
    outside: ['126.255.255.255', '128.0.0.0'],
  },
  {
    range: '169.254.0.0/16',
    inside: ['169.254.0.0', '169.254.169.254', '169.254.255.255'],
    outside: ['169.253.255.255', '169.255.0.0'],
  },
  { range: '172.16.0.0/12', inside: ['172.16.0.0', '172.31.255.255'], outside: ['172.15.255.255', '172.32.0.0'] },
  {
    range: '192.0.0.0/24',
    inside: ['192.0.0.0', '192.0.0.192', '192.0.0.255'],
    outside: ['191.255.255.255', '192.0.1.0'],
  },
  { range: '192.0.2.0/24', inside: ['192.0.2.0', '192.0.2.255'], outside: ['192.0.1.255', '192.0.3.0'] },
  { range: '192.88.99.0/24', inside: ['192.88.99.0', '192.88.99.255'], outside: ['192.88.98.255', '192.88.100.0'] },
  { range: '198.18.0.0/15', inside: ['198.18.0.0', '198.19.255.255'], outside: ['198.17.255.255', '198.20.0.0'] },
  { range: '198.51.100.0/24', inside: ['198.51.100.0', '198.51.100.255'], outside: ['198.51.99.255', '198.51.101.0'] },
  { range: '203.0.113.0/24', inside: ['203.0.113.0', '203.0.113.255'], outside: ['203.0.112.255', '203.0.114.0'] },
  { range: '192.168.0.0/16', inside: ['192.168.0.0', '192.168.255.255'], outside: ['192.167.255.255', '192.169.0.0'] },
  {
    range: '224.0.0.0/3',
    inside: ['224.0.0.0', '239.255.255.255', '240.0.0.0', '255.255.255.255'],
    outside: ['223.255.255.255'],
  },
];

const hex = (n: number) => `0x${n.toString(16)}`;
const octal = (n: number) => `0${n.toString(8)}`;

/** Every spelling of an IPv4 address that inet_aton or a URL parser accepts. */
function v4Spellings(dotted: string): string[] {
  const [a = 0, b = 0, c = 0, d = 0] = dotted.split('.').map(Number);
  const whole = ((a * 256 + b) * 256 + c) * 256 + d;
  return [
    dotted,
    `${dotted}.`,
    [a, b, c, d].map(hex).join('.'),
    [a, b, c, d].map(octal).join('.'),
    [a, b, c, d].map((n) => `000${octal(n)}`).join('.'),
    `${hex(a).toUpperCase().replace('X', 'x')}.${octal(b)}.${c}.${d}`,
    `${a}.${b}.${c * 256 + d}`,
    `${a}.${(b * 256 + c) * 256 + d}`,
    `${hex(a)}.${(b * 256 + c) * 256 + d}`,
    String(whole),
    hex(whole),
    octal(whole),
    `0X${whole.toString(16).toUpperCase()}`,
    dotted.replaceAll('.', '\u3002'),
    dotted.replaceAll(/\d/g, (digit) => String.fromCodePoint(0xff10 + Number(digit))),
    dotted.replaceAll(/\d/g, (digit) => `%3${digit}`),
  ];
}

/** Every IPv6 address that embeds an IPv4 one. */
function v6Embeddings(dotted: string): string[] {
  const [a = 0, b = 0, c = 0, d = 0] = dotted.split('.').map(Number);
  const [high, low] = [(a * 256 + b).toString(16), (c * 256 + d).toString(16)];
  const flipped = [a * 256 + b, c * 256 + d].map((group) => (group ^ 0xffff).toString(16)).join(':');
  return [
    `::ffff:${dotted}`,
    `::FFFF:${high}:${low}`,
    `0:0:0:0:0:ffff:${high}:${low}`,
    `::${dotted}`,
    `::ffff:0:${dotted}`,
    `64:ff9b::${dotted}`,
    `64:ff9b::${high}:${low}`,
    `2002:${high}:${low}::1`,
    `2001:0:${high}:${low}::`,
    `2001:0:4136:e378:8000:63bf:${flipped}`,
    `2a00:1450::5efe:${dotted}`,
    `2a00:1450::200:5efe:${dotted}`,
  ];
}

const V6_REFUSED = [
  '::',
  '::1',
  '0:0:0:0:0:0:0:1',
  '0000:0000:0000:0000:0000:0000:0000:0001',
  'fe80::1',
  'FE80::1',
  'febf:ffff::1',
  'fe80::1%eth0',
  'fe80::1%25eth0',
  'fec0::1',
  'fc00::1',
  'fd12:3456:789a::1',
  'fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff',
  'ff02::1',
  'ff0e::1',
  '64:ff9b:1::1',
  '64:ff9b:1:ffff:ffff:ffff:ffff:ffff',
  '100::',
  '100::ffff:ffff:ffff:ffff',
  '100:0:0:1::1',
  '2001:db8::1',
  '2001:db8:ffff:ffff:ffff:ffff:ffff:ffff',
  '2001:1::',
  '2001:1::4',
  '2001:2::1',
  '2001:4:113::1',
  '2001:10::1',
  '2001:1f:ffff::1',
  '2001:20::1',
  '2001:2f:ffff::1',
  '2001:30::1',
  '2001:1ff:ffff::1',
  '3fff::1',
  '3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff',
  '5f00::1',
  '5f00:ffff::1',
];
const V6_PUBLIC = [
  '2606:4700:4700::1111',
  '2a00:1450:4001:80b::200e',
  'fbff::1',
  '2003::1',
  '2001:1::1',
  '2001:1::3',
  '2001:3::1',
  '2001:4:112::1',
  '2001:200::1',
  '2001:db7:ffff::1',
  '2001:db9::1',
  '100:0:0:2::1',
  'ff::1',
  '3fff:1000::1',
  '3ffe::1',
  '5eff::1',
  '5f01::1',
  '64:ff9b:2::808:808',
  '2620:4f:8000::1',
];

describe('invariant 7: refused IP literals in every spelling', () => {
  test.each(V4_EDGES.flatMap(({ inside }) => inside))('%s', (dotted) => {
    for (const spelling of v4Spellings(dotted))
      expect([spelling, isRefusedIpLiteral(spelling)]).toEqual([spelling, true]);
    for (const spelling of v6Embeddings(dotted)) {
      expect([spelling, isRefusedIpLiteral(spelling)]).toEqual([spelling, true]);
      expect([spelling, isRefusedIpLiteral(`[${spelling}]`)]).toEqual([spelling, true]);
      expect([spelling, isRefusedAddress(spelling)]).toEqual([spelling, true]);
    }
  });

  test.each(V4_EDGES.flatMap(({ outside }) => outside))('%s is public in every spelling', (dotted) => {
    for (const spelling of v4Spellings(dotted))
      expect([spelling, isRefusedIpLiteral(spelling)]).toEqual([spelling, false]);
    // The Teredo form with a fixed server is public only if both embedded addresses are.
    for (const spelling of v6Embeddings(dotted)) {
      if (spelling.startsWith('2001:0:') && spelling.endsWith('::')) continue; // its client is 255.255.255.255
      expect([spelling, isRefusedIpLiteral(`[${spelling}]`)]).toEqual([spelling, false]);
    }
  });

  test.each([
    ['127.0.0.1:8443', true],
    ['[::1]:8443', true],
    ['[::ffff:10.0.0.1]:1', true],
    ['8.8.8.8:8443', false],
    ['[2606:4700::1111]:65535', false],
    ['a.test:8443', false],
    ['a.test:80', false],
  ])('%s: a port makes no difference', (host, isRefused) => {
    expect(isRefusedIpLiteral(host)).toBe(isRefused);
  });

  test.each(V6_REFUSED)('%s', (address) => {
    expect(isRefusedIpLiteral(address)).toBe(true);
    expect(isRefusedIpLiteral(`[${address}]`)).toBe(true);
    expect(isRefusedAddress(address)).toBe(true);
  });

  test.each(V6_PUBLIC)('%s is public', (address) => {
    expect(isRefusedIpLiteral(`[${address}]`)).toBe(false);
    expect(isRefusedAddress(address)).toBe(false);
  });

  test.each([
    '1.2.3.4.5',
    '256.1.1.1',
    '4294967296',
    '08.8.8.8.09',
    '[::g]',
    '[::1',
    '1::2::3',
    'a.b.0x7',
    '[1.2.3.4]',
  ])('an invalid address is refused: %s', (text) => {
    expect(isRefusedIpLiteral(text)).toBe(true);
  });

  test.each([
    'example.com',
    'localhost',
    '10.example.com',
    '127.0.0.1.nip.io',
    '0x7f.example',
    'a1',
    'x.7z',
    'münchen.de',
    '1.0.0.127.in-addr.arpa',
  ])('a host name is not checked here: %s', (host) => {
    expect(isRefusedIpLiteral(host)).toBe(false);
    expect(isIpLiteral(host)).toBe(false);
  });

  test('any private address is refused in any spelling (property)', () => {
    const octet = fc.integer({ min: 0, max: 255 });
    const network = fc.constantFrom([10], [127], [192, 168], [169, 254], [172, 20], [100, 100]);
    fc.assert(
      fc.property(network, octet, octet, octet, fc.nat(100), (start, b, c, d, pick) => {
        const dotted = [...start, b, c, d].slice(0, 4).join('.');
        const spellings = [...v4Spellings(dotted), ...v6Embeddings(dotted).map((address) => `[${address}]`)];
        return isRefusedIpLiteral(spellings[pick % spellings.length] ?? '');
      }),
      { numRuns: 300 },
    );
  });

  test('no invalid address is treated as safe to dial', () => {
    for (const text of ['', 'example.com', 'a/b', '1.2.3.4/24', '1.2.3.4:443', '8.8.8.8#', ' 8.8.8.8']) {
      expect([text, isRefusedAddress(text)]).toEqual([text, true]);
    }
  });
});

test.each([
  ['127.0.0.1', true],
  ['0.0.0.0', true],
  ['169.254.169.254', true],
  ['192.0.0.192', true],
  ['100.100.100.200', true],
  ['::', true],
  ['::1', true],
  ['::ffff:169.254.169.254', true],
  ['64:ff9b::7f00:1', true],
  ['fe80::1', true],
  ['febf::1', true],
  ['fd00:ec2::254', true],
  ['no address', true],
  ['10.0.0.1', false],
  ['192.168.1.1', false],
  ['192.0.2.1', false],
  ['100.100.100.201', false],
  ['fec0::1', false],
  ['fd00:ec2::255', false],
  ['::ffff:10.0.0.1', false],
])('%s is an address of the machine: %s', (address, expected) => {
  expect(isMachineAddress(address)).toBe(expected);
});

test('an address has one canonical spelling', () => {
  for (const spelling of v4Spellings('8.8.4.4')) expect(canonicalIpLiteral(spelling)).toBe('8.8.4.4');
  expect(canonicalIpLiteral('2001:DB8:0:0:0:0:0:1')).toBe('[2001:db8::1]');
  expect(canonicalIpLiteral('[2001:db8::0:1]')).toBe('[2001:db8::1]');
  expect(canonicalIpLiteral('example.com')).toBeNull();
});
