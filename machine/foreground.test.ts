import { expect, test } from 'vitest';
import { isInForeground } from './foreground.ts';

// The fields are: pid (command) state parent group session terminal foreground-group.
test.each([
  ['a program that the shell waits for', '4711 (node) S 4700 4711 4700 34816 4711 4194304 0', true],
  ['a background job', '4711 (node) S 4700 4711 4700 34816 4700 4194304 0', false],
  ['one with a name like a stat line', '4711 (a) S 1 2 3 4 2) S 4700 4711 4700 34816 4700 4194304 0', false],
  ['a program without a terminal', '4711 (node) S 1 4711 4711 0 -1 4194304 0', true],
  ['a system without /proc', '', true],
])('%s: %s is in the foreground: %s', (_title, stat, expected) => {
  expect(isInForeground(() => stat)).toBe(expected);
});
