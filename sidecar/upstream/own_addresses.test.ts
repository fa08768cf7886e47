import { networkInterfaces, type NetworkInterfaceInfo } from 'node:os';
import { expect, test } from 'vitest';
import { isOwnAddress } from './own_addresses.ts';

function on(address: string, family: 'IPv4' | 'IPv6'): NetworkInterfaceInfo {
  const rest = { address, netmask: '', mac: '', internal: false, cidr: null };
  return family === 'IPv4' ? { ...rest, family } : { ...rest, family, scopeid: 0 };
}

const INTERFACES = { eth0: [on('8.8.8.8', 'IPv4'), on('2a00:1450::8', 'IPv6')], eth1: undefined };

test.each(['8.8.8.8', '::ffff:8.8.8.8', '::ffff:808:808', '2a00:1450::8', '2A00:1450:0::8', '2a00:1450::8%eth0'])(
  '%s is the machine itself',
  (address) => {
    expect(isOwnAddress(address, INTERFACES)).toBe(true);
  },
);

test.each(['8.8.4.4', '::ffff:8.8.4.4', '2a00:1450::9', '::1'])('%s is not', (address) => {
  expect(isOwnAddress(address, INTERFACES)).toBe(false);
});

test('the addresses that this machine has now are its own', () => {
  const addresses = Object.values(networkInterfaces()).flatMap((each) => each ?? []);
  expect(addresses.length).toBeGreaterThan(0);
  expect(addresses.filter(({ address }) => !isOwnAddress(address))).toEqual([]);
});
