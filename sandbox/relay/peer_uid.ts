import { readFile } from 'node:fs/promises';
import { TCP_TABLES, type TcpEnds, uidInTable } from '../../shared/net/tcp_table.ts';

/** The user id that holds the other end of a loopback connection; null when there is no such end (any more). Linux only. */
export async function peerUid(ends: TcpEnds, tables: readonly string[] = TCP_TABLES): Promise<number | null> {
  for (const path of tables) {
    const found = uidInTable(await readFile(path, 'latin1').catch(() => ''), ends);
    if (found !== null) return found;
  }
  return null;
}
