import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { sampleOf } from '../support/full_counts.ts';
import { runOk, shellEnvironment, SVC } from '../support/program.ts';
import { runAtTerminal, type TerminalReport, type TerminalStep } from '../support/terminal.ts';
import { waitFor } from '../support/wait_for.ts';
import { type ContainerWorld, describeContainers, startContainerWorld } from './container_world.ts';

let world: ContainerWorld;

/** `svc launch` on a terminal, with a user who types these steps. */
function inTerminal(steps: readonly TerminalStep[], command: readonly string[]): Promise<TerminalReport> {
  return runAtTerminal(steps, [SVC, 'launch', '--image', world.bench.images.debian, '--', ...command], {
    cwd: world.bench.folder('terminal'),
    env: { ...world.bench.engine.environment, SVC_HOME: world.svc.home },
  });
}

describeContainers('svc launch', () => {
  beforeAll(async () => {
    world = await startContainerWorld(['api.example.test']);
  });
  afterAll(() => world.stop());

  describe('without a terminal', () => {
    it.each(sampleOf([42, 0, 125, 255], 1))('exits with the exit code %i of the command', async (code) => {
      expect((await world.launch([], ['sh', '-c', `exit ${code}`])).code).toBe(code);
    });

    it('exits with 128 + n if signal n ended the command', async () => {
      expect((await world.launch([], ['sh', '-c', 'kill -9 $$'])).code).toBe(137);
    });

    it('exits with 127 for a missing command and 126 for one that cannot be executed', async () => {
      expect((await world.launch([], ['there-is-no-such-program'])).code).toBe(127);
      expect((await world.launch([], ['/etc/passwd'])).code).toBe(126);
    });

    it('passes each argument unchanged', async () => {
      const words = ['a b', '', '$HOME', '*', '"', "'", '\\', 'é', '-x', '--', '--detach'];
      const done = await world.launch([], ['printf', '[%s]', ...words]);
      expect(done.stdout).toBe(words.map((word) => `[${word}]`).join(''));
    });

    it('keeps the two output streams apart', async () => {
      const done = await world.launch([], ['sh', '-c', 'echo out; echo err >&2']);
      expect(done.stdout).toBe('out\n');
      expect(done.stderr).toContain('err\n');
    });

    it('passes standard input to its end, byte for byte', async () => {
      const input = randomBytes(1_000_000);
      const done = await world.launch([], ['sha256sum'], { input });
      const direct = await runOk('sha256sum', [], { input });
      expect(done.stdout).toBe(direct.stdout);
    });

    it('passes a large output byte for byte', async () => {
      const done = await world.launch([], ['sh', '-c', 'seq 1 300000']);
      expect(done.stdout.length).toBe(1_988_895);
      expect(done.stdout.endsWith('\n299999\n300000\n')).toBe(true);
    });

    it.each(sampleOf(['SIGTERM', 'SIGINT', 'SIGHUP'] as const, 1))('passes %s to the command', async (signal) => {
      const script = `trap 'echo caught; exit 9' ${signal.slice(3)}; echo ready; while :; do sleep 0.1; done`;
      const launched = spawn(SVC, ['launch', '--image', world.bench.images.debian, '--', 'sh', '-c', script], {
        cwd: world.bench.folder('signals'),
        env: { ...shellEnvironment(), ...world.bench.engine.environment, SVC_HOME: world.svc.home },
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      let said = '';
      launched.stdout.on('data', (chunk: Buffer) => (said += chunk.toString()));
      await waitFor('the command to be ready', () => said.includes('ready'));
      launched.kill(signal);
      const code = await new Promise((resolve) => launched.on('exit', resolve));
      expect(said).toContain('caught');
      expect(code).toBe(9);
    });

    it('runs as the agent, in the working directory, which it shares with the host', async () => {
      const folder = world.bench.folder('shared');
      const done = await world.launch(
        [],
        ['sh', '-c', 'id -un; pwd; echo "$HOME $USER"; echo made > file; stty 2>&1'],
        {
          cwd: folder,
        },
      );
      const [user, place, variables, terminal] = done.stdout.split('\n');
      expect({ user, place, variables }).toEqual({
        user: 'agent',
        place: '/home/agent/workspace',
        variables: '/home/agent agent',
      });
      expect(terminal).toContain('Inappropriate ioctl');
      expect((await runOk('cat', [join(folder, 'file')])).stdout).toBe('made\n');
    });

    it('leaves no container and no session', async () => {
      expect(await world.bench.containersOf(world.svc)).toEqual([]);
      const listed = await world.svc.local('GET', '/v1/sandbox-proxy/sessions');
      expect(listed.body).toMatchObject({ items: [] });
    });
  });

  describe('on a terminal', () => {
    it('gives the command a terminal of that size, and follows a resize', async () => {
      const steps: TerminalStep[] = [
        { expect: '24 80' },
        { resize: [31, 117] },
        { type: 'go\n' },
        { expect: '31 117' },
      ];
      const seen = await inTerminal(steps, [
        'sh',
        '-c',
        'test -t 0 && test -t 1 && until [ "$(stty size)" = "24 80" ]; do sleep 0.1; done; stty size; read _; ' +
          'while [ "$(stty size)" = "24 80" ]; do sleep 0.1; done; stty size',
      ]);
      expect(seen).toMatchObject({ code: 0, missed: null });
    });

    it('passes what is typed, and Ctrl-C as an interrupt of the command only', async () => {
      const script = 'trap \'echo interrupted\' INT; echo ready; read line; echo "got $line"; exit 5';
      const steps: TerminalStep[] = [
        { expect: 'ready' },
        { type: '\x03' },
        { expect: 'interrupted' },
        { type: 'hello\n' },
        { expect: 'got hello' },
      ];
      expect(await inTerminal(steps, ['bash', '-c', script])).toMatchObject({ code: 5, missed: null });
    });
  });
});
