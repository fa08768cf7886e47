import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { homeLabelOf } from '../../sandbox/engine/container_labels.ts';
import { CONTAINER_ID, FakeDocker } from '../../sandbox/launch/testing/fake_docker.ts';
import { identify } from '../../machine/process_identity.ts';
import { runCli, TestHome, type Answer } from '../testing/run_cli.ts';
import { LIVE_SESSION } from '../testing/session_samples.ts';

let home: TestHome;
let child: ChildProcess;
let ended: Promise<unknown[]>;
beforeEach(async () => {
  home = new TestHome();
  child = spawn('sleep', ['1000'], { stdio: 'ignore' });
  ended = once(child, 'exit');
  await once(child, 'spawn');
});
afterEach(async () => {
  vi.restoreAllMocks();
  child.kill('SIGKILL');
  await ended;
  home.remove();
});

const sessions =
  (...items: readonly object[]): Answer =>
  () => ({ status: 200, body: { items, next_cursor: null } });
/** The lock of a supervisor that runs (`sleep`), or of one that was killed. */
function lock(supervisor: object | null, programs: readonly object[] = []): void {
  home.write('up.lock', JSON.stringify({ supervisor: supervisor ?? { pid: 4_194_305, started: '1' }, programs }));
}
const runs = (): boolean => child.exitCode === null && child.signalCode === null;
const identity = () => identify(child.pid ?? 0);

describe('svc down', () => {
  test('stops the process that holds the lock, and returns when it has ended', async () => {
    lock(identity());
    const { code, stdout } = await runCli(home, ['down'], { answer: sessions() });
    expect([code, stdout]).toEqual([0, `stopped svc on ${home.path}\n`]);
    expect(identity()).toBeNull();
    expect(existsSync(join(home.path, 'up.lock'))).toBe(false);
    await ended;
    expect(child.signalCode).toBe('SIGTERM');
  });

  test('stops nothing that the files of another user name', async () => {
    lock(identity());
    const own = process.getuid?.() ?? 0;
    vi.spyOn(process, 'getuid').mockReturnValue(own + 1);
    const { code, stderr } = await runCli(home, ['down', '--yes'], { answer: sessions() });
    expect([code, stderr]).toEqual([
      1,
      expect.stringContaining(`belongs to user ${own}, not to you (${own + 1}): nothing was stopped`),
    ]);
    expect([runs(), existsSync(join(home.path, 'up.lock'))]).toEqual([true, true]);
  });

  test('with live sessions and no terminal is refused with their names, and stops nothing', async () => {
    lock(identity());
    const answer = sessions(LIVE_SESSION, { ...LIVE_SESSION, session_id: 'ses_2', state: 'ended' });
    const { code, stderr } = await runCli(home, ['down'], { answer });
    expect(code).toBe(2);
    expect(stderr).toContain('This ends 1 live session:');
    expect(stderr).toContain('ses_1 (work)');
    expect(stderr).not.toContain('ses_2');
    expect(runs()).toBe(true);
  });

  test('with live sessions at a terminal asks first', async () => {
    lock(identity());
    const options = { answer: sessions(LIVE_SESSION), terminal: true };
    const refused = await runCli(home, ['down'], { ...options, stdin: 'n\n' });
    expect(refused.code).toBe(1);
    expect(refused.stderr).toContain('ses_1 (work)');
    expect(runs()).toBe(true);
    expect((await runCli(home, ['down'], { ...options, stdin: 'y\n' })).code).toBe(0);
    expect(identity()).toBeNull();
  });

  test('with --yes ends live sessions without asking', async () => {
    lock(identity());
    expect((await runCli(home, ['down', '--yes'], { answer: sessions(LIVE_SESSION) })).code).toBe(0);
    expect(identity()).toBeNull();
  });

  test('stops it also if its sidecar does not answer', async () => {
    lock(identity());
    const { code, stderr } = await runCli(home, ['down']);
    expect(code).toBe(0);
    expect(stderr).toContain('the live sessions are not known');
    expect(identity()).toBeNull();
  });

  test('ends the programs of a supervisor that was killed', async () => {
    lock(null, [identity() ?? {}]);
    const { code, stdout, stderr } = await runCli(home, ['down', '--json']);
    expect(code).toBe(0);
    expect(stderr).toBe(`svc: ending process ${child.pid}, left behind by an earlier svc\n`);
    expect(JSON.parse(stdout)).toEqual({ home: home.path, stopped: true });
    expect(identity()).toBeNull();
    expect(existsSync(join(home.path, 'run.json'))).toBe(false);
  });

  test('does not touch a process that only has the id of one that has ended', async () => {
    lock({ pid: child.pid, started: '1' }, [{ pid: child.pid, started: '1' }]);
    const { code, stdout } = await runCli(home, ['down']);
    expect([code, stdout]).toEqual([0, `svc is not running on ${home.path}\n`]);
    expect(runs()).toBe(true);
  });

  test.each(['up.lock', 'run.json'])('does not say that nothing runs if %s cannot be read', async (name) => {
    rmSync(join(home.path, name), { force: true });
    // Also root cannot read a directory as a file, unlike another user's file.
    mkdirSync(join(home.path, name));
    const { code, stderr } = await runCli(home, [name === 'up.lock' ? 'down' : 'status']);
    expect(code).not.toBe(0);
    expect(stderr).toContain(`${join(home.path, name)} cannot be read (EISDIR)`);
  });

  test('removes what is saved of sessions', async () => {
    const folder = join(home.path, 'sessions', `ses_${'0'.repeat(26)}`);
    mkdirSync(folder, { recursive: true });
    expect((await runCli(home, ['down'])).code).toBe(0);
    expect([existsSync(folder), existsSync(join(home.path, 'up.lock'))]).toEqual([false, false]);
  });

  test('removes the containers of sessions that the sidecar did not end, and no other container', async () => {
    const docker = new FakeDocker();
    await docker.listen();
    const folder = join(home.path, 'sessions', `ses_${'0'.repeat(26)}`);
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, 'container.json'), JSON.stringify({ endpoint: docker.endpoint }));
    mkdirSync(join(home.path, 'sessions', 'other', 'container.json'), { recursive: true });
    const own = { 'svc.session': 'ses_1', 'svc.home': homeLabelOf(home.path) };
    docker
      .replies('GET /containers/json', 200, [
        { Id: CONTAINER_ID, Names: ['/one'], State: 'running', Labels: own },
        { Id: 'd'.repeat(64), Names: ['/two'], State: 'running', Labels: { ...own, 'svc.home': 'other' } },
      ])
      .replies(`DELETE /containers/${CONTAINER_ID}`, 500, 'busy');
    lock(identity());
    const { code, stderr } = await runCli(home, ['down', '--yes'], { env: docker.env() });
    const removals = docker.calls().filter((call) => call.startsWith('DELETE '));
    await docker.remove();
    expect([code, removals]).toEqual([0, [`DELETE /containers/${CONTAINER_ID}?force=1&v=1`]]);
    expect(stderr).toContain('container cccccccccccc could not be removed');
  });

  test('leaves the sessions of an svc that was started meanwhile', async () => {
    const folder = join(home.path, 'sessions', `ses_${'0'.repeat(26)}`);
    mkdirSync(folder, { recursive: true });
    lock(identity());
    renameSync(join(home.path, 'up.lock'), join(home.path, 'next'));
    // As it ends, the other one has the lock.
    const script = `sleep 1000 & trap 'mv next up.lock; kill $!; exit' TERM; echo ready; wait`;
    const first = spawn('/bin/sh', ['-c', script], { cwd: home.path, stdio: ['ignore', 'pipe', 'inherit'] });
    await once(first.stdout, 'data');
    lock(identify(first.pid ?? 0));
    const { code, stderr } = await runCli(home, ['down'], { answer: sessions() });
    expect([code, existsSync(folder)]).toEqual([0, true]);
    expect(stderr).toContain('svc was started again meanwhile');
  });

  test('says so if nothing runs', async () => {
    const { code, stdout } = await runCli(home, ['down']);
    expect([code, stdout]).toEqual([0, `svc is not running on ${home.path}\n`]);
  });
});
