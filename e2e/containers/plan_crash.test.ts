import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { sampleOf } from '../support/full_counts.ts';
import { plantSecret } from '../support/planted_secret.ts';
import { kill } from '../support/process.ts';
import { SVC } from '../support/program.ts';
import { runAtTerminal } from '../support/terminal.ts';
import { waitFor } from '../support/wait_for.ts';
import { type ContainerWorld, describeContainers, startBoundContainerWorld } from './container_world.ts';
import { PlanFolder, shellStep } from './plan_folder.ts';

const HOST = 'api.example.test';
const TRUST = { effect: 'read', hosts: [HOST] };
let world: ContainerWorld;
let plan: PlanFolder;

/** Starts a plan whose step sends requests forever. Resolves once the upstream has received one. */
async function running() {
  world.upstream.reset();
  const child = plan.start();
  let said = '';
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (chunk: Buffer) => (said += chunk.toString()));
  const ended = new Promise<number | null>((resolve) => child.on('close', resolve));
  await waitFor('the step to reach its host', () => world.upstream.requests.length > 1);
  return { child, ended, said: () => said };
}

/** Expects that nothing of the plan is left: no container, no session, no CA. */
async function nothingLeft(): Promise<void> {
  const folder = join(world.svc.home, 'sessions');
  const sessions = () => (existsSync(folder) ? readdirSync(folder).filter((name) => name.startsWith('ses_')) : []);
  await waitFor(
    'container and session to be gone',
    async () => (await world.bench.containersOf(world.svc)).length === 0 && sessions().length === 0,
    90_000,
  );
}

describeContainers('svc plan run, cut short', () => {
  beforeAll(async () => {
    world = await startBoundContainerWorld([HOST], plantSecret());
    plan = new PlanFolder(world, 'loop');
    await plan.freeze([
      shellStep('loop', `while :; do curl -s -o /dev/null https://${HOST}/loop; sleep 0.1; done`, { trust: TRUST }),
      shellStep('never', 'true'),
    ]);
  });
  afterAll(() => world.stop());

  it.each(sampleOf(['SIGTERM', 'SIGINT'] as const, 1))(
    'by %s: step, container and session are ended in order',
    async (signal) => {
      const { child, ended, said } = await running();
      child.kill(signal);
      expect(await ended).toBe(130);
      expect(said()).toContain('interrupted');
      expect(said()).not.toContain('warning');
      expect(await world.bench.containersOf(world.svc)).toEqual([]);
      await nothingLeft();
    },
  );

  it("by Ctrl-C on a terminal, which also reaches the engine's program; of the step's output, only colours take effect", async () => {
    const coloured = new PlanFolder(world, 'terminal');
    await coloured.freeze([
      shellStep('loop', `printf '\\033[31mred\\033[0m \\033]0;owned\\007\\n'; while :; do sleep 1; done`),
      shellStep('never', 'true'),
    ]);
    const steps = [{ expect: 'owned' }, { type: '\u0003' }];
    const { shown } = await runAtTerminal(steps, [SVC, 'plan', 'run'], {
      cwd: coloured.path,
      env: { SVC_HOME: world.svc.home, ...world.bench.engine.environment },
    });
    expect(shown).toContain('\u001b[31mred\u001b[0m \\x1b]0;owned\\x07');
    expect(shown).toMatch(/loop\s+-\s+-\s+interrupted/);
    expect(await world.bench.containersOf(world.svc)).toEqual([]);
    await nothingLeft();
  });

  it('by kill -9: the sidecar ends the rest at once', async () => {
    const { child, ended } = await running();
    kill(child.pid, 'SIGKILL');
    expect(await ended).toBeNull();
    await nothingLeft();
  });

  it('by the end of its container: the step and the plan fail', async () => {
    const { ended, said } = await running();
    const [id = ''] = await world.bench.containersOf(world.svc);
    await world.bench.engine.docker('kill', id);
    expect(await ended).toBe(1);
    expect(said()).toMatch(/loop.*failed/);
    await nothingLeft();
  });

  it('by the end of the sidecar: the step reaches nothing any more, and nothing is left after the next start', async () => {
    const { child, ended } = await running();
    kill(world.svc.runFile.sidecar_pid, 'SIGKILL');
    await world.svc.comesBack();
    const seen = world.upstream.requests.length;
    await nothingLeft();
    child.kill('SIGTERM');
    await ended;
    expect(world.upstream.requests.length).toBe(seen);
  });
});
