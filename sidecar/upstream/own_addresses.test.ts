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

test.each(['8.8.4.4', '::ffff:8.8.4.4', '2a00:1450::9', '::1'])('%s is not', (address) => {
  expect(readOwnAddresses(INTERFACES, NO_PROC).has(address)).toBe(false);
});

test('the addresses that this machine has now are its own', () => {
  const addresses = Object.values(networkInterfaces()).flatMap((each) => each ?? []);
  expect(addresses.length).toBeGreaterThan(0);
  expect(addresses.filter(({ address }) => !readOwnAddresses().has(address))).toEqual([]);
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
])('%s is known from the routing tables of Linux to be its own or not: %s', (address, isOwn) => {
  expect(readOwnAddresses({}, (path) => PROC[path] ?? null).has(address)).toBe(isOwn);
});
