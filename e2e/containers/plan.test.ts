import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { ONLY_FULL, sampleOf } from '../support/full_counts.ts';
import { foundIn, plantSecret } from '../support/planted_secret.ts';
import { waitFor } from '../support/wait_for.ts';
import { variantOf } from '../support/container_images.ts';
import { type ContainerWorld, describeContainers, startBoundContainerWorld } from './container_world.ts';
import { PlanFolder, type PlanRecord, shellStep } from './plan_folder.ts';

const HOST = 'api.example.test';
const OTHER = 'other.example.test';
const TOKEN = plantSecret();
const READ = { effect: 'read', hosts: [HOST] };
let world: ContainerWorld;

function outcomes(run: PlanRecord): string[] {
  return run.steps.map(({ outcome }) => outcome);
}

describeContainers('svc plan', () => {
  beforeAll(async () => {
    world = await startBoundContainerWorld([HOST, OTHER], TOKEN);
  });
  afterAll(() => world.stop());
  beforeEach(() => world.upstream.reset());

  describe('with a step of each kind', () => {
    const words = ['$(id)', '`id`', '; id', '*', '--help', '', 'a  b', '"\'\\', 'ü\n2'];
    const environment = 'env > /home/agent/env.txt';
    let run: Awaited<ReturnType<PlanFolder['run']>>;
    let sent: (readonly string[])[];
    beforeAll(async () => {
      const folder = new PlanFolder(world, 'kinds');
      mkdirSync(join(folder.path, 'data'));
      writeFileSync(join(folder.path, 'data', 'in.txt'), 'from the host');
      await folder.freeze([
        shellStep(
          'fetch',
          `curl -sf https://${HOST}/items > items.txt; ${environment}; cat /proc/*/environ 2>/dev/null | tr "\\0" "\\n" > /home/agent/all.txt`,
          {
            trust: { ...READ, credential: 'vault://user/api' },
            collect: [{ path: '/home/agent/env.txt' }, { path: '/home/agent/all.txt' }],
          },
        ),
        shellStep(
          'count',
          `wc -c < items.txt > size.txt; ${environment}; cat /srv/data/in.txt; ! touch /srv/data/out.txt`,
          {
            collect: [{ path: '/home/agent/size.txt' }, { path: '/home/agent/env.txt' }],
            mounts: [{ source: './data', target: '/srv/data' }],
          },
        ),
        { id: 'words', command: ['printf', '[%s]', ...words] },
      ]);
      world.upstream.reset();
      run = await folder.run('--output', 'kept');
      sent = world.upstream.requests.map((request) => request.headers('authorization'));
    });
    const kept = (...names: string[]): string => readFileSync(join(run.output ?? '', ...names), 'utf8');

    it('runs each step with its own reach, adds the credential outside, and reports which hosts were reached', async () => {
      expect(run.said).toContain('step 1/3 fetch: read on api.example.test');
      expect(run).toMatchObject({
        ok: true,
        steps: [
          { id: 'fetch', outcome: 'done', exit_code: 0, reached: [{ host: HOST, requests: 1, refused: null }] },
          { id: 'count', outcome: 'done', reached: [], collected: [{ as: 'size.txt', bytes: 2 }, { as: 'env.txt' }] },
          { id: 'words', outcome: 'done', reached: [] },
        ],
      });
      expect(kept('count', 'size.txt').trim()).toBe('2');
      expect(sent).toEqual([[`Bearer ${TOKEN}`]]);
      const reach = (await world.svc.eventsOf({ sessionId: run.session_id })).filter(
        ({ type }) => type === 'flightplan.launch.reach',
      );
      const none = { 'svc.reach.hosts': [], 'svc.reach.enforced': false, 'svc.reach.egress': 'sealed' };
      expect(reach.map(({ data }) => data)).toEqual([
        {
          'svc.step.id': 'fetch',
          'svc.reach.effect': 'read',
          'svc.reach.hosts': [HOST],
          'svc.reach.enforced': true,
          'svc.reach.egress': 'sealed',
        },
        { 'svc.step.id': 'count', ...none },
        { 'svc.step.id': 'words', ...none },
      ]);
      expect(await world.bench.containersOf(world.svc)).toEqual([]);
    });

    it('boots without any token; a step has only its own scope, and none without trust', () => {
      const scoped = kept('fetch', 'env.txt');
      expect(scoped).toMatch(
        new RegExp(`^HTTPS_PROXY=http://${run.session_id}:svc_scope_[\\w-]{43}@127\\.0\\.0\\.1:7421$`, 'm'),
      );
      for (const name of ['SVC_TOKEN', 'SVC_IMAGE_SENTINEL', 'SVC_STEP_SENTINEL', 'SVC_AGENT_USER']) {
        expect(scoped).not.toContain(name);
      }
      expect(kept('fetch', 'all.txt')).not.toContain('SENTINEL');
      expect(kept('count', 'env.txt')).not.toMatch(/_proxy=|svc_(scope|session)_[\w-]{20}/i);
    });

    it("passes the command's words unchanged: no shell interprets them", () => {
      expect(run.said).toContain(words.map((word) => `[${word}]`).join(''));
    });

    it('mounts what the plan names, read-only by default', () => {
      // A mount that could be written would have made the step fail.
      expect(run.said).toContain('from the host');
    });
  });

  it("reports open egress as open: on the terminal and in each step's event", async () => {
    const folder = new PlanFolder(world, 'open');
    await folder.freeze([
      shellStep('fetch', `curl -sf https://${HOST}/items`, { trust: READ }),
      shellStep('count', 'ls /sys/class/net; echo counted >&2'),
    ]);
    const run = await folder.run('--egress=open');
    expect(run).toMatchObject({ ok: true });
    expect(run.said).toContain('step 1/2 fetch: read on api.example.test by the proxy, and the open network');
    expect(run.said).toContain('step 2/2 count: no proxy, and the open network');
    expect(run.said).not.toContain('no network');
    expect(run.said).toContain('eth0');
    expect(run.said).toMatch(/^counted$/m);
    const reach = (await world.svc.eventsOf({ sessionId: run.session_id })).filter(
      ({ type }) => type === 'flightplan.launch.reach',
    );
    expect(
      reach.map(({ data }) => [data['svc.step.id'], data['svc.reach.enforced'], data['svc.reach.egress']]),
    ).toEqual([
      ['fetch', true, 'open'],
      ['count', false, 'open'],
    ]);
  });

  it('a step that the container refuses to run is recorded as never run', async () => {
    const folder = new PlanFolder(world, 'never');
    const { engine, images } = world.bench;
    const refuses = `RUN sed -i '2i [ "$1" = -- ] \\&\\& exit 78' /usr/local/bin/svc-run-step`;
    await folder.freeze(
      [shellStep('fetch', 'echo ran', { trust: READ })],
      await variantOf(engine, images.debian, 'USER root', refuses, 'USER agent'),
    );
    const run = await folder.run();
    expect(run).toMatchObject({ ok: false, steps: [{ outcome: 'failed', exit_code: 78 }] });
    const reach = (await world.svc.eventsOf({ sessionId: run.session_id })).filter(
      ({ type }) => type === 'flightplan.launch.reach',
    );
    expect(reach.map(({ data }) => [data['svc.reach.enforced'], data['svc.proxy.reason']])).toEqual([
      [false, 'step_not_started'],
    ]);
  });

  // Podman's test runs a plan in that image, and images/steps.test.ts shows that its steps leave nothing.
  it.each(ONLY_FULL)('works in a BusyBox image too%s', async () => {
    const folder = new PlanFolder(world, 'busybox');
    const steps = [
      shellStep('leave', 'sleep 100 & id -u > /home/agent/who', {}),
      shellStep('look', '! pidof sleep | grep . || ps; cat /home/agent/who'),
    ];
    await folder.freeze(steps, world.bench.images.busybox);
    expect(await folder.run()).toMatchObject({ ok: true });
  });

  it('keeps the container until Ctrl-C when asked to, and nothing in it is a token or a secret', async () => {
    const folder = new PlanFolder(world, 'kept');
    await folder.freeze([shellStep('fetch', `curl -sf https://${HOST}/kept; sleep 100 &`, { trust: READ })]);
    const child = folder.start('--keep');
    let said = '';
    child.stderr?.on('data', (chunk: Buffer) => (said += chunk.toString()));
    const ended = new Promise<number | null>((resolve) => child.on('close', resolve));
    await waitFor('the steps to be over', () => said.includes('the container is kept until Ctrl-C'));
    const [id = ''] = await world.bench.containersOf(world.svc);
    const { engine } = world.bench;
    const inspected = await engine.docker('inspect', id);
    const environments = await engine.docker('exec', '--user', '0', id, 'sh', '-c', 'cat /proc/[0-9]*/environ');
    for (const text of [inspected, environments]) {
      expect(text).not.toMatch(/svc_(scope|session|host)_[\w-]{20}/);
      expect(foundIn(text, TOKEN)).toEqual([]);
    }
    expect(await engine.docker('exec', id, 'ps', '-eo', 'user=,comm=')).not.toMatch(/^agent (?!ps)/m);
    child.kill('SIGINT');
    expect(await ended).toBe(0);
    expect(await world.bench.containersOf(world.svc)).toEqual([]);
  });

  it('ends a step after its timeout; the first failure ends the plan unless --keep-going is set', async () => {
    const folder = new PlanFolder(world, 'failures');
    await folder.freeze([
      shellStep('seven', 'exit 7'),
      shellStep('slow', 'trap "" TERM INT; while :; do sleep 1; done', { timeout_seconds: 1 }),
      shellStep('last', 'true'),
    ]);
    const first = await folder.run();
    expect(outcomes(first)).toEqual(['failed', 'not_run', 'not_run']);
    expect(first).toMatchObject({ ok: false, steps: [{ exit_code: 7 }, {}, {}] });
    expect(outcomes(await folder.run('--keep-going'))).toEqual(['failed', 'timed_out', 'done']);
    expect(outcomes(await folder.run('--step', 'last'))).toEqual(['done']);
    const unknown = await folder.svc(['plan', 'run', '--step', 'lats']);
    expect(unknown).toMatchObject({ code: 2, stderr: expect.stringContaining('did you mean last?') });
  });

  it('mounts nothing that leads to keys or to the engine', async () => {
    const folder = new PlanFolder(world, 'mounts');
    // The check is that of each launch.
    for (const source of sampleOf([world.svc.home, '/var/run/docker.sock', '/'], 1)) {
      await folder.freeze([shellStep('read', 'true', { mounts: [{ source, target: '/srv/data' }] })]);
      expect(await folder.svc(['plan', 'run'])).toMatchObject({ code: 125 });
    }
    expect(await world.bench.containersOf(world.svc)).toEqual([]);
  });

  it('a step that needs a credential is not run if none of its hosts is bound to it', async () => {
    const folder = new PlanFolder(world, 'credential');
    const trust = { ...READ, credential: 'vault://user/other' };
    await folder.freeze([shellStep('fetch', 'true', { trust })]);
    expect(await folder.svc(['plan', 'run'])).toMatchObject({
      code: 125,
      stderr: expect.stringContaining('step fetch needs vault://user/other, but none of its hosts is bound to it'),
    });
  });

  describe('a changed plan is not run', () => {
    let folder: PlanFolder;
    const FILES = ['plan.yaml', 'plan.lock'];
    const refusal = async (): Promise<string> => {
      const run = await folder.svc(['plan', 'run']);
      expect(run.code).toBe(125);
      expect(run.stderr).toContain('the plan was changed after it was frozen; nothing was run');
      return run.stderr;
    };
    beforeAll(async () => {
      folder = new PlanFolder(world, 'changed');
      await folder.freeze([shellStep('fetch', 'true', { trust: READ })]);
      for (const name of FILES) copyFileSync(join(folder.path, name), join(folder.path, `${name}.frozen`));
    });
    beforeEach(() => {
      for (const name of FILES) copyFileSync(join(folder.path, `${name}.frozen`), join(folder.path, name));
    });

    it('a host in the plan', async () => {
      folder.write('plan.yaml', readFileSync(join(folder.path, 'plan.yaml'), 'utf8').replace(HOST, OTHER));
      expect(await refusal()).toContain(`steps[0].hosts[0] is "${OTHER}", and "${HOST}" is frozen`);
    });

    it('a host in the lock', async () => {
      folder.write('plan.lock', readFileSync(join(folder.path, 'plan.lock'), 'utf8').replace(HOST, OTHER));
      expect(await refusal()).toContain(`steps[0].hosts[0] is "${OTHER}", and "${HOST}" was signed`);
    });

    it('the signature', async () => {
      const lock = readFileSync(join(folder.path, 'plan.lock'), 'utf8');
      folder.write(
        'plan.lock',
        lock.replace(
          /"jws": "(.*)(.)(.)"/,
          (_all, a: string, b: string, c: string) => `"jws": "${a}${b === 'A' ? 'B' : 'A'}${c}"`,
        ),
      );
      expect(await refusal()).toContain('its signature is not one that the sidecar of this machine made');
    });

    it('the image: its name means another image, and the frozen one is gone', async () => {
      const { engine, images } = world.bench;
      const tag = 'svc-e2e-plan:changing';
      await engine.docker('tag', await variantOf(engine, images.busybox, 'LABEL plan=one'), tag);
      await folder.freeze([shellStep('fetch', 'true')], tag);
      await engine.docker('tag', await variantOf(engine, images.busybox, 'LABEL plan=two'), tag);
      // The engine still has the frozen image: the plan runs in it, whatever its name means now.
      expect(await folder.svc(['plan', 'verify'])).toMatchObject({ code: 0 });
      const frozen = /"id": "(sha256:\w+)"/.exec(readFileSync(join(folder.path, 'plan.lock'), 'utf8'))?.[1] ?? '';
      await engine.docker('rmi', '--force', frozen);
      expect(await folder.svc(['plan', 'verify'])).toMatchObject({ code: 1 });
      expect(await refusal()).toContain(`the image ${frozen} that the plan was frozen with is not in the engine`);
      await engine.docker('rmi', '--force', tag);
    });
  });

  it('an image that cannot run steps is refused when the plan is frozen', async () => {
    const folder = new PlanFolder(world, 'image');
    folder.plan([shellStep('x', 'true')], world.bench.images.debianBase);
    const bare = await folder.svc(['plan', 'freeze']);
    expect(bare).toMatchObject({ code: 1, stderr: expect.stringContaining('svc-run-with-proxy-ca') });
    folder.plan([shellStep('x', 'true')], 'svc-e2e-plan:absent');
    expect(await folder.svc(['plan', 'freeze'])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('has no image'),
    });
    expect(existsSync(join(folder.path, 'plan.lock'))).toBe(false);
  });

  it('existing files under --output are not changed, and nothing is run', async () => {
    const folder = new PlanFolder(world, 'output');
    await folder.freeze([shellStep('make', 'echo new > /home/agent/x', { collect: [{ path: '/home/agent/x' }] })]);
    mkdirSync(join(folder.path, 'out', 'make'), { recursive: true });
    writeFileSync(join(folder.path, 'out', 'make', 'x'), 'old');
    expect(await folder.svc(['plan', 'run', '--output', 'out'])).toMatchObject({ code: 125 });
    expect(readFileSync(join(folder.path, 'out', 'make', 'x'), 'utf8')).toBe('old');
  });
});
