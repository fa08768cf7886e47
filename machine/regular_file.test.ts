import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { readRegularFile } from './regular_file.ts';

const MOST = 100_000;

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'svc-regular-file-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const path = (): string => join(folder, 'file');
const reason = (at = path()): string | null => {
  const read = readRegularFile(at, MOST);
  return read.ok ? null : read.error.reason;
};

describe('a file that somebody else may have put there', () => {
  it.each([0, 1, 65_536, 65_537, MOST])('is read whole: %i bytes', (size) => {
    const bytes = Buffer.alloc(size, 'x');
    writeFileSync(path(), bytes, { mode: 0o640 });
    const read = readRegularFile(path(), MOST);
    expect(read.ok && read.value.bytes.equals(bytes)).toBe(true);
    expect(read.ok && read.value.stats.size).toBe(size);
  });

  it('is not read if it is larger than expected', () => {
    writeFileSync(path(), Buffer.alloc(MOST + 1));
    expect(reason()).toBe('too_large');
  });

  it.each<[string, () => void, string]>([
    ['a link', () => symlinkSync('/etc/hostname', path()), 'link'],
    ['a directory', () => mkdirSync(path()), 'not_a_file'],
    ['a named pipe that nobody writes to', () => execFileSync('mkfifo', [path()]), 'not_a_file'],
    ['absent', () => undefined, 'absent'],
  ])('is not read if it is %s', (_what, make, expected) => {
    make();
    expect(reason()).toBe(expected);
  });

  it('is absent below a file', () => {
    writeFileSync(path(), '');
    expect(reason(join(path(), 'below'))).toBe('absent');
  });
});
