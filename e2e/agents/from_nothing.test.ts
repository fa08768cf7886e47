import { randomBytes } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { pythonWith, STANDARD_MODULES } from '../../tools/system_parts.mjs';
import { foundIn, searchFiles, searchProcesses } from '../support/planted_secret.ts';
import { type Finished, run, shellEnvironment, SVC } from '../support/program.ts';

// The first call of `svc claude`, on a state directory that does not exist, at a terminal.

/** Runs a command on its own terminal, pastes the first argument at the prompt, and prints everything that was shown. */
const AT_A_TERMINAL = `
import os, pty, sys
secret, command = sys.argv[1], sys.argv[2:]
secret = open(secret).read()
pid, terminal = pty.fork()
if pid == 0:
    os.execvp(command[0], command)
shown, pasted = b'', False
while True:
    try:
        chunk = os.read(terminal, 4096)
    except OSError:
        break
    if not chunk:
        break
    shown += chunk
    if not pasted and b'Paste it' in shown:
        pasted = True
        os.write(terminal, secret.encode() + b'\\r')
sys.stdout.buffer.write(shown)
sys.stdout.flush()
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
`;
const KEY = `sk-ant-api03-${randomBytes(36).toString('base64url')}`;
/** In the shell of the person, as many have it. */
const OF_SHELL = `left-${randomBytes(24).toString('base64url')}`;
const AGENT = '#!/bin/sh\nprintf "agent %s %s\\n" "$*" "$ANTHROPIC_API_KEY"\nexit 7\n';

let folder: string;
let env: Record<string, string>;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'svc-e2e-nothing-'));
  for (const name of ['bin', 'user']) mkdirSync(join(folder, name));
  writeFileSync(join(folder, 'bin', 'claude'), AGENT);
  chmodSync(join(folder, 'bin', 'claude'), 0o755);
  // Outside of the searched folders: the person's clipboard.
  writeFileSync(join(folder, 'clipboard'), KEY);
  const PATH = `${join(folder, 'bin')}:${shellEnvironment()['PATH'] ?? ''}`;
  env = {
    ...shellEnvironment(),
    PATH,
    HOME: join(folder, 'user'),
    SVC_HOME: join(folder, 'state'),
    DEPLOY_PASS: OF_SHELL,
  };
});
afterEach(async () => {
  await run(SVC, ['down', '--yes'], { env });
  rmSync(folder, { recursive: true, force: true });
});

const svc = (...args: readonly string[]): Promise<Finished> => run(SVC, args, { env });
const atTerminal = (...args: readonly string[]): Promise<Finished> =>
  run(pythonWith(STANDARD_MODULES) ?? 'python3', ['-c', AT_A_TERMINAL, join(folder, 'clipboard'), SVC, ...args], {
    env,
  });

describe('svc claude, from nothing', () => {
  it('starts svc, asks once, stores and binds, approves the placeholder, and runs the agent', async () => {
    const first = await atTerminal('claude', '-p', 'hello');
    expect(first).toMatchObject({ code: 7 });
    expect(first.stdout).toContain('svc: started in the background; "svc down" stops it');
    expect(first.stdout).toContain(
      'Anthropic API key (https://platform.claude.com/settings/keys), sent only to api.anthropic.com',
    );
    const placeholder = /agent -p hello (sk-ant-api03-\S+)/.exec(first.stdout)?.[1] ?? '';
    expect(placeholder).toMatch(/^sk-ant-api03-[A-Za-z0-9]{93}AA$/);
    expect(first.stdout).toMatch(/svc: 0 requests, 0 with a credential, 0 refused; svc audit list --session ses_\w+/);
    expect(foundIn(first.stdout, KEY)).toEqual([]);
    expect(readFileSync(join(folder, 'user', '.claude.json'), 'utf8')).toContain(`"${placeholder.slice(-20)}"`);

    // What runs on in the background does not keep what the shell had.
    const processes = searchProcesses(OF_SHELL);
    expect(processes.searched).toBeGreaterThan(0);
    expect(processes.holding).toEqual([]);

    const second = await svc('claude', '-p', 'again');
    expect(second).toMatchObject({ code: 7, stdout: `agent -p again ${placeholder}\n` });
    for (const name of ['state', 'user']) expect(searchFiles(join(folder, name), KEY).holding).toEqual([]);
    expect((await svc('agents')).stdout).toContain('vault://user/anthropic (key)');
    expect((await svc('status')).code).toBe(0);
    expect((await svc('down')).code).toBe(0);
  });

  it('starts nothing for an agent that is not installed', async () => {
    const plain = { ...env, PATH: `${join(folder, 'bin')}:/usr/bin:/bin` };
    expect(await run(SVC, ['qwen'], { env: plain })).toMatchObject({ code: 127, stdout: '' });
    expect(existsSync(join(folder, 'state'))).toBe(false);
  });

  it('also stores a credential from stdin, for scripts', async () => {
    const stored = await run(SVC, ['login', 'claude', '--stdin'], { env, input: KEY });
    expect(stored).toMatchObject({ code: 0 });
    expect(stored.stdout).toContain('vault://user/anthropic');
    expect((await svc('run', '--quiet', 'claude')).stdout).toMatch(/^agent {2}sk-ant-api03-/);
  });
});
