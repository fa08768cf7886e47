import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { ContainerRuntime, ContainerSpec } from './container_runtime.ts';
import { engineRuntime } from './docker_runtime.ts';
import { openDocker } from './open_engine.ts';
import { AGENT_HARDENING } from './agent_hardening.ts';
import { CONTAINER_ID, containerState, FakeDocker, IMAGE_ID, imageReply } from '../launch/testing/fake_docker.ts';
import { sampleImage } from './testing/sample_image.ts';

let docker: FakeDocker;
let runtime: ContainerRuntime;
beforeEach(async () => {
  docker = new FakeDocker();
  await docker.listen();
  runtime = engineRuntime(docker.env(), docker.endpoint);
});
afterEach(() => docker.remove());

const SPEC: ContainerSpec = {
  image: IMAGE_ID,
  name: 'demo',
  labels: { 'svc.session': 'ses_1' },
  env: { SVC_TOKEN: 'planted-token', TWO: 'a\nb' },
  mounts: [{ source: '/a,"b', target: '/data', readOnly: true }],
  volumes: [{ volume: 'svc-home-a', target: '/home/agent' }],
  workdir: '/data',
  user: '0',
  entrypoint: 'svc-run-with-proxy-ca',
  command: ['--', 'agent', '--json', '$(id)'],
  tty: true,
  stdin: true,
  network: 'none',
  hardening: AGENT_HARDENING,
  enginesProxies: 'left_out',
};

const words = (line: string): string[] => line.split(' ');
const HARDENED = [
  ...words('--init --security-opt no-new-privileges --security-opt'),
  `seccomp=${AGENT_HARDENING.seccompProfile}`,
  ...words('--cap-drop ALL'),
  ...AGENT_HARDENING.capabilities.flatMap((name) => ['--cap-add', name]),
  '--pids-limit',
  '4096',
];

describe('the engine that is meant', () => {
  test('is the one of DOCKER_HOST, without running a program', async () => {
    const opened = await openDocker(docker.env());
    expect(opened).toMatchObject({ ok: true, value: { program: 'docker', endpoint: docker.endpoint } });
    expect(docker.uses()).toEqual([]);
  });

  test('is the one of the context if there is one', async () => {
    docker.on('context', `echo '"${docker.endpoint}"'`);
    const opened = await openDocker(docker.env({ DOCKER_CONTEXT: 'mine', DOCKER_HOST: 'tcp://x' }));
    expect(opened).toMatchObject({ ok: true, value: { endpoint: docker.endpoint } });
    expect(docker.uses()[0]?.env).toMatchObject({ DOCKER_CONTEXT: 'mine' });
  });

  test.each(['tcp://user:planted@10.0.0.1:2375', 'ssh://me@host', 'npipe:////./pipe/x', 'unix://relative'])(
    '%s is refused by name without its password',
    async (endpoint) => {
      const opened = await openDocker(docker.env({ DOCKER_HOST: endpoint }));
      expect(opened).toMatchObject({ ok: false, error: { reason: 'engine_remote' } });
      expect(JSON.stringify(opened)).not.toContain('planted');
    },
  );

  test('has to listen', async () => {
    const opened = await openDocker(docker.env({ DOCKER_HOST: `${docker.endpoint}.gone` }));
    expect(opened).toMatchObject({ ok: false, error: { reason: 'engine_unreachable' } });
  });

  test('needs its program', async () => {
    const without = { ...docker.env(), PATH: '/nonexistent' };
    expect(await openDocker(without)).toMatchObject({ ok: false, error: { reason: 'engine_missing' } });
    const known = engineRuntime(without, docker.endpoint);
    const kept = await known.create({ ...SPEC, enginesProxies: 'kept' });
    expect(kept).toMatchObject({ ok: false, error: { reason: 'engine_missing' } });
  });
});

describe('a container', () => {
  test('is created by one call, and no program sees a value of its environment', async () => {
    docker.replies('POST /containers/create', 201, { Id: CONTAINER_ID });
    expect(await runtime.create(SPEC)).toEqual({ ok: true, value: CONTAINER_ID });
    expect(docker.calls()).toEqual(['POST /containers/create?name=demo']);
    expect(docker.bodiesOf('POST /containers/create')).toEqual([
      {
        Image: IMAGE_ID,
        Labels: { 'svc.session': 'ses_1' },
        Env: ['SVC_TOKEN=planted-token', 'TWO=a\nb'],
        WorkingDir: '/data',
        User: '0',
        Entrypoint: ['svc-run-with-proxy-ca'],
        Cmd: ['--', 'agent', '--json', '$(id)'],
        Tty: true,
        OpenStdin: true,
        StdinOnce: true,
        AttachStdin: true,
        AttachStdout: true,
        AttachStderr: true,
        HostConfig: {
          Mounts: [
            { Type: 'bind', Source: '/a,"b', Target: '/data', ReadOnly: true },
            { Type: 'volume', Source: 'svc-home-a', Target: '/home/agent' },
          ],
          NetworkMode: 'none',
          Init: true,
          SecurityOpt: ['no-new-privileges', `seccomp=${readFileSync(AGENT_HARDENING.seccompProfile, 'utf8')}`],
          CapDrop: ['ALL'],
          CapAdd: AGENT_HARDENING.capabilities,
          PidsLimit: 4096,
          AutoRemove: false,
        },
      },
    ]);
  });

  test('has limits and directories in memory, and is removed at its end, if it is asked for', async () => {
    const confinement = { memory: 256, cpus: 1, tmpfs: ['/tmp:rw,size=1m', '/run'] };
    await runtime.create({ ...SPEC, hardening: null, confinement, removedAtEnd: true, mounts: [], volumes: [] });
    expect(docker.bodiesOf('POST /containers/create')).toMatchObject([
      {
        HostConfig: {
          Mounts: [],
          AutoRemove: true,
          ReadonlyRootfs: true,
          Memory: 268_435_456,
          MemorySwap: 268_435_456,
          NanoCpus: 1_000_000_000,
          Tmpfs: { '/tmp': 'rw,size=1m', '/run': '' },
        },
      },
    ]);
  });

  test("that cannot be created is a problem in the engine's words", async () => {
    docker.replies('POST /containers/create', 409, 'name in use');
    expect(await runtime.create(SPEC)).toMatchObject({
      ok: false,
      error: { message: 'the engine refused: name in use' },
    });
    docker.replies('POST /containers/create', 201, { Id: '../x' });
    expect(await runtime.create(SPEC)).toMatchObject({ ok: false, error: { reason: 'engine_refused' } });
  });

  test('shares the network of another by its id', async () => {
    await runtime.create({ ...SPEC, network: { container: CONTAINER_ID } });
    expect(docker.bodiesOf('POST /containers/create')).toMatchObject([
      { HostConfig: { NetworkMode: `container:${CONTAINER_ID}` } },
    ]);
  });

  test('of no image runs in an empty one', async () => {
    await runtime.makeEmptyImage('x:empty');
    expect(docker.commands()).toEqual([['import', '-', 'x:empty']]);
  });

  test("gets the proxy variables of the user's engine settings only without the proxy: the program knows them", async () => {
    docker.on('create', `echo ${CONTAINER_ID}`);
    await runtime.create(SPEC);
    expect(docker.uses()).toEqual([]);
    expect(await runtime.create({ ...SPEC, enginesProxies: 'kept' })).toEqual({ ok: true, value: CONTAINER_ID });
    const [use] = docker.uses();
    expect(docker.commands()).toEqual([
      [
        ...words('create --pull=never --name demo --label svc.session=ses_1 --env SVC_TOKEN --env TWO --mount'),
        'type=bind,"source=/a,""b",target=/data,readonly',
        '--mount',
        'type=volume,source=svc-home-a,target=/home/agent',
        ...words('--workdir /data --user 0 --network none --entrypoint svc-run-with-proxy-ca --interactive --tty'),
        ...HARDENED,
        ...words(`-- ${IMAGE_ID} -- agent --json $(id)`),
      ],
    ]);
    expect(use?.args.join('\0')).not.toContain('planted-token');
    expect(use?.env).toMatchObject({ SVC_TOKEN: 'planted-token', TWO: 'a\nb' });
  });

  test("sends every command to the one engine, in an environment without the caller's secrets", async () => {
    const env = docker.env({ SVC_VAULT_KEY: 'planted', GITHUB_TOKEN: 'planted', DOCKER_CONTEXT: 'other' });
    await engineRuntime(env, docker.endpoint).create({ ...SPEC, enginesProxies: 'kept' });
    const [use] = docker.uses();
    expect(use?.args.slice(0, 2)).toEqual(['--host', docker.endpoint]);
    expect(Object.values(use?.env ?? {})).not.toContain('planted');
    expect(use?.env).not.toHaveProperty('DOCKER_CONTEXT');
    expect(use?.env).not.toHaveProperty('DOCKER_HOST');
  });

  test('reports its first process once it runs', async () => {
    const call = `GET /containers/${CONTAINER_ID}/json`;
    docker.replies(call, 200, containerState({ running: false, started: false }));
    expect(await runtime.pidOf(CONTAINER_ID)).toEqual({ ok: true, value: null });
    docker.replies(call, 200, containerState({ running: true }));
    expect(await runtime.pidOf(CONTAINER_ID)).toEqual({ ok: true, value: 4242 });
  });

  test('that does not exist is null, and removing it succeeds', async () => {
    expect(await runtime.inspect(CONTAINER_ID)).toEqual({ ok: true, value: null });
    expect(await runtime.remove(CONTAINER_ID)).toEqual({ ok: true, value: undefined });
  });

  test("that cannot be removed is a problem in the engine's words", async () => {
    docker.replies(`DELETE /containers/${CONTAINER_ID}`, 409, 'device busy');
    expect(await runtime.remove(CONTAINER_ID)).toEqual({
      ok: false,
      error: { reason: 'engine_refused', message: 'the engine refused: device busy', fixes: [] },
    });
  });

  test('distinguishes an engine that is gone from one that refuses', async () => {
    const gone = engineRuntime(docker.env(), `${docker.endpoint}.gone`);
    expect(await gone.remove(CONTAINER_ID)).toMatchObject({ ok: false, error: { reason: 'engine_unreachable' } });
  });

  test('is attached without detach keys, and without our key presses unless it has a terminal', async () => {
    docker.on('start', `cut -d' ' -f6 /proc/$$/stat > ${docker.folder}/session; echo $$ > ${docker.folder}/pid`);
    const session = async (tty: boolean): Promise<boolean> => {
      await once(runtime.start(CONTAINER_ID, { stdin: tty, tty }), 'exit');
      const [pid, own] = ['pid', 'session'].map((name) => readFileSync(join(docker.folder, name), 'utf8'));
      return pid === own;
    };
    expect([await session(false), await session(true)]).toEqual([true, false]);
    const keys = '--detach-keys=ctrl-@,ctrl-_,ctrl-@,ctrl-_';
    expect(docker.commands()).toEqual([
      ['start', '--attach', keys, '--', CONTAINER_ID],
      ['start', '--attach', keys, '--interactive', '--', CONTAINER_ID],
    ]);
  });

  test('is started without streams, also if it runs already', async () => {
    docker.replies(`POST /containers/${CONTAINER_ID}/start`, 304);
    expect(await runtime.startDetached(CONTAINER_ID)).toEqual({ ok: true, value: undefined });
  });

  test('is waited for, and says how it ended', async () => {
    docker.replies(`POST /containers/${CONTAINER_ID}/wait`, 200, { StatusCode: 7 });
    expect(await runtime.wait(CONTAINER_ID)).toEqual({ ok: true, value: 7 });
  });

  test('gets signals by name', async () => {
    docker.replies(`POST /containers/${CONTAINER_ID}/kill`, 204);
    expect(await runtime.signal(CONTAINER_ID, 'SIGTERM')).toEqual({ ok: true, value: undefined });
    expect(docker.calls()).toEqual([`POST /containers/${CONTAINER_ID}/kill?signal=SIGTERM`]);
  });

  test('runs another program with the environment passed by name', async () => {
    const exec = { command: ['svc-run-step', '--', 'x'], env: { A: 'planted' }, user: '0', workdir: '/w', tty: false };
    const child = runtime.exec(CONTAINER_ID, { ...exec, stdin: false, stdio: 'pipe' });
    await once(child, 'close');
    const [use] = docker.uses();
    const line = `exec --env A --user 0 --workdir /w -- ${CONTAINER_ID} svc-run-step -- x`;
    expect(docker.commands()[0]).toEqual(words(line));
    expect(use?.env['A']).toBe('planted');
  });

  test('are found by a label, with their owners’ labels', async () => {
    docker.replies('GET /containers/json', 200, [
      {
        Id: CONTAINER_ID,
        Names: ['/demo'],
        State: 'running',
        Labels: { 'svc.session': 'ses_1', 'svc.home': 'abc' },
      },
      { Id: 'ffff', Names: ['/x'], State: 'exited', Labels: {} },
    ]);
    expect(await runtime.listByLabel('svc.home', 'abc')).toEqual({
      ok: true,
      value: [
        { id: CONTAINER_ID, name: 'demo', running: true, session: 'ses_1', home: 'abc' },
        { id: 'ffff', name: 'x', running: false, session: null, home: null },
      ],
    });
    expect(docker.calls()).toEqual([
      `GET /containers/json?all=1&filters=${encodeURIComponent('{"label":["svc.home=abc"]}')}`,
    ]);
  });
});

describe('an image', () => {
  test('from an import has almost no settings', async () => {
    docker.replies('GET /images/x/json', 200, imageReply(IMAGE_ID, { Entrypoint: null }));
    expect(await runtime.inspectImage('x')).toEqual({
      ok: true,
      value: sampleImage({ id: IMAGE_ID }),
    });
  });

  test('that is missing is not pulled; the fix says how', async () => {
    const found = await runtime.inspectImage('team/x:1');
    expect(found).toMatchObject({ ok: false, error: { reason: 'image_missing' } });
    expect(!found.ok && found.error.fixes.join(' ')).toContain('docker pull team/x:1');
  });

  test.each(['../containers/x', 'a/../../version', '/x', 'x//y', '.'])(
    'with the name %j is missing, and not asked for',
    async (name) => {
      expect(await runtime.inspectImage(name)).toMatchObject({ ok: false, error: { reason: 'image_missing' } });
      expect(docker.calls()).toEqual([]);
    },
  );

  test("of a reply that is not Docker's is a refusal, not a crash", async () => {
    docker.replies('GET /images/x/json', 200, { Id: 'x' });
    expect(await runtime.inspectImage('x')).toMatchObject({
      ok: false,
      error: { reason: 'engine_refused', message: expect.stringContaining("is not Docker's") },
    });
  });

  test("is probed as root, without a network, hardened like an agent's container", async () => {
    docker.on('run', 'echo said');
    expect(await runtime.runProbe('img', 'check it')).toEqual({ ok: true, value: 'said\n' });
    const args = docker.commands()[0] ?? [];
    expect(args.slice(0, 4)).toEqual(['run', '--rm', '--pull=never', '--name']);
    const run = words('--network none --user 0 --entrypoint /bin/sh');
    expect(args.slice(5)).toEqual([...run, ...HARDENED, '--', 'img', '-c', 'check it']);
  });
});

test.each([
  ['6.6.87-linuxkit', '6.6.87-linuxkit'],
  ['', null],
  [null, null],
])('the kernel and the system of an engine that says %j is %s', async (json, release) => {
  docker.replies('GET /info', 200, { KernelVersion: json, OperatingSystem: json });
  expect(await runtime.host()).toEqual({ ok: true, value: { kernelRelease: release, operatingSystem: release } });
});

describe('the gateway of a network', () => {
  test.each([
    [[{ Subnet: '172.17.0.0/16', Gateway: '172.17.0.9' }], '172.17.0.9'],
    [[{ Subnet: '172.17.0.0/16' }], '172.17.0.1'],
    [
      [
        { Subnet: 'fd00::/64', Gateway: 'fd00::1' },
        { Subnet: '10.1.0.0/24', Gateway: '10.1.0.1' },
      ],
      '10.1.0.1',
    ],
    [null, null],
  ])('of %j is %s', async (config, address) => {
    docker.replies('GET /networks/bridge', 200, { IPAM: { Config: config } });
    expect(await runtime.gatewayOf('bridge')).toEqual({ ok: true, value: address });
  });

  test('that the engine does not have is named', async () => {
    expect(await runtime.gatewayOf('bridge')).toMatchObject({ ok: false, error: { reason: 'network_missing' } });
  });
});
