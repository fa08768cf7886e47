const MAPPED = /^::ffff:(\d{1,3}(?:\.\d{1,3}){3})$/i;
const GROUPS = 8;
const GROUPS_OF_NETWORK = 4;

/**
 * The key that a client's attempts are counted by: its IPv4 address, or the /64 network of its IPv6 address, because a
 * client has all 2^64 addresses of its network.
 */
export function clientNetwork(address: string): string {
  const mapped = MAPPED.exec(address)?.[1];
  if (mapped !== undefined) return mapped;
  if (!address.includes(':')) return address;
  const [front = '', back] = address.toLowerCase().replace(/%.*$/, '').split('::');
  const before = groupsIn(front);
  const after = groupsIn(back ?? '');
  const between = Array<string>(Math.max(0, GROUPS - before.length - after.length)).fill('0');
  const groups = [...before, ...(back === undefined ? [] : between), ...after];
  const network = groups.slice(0, GROUPS_OF_NETWORK).map((group) => group.replace(/^0+(?=.)/, ''));
  return `${network.join(':')}::/64`;
}

function groupsIn(text: string): string[] {
  return text === '' ? [] : text.split(':');
}
