import { expect, it } from 'vitest';
import { firstSubordinate } from './engine_user.ts';

it('the subordinate ids of a user are found by name or by number', () => {
  const subuid = 'ada:100000:65536\n1001:165536:65536\nbad:x:1\n';
  expect(firstSubordinate(subuid, 'ada', 1000)).toBe(100_000);
  expect(firstSubordinate(subuid, 'bea', 1001)).toBe(165_536);
  expect(firstSubordinate(subuid, 'bad', 7)).toBeNull();
});
