import { expect, test } from 'vitest';
import { isLeft, SANDBOX_FOLDER_NAME, sandboxFolderName } from './sandbox_folder.ts';

test.each([
  ['123456', '7-123456'],
  [null, '7-0'],
  ['Sat Nov 28 15:22:42 2026', '7-1795879362000'],
  ['what ps never prints', '7-0'],
])('a launcher started at %j has the folder %s', (started, name) => {
  expect(sandboxFolderName({ pid: 7, started })).toBe(name);
  expect(name).toMatch(SANDBOX_FOLDER_NAME);
});

test.each([
  ['7-123456', { pid: 7, started: '123456' }, false],
  ['7-123456', { pid: 7, started: '999999' }, true],
  ['7-123456', { pid: 7, started: null }, false],
  ['7-123456', null, true],
  ['7-1795879362000', { pid: 7, started: 'Sat Nov 28 15:22:42 2026' }, false],
  ['not a folder of a sandbox', null, false],
])('the folder %s with the process %j is left: %s', (name, running, left) => {
  expect(isLeft(name, () => running)).toBe(left);
});
