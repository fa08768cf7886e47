import { basename } from 'node:path';
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

  it.each(['debian', 'debianJava', 'busybox', 'debianBase', 'busyboxBase'] as const)(
    'runs containers of %s, which has the helpers if the Dockerfile made it',
    async (name) => {
      const look = 'id -un; cd /usr/local/bin; ls -d svc-*; true';
      const run = ['run', '--rm', '--network', 'none', '--entrypoint', '', bench.images[name], 'sh', '-c', look];
      const [user, ...helpers] = (await bench.engine.docker(...run)).split('\n');
      const isBase = name.endsWith('Base');
      expect(user).toBe(isBase ? 'root' : 'agent');
      const required = ['svc-install-proxy-ca', 'svc-run-step', 'svc-run-with-proxy-ca'];
      expect(required.filter((helper) => helpers.includes(helper))).toEqual(isBase ? [] : required);
      expect(helpers.length > 0).toBe(!isBase);
    },
  );

  it('has the clients in the Debian image', async () => {
    const programs = ['curl', 'git', 'python3', 'node', 'java', 'aws'];
    const look = ['sh', '-c', `for name in ${programs.join(' ')}; do command -v $name; done`];
    const found = await bench.engine.docker('run', '--rm', '--network', 'none', bench.images.debianJava, ...look);
    expect(found.split('\n').map((path) => basename(path))).toEqual(programs);
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
