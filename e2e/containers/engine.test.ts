import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { engineRuntime } from '../../sandbox/engine/docker_runtime.ts';
import { type Bench, describeContainers, openBench } from './container_world.ts';
import { describeEngine, type EngineOnTrial } from './engine_contract.ts';

it('containers can be tested on this machine', ({ skip }) => {
  const { missing, failure } = inject('containers');
  if (missing !== null) skip(missing);
  expect(failure).toBeNull();
});

describeContainers('the engine of the tests', () => {
  let bench: Bench;
  beforeAll(async () => {
    bench = await openBench();
  });
  afterAll(() => bench.clear());

  it('runs containers of every image', async () => {
    const { images, engine } = bench;
    for (const image of Object.values(images)) {
      expect(await engine.docker('run', '--rm', '--network', 'none', '--entrypoint', '', image, 'echo', 'here')).toBe(
        'here',
      );
    }
  });

  it.each(['curl', 'git', 'python3', 'node', 'java', 'aws'])('has %s in the Debian image', async (program) => {
    const { images, engine } = bench;
    const found = await engine.docker(
      'run',
      '--rm',
      '--network',
      'none',
      images.debianJava,
      'sh',
      '-c',
      `command -v ${program}`,
    );
    expect(found).toContain(program);
  });

  it('has the helpers in the images built with the Dockerfile, but not in their base images', async () => {
    const { images, engine } = bench;
    const look = ['sh', '-c', 'cd /usr/local/bin && ls svc-*'];
    for (const image of [images.debian, images.debianJava, images.busybox]) {
      const found = await engine.docker('run', '--rm', '--network', 'none', image, ...look);
      const required = ['svc-install-proxy-ca', 'svc-run-step', 'svc-run-with-proxy-ca'];
      expect(found.split('\n')).toEqual(expect.arrayContaining(required));
      expect(await engine.docker('run', '--rm', '--network', 'none', image, 'id', '-un')).toBe('agent');
    }
    for (const image of [images.debianBase, images.busyboxBase]) {
      expect((await engine.run(['run', '--rm', '--network', 'none', image, ...look])).code).not.toBe(0);
    }
  });

  describe('keeps the contract', () => {
    let trial: EngineOnTrial;
    beforeAll(() => {
      const { environment: env, endpoint } = bench.engine;
      const image = bench.images.busybox;
      trial = { runtime: engineRuntime(env, endpoint), env, image, folder: bench.folder('contract') };
    });
    describeEngine(() => trial);
  });
});
