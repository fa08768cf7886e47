import { EventEmitter } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, watch, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { exitStatusOf, runChild, type ChildEnd } from './run_child.ts';

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'svc-run-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const sh = (script: string, signals = new EventEmitter(), terminal = false): Promise<ChildEnd> =>
  runChild(
    { command: '/bin/sh', args: ['-c', script], env: { PATH: '/bin:/usr/bin' }, cwd: folder, terminal },
    signals,
  );

/** Resolves when the command has created the file `ready`. */
function ready(): Promise<void> {
  return new Promise((resolve) => {
    const watcher = watch(folder, (_event, name) => {
      if (name !== 'ready') return;
      watcher.close();
      resolve();
    });
  });
}

describe('runChild', () => {
  test('returns the exit status', async () => {
    expect(exitStatusOf(await sh('exit 7'))).toBe(7);
    expect(exitStatusOf(await sh('exit 0'))).toBe(0);
  });

  test('returns 128 + n for signal n', async () => {
    expect(exitStatusOf(await sh('kill -9 $$'))).toBe(137);
    expect(exitStatusOf(await sh('kill -15 $$'))).toBe(143);
  });

  test('returns 127 for a missing command and 126 for one that cannot be executed', async () => {
    const file = join(folder, 'plain.txt');
    writeFileSync(file, 'x', { mode: 0o644 });
    const run = (command: string) =>
      runChild({ command, args: [], env: { PATH: '/bin' }, cwd: folder, terminal: false }, new EventEmitter());
    expect(exitStatusOf(await run('no-such-command-here'))).toBe(127);
    expect(exitStatusOf(await run(file))).toBe(126);
    expect(exitStatusOf(await run('bad\0name'))).toBe(126);
  });

  test('passes the arguments unchanged and only the given environment', async () => {
    const args = ['-c', 'printf "%s|" "$@" "$A" "$HOME" > out', 'sh', 'a b', '$(id)', '--json'];
    await runChild({ command: '/bin/sh', args, env: { A: '1' }, cwd: folder, terminal: false }, new EventEmitter());
    expect(readFileSync(join(folder, 'out'), 'utf8')).toBe('a b|$(id)|--json|1||');
  });

  test('forwards signals until the command ends', async () => {
    const signals = new EventEmitter();
    const isReady = ready();
    const end = sh('trap "exit 9" TERM; : > ready; while :; do sleep 0.02; done', signals);
    await isReady;
    signals.emit('SIGTERM');
    expect(await end).toEqual({ kind: 'exited', code: 9 });
    expect(signals.eventNames().flatMap((name) => signals.listeners(name))).toEqual([]);
  });

  test('does not forward Ctrl-C at a terminal, where the command gets it directly', async () => {
    const signals = new EventEmitter();
    const isReady = ready();
    const end = sh('trap "exit 3" INT; trap "exit 9" TERM; : > ready; while :; do sleep 0.02; done', signals, true);
    await isReady;
    signals.emit('SIGINT');
    signals.emit('SIGTERM');
    expect(await end).toEqual({ kind: 'exited', code: 9 });
  });
});
