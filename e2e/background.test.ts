import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { identify } from '../machine/process_identity.ts';
import { kill } from './support/process.ts';
import { type Finished, run, start, SVC } from './support/program.ts';
import { readRunFile, type RunFile, Svc } from './support/svc.ts';
import { waitFor } from './support/wait_for.ts';

// svc in the background: as a person starts it, looks after it and stops it.

let home: string;

function newHome(): void {
  home = mkdtempSync(join(tmpdir(), 'svc-e2e-background-'));
}

async function endHome(): Promise<void> {
  await svc('down', '--yes');
  rmSync(home, { recursive: true, force: true });
}

const svc = (...args: readonly string[]): Promise<Finished> => run(SVC, args, { env: { SVC_HOME: home } });
const ANY_PORTS = ['--control-port', '0', '--proxy-port', '0'];
const detach = (...flags: readonly string[]): Promise<Finished> =>
  svc('up', '--detach', ...(flags.length === 0 ? ANY_PORTS : flags));

const lockFile = z.object({ supervisor: z.object({ pid: z.number() }) });

/** Every process of the svc that runs on the home. */
function processes(): { readonly run: RunFile; readonly pids: readonly number[] } {
  const found = readRunFile(home);
  if (found === undefined) throw new Error('svc does not run');
  const { supervisor } = lockFile.parse(JSON.parse(readFileSync(join(home, 'up.lock'), 'utf8')));
  return { run: found, pids: [supervisor.pid, found.control_pid, found.sidecar_pid] };
}

function expectNothingLeft(): void {
  expect(readdirSync(home)).not.toContain('run.json');
  expect(readdirSync(home)).not.toContain('up.lock');
}

// One home for all, in this order.
describe('svc in the background', () => {
  beforeAll(newHome);
  afterAll(endHome);

  it('a second time says that svc runs already, and starts nothing', async () => {
    await detach();
    const first = processes();
    const again = await detach();
    expect(again.code).toBe(0);
    expect(again.stderr).toContain('already running');
    expect(again.stdout).toContain(first.run.proxy_url);
    expect(processes()).toEqual(first);
  });

  it('keeps the programs running after a crash, and logs that without a sign-in link', async () => {
    const before = processes().run;
    kill(before.sidecar_pid, 'SIGKILL');
    await waitFor('the sidecar to be back', async () => {
      const now = readRunFile(home);
      return now !== undefined && now.sidecar_pid !== before.sidecar_pid && (await svc('status')).code === 0;
    });
    const logs = await svc('logs', '--json', '--lines', '1000');
    const records = logs.stdout
      .trimEnd()
      .split('\n')
      .map((line) => z.looseObject({ program: z.string(), time: z.string() }).parse(JSON.parse(line)));
    expect(new Set(records.map(({ program }) => program))).toContain('control');
    const times = records.map(({ time }) => time);
    expect(times).toEqual(times.toSorted());
    expect((await svc('logs', 'up')).stdout).toContain('was ended by SIGKILL; restarting');
    for (const name of readdirSync(join(home, 'logs'))) {
      expect(readFileSync(join(home, 'logs', name), 'utf8')).not.toContain('/auth/link/');
    }
  });

  it('names live sessions and refuses without --yes, and ends them with it', async () => {
    const agent = start(SVC, ['run', '--', process.execPath, '-e', 'setInterval(() => {}, 1000)'], {
      env: { SVC_HOME: home },
    });
    const listed = z.object({ items: z.array(z.object({ session_id: z.string() })) });
    let id = '';
    await waitFor('the session', async () => {
      const { items } = listed.parse(JSON.parse((await svc('sessions', 'list', '--json')).stdout));
      id = items[0]?.session_id ?? '';
      return id !== '';
    });
    const refused = await svc('down');
    expect(refused.code).toBe(2);
    expect(refused.stderr).toContain('This ends 1 live session:');
    expect(refused.stderr).toContain(id);
    expect((await svc('status')).code).toBe(0);
    expect((await svc('down', '--yes')).code).toBe(0);
    expectNothingLeft();
    const agentEnded = once(agent, 'exit');
    agent.kill('SIGTERM');
    await agentEnded;
  });

  it('and that of a terminal are both stopped by svc down', async () => {
    const up = await Svc.up({ home });
    const ended = once(up.process, 'exit');
    const { pids } = processes();
    expect((await svc('down')).code).toBe(0);
    expect(pids.slice(1).filter((pid) => identify(pid) !== null)).toEqual([]);
    expect(await ended).toEqual([0, null]);
  });

  it('started twice at the same time is one svc, returns when both programs are healthy, and svc down returns when they have ended', async () => {
    const both = await Promise.all([detach(), detach()]);
    expect(both.map(({ code }) => code)).toEqual([0, 0]);
    const { run: file, pids } = processes();
    for (const { stdout } of both) {
      expect(stdout).toContain(file.control_url);
      expect(stdout).toContain(file.proxy_url);
      expect(stdout).toContain('svc down" stops it.');
    }
    expect((await svc('status')).code).toBe(0);
    const down = await svc('down');
    expect(down).toMatchObject({ code: 0, stdout: `stopped svc on ${home}\n` });
    expect(pids.filter((pid) => identify(pid) !== null)).toEqual([]);
    expectNothingLeft();
    expect(await svc('down')).toMatchObject({ code: 0, stdout: `svc is not running on ${home}\n` });
  });
});

describe('svc up --detach', () => {
  beforeEach(newHome);
  afterEach(endHome);

  it('that fails says why and leaves nothing running', async () => {
    const taken: Server = createServer().listen(0, '127.0.0.1');
    await once(taken, 'listening');
    const address = taken.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    const failed = await detach('--control-port', String(port), '--proxy-port', '0');
    taken.close();
    expect(failed.code).toBe(1);
    expect(failed.stderr).toContain(`svc: port ${port} on 127.0.0.1 is in use by another program`);
    expect(failed.stderr).toContain('--control-port N');
    expectNothingLeft();
  });

  it('of a program that does not start shows the last lines of its log', async () => {
    writeFileSync(join(home, 'control.db'), 'this is no database'.repeat(1_000), { mode: 0o600 });
    const failed = await detach();
    expect(failed.code).toBe(1);
    expect(failed.stderr).toContain('svc: the control plane ended with exit status');
    const said = failed.stderr.split('\n').filter((line) => line.startsWith('     '));
    expect(said.at(-1)).toContain(join(home, 'logs'));
    expect(said.length).toBeGreaterThan(1);
    expectNothingLeft();
  });

  it('that is interrupted leaves nothing running', async () => {
    const up = start(SVC, ['up', '--detach', ...ANY_PORTS], { env: { SVC_HOME: home } });
    await waitFor('the start', () => existsSync(join(home, 'up.lock')));
    up.kill('SIGINT');
    const [code]: unknown[] = await once(up, 'exit');
    expect(code).toBe(1);
    expectNothingLeft();
  });
});
