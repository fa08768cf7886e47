import { expect, test } from 'vitest';

import { speaksHttp2 } from './agree_on_version.ts';

test.each([
  ['22.15.0', false],
  ['22.99.0', false],
  ['24.14.1', false],
  ['24.15.0', true],
  ['24.21.0', true],
  ['25.6.0', false],
  ['25.7.0', true],
  ['26.0.0', true],
])('Node %s speaks HTTP/2: %s', (version, expected) => {
  expect(speaksHttp2(version)).toBe(expected);
});
