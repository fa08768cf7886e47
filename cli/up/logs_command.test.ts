import { appendFileSync, mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { LogReader } from './log_files.ts';
import { runCli, TestHome } from '../testing/run_cli.ts';

let home: TestHome;
beforeEach(() => {
  home = new TestHome();
  mkdirSync(join(home.path, 'logs'));
});
afterEach(() => home.remove());

const log = (name: string, ...lines: readonly string[]): string =>
  home.write(join('logs', name), lines.map((line) => `${line}\n`).join(''));
const line = (second: number, message: string, fields = {}): string =>
  JSON.stringify({ time: `2026-01-01T00:00:0${second}.000Z`, level: 'info', message, ...fields });
const writeLogs = (): void => {
  log('control.log.1', line(1, 'one'));
  log('control.log', line(3, 'three', { status: 200, route: '/v1/me' }), 'Error: broken', line(5, 'five'));
  log('sidecar.log', line(2, 'two'), line(4, 'four'));
};

const messages = (reader: LogReader): unknown[] => reader.readNew().map(({ fields }) => fields?.['message']);

describe('svc logs', () => {
  test('merges the logs by time, the rotated one included; a line without a time stays after the line before it', async () => {
    writeLogs();
    const { code, stdout } = await runCli(home, ['logs']);
    expect(code).toBe(0);
    expect(stdout.split('\n')).toEqual([
      '2026-01-01T00:00:01.000Z  control  info   one',
      '2026-01-01T00:00:02.000Z  sidecar  info   two',
      '2026-01-01T00:00:03.000Z  control  info   three  status=200  route=/v1/me',
      '2026-01-01T00:00:03.000Z  control         Error: broken',
      '2026-01-01T00:00:04.000Z  sidecar  info   four',
      '2026-01-01T00:00:05.000Z  control  info   five',
      '',
    ]);
  });

  test('shows one log, and as many last lines as asked for', async () => {
    writeLogs();
    expect((await runCli(home, ['logs', 'sidecar', '--lines', '1'])).stdout).toBe(
      '2026-01-01T00:00:04.000Z  sidecar  info   four\n',
    );
    expect((await runCli(home, ['logs', '--lines', '0'])).stdout).toBe('');
  });

  test('prints each line as a JSON document with --json', async () => {
    writeLogs();
    const { stdout } = await runCli(home, ['logs', 'control', '--json', '--lines', '3']);
    const documents = stdout
      .trimEnd()
      .split('\n')
      .map((text) => JSON.parse(text) as unknown);
    expect(documents).toEqual([
      {
        time: '2026-01-01T00:00:03.000Z',
        level: 'info',
        message: 'three',
        status: 200,
        route: '/v1/me',
        program: 'control',
      },
      { time: '2026-01-01T00:00:03.000Z', message: 'Error: broken', program: 'control' },
      { time: '2026-01-01T00:00:05.000Z', level: 'info', message: 'five', program: 'control' },
    ]);
  });

  test('escapes control characters', async () => {
    log('sidecar.log', line(1, 'a\u001b[2Jb\nc'), 'x\u001b[2Jy');
    const { stdout } = await runCli(home, ['logs']);
    expect(stdout).not.toContain('\u001b');
    expect(stdout.split('\n')).toHaveLength(3);
  });

  test('says so if there are none yet', async () => {
    const { code, stdout, stderr } = await runCli(home, ['logs']);
    expect([code, stdout]).toEqual([0, '']);
    expect(stderr).toContain('there are no logs in');
  });

  test.each([['--lines', 'many'], ['--lines', '-1'], ['gateway']])('refuses %s %s', async (...args) => {
    expect((await runCli(home, ['logs', ...args])).code).toBe(2);
  });
});

describe('a log that is followed', () => {
  test('gives each line once and whole', () => {
    const path = log('sidecar.log', line(1, 'one'));
    const reader = new LogReader(home.path, 'sidecar');
    expect(messages(reader)).toEqual(['one']);
    expect(messages(reader)).toEqual([]);
    const two = line(2, 'zwei ö');
    const bytes = Buffer.from(`${two}\n`);
    const inside = bytes.indexOf('ö') + 1;
    appendFileSync(path, bytes.subarray(0, inside));
    expect(messages(reader)).toEqual([]);
    appendFileSync(path, bytes.subarray(inside));
    expect(messages(reader)).toEqual(['zwei ö']);
  });

  test('loses and repeats no line when it rotates', () => {
    const path = log('sidecar.log', line(1, 'one'));
    const reader = new LogReader(home.path, 'sidecar');
    expect(messages(reader)).toEqual(['one']);
    appendFileSync(path, `${line(2, 'two')}\n`);
    renameSync(path, `${path}.1`);
    writeFileSync(path, `${line(3, 'three')}\n`);
    expect(messages(reader)).toEqual(['two', 'three']);
    expect(messages(reader)).toEqual([]);
  });

  test('is found when it appears', () => {
    const reader = new LogReader(home.path, 'control');
    expect(messages(reader)).toEqual([]);
    log('control.log', line(1, 'one'));
    expect(messages(reader)).toEqual(['one']);
  });
});
