/** One TCP connection as the listening side sees it. */
export interface TcpEnds {
  readonly remoteAddress: string;
  readonly remotePort: number;
  readonly localAddress: string;
  readonly localPort: number;
}

/** The kernel's tables of a network namespace. A client may have an IPv4 connection in a socket of either family. */
export const TCP_TABLES = ['/proc/net/tcp', '/proc/net/tcp6'] as const;

const ESTABLISHED = '01';
const IPV4 = /^(?:\d{1,3}\.){3}\d{1,3}$/;
const IPV6_LOOPBACK = '00000000000000000000000001000000';

/**
 * The user id at the other end of a loopback connection, from the text of one table (proc(5)); null if it is not listed.
 * Only an established socket that a process still holds (it has an inode) counts: an abandoned one shows user 0.
 */
export function uidInTable(table: string, ends: TcpEnds): number | null {
  return uidsInTables([table], [ends])[0] ?? null;
}

/** The same for many connections in one pass over the tables. A table has a line for each connection of the machine. */
export function uidsInTables(tables: readonly string[], all: readonly TcpEnds[]): readonly (number | null)[] {
  const wanted = new Map<string, number>();
  for (const [index, { remoteAddress, remotePort, localAddress, localPort }] of all.entries()) {
    const to = endpointForms(localAddress, localPort);
    for (const from of endpointForms(remoteAddress, remotePort))
      for (const end of to) wanted.set(`${from} ${end}`, index);
  }
  const found: (number | null)[] = all.map(() => null);
  for (const table of tables) {
    for (let line = table.indexOf('\n') + 1; line > 0; line = table.indexOf('\n', line) + 1) {
      const start = table.indexOf(': ', line) + 2;
      const middle = table.indexOf(' ', start);
      const index = wanted.get(table.slice(start, 2 * middle - start + 1));
      if (index !== undefined) found[index] ??= uidOf(table.slice(start, table.indexOf('\n', start)));
    }
  }
  return found;
}

/** The user of a line, from its local end on, if a process still holds an established connection there. */
function uidOf(line: string): number | null {
  const [, , state, , , , uid = '', , inode] = line.split(/\s+/);
  return state === ESTABLISHED && inode !== '0' && /^\d+$/.test(uid) ? Number(uid) : null;
}

/** The user id at the other end of one connection, from the first table that lists it. A table that cannot be read counts as empty. */
export async function findUid(
  read: (path: string) => Promise<string>,
  ends: TcpEnds,
  tables: readonly string[] = TCP_TABLES,
): Promise<number | null> {
  for (const path of tables) {
    const found = uidInTable(await read(path).catch(() => ''), ends);
    if (found !== null) return found;
  }
  return null;
}

/** Finds the users at the other ends of connections in the kernel's tables, which `read` returns. A table that cannot be read counts as empty. */
export function usersByTables(
  read: (path: string) => Promise<string>,
): (connections: readonly { readonly ends: TcpEnds }[]) => Promise<readonly (string | null)[]> {
  return async (connections) => {
    const tables = await Promise.all(TCP_TABLES.map((path) => read(path).catch(() => '')));
    const ends = connections.map((connection) => connection.ends);
    return uidsInTables(tables, ends).map((uid) => (uid === null ? null : `uid ${uid}`));
  };
}

/** The spellings of a loopback address and port in the tables: IPv4 alone and mapped into IPv6, and ::1. Other addresses have none here. */
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
