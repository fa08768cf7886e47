import { readFile } from 'node:fs/promises';
import { findUid, type TcpEnds } from '../../shared/net/tcp_table.ts';

/** The user id of the process at the other end of a loopback connection; null if that end does not exist. Linux only. */
export function peerUid(ends: TcpEnds, tables?: readonly string[]): Promise<number | null> {
  return findUid((path) => readFile(path, 'latin1'), ends, tables);
}
