import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { isRunning, kill } from './support/process.ts';
import { run, start, SVC } from './support/program.ts';
import { OWN_REGISTRY, readRunFile, Svc } from './support/svc.ts';
import { waitFor } from './support/wait_for.ts';

// Starting and stopping by a person and by a service manager.

// One home for all: each start is on what the one before left there.
const home = mkdtempSync(join(tmpdir(), 'svc-e2e-start-'));
let svc: Svc;

afterAll(() => rmSync(home, { recursive: true, force: true }));

/** The programs of this start that still run. */
const runningOf = ({ runFile }: Svc): readonly number[] =>
  [runFile.control_pid, runFile.sidecar_pid].filter((pid) => isRunning(pid));

describe('npm start', () => {
  it('gets ready, and prints where it listens, how to sign in and what to do first', async () => {
    svc = await Svc.up({ home, command: ['npm', 'start', '--'], env: OWN_REGISTRY });
    const { control_url, proxy_url, version } = svc.runFile;
    await waitFor('the guide', () => svc.output.includes('Ctrl-C'));
    for (const url of [control_url, proxy_url]) {
      expect(svc.output).toContain(url);
      expect(new URL(url).hostname).toBe('127.0.0.1');
    }
    expect(version).toBe('4.0.0');
    const { port } = new URL(control_url);
    expect(svc.output).toMatch(new RegExp(`http://svc-[0-9a-f]{32}\\.localhost:${port}/auth/link/\\S+`));
    for (const command of ['claude', 'seal github']) {
      expect(svc.output).toMatch(new RegExp(`\\./bin/svc (?:--home \\S+ )?${command}`));
    }
    await svc.stop();
    expect(readRunFile(home)).toBeUndefined();
    expect(runningOf(svc)).toEqual([]);
  });
});

describe('svc up', () => {
  it('is reported as healthy by status and doctor', async () => {
    svc = await Svc.up({ home });
    expect(await svc.ok(['status'])).toContain(svc.runFile.proxy_url);
    expect(JSON.parse(await svc.ok(['status', '--json']))).toBeTypeOf('object');
    expect(await svc.ok(['doctor'])).toContain('curl\tuses the proxy and trusts');
    // The probes leave nothing that looks like an attack.
    const denied = await svc.api('GET', '/v1/audit-events?type=sandbox.proxy.');
    expect(denied).toMatchObject({ status: 200, body: { items: [] } });
    await svc.secret('user/kept', 'kept-across-starts');
  });

  it('has only a small shell beside the command of a run', async () => {
    const env = { SVC_HOME: home };
    const sh = (script: string) => run('/bin/sh', ['-c', script, SVC], { env });

    // The command is as without svc: its caller's ignored signals, no others, and pipes that wait.
    const asIs = await sh('"$0" run -- grep -h -e ^SigIgn -e ^flags /proc/self/status /proc/self/fdinfo/1 | cat');
    expect(asIs.stdout).toBe('SigIgn:\t0000000000000000\nflags:\t01\n');
    const ignoring = await sh(`trap '' HUP INT; "$0" run -- grep ^SigIgn /proc/self/status`);
    expect(ignoring.stdout).toBe('SigIgn:\t0000000000000003\n');
    expect((await sh('echo typed | "$0" run -- sh -c "cat; kill -TERM \\$\\$"')).code).toBe(143);
    expect(await svc.ok(['sessions', 'list'])).toBe('');

    const waiting = start(SVC, ['run', '--', 'sh', '-c', 'echo "$PPID $$"; exec sleep 3600'], { env });
    const [said] = await once(waiting.stdout ?? waiting, 'data');
    const [shell = 0, command = 0] = String(said).trim().split(' ').map(Number);
    try {
      expect(shell).toBe(waiting.pid);
      const kilobytes = Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${shell}/status`, 'utf8'))?.[1]);
      expect(kilobytes).toBeLessThan(10_000);
      expect(await svc.ok(['sessions', 'list'])).not.toBe('');
      kill(shell, 'SIGKILL');
      await waitFor('the session to end', async () => (await svc.ok(['sessions', 'list'])) === '');
    } finally {
      kill(command, 'SIGKILL');
    }
    expect((await sh('"$0" run -- true')).code).toBe(0);
    expect(readdirSync(join(home, 'runs'))).toEqual([]);
  });

  it.each(['SIGINT', 'SIGTERM'] as const)(
    'stops on %s with its programs, and starts again on the same state',
    async (signal) => {
      const first = svc;
      await first.stop({ signal });
      expect(first.process.exitCode).toBe(0);
      expect(readdirSync(home)).not.toContain('run.json');
      expect(runningOf(first)).toEqual([]);
      svc = await Svc.up({ home });
      expect(await svc.ok(['secret', 'list'])).toContain('user/kept');
    },
  );

  it('that was killed does not block the next start', async () => {
    const first = svc;
    kill(first.process.pid, 'SIGKILL');
    await waitFor('it to be gone', () => first.process.signalCode !== null);
    svc = await Svc.up({ home });
    expect(svc.runFile.control_pid).not.toBe(first.runFile.control_pid);
    await waitFor('the left-over programs to end', () => runningOf(first).length === 0);
    expect((await svc.api('GET', '/v1/me')).status).toBe(200);
  });

  it('that lost its terminal still ends its programs, and svc uninstall leaves nothing of its state', async () => {
    await svc.ok(['run', '--', 'true']);
    await svc.ok(['allow', 'packages.example', '--folder', '.']);
    svc.process.stdout?.destroy();
    svc.process.stderr?.destroy();
    await svc.stop({ signal: 'SIGHUP' });
    const left = runningOf(svc);
    for (const pid of left) kill(pid, 'SIGKILL');
    expect(left).toEqual([]);
    expect(await svc.ok(['uninstall', '--yes'])).toBe(`deleted ${home}\n`);
    expect(existsSync(home)).toBe(false);
  });
});
