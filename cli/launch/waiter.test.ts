import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { takeRecord, writeRecord } from './run_record.ts';
import { canBecome, listIgnored, parseWaiter } from './waiter.ts';

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'svc-waiter-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const place = (name: string, mode: number): void => {
  writeFileSync(join(folder, name), '#!/bin/sh\n');
  chmodSync(join(folder, name), mode);
};
const status = (mask: string): string => `Name:\tsh\nSigBlk:\t0000000000000000\nSigIgn:\t${mask}\nSigCgt:\t00\n`;

describe('the argument of bin/svc', () => {
  test('names the shell and the record, whose path may have any characters', () => {
    const expected = { pid: 41, record: '/a: b\n/runs/41' };
    expect(parseWaiter('--waiter', '--waiter=41:/a: b\n/runs/41', '/here')).toEqual(expected);
    expect(parseWaiter('--ended', '--ended=41:home/runs/41', '/here')?.record).toBe('/here/home/runs/41');
  });

  test.each(['run', '', '--waiter', '--waiter=', '--waiter=x:/r', '--waiter=1:', '--ended=1:/r'])(
    'is not %j',
    (argument) => {
      expect(parseWaiter('--waiter', argument, '/here')).toBeNull();
    },
  );
});

describe('a process becomes a command', () => {
  test('that is a program on PATH or at a path', () => {
    place('tool', 0o755);
    expect(canBecome('tool', `/nonexistent:${folder}`, '/')).toBe(true);
    expect(canBecome('tool', ':/nonexistent', folder)).toBe(true);
    expect(canBecome('./tool', '/nonexistent', folder)).toBe(true);
    expect(canBecome(join(folder, 'tool'), '', '/')).toBe(true);
  });

  test('and not one that cannot start, which is reported as usual', () => {
    place('plain', 0o644);
    mkdirSync(join(folder, 'folder'));
    const started = ['plain', 'folder', 'missing', '', '-tool'].filter((each) => canBecome(each, folder, folder));
    expect(started).toEqual([]);
    expect(canBecome('tool', undefined, folder)).toBe(false);
  });
});

test('the signals that a process ignores are read from its status', () => {
  expect(listIgnored(status('0000000000001003')).toSorted()).toEqual(['HUP', 'INT', 'PIPE']);
  expect(listIgnored(status('0000000000000000'))).toEqual([]);
  expect(listIgnored('')).toEqual([]);
  const all = listIgnored(status('ffffffffffffffff'));
  expect(all).not.toContain('KILL');
  expect(all).not.toContain('STOP');
});

describe('the record of a run', () => {
  const RECORD = {
    session_id: 'ses_1',
    had_placeholders: true,
    expected_hosts: ['api.example.com'],
    is_counted: true,
    home: '/home/one/.svc',
    control: 'http://127.0.0.1:7420',
    json: false,
    quiet: true,
  };

  test('is private, and is gone once it is read', () => {
    const path = join(folder, 'runs', String(process.pid));
    expect(writeRecord(path, RECORD)).toBe(true);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(takeRecord(path)).toEqual(RECORD);
    expect(readdirSync(join(folder, 'runs'))).toEqual([]);
  });

  test('of a shell that was killed is removed by the next run', () => {
    mkdirSync(join(folder, 'runs'));
    // No process has this id: it is above the largest that Linux gives.
    writeFileSync(join(folder, 'runs', '4194305'), '');
    writeRecord(join(folder, 'runs', String(process.pid)), RECORD);
    expect(readdirSync(join(folder, 'runs'))).toEqual([String(process.pid)]);
  });

  test('does not replace one that is there', () => {
    const path = join(folder, 'runs', String(process.pid));
    writeRecord(path, RECORD);
    expect(() => writeRecord(path, { ...RECORD, session_id: 'ses_2' })).toThrow('EEXIST');
    expect(readFileSync(path, 'utf8')).toContain('ses_1');
  });

  test('is left out where it cannot be written', () => {
    place('home', 0o644);
    expect(writeRecord(join(folder, 'home', 'runs', '41'), RECORD)).toBe(false);
  });

  test('that is damaged, or is another file, is told apart and not removed', () => {
    const path = join(folder, 'record');
    writeFileSync(path, '{"session_id":1}');
    expect(takeRecord(path)).toBeNull();
    expect(readFileSync(path, 'utf8')).toBe('{"session_id":1}');
  });
});
