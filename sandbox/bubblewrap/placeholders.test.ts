import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { holdPlaceholders, isPlaceholder } from './placeholders.ts';

const LEFT = '.svc-4194305-1-0123456789abcdef';
let project: string;
let folder: string;
beforeEach(() => {
  project = mkdtempSync(join(tmpdir(), 'svc-placeholders-'));
  folder = join(project, '.vscode');
});
afterEach(() => rmSync(project, { recursive: true, force: true }));

it('a folder is made, is empty for git, and is removed', () => {
  const release = holdPlaceholders([folder]);
  expect(isPlaceholder(readdirSync(folder))).toBe(true);
  expect(readdirSync(folder).flatMap((name) => readdirSync(join(folder, name)))).toEqual([]);
  release();
  expect(readdirSync(project)).toEqual([]);
});

it.each([
  ['the first ends first', [0, 1, 2]],
  ['the last ends first', [2, 1, 0]],
  ['the one between ends last', [2, 0, 1]],
])('of three sandboxes, the folder stays until the last has ended: %s', (_case, order) => {
  const releases = [1, 2, 3].map(() => holdPlaceholders([folder]));
  const exists = order.map((at) => {
    releases[at]?.();
    return existsSync(folder);
  });
  expect(exists).toEqual([true, true, false]);
});

it("a person's own empty folder stays", () => {
  mkdirSync(folder);
  holdPlaceholders([folder])();
  expect(readdirSync(folder)).toEqual([]);
});

it.each([
  ['the first ends first', [0, 1]],
  ['the last ends first', [1, 0]],
])("a person's own empty folder stays when two sandboxes needed it: %s", (_case, order) => {
  mkdirSync(folder);
  const releases = [holdPlaceholders([folder]), holdPlaceholders([folder])];
  expect(isPlaceholder(readdirSync(folder))).toBe(true);
  for (const at of order) releases[at]?.();
  expect(readdirSync(folder)).toEqual([]);
});

it("a person's own empty folder stays when a launcher that held it was killed", () => {
  mkdirSync(join(folder, `${LEFT}-kept`), { recursive: true });
  holdPlaceholders([folder])();
  expect(readdirSync(folder)).toEqual([]);
});

it('a folder that a person uses meanwhile stays, and nothing is added to one with files', () => {
  const release = holdPlaceholders([folder]);
  writeFileSync(join(folder, 'settings.json'), '{}');
  holdPlaceholders([folder])();
  expect(readdirSync(folder)).toHaveLength(2);
  release();
  expect(readdirSync(folder)).toEqual(['settings.json']);
});

it('what a killed launcher left is removed', () => {
  mkdirSync(join(folder, LEFT), { recursive: true });
  holdPlaceholders([folder])();
  expect(existsSync(folder)).toBe(false);
});

it('a folder that cannot be made is left out', () => {
  holdPlaceholders([join(project, 'no', 'folder')])();
  expect(readdirSync(project)).toEqual([]);
});
