import { readFileSync } from 'node:fs';
import { BlockList, isIPv6 } from 'node:net';
import { networkInterfaces } from 'node:os';

/** Gives a file of /proc as text; null where there is none. */
type ReadProc = (path: string) => string | null;

/** The kernel's flag for a route that ends at this machine (RTF_LOCAL in linux/ipv6_route.h). */
const RTF_LOCAL = 0x8000_0000;

/** The addresses of this machine at one moment. */
export interface OwnAddresses {
  /** Whether dialling the address reaches the machine's own ports. */
  has(address: string): boolean;
}

/** Reads all addresses of this machine, including public ones. Interfaces come and go, so they are read for each dial. */
export function readOwnAddresses(interfaces = networkInterfaces(), readProc: ReadProc = readText): OwnAddresses {
  const own = new BlockList();
  for (const each of Object.values(interfaces).flatMap((addresses) => addresses ?? [])) {
    own.addAddress(each.address, each.family === 'IPv6' ? 'ipv6' : 'ipv4');
  }
  addLocalRoutes(own, readProc);
  return { has: (address) => own.check(withoutZone(address), isIPv6(address) ? 'ipv6' : 'ipv4') };
}

/**
 * Linux answers on addresses that `networkInterfaces` does not list: those of an interface without a carrier, such as a
 * container bridge that no container uses, and whole networks with a local route. Its routing tables have them all.
 */
function addLocalRoutes(own: BlockList, readProc: ReadProc): void {
  const ipv4 = readProc('/proc/net/fib_trie') ?? '';
  for (const [, network = '', prefix] of ipv4.matchAll(/\|-- (\S+)\n(?: +\/\d+ .*\n)*? +\/(\d+) host LOCAL/g)) {
    own.addSubnet(network, Number(prefix), 'ipv4');
  }
  for (const line of (readProc('/proc/net/ipv6_route') ?? '').split('\n')) {
    const [network = '', prefix = '', , , , , , , flags = ''] = line.split(/\s+/);
    if ((Number.parseInt(flags, 16) & RTF_LOCAL) === 0) continue;
    own.addSubnet(network.replace(/(.{4})(?!$)/g, '$1:'), Number.parseInt(prefix, 16), 'ipv6');
  }
}

function readText(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    // Not Linux, or without /proc: the interfaces are what there is.
    return null;
  }
}

function withoutZone(address: string): string {
  return address.split('%', 1)[0] ?? address;
}
