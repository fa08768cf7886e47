import { spawn, spawnSync, type StdioOptions } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { type Readable, Writable } from 'node:stream';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { MACHINE_FILES } from '../../sandbox/bubblewrap/file_view.ts';
import { findBubblewrap, machineFacts, probeBubblewrap } from '../../sandbox/bubblewrap/find_bubblewrap.ts';
import { planSandbox } from '../../sandbox/bubblewrap/plan_sandbox.ts';
import { seccompFilter } from '../../sandbox/bubblewrap/seccomp_filter.ts';
import { shellEnvironment, SVC } from '../support/program.ts';
import { Svc } from '../support/svc.ts';
import { type Attempts, ESCAPES, namesOf, readAttempts } from './attempts.ts';
import { makeOutside, type Outside } from './outside.ts';

// Each way out of `escapes.py`, tried in a sandbox and outside of it, as root and as an ordinary user.

/** Inherited by what is started, at a descriptor that nothing of ours uses. */
const INHERITED = 13;
const USER = 65_533;
const ENVIRONMENT = { PATH: '/usr/sbin:/usr/bin:/sbin:/bin' };

const bubblewrap = findBubblewrap(machineFacts(ENVIRONMENT.PATH));
const isRoot = process.getuid?.() === 0;
const canTry = isRoot && bubblewrap.ok && probeBubblewrap(bubblewrap.value).ok;

interface Started {
  readonly command: readonly [string, ...string[]];
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** What is read at descriptors 5 and 6. */
  readonly given?: readonly (string | Buffer)[];
}

/** Runs the attempts with an inherited descriptor of the secret. */
async function tryAll(outside: Outside, { command, cwd, env = ENVIRONMENT, given = [] }: Started): Promise<Attempts> {
  const secret = openSync(outside.secretFile, 'r');
  const descriptors = Array.from({ length: INHERITED - 3 }, (_, at) =>
    at + 3 - 5 in given ? ('pipe' as const) : ('ignore' as const),
  );
  const [program, ...args] = [...command, 'python3', '-c', ESCAPES, outside.targets];
  // svc itself closes what it inherited; bubblewrap alone passes it on.
  const stdio: StdioOptions = ['ignore', 'pipe', 'pipe', ...descriptors, ...(given.length === 0 ? [secret] : [])];
  const child = spawn(program, args, { cwd, env, stdio });
  closeSync(secret);
  for (const [at, content] of given.entries()) writeTo(child.stdio[at + 5], content);
  const [stdout, stderr] = await Promise.all([textOf(child.stdout), textOf(child.stderr)]);
  return readAttempts(stdout, stderr);
}

function writeTo(stream: object | null | undefined, content: string | Buffer): void {
  if (!(stream instanceof Writable)) throw new Error('the descriptor is no pipe');
  stream.end(content);
}

async function textOf(stream: Readable | null): Promise<string> {
  let text = '';
  for await (const chunk of stream ?? []) text += String(chunk);
  return text;
}

function expectClosed(inside: Attempts): void {
  expect(Object.keys(inside).length).toBeGreaterThan(60);
  expect(namesOf(inside, ({ out }) => out)).toEqual([]);
}

describe.skipIf(!canTry)('no way leads out of a sandbox', () => {
  let svc: Svc;
  let ofRoot: Outside;
  let ofUser: Outside;

  beforeAll(async () => {
    [svc, ofRoot, ofUser] = await Promise.all([Svc.up(), makeOutside(0), makeOutside(USER)]);
  });
  afterAll(() => Promise.all([svc.stop(), ofRoot.stop(), ofUser.stop()]));

  it('of root, in which svc runs a command', async () => {
    const inside = await tryAll(ofRoot, {
      command: [SVC, 'run', '--sandbox', '--'],
      cwd: ofRoot.project,
      env: { ...shellEnvironment(), ...ENVIRONMENT, HOME: ofRoot.home, SVC_HOME: svc.home },
    });
    expectClosed(inside);
  });

  it('of an ordinary user, by the same plan', async () => {
    if (!bubblewrap.ok) throw new Error('no bubblewrap');
    const request = {
      workingDirectory: ofUser.project,
      home: ofUser.home,
      readable: [],
      writable: [],
      agent: null,
      programs: [],
    };
    const plan = planSandbox({ ...request, guarded: [], mountTable: null, own: [] }, MACHINE_FILES);
    if (!plan.ok) throw new Error(plan.error.message);
    const { program, machine } = bubblewrap.value;
    const inside = await tryAll(ofUser, {
      command: [...asUser(), program, '--args', '5', '--'],
      given: [[...plan.value.args, '--seccomp', '6'].join('\0'), seccompFilter(machine)],
    });
    expectClosed(inside);
  });

  it.each([
    ['root', () => ofRoot, [] as readonly string[], false],
    ['an ordinary user', () => ofUser, asUser(), true],
  ] as const)('each one is open outside of it to %s', async (_who, outside, command, isUser) => {
    const [program = 'env', ...args] = command;
    const free = await tryAll(outside(), { command: [program, ...args] });
    const isExcused = ({ unless }: Attempts[string]): boolean =>
      unless !== null && (isUser || unless !== 'only root may');
    expect(namesOf(free, (each) => !each.out && !isExcused(each))).toEqual([]);
  });
});

function asUser(): readonly [string, ...string[]] {
  return ['setpriv', `--reuid=${USER}`, `--regid=${USER}`, '--clear-groups', '--'];
}

it.skipIf(!isRoot)('the machine of the tests can make a sandbox, or says why it cannot', () => {
  const found = bubblewrap.ok ? probeBubblewrap(bubblewrap.value) : bubblewrap;
  expect(found.ok || found.error.fixes.length > 0).toBe(true);
  expect(spawnSync('python3', ['--version']).status).toBe(0);
});
