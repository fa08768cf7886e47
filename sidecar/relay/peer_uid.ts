import { readFile } from 'node:fs/promises';
import { isIPv4 } from 'node:net';

/** One TCP connection as the listening side sees it. */
export interface TcpEnds {
  readonly remoteAddress: string;
  readonly remotePort: number;
  readonly localAddress: string;
  readonly localPort: number;
}

/** The kernel's tables of this network namespace. A client may hold an IPv4 connection in a socket of either family. */
const TABLES = ['/proc/net/tcp', '/proc/net/tcp6'] as const;
const ESTABLISHED = '01';

/** The user id that holds the other end of a loopback connection; null when there is no such end (any more). Linux only. */
export async function peerUid(ends: TcpEnds, tables: readonly string[] = TABLES): Promise<number | null> {
  for (const path of tables) {
    const found = uidInTable(await readFile(path, 'latin1').catch(() => ''), ends);
    if (found !== null) return found;
  }
  return null;
}

/**
 * The same within the text of one table (proc(5)). Only an established socket that a process still holds (it has an inode)
 * counts: one that was given up shows user 0, whoever held it.
 */
export function uidInTable(table: string, ends: TcpEnds): number | null {
  const from = endpointForms(ends.remoteAddress, ends.remotePort);
  const to = endpointForms(ends.localAddress, ends.localPort);
  for (const line of table.split('\n').slice(1)) {
    const [, local = '', remote = '', state, , , , uid = '', , inode] = line.trim().split(/\s+/);
    if (state !== ESTABLISHED || !from.includes(local) || !to.includes(remote)) continue;
    return inode === '0' || !/^\d+$/.test(uid) ? null : Number(uid);
  }
  return null;
}

/** How the tables may spell an IPv4 address and port: on its own, and mapped into IPv6. Other addresses have no form here. */
function endpointForms(address: string, port: number): string[] {
  const ipv4 = address.replace(/^::ffff:/i, '');
  if (!isIPv4(ipv4)) return [];
  const bytes = ipv4.split('.').map((part) => hex(Number(part), 2));
  const word = bytes.toReversed().join('');
  return [`${word}:${hex(port, 4)}`, `0000000000000000FFFF0000${word}:${hex(port, 4)}`];
}

function hex(value: number, digits: number): string {
  return value.toString(16).toUpperCase().padStart(digits, '0');
}
