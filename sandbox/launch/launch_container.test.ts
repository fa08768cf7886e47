import { EventEmitter } from 'node:events';
import { existsSync, watch, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { homeLabelOf } from '../engine/container_labels.ts';
import { engineRuntime } from '../engine/docker_runtime.ts';
import { launchContainer, type ContainerLaunch, type LaunchEnd } from './launch_container.ts';
import { CONTAINER_ID, containerState, FakeDocker, IMAGE_ID, scriptWorkingEngine } from './testing/fake_docker.ts';
import { FakeSessions } from './testing/fake_sessions.ts';

let docker: FakeDocker;
let signals: EventEmitter;
let warnings: string[];
beforeEach(async () => {
  docker = scriptWorkingEngine(new FakeDocker());
  await docker.listen();
  signals = new EventEmitter();
  warnings = [];
});
afterEach(() => docker.remove());

const launchOf = (more: Partial<ContainerLaunch> = {}): ContainerLaunch => ({
  home: docker.folder,
  session: {
    name: null,
    ttlSeconds: null,
    owner: null,
    image: 'team/agent',
    imageId: IMAGE_ID,
    runtime: { program: 'docker', endpoint: docker.endpoint },
    detached: false,
    egress: 'open',
    allowList: null,
    unsealed: [],
    mcpServers: [],
  },
  agentUser: 'agent',
  entry: '/usr/local/bin/svc-run-with-proxy-ca',
  command: ['tool', '--json'],
  mounts: [],
  workdir: null,
  env: {},
  relay: false,
  tty: false,
  ...more,
});

function launch(wanted: ContainerLaunch, sessions = new FakeSessions()): Promise<LaunchEnd> {
  const runtime = engineRuntime(docker.env(), docker.endpoint);
  return launchContainer(
    { runtime, sessions, signals, warn: (text) => warnings.push(text), pause: () => nextTurn() },
    wanted,
  );
}

/** Without questions. */
const actions = (): string[] => docker.calls().filter((call) => !call.startsWith('GET '));
const CONTAINER = `GET /containers/${CONTAINER_ID}/json`;
const REMOVAL = `DELETE /containers/${CONTAINER_ID}?force=1&v=1`;
const CREATION = 'POST /containers/create?name=svc-1';

describe('a launch in a container', () => {
  test('creates session, container and listener in this order, and removes them when the command ends', async () => {
    const sessions = new FakeSessions();
    docker.on('start', 'exit 7');
    expect(await launch(launchOf(), sessions)).toEqual({ sessionId: 'ses_1', containerId: CONTAINER_ID, exitCode: 7 });
    expect(sessions.calls).toEqual(['create', 'recordContainer ses_1 cccc', 'openListener ses_1 4242', 'end ses_1']);
    expect(actions()).toEqual([CREATION, 'start', REMOVAL]);
  });

  test('says that SDKs find no credentials where the proxy is at a gateway, unless the caller gives an endpoint', async () => {
    const proxyUrl = 'http://172.17.0.1:7421';
    const sessions = new FakeSessions([], { listener: 'gateway', proxyUrl, sdkEndpoints: ['aws', 'azure'] });
    await launch(launchOf({ env: { IDENTITY_ENDPOINT: 'http://localhost:1/' } }), sessions);
    expect(warnings).toEqual([
      'SDKs of AWS find no credentials in this container: its proxy is not on its own loopback; launch with --egress=sealed',
    ]);
    warnings = [];
    await launch(launchOf(), new FakeSessions([], { sdkEndpoints: ['aws'] }));
    expect(warnings).toEqual([]);
  });

  test('starts the helper as root in a hardened container that sees only the CA of the session', async () => {
    await launch(launchOf({ mounts: [{ source: '/p', target: '/w', readOnly: false }] }));
    expect(docker.creation()).toMatchObject({
      Image: IMAGE_ID,
      User: '0',
      Entrypoint: ['/usr/local/bin/svc-run-with-proxy-ca'],
      Cmd: ['--', 'tool', '--json'],
      Labels: { 'svc.session': 'ses_1', 'svc.home': homeLabelOf(docker.folder) },
      HostConfig: {
        CapDrop: ['ALL'],
        Mounts: [
          { Source: '/p', Target: '/w', ReadOnly: false },
          { Source: '/state/sessions/ses_1/ca.pem', Target: '/etc/svc/proxy/ca.pem', ReadOnly: true },
        ],
      },
    });
  });

  test('puts the token and all credentials only into the environment, never into a program or a path', async () => {
    const credential = { env: 'DB', reference: 'vault://team/db', host: 'db.example.com', reason: 'no HTTP' };
    const base = launchOf({ env: { GIVEN: 'planted-given' } });
    await launch({ ...base, session: { ...base.session, unsealed: [credential] } });
    expect(docker.creation()?.Env).toMatchObject({
      HTTPS_PROXY: 'http://ses_1:tok@127.0.0.1:7421',
      SVC_TOKEN: 'tok',
      DB: 'value of vault://team/db',
      GIVEN: 'planted-given',
      SVC_AGENT_USER: 'agent',
    });
    const seen = JSON.stringify([docker.uses(), docker.calls()]);
    for (const secret of ['tok@', 'value of', 'planted-given']) expect(seen).not.toContain(secret);
  });

  test('reaches only the proxy if its egress is sealed', async () => {
    const base = launchOf();
    await launch({ ...base, session: { ...base.session, egress: 'sealed' } });
    expect(docker.creation()?.HostConfig['NetworkMode']).toBe('none');
    await launch(base);
    expect(docker.creation()?.HostConfig).not.toHaveProperty('NetworkMode');
  });

  test('keeps a detached container once its listener is open', async () => {
    const base = launchOf();
    const sessions = new FakeSessions();
    const end = await launch({ ...base, session: { ...base.session, detached: true } }, sessions);
    expect(end.exitCode).toBeNull();
    expect(sessions.calls.at(-1)).toBe('openListener ses_1 4242');
    expect(actions()).toEqual([CREATION, `POST /containers/${CONTAINER_ID}/start`]);
    expect(docker.creation()).toMatchObject({ OpenStdin: false });
  });

  test('returns 127 if the engine did not find the command', async () => {
    docker.on('start', 'echo not found >&2; exit 1');
    docker.replies(CONTAINER, 200, containerState({ running: false, started: false, exitCode: 127 }));
    expect((await launch(launchOf())).exitCode).toBe(127);
  });
});

describe('a failed launch is undone', () => {
  test('after a refused session there is nothing to undo', async () => {
    const sessions = new FakeSessions(['create']);
    await expect(launch(launchOf(), sessions)).rejects.toThrow('create refused');
    expect([sessions.calls, docker.calls()]).toEqual([['create'], []]);
  });

  test('a refused credential ends the session', async () => {
    const base = launchOf();
    const credential = { env: 'DB', reference: 'vault://team/db', host: 'db.example.com', reason: 'no HTTP' };
    const sessions = new FakeSessions(['unseal']);
    const wanted = { ...base, session: { ...base.session, unsealed: [credential] } };
    await expect(launch(wanted, sessions)).rejects.toThrow('unseal refused');
    expect(sessions.calls.at(-1)).toBe('end ses_1');
    expect(docker.calls()).toEqual([]);
  });

  test('a container that cannot be created ends the session', async () => {
    docker.replies('POST /containers/create', 409, 'name in use');
    const sessions = new FakeSessions();
    await expect(launch(launchOf(), sessions)).rejects.toThrow('the engine refused: name in use');
    expect(sessions.calls).toEqual(['create', 'end ses_1']);
  });

  test('a container that the sidecar cannot record is removed before it starts', async () => {
    const sessions = new FakeSessions(['recordContainer']);
    await expect(launch(launchOf(), sessions)).rejects.toThrow('recordContainer refused');
    expect(actions()).toEqual([CREATION, REMOVAL]);
    expect(sessions.calls.at(-1)).toBe('end ses_1');
  });

  test('a listener that cannot be opened removes the waiting container', async () => {
    docker.on('start', 'exec sleep 60');
    const sessions = new FakeSessions(['openListener']);
    await expect(launch(launchOf(), sessions)).rejects.toThrow('openListener refused');
    expect(actions().at(-1)).toBe(REMOVAL);
    expect(sessions.calls.at(-1)).toBe('end ses_1');
  });

  test('a detached launch is undone too', async () => {
    const base = launchOf();
    const sessions = new FakeSessions(['openListener']);
    const wanted = { ...base, session: { ...base.session, detached: true } };
    await expect(launch(wanted, sessions)).rejects.toThrow('openListener refused');
    expect([actions().at(-1), sessions.calls.at(-1)]).toEqual([REMOVAL, 'end ses_1']);
  });

  test('a step that cannot be undone is reported, and the others are still undone', async () => {
    const sessions = new FakeSessions(['end']);
    docker.replies(`DELETE /containers/${CONTAINER_ID}`, 500, 'busy');
    expect((await launch(launchOf(), sessions)).exitCode).toBe(0);
    expect(warnings).toEqual([
      'not taken down in order: the engine refused: busy',
      'not taken down in order: end refused',
    ]);
  });

  test('a signal during the preparation undoes it and returns 128 + n', async () => {
    const sessions = new FakeSessions();
    const running = launch(launchOf(), sessions);
    signals.emit('SIGTERM');
    await expect(running).rejects.toMatchObject({ exitCode: 143 });
    expect(sessions.calls).toEqual(['create', 'end ses_1']);
    expect(docker.calls()).toEqual([]);
  });
});

describe('while the command runs', () => {
  test('signals are sent to the container through its engine; the handlers are removed afterwards', async () => {
    docker.on(
      'start',
      `: > ${docker.folder}/ready; while [ ! -e ${docker.folder}/killed ]; do sleep 0.02; done; exit 9`,
    );
    docker.handles(`POST /containers/${CONTAINER_ID}/kill`, () => {
      writeFileSync(join(docker.folder, 'killed'), '');
      return { status: 204 };
    });
    const ready = waitForFile(join(docker.folder, 'ready'));
    const end = launch(launchOf());
    await ready;
    signals.emit('SIGTERM');
    expect((await end).exitCode).toBe(9);
    expect(actions()).toContain(`POST /containers/${CONTAINER_ID}/kill?signal=SIGTERM`);
    expect(signals.eventNames().flatMap((name) => signals.listeners(name))).toEqual([]);
  });
});

function waitForFile(path: string): Promise<void> {
  return new Promise((resolve) => {
    const watcher = watch(join(path, '..'), () => {
      if (!existsSync(path)) return;
      watcher.close();
      resolve();
    });
  });
}
