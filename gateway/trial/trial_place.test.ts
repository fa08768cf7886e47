import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { emptyFoldersOf } from './trial_place.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(import.meta.dirname, 'trial-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

describe('the empty folders of a trial', () => {
  test('are the folders that are named, and no part of the system, no file and no option', () => {
    writeFileSync(join(folder, 'file'), '');
    mkdirSync(join(folder, 'a:b'));
    const others = [
      '/',
      '/usr',
      '/usr/lib',
      '/etc',
      '/proc/self',
      '/tmp',
      '/home',
      join(folder, 'file'),
      'src',
      folder + '/../x',
      join(folder, 'a:b'),
      join(folder, 'none'),
    ];
    expect(emptyFoldersOf(['/bin/program', folder, ...others])).toEqual([folder]);
    expect(emptyFoldersOf([folder])).toEqual([]);
  });
});
