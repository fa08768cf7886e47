import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { pause } from '../../machine/pause.ts';
import { runCli, TestHome } from '../testing/run_cli.ts';
import { Supervisor } from './supervisor.ts';

let home: TestHome;
beforeEach(() => {
  home = new TestHome();
});
afterEach(() => {
  vi.restoreAllMocks();
  home.remove();
});

test.each(['--detach', '--in-background'])("svc up %s writes nothing into another user's directory", async (flag) => {
  const before = readdirSync(home.path);
  const own = process.getuid?.() ?? 0;
  vi.spyOn(process, 'getuid').mockReturnValue(own + 1);
  const { code, stderr } = await runCli(home, ['up', flag]);
  expect(code).toBe(1);
  expect(stderr).toContain(`${home.path} belongs to user ${own}`);
  expect(readdirSync(home.path)).toEqual(before);
});

test('svc up below a file says that the directory cannot be created', async () => {
  const path = join(home.path, 'local.key', 'state');
  const { code, stderr } = await runCli(home, ['--home', path, 'up', '--detach']);
  expect([code, stderr]).toEqual([1, expect.stringContaining(`${path} cannot be created (ENOTDIR)`)]);
});

test('the supervisor handles signals before it takes the lock, so that none leaves the lock behind', async () => {
  const lock = join(home.path, 'up.lock');
  const wasLocked: boolean[] = [];
  const context = {
    get stop() {
      wasLocked.push(existsSync(lock));
      return new AbortController().signal;
    },
    pause,
    now: () => 0,
    version: '4.0.0',
  };
  const supervisor = await Supervisor.open(context, home.path, () => {});
  expect(existsSync(lock)).toBe(true);
  expect(wasLocked).toEqual([false]);
  await supervisor.stop();
  expect(existsSync(lock)).toBe(false);
});

test('what a stop still does when the programs have ended, it does while no other svc can start; also if that fails', async () => {
  const lock = join(home.path, 'up.lock');
  const context = { stop: new AbortController().signal, pause, now: () => 0, version: '4.0.0' };
  const supervisor = await Supervisor.open(context, home.path, () => {});
  let wasLocked: boolean | null = null;
  const stopping = supervisor.stop(() => {
    wasLocked = existsSync(lock);
    throw new Error('read-only folder');
  });
  await expect(stopping).rejects.toThrow('not everything could be ended');
  expect([wasLocked, existsSync(lock)]).toEqual([true, false]);
});
