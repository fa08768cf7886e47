import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { isAlive } from '../process_identity.ts';
import { maskStderr } from './mask_stderr.ts';
import { runEnvironment } from './run_environment.ts';
import { runProgram } from './run_program.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'svc-borrow-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const run = (script: string, more: Partial<Parameters<typeof runProgram>[0]> = {}, stop?: AbortSignal) =>
  runProgram(
    {
      program: '/bin/sh',
      args: ['-c', script],
      env: { PATH: '/usr/bin:/bin' },
      timeoutMs: 20_000,
      maxBytes: 100,
      ...more,
    },
    stop,
  );

test('gives the output of a program that has no input, no terminal, and works in /', async () => {
  const got = await run('pwd; env; cat; test -t 0 && echo terminal; true', {
    env: { PATH: '/usr/bin:/bin', ONLY: 'this' },
  });
  const lines = got.ok ? [...new Set(got.value.toString().trim().split('\n'))] : [];
  expect(lines.filter((line) => !/^(?:_|SHLVL|OLDPWD)=/.test(line)).toSorted()).toEqual([
    '/',
    'ONLY=this',
    'PATH=/usr/bin:/bin',
    'PWD=/',
  ]);
});

test('starts no shell', async () => {
  const got = await run('', { program: '/bin/echo', args: ['$(id)', '; id', '*'] });
  expect(got.ok && got.value.toString()).toBe('$(id) ; id *\n');
});

test('tells how a program failed, and keeps what it said apart', async () => {
  expect(await run('echo planted-out; echo planted-err >&2; exit 4')).toEqual({
    ok: false,
    error: { message: 'ended with status 4', stderr: 'planted-err\n' },
  });
  expect(await run('', { program: join(folder, 'none') })).toEqual({
    ok: false,
    error: { message: 'could not be started (ENOENT)', stderr: '' },
  });
});

test('tells that a program could not be started, also where starting throws', async () => {
  expect(await run('', { args: ['a\0b'] })).toEqual({
    ok: false,
    error: { message: 'could not be started (ERR_INVALID_ARG_VALUE)', stderr: '' },
  });
});

test.runIf(process.platform === 'linux')('tells that no descriptor is free to start a program', () => {
  const script = `
    const { openSync } = require('node:fs');
    import(${JSON.stringify(new URL('run_program.ts', import.meta.url).href)}).then(async ({ runProgram }) => {
      const wanted = { program: '/bin/true', args: [], env: {}, timeoutMs: 20000, maxBytes: 100 };
      await runProgram(wanted);
      try { for (;;) openSync('/dev/null', 'r'); } catch {}
      const got = await runProgram(wanted);
      process.stdout.write(got.ok ? 'ran' : got.error.message);
    });`;
  const limited = ['-c', 'ulimit -n 200 && exec "$@"', 'sh', process.execPath, '-e', script];
  const got = spawnSync('/bin/sh', limited, { encoding: 'utf8', timeout: 20_000 });
  expect(`${got.status} ${got.stdout}`).toBe('0 could not be started (EMFILE)');
});

test('kills a program that takes too long, with what it started', async () => {
  const pidFile = join(folder, 'pid');
  const got = await run(`sleep 600 & echo $! > ${pidFile}; wait`, { timeoutMs: 700 });
  expect(got).toMatchObject({ ok: false, error: { message: 'did not end within 0.7 seconds' } });
  const pid = Number(readFileSync(pidFile, 'utf8'));
  await expect.poll(() => isAlive(pid) && !readFileSync(`/proc/${pid}/stat`, 'utf8').includes(') Z ')).toBe(false);
});

test('kills a program that writes too much, and one that runs when svc stops', async () => {
  expect(await run('yes')).toMatchObject({ ok: false, error: { message: 'wrote more than 100 bytes' } });
  const stop = new AbortController();
  const running = run('sleep 600', {}, stop.signal);
  stop.abort();
  expect(await running).toMatchObject({ ok: false, error: { message: 'was stopped, because svc stops' } });
});

test('does not wait for what a program leaves running with its output open', async () => {
  const got = await run('sleep 30 & echo value');
  expect(got.ok && got.value.toString()).toBe('value\n');
});

test('has nothing of its own environment in that of a program', () => {
  process.env['SVC_PLANTED'] = 'planted';
  const env = runEnvironment();
  delete process.env['SVC_PLANTED'];
  expect(
    Object.keys(env).filter(
      (name) => !/^(?:PATH|HOME|USER|LOGNAME|LANG|XDG_RUNTIME_DIR|DBUS_SESSION_BUS_ADDRESS)$/.test(name),
    ),
  ).toEqual([]);
  expect(env['PATH']?.split(':').every((path) => /^\/(?:usr\/(?:local\/)?)?s?bin$/.test(path))).toBe(true);
});

test('masks what looks like a credential in what a program said', () => {
  expect(maskStderr('')).toBeNull();
  expect(maskStderr('first\nnot logged in to github.com: run gh auth login\n\n')).toBe(
    'not logged in to github.com: run gh auth login',
  );
  expect(maskStderr('bad token ghp_16C7e42F292c6912E7710c838347Ae178B4a!')).toBe('bad token [masked]!');
  expect(maskStderr('a\u001b[2Jb')).not.toContain('\u001b');
});
