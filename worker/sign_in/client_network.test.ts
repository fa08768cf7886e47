import { afterAll, beforeAll, expect, test } from 'vitest';
import { type InProcess, startInProcess } from '../../e2e/runtimes/in_process.ts';
import { clientNetwork } from './client_network.ts';
import { takeClientAttempt } from './throttle.ts';

test.each([
  ['203.0.113.9', '203.0.113.9'],
  ['::ffff:203.0.113.9', '203.0.113.9'],
  ['2001:db8:0:7:1:2:3:4', '2001:db8:0:7::/64'],
  ['2001:DB8:0000:0007::', '2001:db8:0:7::/64'],
  ['2001:db8:0:7::ffff', '2001:db8:0:7::/64'],
  ['2001:db8::1', '2001:db8:0:0::/64'],
  ['::1', '0:0:0:0::/64'],
  ['fe80::1%eth0', 'fe80:0:0:0::/64'],
])('a client at %s is counted as %s', (address, network) => {
  expect(clientNetwork(address)).toBe(network);
});

let control: InProcess;
beforeAll(async () => {
  control = await startInProcess();
});
afterAll(() => control.stop());

test('a client with many addresses of one network gets no more attempts than one with a single address', async () => {
  const throttle = { kind: 'of a test', most: 3, windowSeconds: 60 };
  const takeTry = async (address: string) => (await takeClientAttempt(control.context, throttle, address)).ok;
  const ofOne = ['1', '2', '3', '4'].map((last) => `2001:db8:0:7::${last}`);
  const answers: boolean[] = [];
  for (const address of ofOne) answers.push(await takeTry(address));
  expect(answers).toEqual([true, true, true, false]);
  expect(await takeTry('2001:db8:0:8::1')).toBe(true);
});
