import { copyFileSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { findBubblewrap, machineFacts, probeBubblewrap } from '../../sandbox/bubblewrap/find_bubblewrap.ts';
import { SVC } from '../support/program.ts';
import { Svc } from '../support/svc.ts';
import { runAtTerminal, type TerminalStep } from '../support/terminal.ts';

// `svc run --sandbox` at a terminal, typed in a shell with job control.

const TALKER = join(import.meta.dirname, 'programs', 'talker.py');
const PATH = '/usr/sbin:/usr/bin:/sbin:/bin';
const CTRL_C = '\x03';
const CTRL_Z = '\x1a';

const bubblewrap = findBubblewrap(machineFacts(PATH));
const canTry = bubblewrap.ok && probeBubblewrap(bubblewrap.value).ok;

describe.skipIf(!canTry)('svc run --sandbox at a terminal', () => {
  let svc: Svc;
  let root: string;
  let project: string;

  beforeAll(async () => {
    svc = await Svc.up();
    root = mkdtempSync(join(tmpdir(), 'svc-e2e-sandbox-terminal-'));
    project = join(root, 'home', 'project');
    mkdirSync(project, { recursive: true });
    copyFileSync(TALKER, join(project, 'talker.py'));
  });
  afterAll(async () => {
    await svc.stop();
    rmSync(root, { recursive: true, force: true });
  });

  /** Types these steps in a shell; gives the first that was not shown, with everything that was, or null. */
  async function missedInShell(steps: readonly TerminalStep[]): Promise<string | null> {
    const shell = ['bash', '--norc', '--noprofile', '--noediting', '-i'];
    const env = { HOME: join(root, 'home'), PATH, SVC_HOME: svc.home };
    const { missed, shown } = await runAtTerminal(steps, shell, { cwd: project, env });
    return missed === null ? null : `${missed} is not in: ${shown}`;
  }

  it('gives the command its size, Ctrl-C, Ctrl-Z and what is typed, and no way to type itself', async () => {
    const missed = await missedInShell([
      { type: `${SVC} run --sandbox -- python3 talker.py\n` },
      { expect: 'TIOCSTI EPERM' },
      { expect: 'size 24 80' },
      { resize: [31, 117] },
      { expect: 'resized 31 117' },
      { type: CTRL_C },
      { expect: 'interrupt 1' },
      { type: CTRL_Z },
      { expect: 'Stopped' },
      { type: 'fg\n' },
      { expect: 'continued' },
      { type: 'hello\n' },
      { expect: 'got hello' },
      { type: 'end\n' },
      { expect: 'interrupts in all: 1' },
      { type: 'echo "status: $?"\n' },
      { expect: 'status: 5' },
      { type: 'exit\n' },
    ]);
    expect(missed).toBeNull();
  });

  it('ends with 130 if Ctrl-C ends the command', async () => {
    const missed = await missedInShell([
      { type: `${SVC} run --sandbox -- sh -c 'echo runs$((1)); exec sleep 86398'\n` },
      { expect: 'runs1' },
      { type: CTRL_C },
      { type: 'echo "status: $?"\n' },
      { expect: 'status: 130' },
      { type: 'exit\n' },
    ]);
    expect(missed).toBeNull();
  });
});
