import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { countOf, IS_FULL, sampleOf } from './support/full_counts.ts';
import { HANGS_MS } from './support/hangs.ts';
import { plantSecret, searchFiles } from './support/planted_secret.ts';
import { kill } from './support/process.ts';
import { start, SVC } from './support/program.ts';
import { type Event, type RunFile, Svc } from './support/svc.ts';
import { reply } from './support/tls_upstream.ts';
import { waitFor } from './support/wait_for.ts';
import { startWorld, type World } from './support/world.ts';

// Decision 0059: a session of `svc run` continues while its launcher lives, whichever program of svc is killed.

const HOST = 'api.example.test';
const SECRET = plantSecret();

/** Sends requests one after the other, and prints the result of each. Standard input pauses and resumes it. */
const AGENT = `
  let go = true, paused = null, resume = () => {};
  require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
    if (line === 'pause') paused = new Promise((done) => (resume = done));
    else if (line === 'go') { paused = null; resume(); }
    else go = false;
  });
  const say = (what) => process.stdout.write(JSON.stringify(what) + '\\n');
  (async () => {
    for (let n = 0; go; n += 1) {
      if (paused) { say({ n, paused: true }); await paused; }
      try {
        const reply = await fetch('https://${HOST}/' + n);
        say({ n, status: reply.status, body: await reply.text() });
      } catch (error) {
        say({ n, error: String(error.cause?.code ?? error.cause ?? error) });
      }
      await new Promise((done) => setTimeout(done, 20));
    }
    process.exit(0);
  })();`;

const outcome = z.object({
  n: z.number(),
  status: z.number().optional(),
  body: z.string().optional(),
  error: z.string().optional(),
  paused: z.boolean().optional(),
});
type Outcome = z.infer<typeof outcome>;

const isGood = ({ status, body }: Outcome): boolean => status === 200 && body === 'whole reply';

/** An agent under `svc run` that sends requests in a loop. */
class Agent {
  readonly cli: ChildProcess;
  readonly outcomes: Outcome[] = [];
  said = '';

  constructor(home: string, flags: readonly string[] = []) {
    this.cli = start(SVC, ['run', ...flags, '--', process.execPath, '-e', AGENT], { env: { SVC_HOME: home } });
    this.cli.stderr?.on('data', (chunk: Buffer) => (this.said += chunk.toString()));
    if (this.cli.stdout === null) throw new Error('no output');
    createInterface({ input: this.cli.stdout }).on('line', (line) =>
      this.outcomes.push(outcome.parse(JSON.parse(line))),
    );
  }

  tell(line: 'pause' | 'go' | 'end'): void {
    this.cli.stdin?.write(`${line}\n`);
  }

  /** Waits for this many more successful requests. */
  async goesOn(count = 3): Promise<void> {
    const before = this.outcomes.length;
    await waitFor(`good requests after ${JSON.stringify(this.outcomes.slice(-3))} ${this.said}`, () => {
      return this.outcomes.slice(before).filter(isGood).length >= count;
    });
  }

  /** The failed requests since then. */
  listFailuresSince(index: number): readonly Outcome[] {
    return this.outcomes.slice(index).filter((one) => one.paused !== true && !isGood(one));
  }

  async end(): Promise<void> {
    const exited = once(this.cli, 'exit');
    this.tell('end');
    await exited;
  }

  get hasEnded(): boolean {
    return this.cli.exitCode !== null || this.cli.signalCode !== null;
  }
}

let world: World;
let agent: Agent;
/** A later start on the same state directory. */
let again: Svc | null;
/** While set, replies pause midway until it is resolved. */
let held: { readonly begun: () => void; readonly released: Promise<void> } | null;

beforeAll(async () => {
  world = await startWorld([HOST]);
  await world.svc.secret('user/key', SECRET);
  await world.svc.binding({ host: HOST, scheme: 'bearer', credential_ref: 'vault://user/key' });
  held = null;
  again = null;
  world.upstream.onRequest(async (exchange) => {
    await exchange.readBody();
    const bytes = reply(200, 'whole reply');
    const holding = held;
    if (holding === null) return exchange.write(bytes);
    exchange.write(bytes.subarray(0, -4));
    holding.begun();
    await holding.released;
    exchange.write(bytes.subarray(-4));
  });
});
afterAll(async () => {
  await again?.stop();
  await world.stop();
});
beforeEach(async () => {
  agent = new Agent(world.svc.home);
  await agent.goesOn();
});
afterEach(async () => {
  kill(agent.cli.pid, 'SIGTERM');
  await waitFor('the agent and its session to end', () => agent.hasEnded && listSessions().length === 0);
});

type Victim = 'control_pid' | 'sidecar_pid';

/** Kills programs and waits until each is healthy again under a new process id. */
async function killAndWait(victims: readonly Victim[]): Promise<void> {
  const before: RunFile = await currentRun();
  for (const victim of victims) kill(before[victim], 'SIGKILL');
  await waitFor('the programs to be back', async () => {
    const now = await currentRun();
    return victims.every((victim) => now[victim] !== before[victim]) && (await healthy());
  });
}

async function currentRun(): Promise<RunFile> {
  await world.svc.ready();
  return world.svc.runFile;
}

async function healthy(): Promise<boolean> {
  return (await world.svc.health().catch(() => '')) === 'ok';
}

/** Between two requests. */
async function killIdle(victims: readonly Victim[]): Promise<void> {
  agent.tell('pause');
  await waitFor('the agent to pause', () => agent.outcomes.at(-1)?.paused === true);
  await killAndWait(victims);
  agent.tell('go');
}

/** While the body of a reply arrives. */
async function killMidStream(victims: readonly Victim[]): Promise<void> {
  const begun = Promise.withResolvers<void>();
  const released = Promise.withResolvers<void>();
  held = { begun: begun.resolve, released: released.promise };
  await begun.promise;
  held = null;
  await killAndWait(victims);
  released.resolve();
}

const listSessions = (): readonly string[] => readdirSync(join(world.svc.home, 'sessions'));

/** The events of restored sessions so far. */
async function listRestored(): Promise<readonly Event[]> {
  return (await world.svc.events()).filter(({ type }) => type === 'sandbox.proxy.session_restored');
}

function sessionFolder(): string {
  const [name = '', ...others] = listSessions();
  expect(others).toEqual([]);
  return join(world.svc.home, 'sessions', name);
}

describe.each<{ what: string; victims: readonly Victim[] }>([
  { what: 'the sidecar', victims: ['sidecar_pid'] },
  { what: 'the control plane', victims: ['control_pid'] },
  { what: 'both programs', victims: ['sidecar_pid', 'control_pid'] },
])('an agent of svc run continues after kill -9 of $what', ({ what, victims }) => {
  const moments = [
    { when: 'in the middle of a reply', killOnce: killMidStream },
    { when: 'between requests', killOnce: killIdle },
  ];
  it.each(sampleOf(moments, 1))(
    '$when, with at most one failed request for each kill',
    async ({ when, killOnce }) => {
      const before = (await listRestored()).length;
      let failed = 0;
      for (let count = 0; count < countOf(50, 1); count += 1) {
        const from = agent.outcomes.length;
        await killOnce(victims);
        await agent.goesOn();
        const failures = agent.listFailuresSince(from);
        failed += failures.length;
        expect(failures.slice(1)).toEqual([]);
      }
      const figures = `${countOf(50, 1)} kills, ${agent.outcomes.length} requests, ${failed} failed`;
      if (IS_FULL) process.stdout.write(`kill -9 of ${what} ${when}: ${figures}\n`);
      for (const seen of world.upstream.requests) expect(seen.header('authorization')).toBe(`Bearer ${SECRET}`);
      await agent.end();
      const restored = (await listRestored()).slice(before);
      expect(restored).toHaveLength(victims.includes('sidecar_pid') ? countOf(50, 1) : 0);
      for (const { session_id: id } of restored) expect(id).toMatch(/^ses_/);
      await world.svc.ok(['audit', 'verify']);
    },
    countOf(3_600_000, 2 * HANGS_MS),
  );
});

describe('a saved session', () => {
  it('is a private file without a token, and is deleted when the session ends', async () => {
    const folder = sessionFolder();
    expect(statSync(join(folder, 'session.jws')).mode & 0o777).toBe(0o600);
    const [, token = ''] = /HTTPS_PROXY=http:\/\/[^:]+:([^@]+)@/.exec(await agentEnvironment()) ?? [];
    expect(token).toMatch(/^svc_session_/);
    expect(searchFiles(world.svc.home, token).holding).toEqual([]);
    await agent.end();
    await waitFor('the folder to be gone', () => !existsSync(folder));
  });

  it('is not restored if its launcher ended while the sidecar was down', async () => {
    const folder = sessionFolder();
    const restored = await listRestored();
    const before = await currentRun();
    kill(before.control_pid, 'SIGSTOP');
    kill(before.sidecar_pid, 'SIGKILL');
    const exited = once(agent.cli, 'exit');
    kill(agent.cli.pid, 'SIGKILL');
    await exited;
    kill(before.control_pid, 'SIGCONT');
    await waitFor('the sidecar to be back', async () => (await currentRun()).sidecar_pid !== before.sidecar_pid);
    await waitFor('the folder to be gone', () => !existsSync(folder));
    expect(await listRestored()).toEqual(restored);
  });

  it('is not restored after svc down, but continues after svc down --keep-sessions', async () => {
    const { proxy_url: proxy, control_url: control } = world.svc.runFile;
    const flags = ['--proxy-port', new URL(proxy).port, '--control-port', new URL(control).port];
    const kept = await world.svc.cli(['down', '--keep-sessions']);
    expect(kept.code).toBe(0);
    expect(kept.stderr).toContain('1 live session will continue');
    const from = agent.outcomes.length;
    const second = await startAgain(flags);
    await agent.goesOn();
    expect(agent.outcomes.length).toBeGreaterThan(from);
    expect((await second.cli(['down', '--yes'])).code).toBe(0);
    expect(readdirSync(join(world.svc.home, 'sessions'))).toEqual([]);
    await startAgain(flags);
    const later = agent.outcomes.length;
    await waitFor('more requests', () => agent.outcomes.length > later + 3);
    expect(agent.outcomes.slice(later).filter(isGood)).toEqual([]);
    expect(readdirSync(join(world.svc.home, 'sessions'))).toEqual([]);
  });
});

/** Starts svc again on the same state directory, as a person would. */
async function startAgain(flags: readonly string[]): Promise<Svc> {
  again = await Svc.up({
    home: world.svc.home,
    upstreamCaFiles: [world.ca.file],
    resolve: [`${HOST}:127.0.0.1:${world.upstream.port}`],
    flags,
  });
  return again;
}

/** The environment of the agent itself, below `svc run`. */
async function agentEnvironment(): Promise<string> {
  return waitFor('the environment of the agent', () => {
    const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
    for (const pid of pids) {
      try {
        const [, , , parent] = /^(\d+) \((.*)\) \S (\d+)/s.exec(readFileSync(`/proc/${pid}/stat`, 'latin1')) ?? [];
        if (Number(parent) === agent.cli.pid) return readFileSync(`/proc/${pid}/environ`, 'latin1');
      } catch {
        // It has ended in the meantime.
      }
    }
    return null;
  });
}
