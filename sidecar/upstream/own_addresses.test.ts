import { networkInterfaces, type NetworkInterfaceInfo } from 'node:os';
import { expect, test } from 'vitest';
import { readOwnAddresses } from './own_addresses.ts';

function on(address: string, family: 'IPv4' | 'IPv6'): NetworkInterfaceInfo {
  const rest = { address, netmask: '', mac: '', internal: false, cidr: null };
  return family === 'IPv4' ? { ...rest, family } : { ...rest, family, scopeid: 0 };
}

const INTERFACES = { eth0: [on('8.8.8.8', 'IPv4'), on('2a00:1450::8', 'IPv6')], eth1: undefined };
const NO_PROC = (): null => null;

test.each(['8.8.8.8', '::ffff:8.8.8.8', '::ffff:808:808', '2a00:1450::8', '2A00:1450:0::8', '2a00:1450::8%eth0'])(
  '%s is the machine itself',
  (address) => {
    expect(readOwnAddresses(INTERFACES, NO_PROC).has(address)).toBe(true);
  },
);

test.each(['8.8.4.4', '::ffff:8.8.4.4', '2a00:1450::9', '::1'])('%s is not the machine itself', (address) => {
  expect(readOwnAddresses(INTERFACES, NO_PROC).has(address)).toBe(false);
});

const addressesNow = () => Object.values(networkInterfaces()).flatMap((each) => each ?? []);

test('the addresses that this machine has now are its own', async () => {
  expect(addressesNow().length).toBeGreaterThan(0);
  // A container engine beside the tests adds and removes networks between two looks.
  await expect.poll(() => addressesNow().filter(({ address }) => !readOwnAddresses().has(address))).toEqual([]);
});

/** As Linux writes them with 11.22.33.1 and 2a00:1450:1::1 on a bridge that no container uses, and all of 11.99.0.0/16 local. */
const PROC: Readonly<Record<string, string>> = {
  '/proc/net/fib_trie': `Local:
  +-- 0.0.0.0/0 3 0 5
     |-- 0.0.0.0
        /0 universe UNICAST
     +-- 11.22.33.0/24 2 0 2
        |-- 11.22.33.0
           /24 link UNICAST
        |-- 11.22.33.1
           /32 host LOCAL
        |-- 11.22.33.255
           /32 link BROADCAST
     |-- 11.99.0.0
        /24 link UNICAST
        /16 host LOCAL
`,
  '/proc/net/ipv6_route': `2a001450000100000000000000000000 40 00000000000000000000000000000000 00 00000000000000000000000000000000 00000100 00000001 00000000 00000001 br-1
2a001450000100000000000000000001 80 00000000000000000000000000000000 00 00000000000000000000000000000000 00000000 00000004 00000000 80200001 br-1
00000000000000000000000000000000 00 00000000000000000000000000000000 00 fd000000000000000000000000000001 00000400 00000003 00000000 00000003 eth0
`,
};

test.each([
  ['11.22.33.1', true],
  ['11.22.33.2', false],
  ['11.22.33.255', false],
  ['11.99.200.1', true],
  ['11.98.0.1', false],
  ['2a00:1450:1::1', true],
  ['2a00:1450:1::2', false],
  ['::ffff:11.22.33.1', true],
])('the routing tables of Linux tell whether %s is its own: %s', (address, isOwn) => {
  expect(readOwnAddresses({}, (path) => PROC[path] ?? null).has(address)).toBe(isOwn);
});

/**
 * As Linux writes them after `ip addr add 192.0.2.0/24 dev lo`, `ip route add local 10.1.0.0/16 dev lo tos 0x10` and, for a
 * transparent proxy, `ip route add local 0.0.0.0/0 dev lo table 100`, `ip rule add fwmark 1 lookup 100` and the same with `ip -6`.
 */
const PROC_WITH_POLICY_TABLE: Readonly<Record<string, string>> = {
  '/proc/net/fib_trie': `Id 100:
  |-- 0.0.0.0
     /0 host LOCAL
Local:
  +-- 0.0.0.0/0 2 0 2
     |-- 10.1.0.0
        /16 host LOCAL tos=16
     +-- 127.0.0.0/8 2 0 2
        +-- 127.0.0.0/31 1 0 0
           |-- 127.0.0.0
              /8 host LOCAL
           |-- 127.0.0.1
              /32 host LOCAL
        |-- 127.255.255.255
           /32 link BROADCAST
     +-- 192.0.2.0/24 2 0 2
        |-- 192.0.2.0
           /32 host LOCAL
           /24 host LOCAL
        |-- 192.0.2.255
           /32 link BROADCAST
`,
  '/proc/net/ipv6_route': `00000000000000000000000000000000 00 00000000000000000000000000000000 00 00000000000000000000000000000000 00000400 00000001 00000000 80000001       lo
00000000000000000000000000000000 00 00000000000000000000000000000000 00 00000000000000000000000000000000 ffffffff 00000001 00000000 00200200       lo
00000000000000000000000000000001 80 00000000000000000000000000000000 00 00000000000000000000000000000000 00000000 00000003 00000000 80200001       lo
20010db8000000000000000000000000 80 00000000000000000000000000000000 00 00000000000000000000000000000000 00000000 00000002 00000000 80200001       lo
`,
};

test.each([
  ['192.0.2.0', true],
  ['192.0.2.77', true],
  ['192.0.3.0', false],
  ['10.1.2.3', true],
  ['127.9.9.9', true],
  ['203.0.113.7', false],
  ['::1', true],
  ['2001:db8::', true],
  ['2001:db8::1', false],
])('with several routes of one network and a policy table, %s is its own: %s', (address, isOwn) => {
  expect(readOwnAddresses({}, (path) => PROC_WITH_POLICY_TABLE[path] ?? null).has(address)).toBe(isOwn);
});

test('a local route for every IPv4 address makes no address its own', () => {
  const trie = 'Main:\n  +-- 0.0.0.0/4 2 0 2\n     |-- 0.0.0.0\n        /0 host LOCAL\n';
  expect(readOwnAddresses({}, (path) => (path === '/proc/net/fib_trie' ? trie : null)).has('203.0.113.7')).toBe(false);
});

test.each(['Id 100', 'Id 10'])('a local network of the policy table %s is not its own', (table) => {
  const trie = `${table}:\n  |-- 128.0.0.0\n     /1 host LOCAL\n`;
  expect(readOwnAddresses({}, (path) => (path === '/proc/net/fib_trie' ? trie : null)).has('203.0.113.7')).toBe(false);
});
