import { BlockList, isIPv6 } from 'node:net';
import { networkInterfaces } from 'node:os';

/**
 * Whether an address is one of this machine's own, public ones among them: what is dialled there are the machine's own ports.
 * The interfaces are read anew each time, for they come and go.
 */
export function isOwnAddress(address: string, interfaces = networkInterfaces()): boolean {
  const own = new BlockList();
  for (const each of Object.values(interfaces).flatMap((addresses) => addresses ?? [])) {
    own.addAddress(each.address, each.family === 'IPv6' ? 'ipv6' : 'ipv4');
  }
  return own.check(withoutZone(address), isIPv6(address) ? 'ipv6' : 'ipv4');
}

function withoutZone(address: string): string {
  return address.split('%', 1)[0] ?? address;
}
