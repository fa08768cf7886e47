import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { entriesUnder } from '../support/files_under.ts';
import { ONLY_FULL, sampleOf } from '../support/full_counts.ts';
import { plantSecret, searchFiles } from '../support/planted_secret.ts';
import { kill } from '../support/process.ts';
import { shellEnvironment, SVC } from '../support/program.ts';
import { waitFor } from '../support/wait_for.ts';
import { connectAs } from './connect_as.ts';
import { type ContainerWorld, describeContainers, startBoundContainerWorld } from './container_world.ts';

// Specification section 1 and the design's section 9: session, token and CA key are removed when the container ends, even if the
// program that should remove them crashed.

const HOST = 'api.example.test';
const ASK = `while :; do curl -sS -o /dev/null -m 5 https://${HOST}/running && touch asked; sleep 0.1; done`;
const sessionList = z.object({ items: z.array(z.object({ session_id: z.string(), state: z.string().optional() })) });
let world: ContainerWorld;

/** A launch that runs until something ends it, and its resources. */
interface Running {
  readonly cli: ChildProcess;
  readonly ended: Promise<number | null>;
  readonly container: string;
  readonly session: string;
  readonly token: string;
  /** The folder with the session's CA and key. */
  readonly directory: string;
  readonly readOutput: () => string;
}

async function launchRunning(flags: readonly string[] = []): Promise<Running> {
  const workspace = world.bench.folder('agent');
  const cli = spawn(SVC, ['launch', '--image', world.bench.images.debian, ...flags, '--', 'sh', '-c', ASK], {
    cwd: workspace,
    env: { ...shellEnvironment(), ...world.bench.engine.environment, SVC_HOME: world.svc.home },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let said = '';
  for (const stream of [cli.stdout, cli.stderr]) stream.on('data', (chunk: Buffer) => (said += chunk.toString()));
  const ended = new Promise<number | null>((resolve) => cli.on('exit', (code) => resolve(code)));
  await waitFor(`the agent to ask; it said ${said}`, () => existsSync(join(workspace, 'asked')));
  const [container = ''] = await world.bench.containersOf(world.svc);
  const variables = await world.bench.engine.docker('inspect', '--format', '{{json .Config.Env}}', container);
  const [, session = '', token = ''] = /HTTPS_PROXY=http:\/\/([^:]+):([^@]+)@/.exec(variables) ?? [];
  const directory = join(world.svc.home, 'sessions', session);
  expect(readdirSync(directory).length).toBeGreaterThan(1);
  expect(await connectAs(world.svc.runFile.proxy_url, session, token, HOST)).toBe(407);
  expect(await isKnown(token)).toBe(true);
  return { cli, ended, container, session, token, directory, readOutput: () => said };
}

/** Whether the sidecar knows the token of a session. The proxy of the host accepts no container's token, so it does not tell. */
async function isKnown(token: string): Promise<boolean> {
  const headers = { authorization: `Bearer ${token}` };
  const { status } = await fetch(`${world.svc.runFile.proxy_url}/v1/sandbox-proxy/sessions`, { headers });
  expect([401, 403]).toContain(status);
  return status === 403;
}

/** Expects that nothing is left: no container, no key or folder of the session, no valid token. */
async function expectGone(running: Running): Promise<void> {
  await waitFor('the container to be gone', async () => (await world.bench.containersOf(world.svc)).length === 0);
  await waitFor('the folder of the session to be gone', () => !existsSync(running.directory));
  expect(await isKnown(running.token)).toBe(false);
  const listed = sessionList.parse((await world.svc.local('GET', '/v1/sandbox-proxy/sessions')).body);
  expect(listed.items).toEqual([]);
  expect(privateKeys()).toEqual([]);
}

/** Kills the CLI and the sidecar at once, and expects that nothing is left after the next start. */
async function expectGoneWithSidecar(running: Running): Promise<void> {
  kill(running.cli.pid, 'SIGKILL');
  kill(world.svc.runFile.sidecar_pid, 'SIGKILL');
  await running.ended;
  await world.svc.comesBack();
  await expectGone(running);
}

/** Waits until the container's requests arrive with their credential again. */
async function expectToGoOn(): Promise<void> {
  world.upstream.reset();
  await waitFor('requests after the restart', () => world.upstream.requests.length > 2);
  for (const seen of world.upstream.requests) expect(seen.header('authorization')).toContain('Bearer ');
}

function privateKeys(): string[] {
  const names = Array.from(entriesUnder(join(world.svc.home, 'sessions')), ({ name }) => name);
  return names.filter((name) => /\.key$|key\.pem$/.test(name));
}

const networks = (): Promise<string> => world.bench.engine.docker('network', 'ls', '--format', '{{.Name}}');

describeContainers('what is killed', () => {
  let before: string;
  beforeAll(async () => {
    world = await startBoundContainerWorld([HOST], plantSecret());
    before = await networks();
  });
  afterAll(() => world.stop());
  beforeEach(async () => {
    expect(await world.bench.containersOf(world.svc)).toEqual([]);
  });

  const verbs: [string, string[]][] = [
    ['docker kill', ['kill']],
    ['docker rm --force', ['rm', '--force']],
    ['docker stop', ['stop', '--time', '1']],
  ];
  it.each(sampleOf(verbs, 1))('by %s leaves nothing, and the launch ends with the code', async (_, verb) => {
    const running = await launchRunning();
    await world.bench.engine.docker(...verb, running.container);
    expect([137, 143]).toContain(await running.ended);
    await expectGone(running);
  });

  it.each(sampleOf(['sealed', 'open'], 1))('as the CLI with %s egress leaves nothing', async (egress) => {
    const running = await launchRunning([`--egress=${egress}`]);
    kill(running.cli.pid, 'SIGKILL');
    await running.ended;
    await expectGone(running);
  });

  it.each(sampleOf(['sealed', 'open'], 1))(
    'as the sidecar: the agent of a container with %s egress continues',
    async (egress) => {
      const running = await launchRunning([`--egress=${egress}`]);
      kill(world.svc.runFile.sidecar_pid, 'SIGKILL');
      await world.svc.comesBack();
      await expectToGoOn();
      expect(await isKnown(running.token)).toBe(true);
      kill(running.cli.pid, 'SIGKILL');
      await running.ended;
      await expectGone(running);
    },
  );

  it.each(ONLY_FULL)(
    'as the sidecar while its container is stopped leaves nothing after the next start%s',
    async () => {
      const running = await launchRunning();
      kill(world.svc.runFile.control_pid, 'SIGSTOP');
      kill(world.svc.runFile.sidecar_pid, 'SIGKILL');
      await world.bench.engine.docker('kill', running.container);
      kill(world.svc.runFile.control_pid, 'SIGCONT');
      await world.svc.comesBack();
      await running.ended;
      await expectGone(running);
    },
  );

  it.each(ONLY_FULL)('as sidecar and CLI leaves nothing after the next start%s', async () => {
    const running = await launchRunning();
    await expectGoneWithSidecar(running);
  });

  it('as everything at once leaves nothing after the next start', async () => {
    const running = await launchRunning();
    for (const pid of [
      running.cli.pid,
      world.svc.runFile.sidecar_pid,
      world.svc.runFile.control_pid,
      world.svc.process.pid,
    ]) {
      kill(pid, 'SIGKILL');
    }
    await running.ended;
    await waitFor('svc up to be gone', () => world.svc.process.signalCode !== null);
    expect(await world.bench.containersOf(world.svc)).toHaveLength(1);
    await world.svc.comesBack();
    await expectGone(running);
  });

  // The agent of a launch that waits continues in every run.
  describe.each(ONLY_FULL)('while a detached container runs%s', () => {
    it('as its first CLI has no effect: it continues', async () => {
      const done = await world.launch(['--detach', '--name', 'stays'], ['sh', '-c', ASK]);
      expect(done.code).toBe(0);
      world.upstream.reset();
      await waitFor('requests', () => world.upstream.requests.length > 2);
      await world.svc.ok(['sessions', 'stop', 'stays'], { env: world.bench.engine.environment });
    });

    it('as the sidecar has no effect: it continues and can be stopped', async () => {
      await world.launch(['--detach', '--name', 'goes-on'], ['sh', '-c', ASK]);
      expect(await world.bench.containersOf(world.svc)).toHaveLength(1);
      kill(world.svc.runFile.sidecar_pid, 'SIGKILL');
      await world.svc.comesBack();
      await expectToGoOn();
      await world.svc.ok(['sessions', 'stop', 'goes-on'], { env: world.bench.engine.environment });
      await waitFor('the container to be gone', async () => (await world.bench.containersOf(world.svc)).length === 0);
      expect(readdirSync(join(world.svc.home, 'sessions'))).toEqual([]);
    });
  });

  it('never is a container that svc did not start', async () => {
    const { engine, images } = world.bench;
    const labels = ['--label', 'svc.session=ses_00000000000000000000000000', '--label', 'svc.home=0123456789abcdef'];
    const stranger = await engine.docker(
      'run',
      '--detach',
      '--network',
      'none',
      ...labels,
      images.debianBase,
      'sleep',
      '60',
    );
    const running = await launchRunning();
    await expectGoneWithSidecar(running);
    expect(await engine.docker('inspect', '--format', '{{.State.Running}}', stranger)).toBe('true');
    await engine.docker('rm', '--force', stranger);
  });

  it('left no network', async () => {
    expect(await networks()).toBe(before);
  });

  it('stops with svc up: Ctrl-C ends the sessions and their containers', async () => {
    const running = await launchRunning();
    await world.svc.stop({ keepHome: true });
    await waitFor('the container to be gone', async () => (await world.bench.containersOf(world.svc)).length === 0);
    expect(await running.ended).not.toBe(0);
    expect(readdirSync(join(world.svc.home, 'sessions'))).toEqual([]);
    expect(searchFiles(world.svc.home, running.token).holding).toEqual([]);
  });
});
