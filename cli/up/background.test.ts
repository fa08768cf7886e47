import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { describe, expect, test, vi } from 'vitest';
import { pause } from '../../machine/pause.ts';
import type { CliContext } from '../context.ts';
import { EXIT } from '../exit_codes.ts';
import { endStarted, environmentOfSvc, startError } from './background.ts';

const HOME = '/home/anna/.svc';
const endOf = (exitCode: number) => ({ exitCode, signalCode: null });

describe('the background process that failed to start', () => {
  test('by an uncaught error is reported with the message of the error, not with its stack', () => {
    const script = 'function fail(n) { if (n > 0) fail(n - 1); else throw new Error("no space left") } fail(20);';
    const { status, stderr } = spawnSync(process.execPath, ['--input-type=module', '--eval', script], {
      encoding: 'utf8',
    });
    const said = stderr.split('\n').filter((line) => line.trim() !== '');
    const { message, fixes } = startError(endOf(status ?? 0), HOME, said);
    expect(message).toBe('svc was ended with exit status 1 before it was ready');
    expect(fixes).toContain('Error: no space left');
    expect(fixes.filter((line) => /^\s*at /.test(line))).toEqual([]);
  });

  test('by an expected error is reported with that error and its fixes', () => {
    const said = ['started before', 'svc: port 7420 is in use', '     Stop the other program.', '     Or use --port.'];
    const { message, fixes } = startError(endOf(1), HOME, said);
    expect(message).toBe('port 7420 is in use');
    expect(fixes).toEqual(['Stop the other program.', 'Or use --port.']);
  });
});

describe('the background process that did not become ready', () => {
  test('is ended', async () => {
    const child = spawn('sleep', ['1000'], { stdio: 'ignore' });
    await once(child, 'spawn');
    await endStarted(child, HOME, pause);
    expect(child.signalCode).toBe('SIGTERM');
  });

  test('is named if it does not end in time, and this command ends', async () => {
    const kill = vi.fn<() => boolean>(() => true);
    const child = { pid: 4711, once: vi.fn<() => void>(), kill, unref: vi.fn<() => void>() };
    const waited = vi.fn<(ms: number) => Promise<void>>(() => Promise.resolve());
    await expect(endStarted(child, HOME, waited)).rejects.toMatchObject({
      exitCode: EXIT.failed,
      message: `svc on ${HOME} (process 4711) is still stopping`,
    });
    expect(waited).toHaveBeenCalledExactlyOnceWith(30_000, expect.anything());
    expect(kill).toHaveBeenCalledExactlyOnceWith('SIGTERM');
    expect(child.unref).toHaveBeenCalledOnce();
  });
});

test('an svc that another command starts gets settings and paths, not the credentials of the shell', () => {
  const own = {
    PATH: '/opt/bin',
    HOME: '/home/anna',
    LC_ALL: 'C',
    DOCKER_HOST: 'unix:///d.sock',
    SVC_IDLE_TUNNEL_SECONDS: '60',
    XDG_RUNTIME_DIR: '/run/user/1',
  };
  const shells = {
    ANTHROPIC_API_KEY: 'planted',
    DEPLOY: 'planted',
    DOCKER_AUTH_CONFIG: 'planted',
    DOCKER_PASSWORD: 'planted',
    SVC_TOKEN: 'planted',
    NODE_OPTIONS: '--require=/x',
    // The proxy of the session that svc is started in.
    HTTPS_PROXY: 'http://ses_01hzy3v7q8w9x0y1z2a3b4c5d6:planted@127.0.0.1:7421',
  };
  const context: Pick<CliContext, 'env'> = { env: { ...shells, ...own } };
  expect(environmentOfSvc(context)).toEqual(own);
  expect(environmentOfSvc({ env: { HTTPS_PROXY: 'http://u:p@proxy.test:1', no_proxy: 'a.test' } })).toMatchObject({
    HTTPS_PROXY: 'http://u:p@proxy.test:1',
    NO_PROXY: 'a.test',
  });
  expect(environmentOfSvc({ env: {} })).toEqual({ PATH: '/usr/local/bin:/usr/bin:/bin' });
});
