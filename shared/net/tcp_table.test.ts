import { expect, test } from 'vitest';
import { type TcpEnds, uidInTable, uidsInTables } from './tcp_table.ts';

const ENDS: TcpEnds = { remoteAddress: '127.0.0.1', remotePort: 54_321, localAddress: '127.0.0.1', localPort: 8_080 };
const HEADING = '  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode';

/** A table with both ends of ENDS' connection; the given parts replace the peer's. */
function table({
  local = '0100007F:D431',
  remote = '0100007F:1F90',
  state = '01',
  uid = '1000',
  inode = '777',
}): string {
  const tail = '100 0 0 10 0';
  return [
    HEADING,
    `   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000   999        0 111 ${tail}`,
    `   1: 0100007F:1F90 0100007F:D431 01 00000000:00000000 00:00000000 00000000   999        0 222 ${tail}`,
    `   2: ${local} ${remote} ${state} 00000000:00000000 02:00000A0B 00000000  ${uid}        0 ${inode} ${tail}`,
    '',
  ].join('\n');
}

/** Looks up one connection alone, and together with others: both must give the same result. */
function uidOf(text: string, ends: TcpEnds): number | null {
  const uid = uidInTable(text, ends);
  const other = { ...ends, remotePort: 1 };
  expect(uidsInTables(['', HEADING, text], [other, ends, other])).toEqual([null, uid, null]);
  return uid;
}

test('finds the user of the peer, not of our own end', () => {
  expect(uidOf(table({}), ENDS)).toBe(1000);
});

test('finds a peer that has the IPv4 connection in an IPv6 socket, like a JVM', () => {
  const prefix = '0000000000000000FFFF0000';
  const mapped = table({ local: `${prefix}0100007F:D431`, remote: `${prefix}0100007F:1F90` });
  expect(uidOf(mapped, ENDS)).toBe(1000);
  expect(uidOf(mapped, { ...ENDS, remoteAddress: '::ffff:127.0.0.1', localAddress: '::ffff:127.0.0.1' })).toBe(1000);
});

test.each([
  ['another port', { local: '0100007F:D432' }],
  ['another address', { local: '0200007F:D431' }],
  ['a connection to another listener', { remote: '0100007F:1F91' }],
  ['a connection that is closing', { state: '06' }],
  ['a socket that no process holds any longer, which shows user 0', { uid: '0', inode: '0' }],
  ['a line that is not understood', { uid: 'root' }],
])('finds no user for %s', (_what, change) => {
  expect(uidOf(table(change), ENDS)).toBeNull();
});

test('finds a peer at the loopback address of IPv6', () => {
  const loopback = '00000000000000000000000001000000';
  const ends = { ...ENDS, remoteAddress: '::1', localAddress: '::1' };
  expect(uidOf(table({ local: `${loopback}:D431`, remote: `${loopback}:1F90` }), ends)).toBe(1000);
});

test.each(['::1', '2001:db8::1', 'localhost'])('finds no user for %s if the table has no such end', (remoteAddress) => {
  expect(uidOf(table({}), { ...ENDS, remoteAddress })).toBeNull();
});
