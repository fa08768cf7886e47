import { once } from 'node:events';
import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { bootId, identify, type ProcessIdentity } from '../../machine/process_identity.ts';
import { findLaunchers, findSavedPort, FrozenProcesses } from './launcher_processes.ts';

const SESSION = `ses_${'a'.repeat(26)}`;

let home: string;
let children: ChildProcess[];
let pids: number[];
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'svc-launchers-'));
  children = [];
  pids = [];
});
afterEach(() => {
  for (const pid of [...children.map((child) => child.pid), ...pids]) if (pid !== undefined) killIfThere(pid);
  rmSync(home, { recursive: true });
});

function killIfThere(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended.
  }
}

/** A program that has printed a process id: its own, or that of one it started. */
async function start(
  script: string,
  env: Record<string, string> = {},
): Promise<{ own: ProcessIdentity; said: number }> {
  const child = spawn('/bin/sh', ['-c', script], {
    stdio: ['ignore', 'pipe', 'ignore'],
    env: { ...process.env, ...env },
  });
  children.push(child);
  const [chunk]: unknown[] = await once(child.stdout, 'data');
  const said = Number(String(chunk).trim());
  pids.push(said);
  return { own: identify(child.pid ?? 0) ?? { pid: 0, started: null }, said };
}

function save(owner: ProcessIdentity, boot: string | null, id = SESSION): string {
  const folder = join(home, 'sessions', id);
  mkdirSync(folder, { recursive: true });
  const payload = Buffer.from(JSON.stringify({ bootId: boot, owner, proxyPort: 9100 })).toString('base64url');
  writeFileSync(join(folder, 'session.jws'), `e30.${payload}.sig`);
  return folder;
}

describe('the launchers of saved sessions', () => {
  const own = identify(process.pid) ?? { pid: 0, started: null };

  test('are those that run', () => {
    save(own, bootId());
    expect([findLaunchers(home), findSavedPort(home)]).toEqual([[own], 9100]);
  });

  test('are not those of an earlier run of the system', () => {
    save(own, 'another boot');
    expect([findLaunchers(home), findSavedPort(home)]).toEqual([[], null]);
  });

  test('are not read from a pipe, through a link or from a folder of another name', () => {
    mkdirSync(join(home, 'sessions', `ses_${'b'.repeat(26)}`), { recursive: true });
    execFileSync('mkfifo', [join(home, 'sessions', `ses_${'b'.repeat(26)}`, 'session.jws')]);
    const folder = save(own, bootId(), 'a');
    symlinkSync(folder, join(home, 'sessions', `ses_${'c'.repeat(26)}`));
    mkdirSync(join(home, 'sessions', `ses_${'d'.repeat(26)}`));
    symlinkSync(join(folder, 'session.jws'), join(home, 'sessions', `ses_${'d'.repeat(26)}`, 'session.jws'));
    expect(findLaunchers(home)).toEqual([]);
  });
});

describe('frozen processes', () => {
  test.runIf(process.platform === 'linux')('are those of a session that were just starting their program', async () => {
    const gate = join(home, 'gate');
    execFileSync('mkfifo', [gate]);
    // Without an environment, as a process between two programs.
    const { said } = await start(
      `exec env -i /bin/sh -c 'echo $$; read -r word < ${gate}; SVC_SESSION_ID=${SESSION} exec sleep 600'`,
    );
    children.push(spawn('/bin/sh', ['-c', `sleep 0.2; echo go > ${gate}`], { stdio: 'ignore' }));
    const frozen = new FrozenProcesses(60_000);
    frozen.freeze({ roots: [], sessionIds: [SESSION], spared: [] });
    expect((await frozen.kill()).ended).toContain(said);
  });

  test.runIf(process.platform === 'linux')('get no signal that they could answer by starting another one', async () => {
    const escaped = join(home, 'escaped');
    const script = `trap 'echo > ${escaped}' TERM; echo $$; while :; do sleep 0.1; done`;
    const { own, said } = await start(script);
    const frozen = new FrozenProcesses();
    frozen.freeze({ roots: [own], sessionIds: [], spared: [] });
    await expect.poll(() => /\) (\w) /.exec(readFileSync(`/proc/${said}/stat`, 'latin1'))?.[1]).toBe('T');
    const { ended, left } = await frozen.kill();
    expect([ended.includes(said), left, existsSync(escaped)]).toEqual([true, [], false]);
  });

  test.runIf(process.platform === 'linux')('are found by their session if they left their parent', async () => {
    const { said } = await start('setsid sleep 60 >/dev/null & echo $!; exit', { SVC_SESSION_ID: SESSION });
    // While a process starts its program, the system shows no environment.
    await expect.poll(() => readFileSync(`/proc/${said}/cmdline`, 'latin1')).toMatch(/^sleep\0/);
    await expect.poll(() => readFileSync(`/proc/${said}/environ`, 'latin1')).toContain(SESSION);
    const frozen = new FrozenProcesses();
    frozen.freeze({ roots: [], sessionIds: [SESSION], spared: [] });
    const { ended } = await frozen.kill();
    expect(ended).toContain(said);
    expect(identify(said)).toBeNull();
  });

  test('are not the programs of svc, even below a launcher that started them', async () => {
    const { own, said } = await start('sleep 60 >/dev/null & echo $!; wait');
    const svc = identify(said);
    const frozen = new FrozenProcesses();
    frozen.freeze({ roots: [own], sessionIds: [], spared: svc === null ? [] : [svc] });
    const { ended } = await frozen.kill();
    expect(ended).toEqual([own.pid]);
    expect(identify(said)).toEqual(svc);
  });
});
