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
  for (const { network, prefix, family } of [
    ...localIpv4Routes(readProc('/proc/net/fib_trie') ?? ''),
    ...localIpv6Routes(readProc('/proc/net/ipv6_route') ?? ''),
  ]) {
    // A local route for every address belongs to a transparent proxy. It does not tell the machine from other hosts.
    if (prefix > 0) own.addSubnet(network, prefix, family);
  }
}

interface LocalRoute {
  readonly network: string;
  readonly prefix: number;
  readonly family: 'ipv4' | 'ipv6';
}

/**
 * Reads `/proc/net/fib_trie`: a line names each table, `|-- NETWORK` a network, and the lines below it its routes. Other tables
 * than these two (`Id 100:`) apply only to the packets that a policy rule selects. `Main:` has both if there are no such rules.
 */
function* localIpv4Routes(trie: string): Generator<LocalRoute> {
  let table = '';
  let network = '';
  for (const line of trie.split('\n')) {
    if (/^\S/.test(line)) table = line;
    network = /^ *\|-- (\S+)$/.exec(line)?.[1] ?? network;
    const prefix = /^ +\/(\d+) host LOCAL\b/.exec(line)?.[1];
    if (prefix !== undefined && (table === 'Main:' || table === 'Local:')) {
      yield { network, prefix: Number(prefix), family: 'ipv4' };
    }
  }
}

/** Reads `/proc/net/ipv6_route`, which does not say which table a route is in. */
function* localIpv6Routes(routes: string): Generator<LocalRoute> {
  for (const line of routes.split('\n')) {
    const [network = '', prefix = '', , , , , , , flags = ''] = line.split(/\s+/);
    if ((Number.parseInt(flags, 16) & RTF_LOCAL) === 0) continue;
    yield { network: network.replace(/(.{4})(?!$)/g, '$1:'), prefix: Number.parseInt(prefix, 16), family: 'ipv6' };
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
