import { mkdtempSync, realpathSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { holdFile } from './file_identity.ts';

let folder: string;
let file: string;
beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'svc-identity-')));
  file = join(folder, 'config');
  writeFileSync(file, 'first');
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** As git writes its settings. */
function replace(): void {
  writeFileSync(`${file}.lock`, 'another');
  renameSync(`${file}.lock`, file);
}

it('a file that is written stays the one that it was', () => {
  const held = holdFile(file);
  writeFileSync(file, 'second');
  expect(held.isThere()).toBe(true);
  held.release();
});

it('a file that was replaced any number of times is another: its number is not given again while it is held', () => {
  const before = statSync(file).ino;
  const held = holdFile(file);
  const seen = Array.from({ length: 6 }, () => {
    replace();
    return [held.isThere(), statSync(file).ino === before];
  });
  expect(seen).toEqual(seen.map(() => [false, false]));
  held.release();
});

it('a file that was removed, or removed and made anew, is another', () => {
  const held = holdFile(file);
  rmSync(file);
  const isThere = [held.isThere()];
  writeFileSync(file, 'first');
  expect([...isThere, held.isThere()]).toEqual([false, false]);
  held.release();
});

it('where nothing was, nothing is missed, and what comes there is noticed', () => {
  const held = holdFile(join(folder, 'none'));
  expect(held.isThere()).toBe(true);
  writeFileSync(join(folder, 'none'), '');
  expect(held.isThere()).toBe(false);
  held.release();
});
