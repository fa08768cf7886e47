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
import { prepareHome } from './home.ts';
import { ensureLocalKey } from '../sign_in/local_key.ts';
import { identify, isRunning } from '../../machine/process_identity.ts';
import { RotatingLog } from './rotating_log.ts';
import { readRunFile, writeRunFile } from './run_file.ts';
import { UpLock } from './up_lock.ts';

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'svc-state-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const mode = (path: string): number => statSync(path).mode & 0o777;
const uid = process.getuid?.();

describe('the state directory', () => {
  test('is created private to its owner', () => {
    const home = join(folder, 'a', 'b');
    expect(prepareHome(home, uid)).toEqual([]);
    expect(mode(home)).toBe(0o700);
  });

  test('is made private, with a notice, if others could enter it', () => {
    const home = join(folder, 'wide');
    mkdirSync(home, { mode: 0o755 });
    expect(prepareHome(home, uid)[0]).toContain('changed to 0700');
    expect(mode(home)).toBe(0o700);
    expect(prepareHome(home, uid)).toEqual([]);
  });

  test('is refused if it belongs to another user', () => {
    expect(() => prepareHome(folder, (uid ?? 0) + 1)).toThrow('belongs to user');
  });

  test('is refused if it is a file', () => {
    writeFileSync(join(folder, 'file'), '');
    expect(() => prepareHome(join(folder, 'file'), uid)).toThrow('is not a directory');
  });

  test('is refused, with the reason, where no folder can be created', () => {
    expect(() => prepareHome('/proc/svc-home', uid)).toThrow(/^\/proc\/svc-home cannot be created \(E[A-Z]+\)$/);
    writeFileSync(join(folder, 'file'), '');
    expect(() => prepareHome(join(folder, 'file', 'home'), uid)).toThrow('cannot be created (ENOTDIR)');
  });

  test('is refused if it is a broken link', () => {
    symlinkSync(join(folder, 'gone'), join(folder, 'link'));
    expect(() => prepareHome(join(folder, 'link'), uid)).toThrow('target does not exist');
  });
});

describe('the local key', () => {
  test('is created once, private to its owner', () => {
    const key = ensureLocalKey(folder);
    expect(key).toMatch(/^svc_local_[A-Za-z0-9_-]{43}$/);
    expect(mode(join(folder, 'local.key'))).toBe(0o600);
    expect(ensureLocalKey(folder)).toBe(key);
    expect(readdirSync(folder)).toEqual(['local.key']);
  });

  test('is refused and never replaced if damaged', () => {
    writeFileSync(join(folder, 'local.key'), '\n', { mode: 0o600 });
    expect(() => ensureLocalKey(folder)).toThrow('is damaged');
    expect(readFileSync(join(folder, 'local.key'), 'utf8')).toBe('\n');
  });
});

test('run.json is private and round-trips', () => {
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
  test('is private, appends to an existing file, and rotates when full', () => {
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

  test('never uses more than twice its limit', () => {
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

  test('is held by one process at a time', () => {
    const outcome = UpLock.take(folder, process.pid);
    if (outcome.kind !== 'taken') throw new Error(outcome.kind);
    expect(UpLock.take(folder, process.pid)).toEqual({ kind: 'running', pid: process.pid });
    outcome.lock.release();
    expect(readdirSync(folder)).toEqual([]);
  });

  test('of a dead process is free, and names the programs that still run', () => {
    const programs = [identify(process.pid), gone];
    writeFileSync(join(folder, 'up.lock'), JSON.stringify({ supervisor: gone, programs }));
    expect(UpLock.take(folder, process.pid)).toEqual({ kind: 'stale', programs: [identify(process.pid)] });
    expect(UpLock.take(folder, process.pid).kind).toBe('taken');
  });

  test('is not held by a later process with the same id', () => {
    const supervisor = { pid: process.pid, started: 'before the last boot' };
    writeFileSync(join(folder, 'up.lock'), JSON.stringify({ supervisor, programs: [] }));
    expect(UpLock.take(folder, process.pid).kind).toBe('stale');
  });

  test('is free if damaged', () => {
    writeFileSync(join(folder, 'up.lock'), '{');
    expect(UpLock.take(folder, process.pid).kind).toBe('stale');
    expect(existsSync(join(folder, 'up.lock'))).toBe(false);
  });

  test('distinguishes a live process from a dead one', () => {
    expect(isRunning(gone)).toBe(false);
    expect(identify(process.pid)).toMatchObject({ pid: process.pid });
  });
});
