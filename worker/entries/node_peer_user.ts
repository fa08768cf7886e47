import { readFile } from 'node:fs/promises';
import type { Socket } from 'node:net';
import { findUid, TCP_TABLES } from '../../shared/net/tcp_table.ts';

const ROOT = 0;

/**
 * Whether another user of this machine than `uid` holds a loopback connection, according to the kernel's tables on
 * Linux; false if they do not say so. Root does not count: it can be anybody, and forwards ports for virtual machines.
 * A connection is looked up once.
 */
export function detectOtherUsers(
  uid: number | undefined,
  tables: readonly string[] = TCP_TABLES,
): (socket: Socket | undefined) => Promise<boolean> {
  const known = new WeakMap<Socket, Promise<boolean>>();
  return async (socket) => {
    if (socket === undefined || uid === undefined) return false;
    const found = known.get(socket) ?? isOther(socket, uid, tables);
    known.set(socket, found);
    return found;
  };
}

async function isOther(socket: Socket, uid: number, tables: readonly string[]): Promise<boolean> {
  const { remoteAddress = '', remotePort = 0, localAddress = '', localPort = 0 } = socket;
  const ends = { remoteAddress, remotePort, localAddress, localPort };
  const found = await findUid((path) => readFile(path, 'latin1'), ends, tables);
  return found !== null && found !== uid && found !== ROOT;
}
