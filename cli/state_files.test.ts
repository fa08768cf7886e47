import { spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { prepareHome } from './up/home.ts';
import { ensureLocalKey } from './sign_in/local_key.ts';
import { identify, isRunning } from '../machine/process_identity.ts';
import { RotatingLog } from './up/rotating_log.ts';
import { readRunFile, writeRunFile } from './up/run_file.ts';
import { UpLock } from './up/up_lock.ts';

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'svc-state-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const mode = (path: string): number => statSync(path).mode & 0o777;
const uid = process.getuid?.();

describe('the state directory', () => {
  test('is made for its owner alone', () => {
    const home = join(folder, 'a', 'b');
    expect(prepareHome(home, uid)).toEqual([]);
    expect(mode(home)).toBe(0o700);
  });

  test('is narrowed, with a notice, when others could enter it', () => {
    const home = join(folder, 'wide');
    mkdirSync(home, { mode: 0o755 });
    expect(prepareHome(home, uid)[0]).toContain('narrowed to 0700');
    expect(mode(home)).toBe(0o700);
    expect(prepareHome(home, uid)).toEqual([]);
  });

  test('is refused when it belongs to another user', () => {
    expect(() => prepareHome(folder, (uid ?? 0) + 1)).toThrow('belongs to user');
  });

  test('is refused when it is a file', () => {
    writeFileSync(join(folder, 'file'), '');
    expect(() => prepareHome(join(folder, 'file'), uid)).toThrow('is not a directory');
  });

  test('a link that leads nowhere is refused', () => {
    symlinkSync(join(folder, 'gone'), join(folder, 'link'));
    expect(() => prepareHome(join(folder, 'link'), uid)).toThrow('leads nowhere');
  });
});

describe('the local key', () => {
  test('is made once, for its owner alone, and kept', () => {
    const key = ensureLocalKey(folder);
    expect(key).toMatch(/^svc_local_[A-Za-z0-9_-]{43}$/);
    expect(mode(join(folder, 'local.key'))).toBe(0o600);
    expect(ensureLocalKey(folder)).toBe(key);
    expect(readdirSync(folder)).toEqual(['local.key']);
  });

  test('a damaged one is refused, never replaced', () => {
    writeFileSync(join(folder, 'local.key'), '\n', { mode: 0o600 });
    expect(() => ensureLocalKey(folder)).toThrow('is damaged');
    expect(readFileSync(join(folder, 'local.key'), 'utf8')).toBe('\n');
  });
});

test('run.json is private and comes back as it was written', () => {
  const run = {
    control_url: 'http://127.0.0.1:1',
    proxy_url: 'http://127.0.0.1:2',
    control_pid: 1,
    sidecar_pid: 2,
    version: '4.0.0',
    started_at: '2026-01-01T00:00:00.000Z',
  };
  writeRunFile(folder, run);
  expect(readRunFile(folder)).toEqual(run);
  expect(mode(join(folder, 'run.json'))).toBe(0o600);
  expect(readdirSync(folder)).toEqual(['run.json']);
});

describe('a log', () => {
  test('is private, goes on where it was, and moves aside when it is full', () => {
    const path = join(folder, 'control.log');
    const first = new RotatingLog(path, 20);
    first.write('one');
    first.close();
    const log = new RotatingLog(path, 20);
    log.write('two');
    expect(readFileSync(path, 'utf8')).toBe('one\ntwo\n');
    log.write('0123456789abcdef');
    log.close();
    expect(readFileSync(`${path}.1`, 'utf8')).toBe('one\ntwo\n');
    expect(readFileSync(path, 'utf8')).toBe('0123456789abcdef\n');
    expect(mode(path)).toBe(0o600);
  });

  test('never takes more than twice its size', () => {
    const path = join(folder, 'control.log');
    const log = new RotatingLog(path, 100);
    for (let index = 0; index < 100; index += 1) log.write(`line ${index}`);
    log.close();
    expect(readdirSync(folder).toSorted()).toEqual(['control.log', 'control.log.1']);
    expect(statSync(path).size + statSync(`${path}.1`).size).toBeLessThanOrEqual(200);
  });
});

describe('the lock of svc up', () => {
  const gone = { pid: spawnSync(process.execPath, ['-e', '']).pid, started: '1' };

  test('is held by one process', () => {
    const outcome = UpLock.take(folder, process.pid);
    if (outcome.kind !== 'taken') throw new Error(outcome.kind);
    expect(UpLock.take(folder, process.pid)).toEqual({ kind: 'running', pid: process.pid });
    outcome.lock.release();
    expect(readdirSync(folder)).toEqual([]);
  });

  test('of a process that is gone is free, and names the programs that still run', () => {
    const programs = [identify(process.pid), gone];
    writeFileSync(join(folder, 'up.lock'), JSON.stringify({ supervisor: gone, programs }));
    expect(UpLock.take(folder, process.pid)).toEqual({ kind: 'stale', programs: [identify(process.pid)] });
    expect(UpLock.take(folder, process.pid).kind).toBe('taken');
  });

  test('a later process with the same id does not hold it', () => {
    const supervisor = { pid: process.pid, started: 'before the last boot' };
    writeFileSync(join(folder, 'up.lock'), JSON.stringify({ supervisor, programs: [] }));
    expect(UpLock.take(folder, process.pid).kind).toBe('stale');
  });

  test('that is damaged is free', () => {
    writeFileSync(join(folder, 'up.lock'), '{');
    expect(UpLock.take(folder, process.pid).kind).toBe('stale');
    expect(existsSync(join(folder, 'up.lock'))).toBe(false);
  });

  test('a process is told from one that is gone', () => {
    expect(isRunning(gone)).toBe(false);
    expect(identify(process.pid)).toMatchObject({ pid: process.pid });
  });
});
