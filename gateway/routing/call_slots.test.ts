import { expect, test } from 'vitest';
import { DEFAULT_GATEWAY_LIMITS } from '../gateway_limits.ts';
import { CallSlots } from './call_slots.ts';

const NONE_RUNS = { all: 0, ofServer: 0 };

/** Takes slots until there is none; returns how many there were. */
function takeAll(slots: CallSlots, sessionId: string | null, serverIds: readonly string[]): number {
  let count = 0;
  for (const serverId of serverIds) {
    while (!slots.isFull({ serverId, sessionId }, DEFAULT_GATEWAY_LIMITS, NONE_RUNS)) {
      slots.take({ serverId, sessionId });
      count += 1;
    }
  }
  return count;
}

test('a caller leaves slots of a server for others', () => {
  const slots = new CallSlots();
  expect([takeAll(slots, 'greedy', ['s']), takeAll(slots, 'modest', ['s']), takeAll(slots, null, ['s'])]).toEqual([
    24, 2, 2,
  ]);
});

test('a caller leaves slots for others over all servers', () => {
  const slots = new CallSlots();
  const servers = Array.from({ length: 10 }, (_, index) => `s${index}`);
  expect([takeAll(slots, 'greedy', servers), takeAll(slots, 'modest', ['other'])]).toEqual([96, 8]);
});

test('a slot is freed once', () => {
  const slots = new CallSlots();
  const use = { serverId: 's', sessionId: 'a' };
  const limits = { maxCalls: 2, maxCallsOfServer: 1 };
  const leave = slots.take(use);
  expect(slots.isFull(use, limits, NONE_RUNS)).toBe(true);
  leave();
  slots.take(use);
  leave();
  expect(slots.isFull(use, limits, NONE_RUNS)).toBe(true);
});

test('calls that took no slot count too', () => {
  const use = { serverId: 's', sessionId: null };
  const limits = { maxCalls: 2, maxCallsOfServer: 1 };
  expect(new CallSlots().isFull(use, limits, { all: 1, ofServer: 1 })).toBe(true);
});
