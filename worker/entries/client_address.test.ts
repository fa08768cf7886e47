import { expect, test } from 'vitest';
import { clientAddress } from './client_address.ts';

test.each([
  ['the peer', '203.0.113.9', undefined, '203.0.113.9'],
  ['not what a remote peer says', '203.0.113.9', '198.51.100.1', '203.0.113.9'],
  ['what a proxy on this machine wrote last', '127.0.0.1', '198.51.100.1, 203.0.113.9', '203.0.113.9'],
  ['the same with IPv6', '::1', '2001:db8::1', '2001:db8::1'],
  ['the peer where the proxy wrote no address', '::ffff:127.0.0.1', '<b>me</b>', '::ffff:127.0.0.1'],
  ['the peer where there is no proxy', '127.0.0.1', undefined, '127.0.0.1'],
  ['nothing where the runtime does not say', null, '198.51.100.1', null],
])('the address of a client is %s', (_, peer, forwarded, expected) => {
  expect(clientAddress(peer, forwarded)).toBe(expected);
});
