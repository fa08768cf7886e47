/** One TCP connection as the listening side sees it. */
export interface TcpEnds {
  readonly remoteAddress: string;
  readonly remotePort: number;
  readonly localAddress: string;
  readonly localPort: number;
}

/** The kernel's tables of a network namespace. A client may hold an IPv4 connection in a socket of either family. */
export const TCP_TABLES = ['/proc/net/tcp', '/proc/net/tcp6'] as const;

const ESTABLISHED = '01';
const IPV4 = /^(?:\d{1,3}\.){3}\d{1,3}$/;
const IPV6_LOOPBACK = '00000000000000000000000001000000';

/**
 * The user id that holds the other end of a loopback connection, in the text of one table (proc(5)); null when it is not
 * there. Only an established socket that a process still holds (it has an inode) counts: one that was given up shows user
 * 0, whoever held it.
 */
export function uidInTable(table: string, ends: TcpEnds): number | null {
  const to = endpointForms(ends.localAddress, ends.localPort);
  for (const form of endpointForms(ends.remoteAddress, ends.remotePort)) {
    const found = lineWithLocalEnd(table, form, to);
    if (found !== null) return found.uid;
  }
  return null;
}

/** The same for many connections, by one pass over the tables. */
export function uidsInTables(tables: readonly string[], all: readonly TcpEnds[]): readonly (number | null)[] {
  const held = new Map<string, number>();
  for (const line of tables.flatMap((table) => table.split('\n'))) {
    const [, local, remote, state, , , , uid = '', , inode] = line.trim().split(/\s+/);
    if (state === ESTABLISHED && inode !== '0' && /^\d+$/.test(uid)) held.set(`${local} ${remote}`, Number(uid));
  }
  return all.map(({ remoteAddress, remotePort, localAddress, localPort }) => {
    const to = endpointForms(localAddress, localPort);
    const pairs = endpointForms(remoteAddress, remotePort).flatMap((from) => to.map((end) => `${from} ${end}`));
    return pairs.map((pair) => held.get(pair)).find((uid) => uid !== undefined) ?? null;
  });
}

/** Looks for the local end as text first: a table has a line for each connection of the machine. */
function lineWithLocalEnd(table: string, local: string, to: readonly string[]): { readonly uid: number | null } | null {
  for (let at = table.indexOf(` ${local} `); at !== -1; at = table.indexOf(` ${local} `, at + 1)) {
    const end = table.indexOf('\n', at);
    const [, remote = '', state, , , , uid = '', , inode] = table
      .slice(at, end === -1 ? undefined : end)
      .trim()
      .split(/\s+/);
    if (state !== ESTABLISHED || !to.includes(remote)) continue;
    return { uid: inode === '0' || !/^\d+$/.test(uid) ? null : Number(uid) };
  }
  return null;
}

/** How the tables may spell a loopback address and port: IPv4 on its own and mapped into IPv6, and ::1. Others have no form here. */
function endpointForms(address: string, port: number): string[] {
  const at = hex(port, 4);
  if (address === '::1') return [`${IPV6_LOOPBACK}:${at}`];
  const ipv4 = address.replace(/^::ffff:/i, '');
  if (!IPV4.test(ipv4)) return [];
  const bytes = ipv4.split('.').map((part) => hex(Number(part), 2));
  const word = bytes.toReversed().join('');
  return [`${word}:${at}`, `0000000000000000FFFF0000${word}:${at}`];
}

function hex(value: number, digits: number): string {
  return value.toString(16).toUpperCase().padStart(digits, '0');
}
