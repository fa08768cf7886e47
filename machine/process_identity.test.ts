import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { bootId, identify, isRunning, isSurelyRunning, startTimeFromPs } from './process_identity.ts';

const NO_PID = 2 ** 31 - 1;
let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'svc-process-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

describe('a process', () => {
  it('is the same while it runs, and not another one with its id', () => {
    const own = identify(process.pid);
    expect(own?.started).toMatch(/./);
    if (own === null) return;
    expect([isRunning(own), isSurelyRunning(own)]).toEqual([true, true]);
    const other = { pid: own.pid, started: `${own.started}0` };
    expect([isRunning(other), isSurelyRunning(other)]).toEqual([false, false]);
  });

  it('without a known start time is not surely the same', () => {
    const known = { pid: process.pid, started: null };
    expect([isRunning(known), isSurelyRunning(known)]).toEqual([true, false]);
  });

  it('that has ended does not run', async () => {
    const child = spawn(process.execPath, ['-e', '']);
    const known = identify(child.pid ?? NO_PID);
    await once(child, 'exit');
    expect(known !== null && isRunning(known)).toBe(false);
    expect(isSurelyRunning({ pid: NO_PID, started: '1' })).toBe(false);
  });
});

function fakePs(script: string): string {
  const path = join(folder, 'ps');
  writeFileSync(path, `#!/bin/sh\n${script}\n`);
  chmodSync(path, 0o755);
  return path;
}

describe('the start time from ps', () => {
  it('is what it prints for this process, without spaces around it, in UTC and in English', () => {
    const ps = fakePs('echo "  $* $LC_ALL $TZ  "');
    expect(startTimeFromPs(42, ps)).toBe('-o lstart= -p 42 C UTC0');
  });

  it.each([
    ['it prints nothing', 'true'],
    ['it fails', 'echo x; exit 1'],
  ])('is unknown if %s', (_, script) => {
    expect(startTimeFromPs(42, fakePs(script))).toBeNull();
  });

  it('is not known without the program', () => {
    expect(startTimeFromPs(42, join(folder, 'none'))).toBeNull();
  });
});

it('the run of the system has one id', () => {
  expect(bootId()).toBe(bootId());
});
