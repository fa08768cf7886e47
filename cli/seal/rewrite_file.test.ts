import {
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { rewriteFile } from './rewrite_file.ts';

let folder: string;
let path: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'svc-rewrite-'));
  path = join(folder, 'file');
  writeFileSync(path, 'before', { mode: 0o640 });
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

test('replaces the text, keeps the mode and leaves no copy', async () => {
  await rewriteFile(path, 'before', 'after');
  expect(readFileSync(path, 'utf8')).toBe('after');
  expect(statSync(path).mode & 0o777).toBe(0o640);
  expect(readdirSync(folder)).toEqual(['file']);
});

test('writes nothing if the file has changed since it was read', async () => {
  await expect(rewriteFile(path, 'shown to the person', 'after')).rejects.toThrow('has changed');
  expect(readFileSync(path, 'utf8')).toBe('before');
  expect(readdirSync(folder)).toEqual(['file']);
});

test('writes nothing through a link that took the place of the file', async () => {
  const elsewhere = join(folder, 'elsewhere');
  writeFileSync(elsewhere, 'before');
  unlinkSync(path);
  symlinkSync(elsewhere, path);
  await expect(rewriteFile(path, 'before', 'after')).rejects.toThrow('has changed');
  expect(readFileSync(elsewhere, 'utf8')).toBe('before');
});
