import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { CONTAINER_ID, containerState, FakeDocker } from '../launch/testing/fake_docker.ts';
import { AGENT_HARDENING } from './agent_hardening.ts';
import type { ContainerSpec } from './container_runtime.ts';
import { engineRuntime } from './docker_runtime.ts';
import { homeVolumesAt } from './home_volumes.ts';
import { namespaceRightsAt } from './namespace_rights.ts';
import { openEngine } from './open_engine.ts';
import { sampleImage } from './testing/sample_image.ts';

const STORE = '/var/lib/containers/storage';
const ENDPOINT = `podman:${STORE}`;
const INFO = { host: { kernel: '6.1.0', serviceIsRemote: false }, store: { graphRoot: STORE } };

let podman: FakeDocker;
let env: Record<string, string>;
beforeEach(() => {
  podman = new FakeDocker('podman');
  // No other engine's program is found.
  env = { PATH: podman.folder, HOME: podman.folder };
  podman.on('info', `echo '${JSON.stringify(INFO)}'`);
});
afterEach(() => podman.remove());

const volumeJson = (labels: object): string => JSON.stringify([{ Driver: 'local', Labels: labels, Options: {} }]);

function sayAbout(changes: object): void {
  podman.on('info', `echo '${JSON.stringify({ ...INFO, ...changes })}'`);
}

const SPEC: ContainerSpec = {
  image: 'x',
  name: 'demo',
  labels: {},
  env: { SVC_TOKEN: 'planted-token', XDG_CONFIG_HOME: '/home/agent/.config' },
  mounts: [],
  workdir: null,
  user: null,
  entrypoint: null,
  command: [],
  tty: false,
  stdin: false,
  network: 'none',
  hardening: null,
  enginesProxies: 'left_out',
};

describe('the engine that is meant', () => {
  test('is podman where there is no Docker, known by where it keeps its containers', async () => {
    expect(await openEngine(env)).toMatchObject({ ok: true, value: { program: 'podman', endpoint: ENDPOINT } });
  });

  test.each([
    ['by the call', {}, 'docker' as const],
    ['by the setting', { SVC_SANDBOX_ENGINE: 'docker' }, null],
    ['by an address', { DOCKER_HOST: 'unix:///nowhere/docker.sock' }, null],
  ])('is not podman where Docker is named %s', async (_, more, named) => {
    expect(await openEngine({ ...env, ...more }, named)).toMatchObject({ ok: false, error: {} });
    expect(podman.uses()).toEqual([]);
  });

  test('is not podman where a context of the configuration names a Docker on another machine', async () => {
    const docker = new FakeDocker();
    docker.on('context', `echo '"tcp://build.example.test:2376"'`);
    writeFileSync(join(docker.folder, 'config.json'), '{"currentContext":"far"}');
    const both = {
      ...docker.env({ DOCKER_HOST: '', DOCKER_CONFIG: docker.folder }),
      PATH: `${docker.folder}:${podman.folder}`,
    };
    expect(await openEngine(both)).toMatchObject({ ok: false, error: { reason: 'engine_remote' } });
    expect(podman.uses()).toEqual([]);
    await docker.remove();
  });

  test('is podman where it is named, even if Docker answers', async () => {
    const docker = new FakeDocker();
    await docker.listen();
    const both = { ...docker.env(), PATH: `${docker.folder}:${podman.folder}` };
    expect(await openEngine(both)).toMatchObject({ ok: true, value: { program: 'docker' } });
    expect(await openEngine(both, 'podman')).toMatchObject({ ok: true, value: { program: 'podman' } });
    expect(await openEngine({ ...both, SVC_SANDBOX_ENGINE: 'podman' })).toMatchObject({
      ok: true,
      value: { program: 'podman' },
    });
    await docker.remove();
  });

  test('is refused by name if it runs containers on another machine', async () => {
    sayAbout({ host: { ...INFO.host, serviceIsRemote: true } });
    expect(await openEngine(env, 'podman')).toMatchObject({ ok: false, error: { reason: 'engine_remote' } });
  });

  test("that does not work is a problem in podman's words", async () => {
    podman.on('info', 'echo cannot clone: Operation not permitted >&2; exit 125');
    const opened = await openEngine(env, 'podman');
    expect(opened).toMatchObject({ ok: false, error: { message: expect.stringContaining('cannot clone') } });
  });
});

describe('podman', () => {
  test('whose containers are elsewhere for the sidecar is no engine of the session', async () => {
    const runtime = engineRuntime(env, 'podman:/home/ada/.local/share/containers/storage');
    expect(await runtime.host()).toMatchObject({ ok: false, error: { reason: 'engine_unreachable' } });
    expect(await engineRuntime(env, ENDPOINT).host()).toMatchObject({ ok: true, value: { kernelRelease: '6.1.0' } });
  });

  test('gets no secret on its command line, and no variable that leads it to other containers', async () => {
    await engineRuntime({ ...env, SVC_VAULT_KEY: 'planted', CONTAINER_HOST: 'ssh://x' }, ENDPOINT).create(SPEC);
    const [use] = podman.uses();
    expect(use?.args.join(' ')).not.toContain('planted');
    expect(use?.args).toEqual(expect.arrayContaining(['SVC_TOKEN', 'XDG_CONFIG_HOME=/home/agent/.config']));
    expect(use?.env).toMatchObject({ SVC_TOKEN: 'planted-token' });
    for (const name of ['XDG_CONFIG_HOME', 'CONTAINER_HOST', 'SVC_VAULT_KEY'])
      expect(use?.env).not.toHaveProperty(name);
  });

  test("keeps its own environment's proxies out of a container", async () => {
    const runtime = engineRuntime(env, ENDPOINT);
    await runtime.create(SPEC);
    await runtime.create({ ...SPEC, enginesProxies: 'kept' });
    expect(podman.uses().map(({ args }) => args.includes('--http-proxy=false'))).toEqual([true, false]);
  });

  test('gets capabilities only for a start as root, and directories in memory without an owner', async () => {
    const runtime = engineRuntime(env, ENDPOINT);
    const confinement = { memory: 1024, cpus: 2, tmpfs: ['/home/x:rw,mode=0700,uid=5,gid=5,size=1m'] };
    for (const user of ['0', null, '65532']) {
      await runtime.create({ ...SPEC, user, hardening: AGENT_HARDENING, confinement });
    }
    expect(podman.uses().map(({ args }) => args.includes('--cap-add'))).toEqual([true, false, false]);
    for (const { args } of podman.uses()) {
      expect(args).toEqual(expect.arrayContaining(['--cap-drop', '/home/x:rw,mode=1777,size=1m']));
    }
  });

  test('replies with lists of one, and with ids without their algorithm', async () => {
    const id = 'a'.repeat(64);
    podman.on('image', `echo '[{"Id":"${id}","Architecture":"amd64","Config":{}}]'`);
    podman.on('container', `echo '${JSON.stringify([containerState({ running: true })])}'`);
    const runtime = engineRuntime(env, ENDPOINT);
    expect(await runtime.inspectImage('x')).toEqual({ ok: true, value: sampleImage({ id: `sha256:${id}` }) });
    expect(await runtime.pidOf(CONTAINER_ID)).toEqual({ ok: true, value: 4242 });
  });

  test('lists containers with their owners’ labels', async () => {
    const labels = { 'svc.session': 'ses_1', 'svc.home': 'abc' };
    const listed = [
      { Id: CONTAINER_ID, Names: ['demo'], State: 'running', Labels: labels },
      { Id: 'ffff', Names: ['x'], State: 'exited', Labels: null },
    ];
    podman.on('ps', `echo '${JSON.stringify(listed)}'`);
    expect(await engineRuntime(env, ENDPOINT).listByLabel('svc.home', 'abc')).toEqual({
      ok: true,
      value: [
        { id: CONTAINER_ID, name: 'demo', running: true, session: 'ses_1', home: 'abc' },
        { id: 'ffff', name: 'x', running: false, session: null, home: null },
      ],
    });
  });

  test('keeps a volume that is there already, if svc made it', async () => {
    const home = { name: 'svc-home-a', agent: 'claude', folder: '/work' };
    const own = { 'svc.home': 'abc', 'svc.agent': 'claude', 'svc.folder': '"/work"' };
    const volumes = homeVolumesAt(env, ENDPOINT);
    const exists = 'if [ "$2" = create ]; then echo volume already exists >&2; exit 125; fi;';
    podman.on('volume', `${exists} echo '${volumeJson(own)}'`);
    expect(await volumes.create(home, 'abc')).toEqual({ ok: true, value: undefined });
    // podman reads labels of volumes as comma-separated values.
    expect(podman.uses()[0]?.args).toContain(`"svc.folder=""/work"""`);
    podman.on('volume', `${exists} echo '${volumeJson({ ...own, 'svc.home': 'another' })}'`);
    expect(await volumes.create(home, 'abc')).toMatchObject({ ok: false, error: { reason: 'engine_refused' } });
  });

  test("lets its owner's sidecar enter its containers", () => {
    const store = join(podman.folder, 'storage');
    mkdirSync(store);
    expect(namespaceRightsAt(`podman:${store}`)).toBe(namespaceRightsAt(`unix://${store}`));
    expect(namespaceRightsAt(`podman:${store}`)).not.toBe('none');
  });
});
