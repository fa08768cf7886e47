import { BlockList, isIP } from 'node:net';
import { normaliseHost, parseAuthority } from '../../shared/net/host.ts';
import { hostOnPort } from '../../shared/net/host_port.ts';
import { formatHostPattern, matchesHostPattern, parseHostPattern } from '../../shared/net/host_pattern.ts';
import { isIpLiteral, isRefusedIpLiteral } from '../../shared/net/ip_literal.ts';
import { canonicalPath, parseTarget, splitTarget } from '../../shared/net/http/target.ts';
import type { FuzzTarget } from './fuzz_engine.ts';

const NAME_WORDS = [
  '.', '..', ':', ':443', ':0', ':65536', '[', ']', '@', '/', '\\', '?', '#', '%', '%2e', '%00', ' ', '\t', '\0', '-', '_',
  '*', '*.', 'xn--', 'xn--e1afmkfd', '127.0.0.1', '0x7f', '0177', '2130706433', '::1', '::ffff:', '64:ff9b::', '2002:',
  'fe80::1%eth0', '\xad', '\xe9', '\xb2', '1', 'a', 'A', 'com', 'example', '169.254.169.254', '10.', '192.168.', '100.64.',
] as const; // prettier-ignore
const NAME_SEEDS = [
  'api.example.com', 'API.Example.COM.:443', '[::1]:443', '[2001:db8::1]', '127.0.0.1:8443', '0x7f.1', '1.2.3', 'a_b.example',
  '*.example.com', 'xn--mnchen-3ya.example', '8.8.8.8', '[::ffff:10.0.0.1]', '[64:ff9b::808:808]', '[2002:a00:1::]', '*.co.uk',
] as const; // prettier-ignore

/** The host as a URL parser reads it, without a trailing dot; null if it finds none. */
function urlAuthority(authority: string): { host: string; port: number | null } | null {
  try {
    const url = new URL(`ftp://${authority}/`);
    if (url.username !== '' || url.password !== '' || url.pathname !== '/' || url.search !== '' || url.hash !== '')
      return null;
    const special = new URL(`https://${authority}/`);
    return {
      host: special.hostname.replace(/\.$/, ''),
      port: /:(\d+)$/.exec(authority) === null ? null : portOf(authority),
    };
  } catch {
    return null;
  }
}

const portOf = (authority: string): number => Number(/:(\d+)$/.exec(authority)?.[1]);

const authorities: FuzzTarget = {
  name: 'authorities',
  seeds: NAME_SEEDS,
  words: NAME_WORDS,
  check(input) {
    const read = parseAuthority(input);
    if (!read.ok) return null;
    const { host, port } = read.value;
    const again = parseAuthority(host);
    if (!again.ok || again.value.host !== host || again.value.port !== null)
      return `its host ${host} is read as another`;
    if (host !== host.toLowerCase() || /[^a-z0-9._:[\]-]/.test(host)) return `the host ${host} is not canonical`;
    const url = urlAuthority(input);
    if (url === null) return null;
    return url.host === host && url.port === port ? null : `${host} ${port}, but a URL has ${url.host} ${url.port}`;
  },
};

const typedHosts: FuzzTarget = {
  name: 'typed hosts',
  seeds: [...NAME_SEEDS, 'm\xfcnchen.example', 'caf\xe9.test'],
  words: NAME_WORDS,
  check(input) {
    const typed = normaliseHost(input);
    if (!typed.ok) return null;
    const again = normaliseHost(typed.value);
    if (!again.ok || again.value !== typed.value) return `${typed.value} is not canonical`;
    const sent = parseAuthority(typed.value);
    if (!sent.ok || sent.value.host !== typed.value) return `no request can have the host ${typed.value}`;
    const url = urlAuthority(input);
    return url === null || url.host === typed.value ? null : `${typed.value}, but a URL has ${url.host}`;
  },
};

/** The ports are equal, and the names match by labels: the last ones equal the pattern's, and there is at least one more. */
function slowMatch(patternOnPort: string, hostOnAnyPort: string): boolean {
  const [, pattern = '', patternPort = '443'] = /^(.*?)(?::(\d+))?$/.exec(patternOnPort) ?? [];
  const [, host = '', hostPort = '443'] = /^(.*?)(?::(\d+))?$/.exec(hostOnAnyPort) ?? [];
  if (patternPort !== hostPort) return false;
  if (!pattern.startsWith('*.')) return pattern === host;
  const wanted = pattern.slice(2).split('.');
  const labels = host.split('.');
  return labels.length > wanted.length && labels.slice(-wanted.length).join('.') === wanted.join('.');
}

const hostPatterns: FuzzTarget = {
  name: 'host patterns',
  seeds: [
    '*.example.com|api.example.com',
    'example.com|example.com',
    '*.b.c|a.b.c',
    '*.a.b|xa.b',
    '*.x.y|x.y',
    '*.EXAMPLE.com|a.b.example.com',
    '*.b.c:8443|a.b.c:8443',
    'b.c:443|b.c',
    '*.b.c:8443|a.b.c:443',
    '[::1]:844|[::1]:8443',
  ],
  words: ['|', ':443', ':8443', ':1', ...NAME_WORDS],
  check(input) {
    const [written = '', asked = ''] = input.split('|');
    const pattern = parseHostPattern(written);
    if (!pattern.ok) return null;
    const text = formatHostPattern(pattern.value);
    const again = parseHostPattern(text);
    if (!again.ok || formatHostPattern(again.value) !== text) return `${text} is not canonical`;
    const suffix = /^\*\.([^:]*)/.exec(text)?.[1] ?? null;
    if (suffix !== null && (!suffix.includes('.') || isIpLiteral(suffix))) return `${text} is too wide`;
    const parsed = parseAuthority(asked);
    if (!parsed.ok) return null;
    const host = hostOnPort(parsed.value.host, parsed.value.port ?? 443);
    const matches = matchesHostPattern(pattern.value, host);
    return matches === slowMatch(text, host) ? null : `${text} ${matches ? 'matches' : 'misses'} ${host}`;
  },
};

const V4_RANGES: readonly (readonly [string, number])[] = [
  ['0.0.0.0', 8], ['10.0.0.0', 8], ['100.64.0.0', 10], ['127.0.0.0', 8], ['169.254.0.0', 16], ['172.16.0.0', 12], ['192.168.0.0', 16],
  ['192.0.0.0', 24], ['192.0.2.0', 24], ['192.88.99.0', 24], ['198.18.0.0', 15], ['198.51.100.0', 24], ['203.0.113.0', 24], ['224.0.0.0', 3],
]; // prettier-ignore
const V6_RANGES: readonly (readonly [string, number])[] = [
  ['fe80::', 9], ['fc00::', 7], ['ff00::', 8], ['100::', 64], ['2001:db8::', 32], ['2001:2::', 48], ['2001:10::', 28], ['2001:20::', 28], ['3fff::', 20],
  ['5f00::', 16], ['64:ff9b:1::', 48],
]; // prettier-ignore
/** The prefix and suffix of IPv6 forms that embed an IPv4 address, and the bit offset of that address. */
const CARRIERS: readonly (readonly [string, string, number])[] = [
  ['::', '', 96], ['::ffff:', '', 96], ['::ffff:0:', '', 96], ['64:ff9b::', '', 96], ['2002:', '::', 16],
]; // prettier-ignore

function refusedRanges(): BlockList {
  const list = new BlockList();
  for (const [network, length] of V4_RANGES) list.addSubnet(network, length, 'ipv4');
  for (const [network, length] of V6_RANGES) list.addSubnet(network, length, 'ipv6');
  for (const [before, behind, bits] of CARRIERS) {
    for (const [network, length] of V4_RANGES) {
      list.addSubnet(`${before}${groupsOf(network)}${behind}`, bits + length, 'ipv6');
    }
  }
  return list;
}

/** An IPv4 address as two groups of an IPv6 one. */
function groupsOf(address: string): string {
  const [a = 0, b = 0, c = 0, d = 0] = address.split('.').map(Number);
  return `${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}`;
}

const REFUSED = refusedRanges();

const ipLiterals: FuzzTarget = {
  name: 'addresses',
  seeds: [
    ...NAME_SEEDS,
    '192.168.1.1',
    '[fe80::1]',
    '[::127.0.0.1]',
    '[64:ff9b::7f00:1]',
    '100.64.0.1',
    '[2002:7f00:1::]',
    '[fd00::1]',
  ],
  words: NAME_WORDS,
  check(input) {
    // Characters that a URL parser drops, or reads as the end of the host, are in no host that is checked here.
    if (/[\0-\x20/\\?#@]/.test(input)) return null;
    const url = urlAuthority(input);
    const host = url?.host.replace(/^\[(.*)\]$/, '$1') ?? '';
    const family = isIP(host);
    const read = parseAuthority(input);
    if (read.ok && isRefusedIpLiteral(read.value.host) !== isRefusedIpLiteral(input.replace(/:\d+$/, ''))) {
      return `${input} and its canonical ${read.value.host} are judged differently`;
    }
    if (family === 0 || url?.port !== null) return null;
    if (REFUSED.check(host, family === 4 ? 'ipv4' : 'ipv6') && !isRefusedIpLiteral(input))
      return `${host} is not refused`;
    return isIpLiteral(input) ? null : `${host} is not an address`;
  },
};

const TARGET_WORDS = [
  '/', '//', '/./', '/../', '..', '.', ';', '?', '#', '%', '%2e', '%2F', '%5c', '%61', '%zz', '%25', '\\', '&', '=', '*',
  'https://', 'http://', 'a.example', ':443', '@', '\xff', '%3b',
] as const; // prettier-ignore

const targets: FuzzTarget = {
  name: 'request targets',
  seeds: ['/a/b?c=d', '*', 'https://a.example/x?y', 'https://a.example?q', 'HTTPS://A.example:443/', '/?', '//x/y'],
  words: TARGET_WORDS,
  check(input) {
    const parsed = parseTarget(input, 'OPTIONS');
    if (!parsed.ok) return input.startsWith('/') ? 'a path is refused' : null;
    const { path, query, authority } = parsed.value;
    const whole = query === null ? path : `${path}?${query}`;
    if (authority === null) return whole === input ? null : `is read as ${whole}`;
    if (input.startsWith('/')) return 'a path is read with an authority';
    const url = URL.canParse(input) ? new URL(input) : null;
    if (url === null) return null;
    if (url.username !== '' || url.password !== '') return 'hides a user name';
    return url.hostname.replace(/\.$/, '') === authority.host
      ? null
      : `${authority.host}, but a URL has ${url.hostname}`;
  },
};

const paths: FuzzTarget = {
  name: 'canonical paths',
  seeds: ['/a/b', '/a/../b/./c//d', '/%61%2f..%5C%2e%2E', '/a;b=c/d;e', '/x#y', '/..%2f;/a', '/a/b/..'],
  words: TARGET_WORDS,
  check(input) {
    const { path } = splitTarget(input);
    if (!path.startsWith('/')) return null;
    const canonical = canonicalPath(path);
    if (canonicalPath(canonical) !== canonical) return `${canonical} is not canonical`;
    if (!canonical.startsWith('/') || /\/\/|;|\\|#|\/\.{1,2}(\/|$)/.test(canonical))
      return `${canonical} can be read in other ways`;
    if (/%(?:2[de]|5f|7e|3[0-9]|[46][1-9a-f]|[57][0-9a])/i.test(canonical))
      return `${canonical} hides a plain character`;
    if (/%(2f|5c)\.{0,2}(%(2f|5c)|\/|$)/i.test(canonical) && /\.\.?/.test(canonical) && hidesDots(canonical))
      return `${canonical} hides dots`;
    if (!/^[a-z./]*$/.test(path) || path.includes('//')) return null;
    const url = new URL(`https://x${path}`).pathname;
    return url === canonical ? null : `${canonical}, but a URL has ${url}`;
  },
};

/** Whether an encoded slash is still beside a dot segment. */
function hidesDots(path: string): boolean {
  return path.split(/\/|%2f|%5c/i).some((segment) => segment === '.' || segment === '..');
}

export const NAME_TARGETS: readonly FuzzTarget[] = [authorities, typedHosts, hostPatterns, ipLiterals, targets, paths];
