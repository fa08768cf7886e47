import { nameOfHost } from './host_port.ts';

/** An IPv4 address as an unsigned 32-bit number, or an IPv6 address as its eight 16-bit groups. */
type Address =
  | { readonly version: 4; readonly bits: number }
  | { readonly version: 6; readonly groups: readonly number[] };

/**
 * [network, prefix length] of the IPv4 ranges that passthrough refuses: all that IANA's special-purpose registry does not
 * call globally reachable. No public service has such an address, and networks use them for their own services.
 */
const REFUSED_V4: readonly (readonly [number, number])[] = [
  [0x00000000, 8], // "this host" (RFC 1122): Linux connects 0.0.0.0 to the loopback
  [0x0a000000, 8], // RFC 1918
  [0x64400000, 10], // carrier-grade NAT (RFC 6598)
  [0x7f000000, 8], // loopback
  [0xa9fe0000, 16], // link-local, with the clouds' metadata service
  [0xac100000, 12], // RFC 1918
  [0xc0000000, 24], // IETF protocol assignments (RFC 6890), including one cloud's metadata service
  [0xc0000200, 24], // documentation (RFC 5737)
  [0xc0586300, 24], // the old 6to4 relays (RFC 7526)
  [0xc0a80000, 16], // RFC 1918
  [0xc6120000, 15], // benchmarking (RFC 2544), which VPNs use for synthetic addresses
  [0xc6336400, 24], // documentation
  [0xcb007100, 24], // documentation
  [0xe0000000, 4], // multicast
  [0xf0000000, 4], // reserved, and the limited broadcast
];

/** The same for IPv6, by the first four groups, in addition to {@link isRefusedV6}. */
const REFUSED_V6: readonly (readonly [groups: readonly number[], prefix: number])[] = [
  [[0x64, 0xff9b, 1], 48], // a network's own NAT64 (RFC 8215)
  [[0x100, 0, 0], 63], // discard-only (RFC 6666), and the dummy prefix beside it (RFC 9780)
  [[0x2001, 0xdb8], 32], // documentation (RFC 3849)
  [[0x3fff, 0], 20], // documentation (RFC 9637)
  [[0x5f00], 16], // segment routing (RFC 9602)
  [[0xfc00], 7], // unique-local (RFC 4193)
  [[0xfe80], 9], // link-local fe80::/10, the old site-local fec0::/10
  [[0xff00], 8], // multicast
];

/** The part of these that leads to the machine itself, its link, or the metadata service of a cloud. */
const MACHINE_V4: readonly (readonly [number, number])[] = [
  [0x00000000, 8],
  [0x7f000000, 8],
  [0xa9fe0000, 16],
  [0xc0000000, 24],
  [0x646464c8, 32], // 100.100.100.200, one cloud's metadata service
];
const MACHINE_V6: readonly (readonly [groups: readonly number[], prefix: number])[] = [
  [[0xfe80], 10],
  [[0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254], 128], // one cloud's metadata service
];

/** A host that URL parsers keep unchanged. */
const PLAIN = /^[A-Za-z0-9._-]*$/;

/** Whether `host` is an IP address in any spelling that a resolver or a URL parser accepts, bracketed or not. */
export function isIpLiteral(host: string): boolean {
  return looksNumeric(host);
}

/**
 * Whether `host` is an IP literal that passthrough refuses (design section 5, invariant 7): loopback, link-local, RFC 1918,
 * unique-local, carrier-grade NAT, unspecified, multicast, benchmarking, documentation and other special ranges, in every
 * spelling: octal, hex, decimal and short IPv4 forms, IPv4-mapped, IPv4-compatible, NAT64, 6to4, Teredo and ISATAP
 * addresses. An invalid address is refused too. A host name is never refused here, and a port makes no difference.
 */
export function isRefusedIpLiteral(host: string): boolean {
  const name = nameOfHost(host);
  return looksNumeric(name) && isRefusedAddress(name);
}

/** The same for a resolved address; a zone id is ignored, and text that is not an address is refused. */
export function isRefusedAddress(ip: string): boolean {
  const address = parseAddress(ip);
  if (address === null) return true;
  return address.version === 4 ? isRefusedV4(address.bits) : isRefusedV6(address.groups);
}

/** Whether a resolved address is loopback, unspecified, link-local or the metadata service of a cloud, also embedded in IPv6. */
export function isMachineAddress(ip: string): boolean {
  const address = parseAddress(ip);
  if (address === null) return true;
  if (address.version === 4) return isInV4(MACHINE_V4, address.bits);
  const { groups } = address;
  if (MACHINE_V6.some(([network, length]) => isWithin(groups, network, length))) return true;
  return findEmbeddedV4(groups).some((bits) => isInV4(MACHINE_V4, bits));
}

/** The canonical form of an IP literal: dotted decimal, or RFC 5952 in brackets. Null if the text is not an address. */
export function canonicalIpLiteral(host: string): string | null {
  const name = urlHost(host);
  return name !== null && (name.startsWith('[') || isDottedDecimal(name)) ? name : null;
}

/** Whether an address is in a network: `10.0.0.0/8`, `fd00::/8`, or one address. False if either text is not valid. */
export function isInNetwork(ip: string, network: string): boolean {
  const [first = '', lengthText] = network.split('/');
  const [address, start] = [parseAddress(ip), parseAddress(first)];
  if (address === null || start === null || address.version !== start.version) return false;
  const most = address.version === 4 ? 32 : 128;
  const length = lengthText === undefined ? most : Number(lengthText);
  if (!(length >= 0 && length <= most)) return false;
  if (address.version === 6 && start.version === 6) return isWithin(address.groups, start.groups, length);
  if (address.version === 6 || start.version === 6) return false;
  return length === 0 || address.bits >>> (32 - length) === start.bits >>> (32 - length);
}

/** The network that one customer gets: the first 64 bits of an IPv6 address; an IPv4 address itself, also if mapped into IPv6. */
export function networkOf(ip: string): string {
  const address = parseAddress(ip);
  if (address?.version !== 6) return ip;
  const mapped = /^::ffff:([0-9.]+)$/i.exec(ip)?.[1];
  return (
    mapped ??
    `${address.groups
      .slice(0, 4)
      .map((group) => group.toString(16))
      .join(':')}::/64`
  );
}

/** Whether URL parsers and inet_aton would read the host as an address: a colon, a bracket, or a numeric last label. */
function looksNumeric(host: string): boolean {
  if (host.includes(':') || host.startsWith('[')) return true;
  return PLAIN.test(host) ? endsInNumber(host) : mapsToNumeric(host);
}

/** Percent-encoded, full-width and circled digits, and ideographic full stops, become ASCII in a URL's host. */
function mapsToNumeric(host: string): boolean {
  return endsInNumber(urlHost(host) ?? host.normalize('NFKC').replaceAll('\u3002', '.'));
}

function endsInNumber(host: string): boolean {
  const end = host.endsWith('.') ? host.length - 1 : host.length;
  const label = host.slice(host.lastIndexOf('.', end - 1) + 1, end);
  return /^(?:\d+|0x[\da-f]*)$/i.test(label);
}

function parseAddress(text: string): Address | null {
  const canonical = canonicalIpLiteral(text);
  if (canonical === null) return null;
  if (canonical.startsWith('[')) return { version: 6, groups: expandGroups(canonical.slice(1, -1)) };
  return { version: 4, bits: dottedBits(canonical) };
}

/** The host as the URL parser serialises it; null if it is not a bare host. */
function urlHost(host: string): string | null {
  const text = host.includes(':') ? `[${bareIpv6(host)}]` : host;
  if (text === '' || /[\p{Cc}\s/\\?#@]/u.test(text)) return null;
  try {
    const name = new URL(`https://${text}/`).hostname;
    return name.endsWith('.') ? name.slice(0, -1) : name;
  } catch {
    return null;
  }
}

function bareIpv6(host: string): string {
  const inner = host.startsWith('[') && host.endsWith(']') ? host.slice(1, -1) : host;
  const zone = inner.indexOf('%');
  return zone < 0 ? inner : inner.slice(0, zone);
}

function isDottedDecimal(host: string): boolean {
  return /^\d{1,3}(?:\.\d{1,3}){3}$/.test(host);
}

function dottedBits(dotted: string): number {
  return dotted.split('.').reduce((bits, part) => bits * 256 + Number(part), 0);
}

/** The eight groups of an IPv6 address in RFC 5952 form (no embedded dotted decimal). */
function expandGroups(canonical: string): readonly number[] {
  const [head = '', tail] = canonical.split('::');
  const left = hexGroups(head);
  if (tail === undefined) return left;
  const right = hexGroups(tail);
  return [...left, ...Array.from({ length: 8 - left.length - right.length }, () => 0), ...right];
}

function hexGroups(text: string): number[] {
  return text === '' ? [] : text.split(':').map((group) => Number.parseInt(group, 16));
}

function isRefusedV4(bits: number): boolean {
  return isInV4(REFUSED_V4, bits);
}

function isInV4(networks: readonly (readonly [number, number])[], bits: number): boolean {
  return networks.some(([network, length]) => bits >>> (32 - length) === network >>> (32 - length));
}

function isRefusedV6(groups: readonly number[]): boolean {
  if (REFUSED_V6.some(([network, length]) => isWithin(groups, network, length))) return true;
  if (isWithin(groups, [0x2001, 0], 23) && !isReachableProtocol(groups)) return true;
  return findEmbeddedV4(groups).some(isRefusedV4);
}

/** Compares the first `length` bits. */
function isWithin(groups: readonly number[], network: readonly number[], length: number): boolean {
  for (let index = 0; index * 16 < length; index += 1) {
    const bits = Math.min(16, length - index * 16);
    if ((groups[index] ?? 0) >>> (16 - bits) !== (network[index] ?? 0) >>> (16 - bits)) return false;
  }
  return true;
}

/**
 * The globally reachable part of 2001::/23, IETF protocol assignments (RFC 2928): Teredo by its embedded addresses, three
 * anycast addresses, AMT (RFC 7450) and AS112 (RFC 7535). Benchmarking addresses and identifiers that are not locations
 * (ORCHID, DET) are not.
 */
function isReachableProtocol(groups: readonly number[]): boolean {
  const [, second = 0, third = 0] = groups;
  const last = groups[7] ?? 0;
  if (second === 1) return last >= 1 && last <= 3 && groups.slice(2, 7).every((group) => group === 0);
  return second === 0 || second === 3 || (second === 4 && third === 0x112);
}

/** Every IPv4 address embedded in the IPv6 address; `::` and `::1` are 0.0.0.0 and 0.0.0.1 here, both refused. */
function findEmbeddedV4(groups: readonly number[]): number[] {
  const at = (index: number): number => (groups[index] ?? 0) * 0x10000 + (groups[index + 1] ?? 0);
  const [first = 0, second = 0] = groups;
  const zeroUpTo = (count: number): boolean => groups.slice(0, count).every((group) => group === 0);
  if (zeroUpTo(6)) return [at(6)]; // IPv4-compatible, unspecified, loopback
  if (zeroUpTo(5) && groups[5] === 0xffff) return [at(6)]; // IPv4-mapped
  if (zeroUpTo(4) && groups[4] === 0xffff && groups[5] === 0) return [at(6)]; // IPv4-translated (RFC 2765)
  if (first === 0x64 && second === 0xff9b) return [at(6)]; // NAT64 (RFC 6052)
  if (first === 0x2002) return [at(1)]; // 6to4 (RFC 3056)
  if (first === 0x2001 && second === 0) return [at(2), (at(6) ^ 0xffffffff) >>> 0]; // Teredo: server and client
  if (groups[5] === 0x5efe && ((groups[4] ?? 0) & ~0x200) === 0) return [at(6)]; // ISATAP (RFC 5214)
  return [];
}
