import { type ChildProcessWithoutNullStreams, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { constants, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';

const BIN = fileURLToPath(new URL('../bin/svc', import.meta.url));

/** A checkout whose programs print how they were started. */
let root = '';
beforeEach(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), 'svc bin ')));
  for (const folder of ['bin', 'path', 'links', join('node_modules', '.bin'), join('node_modules', 'commander')]) {
    mkdirSync(join(root, folder), { recursive: true });
  }
  copyFileSync(BIN, join(root, 'bin', 'svc'));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

function fakeNode(path: string, version: string): void {
  const script = `#!/bin/sh\nif [ "$1" = --version ]; then echo ${version}; else echo "${version}"; printf '%s\\n' "$@"; fi\n`;
  writeFileSync(join(root, path), script, { mode: 0o755 });
}
const locked = join('node_modules', '.bin', 'node');
const onPath = join('path', 'node');
const svc = (...args: string[]): string[] =>
  run(join(root, 'bin', 'svc'), args)
    .stdout.trimEnd()
    .split('\n');
const run = (file: string, args: string[]) =>
  spawnSync(file, args, { encoding: 'utf8', cwd: '/', env: { PATH: `${join(root, 'path')}:/bin:/usr/bin` } });

const isThere = (shell: string): boolean => spawnSync(shell, ['-c', ':']).error === undefined;
const scriptOf = (shell: string): string[] => (shell === 'busybox' ? ['sh'] : []);

describe('bin/svc', () => {
  test('prefers the locked Node and passes the arguments on unchanged', () => {
    fakeNode(locked, 'v24.1.0');
    fakeNode(onPath, 'v26.0.0');
    const args = ['run', '--', 'a b', '', '$HOME'];
    expect(svc(...args)).toEqual(['v24.1.0', '--min-semi-space-size=4', join(root, 'cli', 'start.mjs'), ...args]);
  });

  test.each(['v22.18.0', 'v23.10.0', 'v24.0.0', 'v100.2.3'])('starts %s on PATH without flags', (version) => {
    fakeNode(onPath, version);
    expect(svc()).toEqual([version, join(root, 'cli', 'start.mjs')]);
  });

  test.each(['v22.15.0', 'v22.17.1'])('starts %s with the flag to strip types', (version) => {
    fakeNode(onPath, version);
    expect(svc()).toContain('--experimental-strip-types');
  });

  test.each(['v22.14.0', 'v23.9.0', 'v20.20.2', 'v9.9.9', 'garbage', ''])('refuses %j with the fix', (version) => {
    fakeNode(onPath, version);
    const { status, stderr, stdout } = run(join(root, 'bin', 'svc'), []);
    expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
    expect(stderr).toContain('no Node 22.15 or newer');
    expect(stderr).toContain('tools/install.mjs');
  });

  test('skips a locked Node that does not start on this machine', () => {
    writeFileSync(join(root, locked), '#!/nonexistent/loader\n', { mode: 0o755 });
    fakeNode(onPath, 'v24.0.0');
    expect(svc()[0]).toBe('v24.0.0');
  });

  test('finds its checkout through links, relative and absolute', () => {
    fakeNode(locked, 'v24.1.0');
    symlinkSync(join('..', 'bin', 'svc'), join(root, 'links', 'one'));
    symlinkSync(join(root, 'links', 'one'), join(root, 'path', 'svc'));
    expect(run('svc', []).stdout).toContain(join(root, 'cli', 'start.mjs'));
  });

  const SHELLS = ['sh', 'dash', 'bash', 'busybox'].filter(isThere);

  test.each(SHELLS)('finds its checkout through a folder that is a link: %s', (shell) => {
    fakeNode(locked, 'v24.1.0');
    mkdirSync(join(root, 'elsewhere'));
    symlinkSync(join(root, 'bin'), join(root, 'elsewhere', 'bin'));
    const { stdout } = run(shell, [...scriptOf(shell), join(root, 'elsewhere', 'bin', 'svc')]);
    expect(stdout).toContain(join(root, 'cli', 'start.mjs'));
  });

  test.each(SHELLS)('finds its checkout by its bare name in its own folder: %s', (shell) => {
    fakeNode(locked, 'v24.1.0');
    for (const path of ['/bin:/usr/bin', ':/bin:/usr/bin', '.:/bin:/usr/bin']) {
      const options = { encoding: 'utf8', cwd: join(root, 'bin'), env: { PATH: path } } as const;
      const { stdout } = spawnSync(shell, [...scriptOf(shell), 'svc'], options);
      expect(stdout).toContain(join(root, 'cli', 'start.mjs'));
    }
  });

  test.each(SHELLS)('finds its checkout whatever its folder is called, and whatever CDPATH is: %s', (shell) => {
    fakeNode(locked, 'v24.1.0');
    const folder = join(root, '- $HOME *');
    mkdirSync(join(folder, 'bin'), { recursive: true });
    copyFileSync(BIN, join(folder, 'bin', 'svc'));
    for (const part of ['node_modules', 'cli']) symlinkSync(join(root, part), join(folder, part));
    const options = { encoding: 'utf8', cwd: root, env: { PATH: '/bin:/usr/bin', CDPATH: '/' } } as const;
    const { stdout } = spawnSync(shell, [...scriptOf(shell), '--', '- $HOME */bin/svc'], options);
    expect(stdout).toContain(join(folder, 'cli', 'start.mjs'));
  });

  test('says what to do if nothing is installed', () => {
    rmSync(join(root, 'node_modules'), { recursive: true });
    const { status, stderr } = run(join(root, 'bin', 'svc'), []);
    expect(status).toBe(1);
    expect(stderr).toContain('npm start');
  });
});

const outputOf = async (child: ChildProcessWithoutNullStreams) => {
  const chunks = { stdout: '', stderr: '' };
  child.stdout.on('data', (chunk: Buffer) => (chunks.stdout += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (chunks.stderr += chunk.toString()));
  const [code] = await once(child, 'close');
  return { code: Number(code), ...chunks };
};

describe('bin/svc beside a run', () => {
  /** A Node that becomes the command, as cli/launch/waiter.ts does it. */
  const BECOMES = `#!/bin/sh
if [ "$1" = --version ]; then echo v24.1.0; exit; fi
shift 2
case $1 in
  --ended=*) echo "ended\${1#--ended}" >&2 ;;
  --waiter=*)
    if [ -n "\${REFUSED-}" ]; then exit 3; fi
    : > "\${1#*:}"
    while [ "$1" != -- ]; do shift; done
    shift
    exec "$@"
    ;;
  *) echo "alone $*" ;;
esac
`;
  const startRun = (args: readonly string[], more: Record<string, string> = {}) => {
    writeFileSync(join(root, locked), BECOMES, { mode: 0o755 });
    const env = { PATH: '/bin:/usr/bin', SVC_HOME: join(root, 'home'), ...more };
    const child = spawn(join(root, 'bin', 'svc'), args, { env, cwd: root });
    return { child, ended: outputOf(child) };
  };
  beforeEach(() => {
    for (const folder of ['home', join('home', 'runs'), join('home', 'agents')]) mkdirSync(join(root, folder));
  });

  test('gives the command its input, and ends its session with its status', async () => {
    const { child, ended } = startRun(['run', '--', 'sh', '-c', 'cat; exit 7']);
    child.stdin.end('typed');
    expect(await ended).toEqual({
      code: 7,
      stdout: 'typed',
      stderr: `ended=${child.pid}:${root}/home/runs/${child.pid}\n`,
    });
  });

  test.each([
    ['run', '--', 'true'],
    ['--home', 'home', 'run', '--', 'true'],
    ['--json', '--control=http://127.0.0.1:1', '--home=home', 'run', '--', 'true'],
    ['--home=home', 'mine', '--', 'true'],
  ])('has its record in the state directory: %j %j %j', async (...args) => {
    writeFileSync(join(root, 'home', 'agents', 'mine.yaml'), '');
    const { child, ended } = startRun(args, args[0] === 'run' ? {} : { SVC_HOME: '' });
    expect((await ended).stderr).toMatch(new RegExp(`^ended=${child.pid}:(.*/)?home/runs/${child.pid}\n$`));
  });

  test('ends the session of a command that removed its folder', () => {
    writeFileSync(join(root, locked), BECOMES.replace('echo "ended', 'cd -- "$(pwd -P)"; echo "ended'), {
      mode: 0o755,
    });
    mkdirSync(join(root, 'here'));
    const env = { PATH: '/bin:/usr/bin', SVC_HOME: '../home' };
    const script = 'bin/svc run -- rm -r "$0/here"';
    const { status, stderr } = spawnSync('/bin/sh', ['-c', `cd here && ../${script}`, root], {
      env,
      cwd: root,
      encoding: 'utf8',
    });
    expect(status).toBe(0);
    expect(stderr).toMatch(new RegExp(`^ended=\\d+:${root}/home/runs/\\d+\n$`));
  });

  test('passes signals on and waits for what the command makes of them', async () => {
    const { child, ended } = startRun([
      'run',
      '--',
      'sh',
      '-c',
      'trap "exit 9" TERM; echo ready; while :; do sleep 0.02; done',
    ]);
    await once(child.stdout, 'data');
    child.kill('SIGTERM');
    expect(await ended).toMatchObject({ code: 9, stderr: expect.stringContaining('ended=') });
  });

  test.each(['SIGTERM', 'SIGHUP', 'SIGUSR1', 'SIGKILL'] as const)('says that the command died of %s', async (name) => {
    const { child, ended } = startRun(['run', '--', 'sh', '-c', `kill -${name.slice(3)} $$`]);
    const code = 128 + constants.signals[name];
    // By its status alone, as without this shell.
    expect(await ended).toMatchObject({ code, stderr: `ended=${child.pid}:${root}/home/runs/${child.pid}\n` });
  });

  test('ends no session if the command was not started, whatever a killed shell with the same id left', async () => {
    writeFileSync(join(root, locked), BECOMES, { mode: 0o755 });
    const env = { PATH: '/bin:/usr/bin', SVC_HOME: join(root, 'home'), REFUSED: '1' };
    const script = ': > home/runs/$$; exec bin/svc run -- true';
    const { status, stderr } = spawnSync('/bin/sh', ['-c', script], { env, cwd: root, encoding: 'utf8' });
    expect({ status, stderr }).toEqual({ status: 3, stderr: '' });
  });

  test('keeps the descriptors of the user', async () => {
    const script = '"$0" run -- sh -c "cat <&9; cat" 9<bin/nine <bin/input';
    writeFileSync(join(root, locked), BECOMES, { mode: 0o755 });
    writeFileSync(join(root, 'bin', 'nine'), 'nine ');
    writeFileSync(join(root, 'bin', 'input'), 'input');
    const env = { PATH: '/bin:/usr/bin', SVC_HOME: join(root, 'home') };
    const { stdout } = spawnSync('/bin/sh', ['-c', script, join(root, 'bin', 'svc')], {
      env,
      cwd: root,
      encoding: 'utf8',
    });
    expect(stdout).toBe('nine input');
  });

  test.each([['status'], ['--version'], ['up'], ['--home', 'home', 'status']])(
    'is not there for %j',
    async (...args) => {
      expect((await startRun(args).ended).stdout).toBe(`alone ${args.join(' ')}\n`);
    },
  );

  test('is not there without a state directory', async () => {
    const { ended } = startRun(['run', '--', 'true'], { SVC_HOME: '/nonexistent' });
    expect((await ended).stdout).toBe('alone run -- true\n');
  });
});
