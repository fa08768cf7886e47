import { type ChildProcess, spawn } from 'node:child_process';
import { openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { rootlessIsThere } from '../../tools/system_parts.mjs';
import { ESCAPES } from '../sandbox/attempts.ts';
import { makeOutside } from '../sandbox/outside.ts';
import { plantSecret } from '../support/planted_secret.ts';
import { type Finished, run, runOk } from '../support/program.ts';
import { Svc } from '../support/svc.ts';
import { createTestCa } from '../support/test_ca.ts';
import { startTlsUpstream, type TlsUpstream } from '../support/tls_upstream.ts';
import { waitFor } from '../support/wait_for.ts';
import { expectNoWayOut, pythonBelow } from './container_escapes.ts';
import { type Bench, describeContainers, openBench } from './container_world.ts';
import { makePerson, type Person, svcOf } from './other_user.ts';
import { runAs } from './run_as.ts';

// A rootless engine, and svc as the same user: the sidecar enters the container's network through the engine's user namespace.
// The engine has no network here, so only sealed egress is tested.

const HOST = 'api.example.test';
const TOKEN = plantSecret();
/** The user of the images' agent, and the first id that the machine of the tests gives to a user's containers. */
const AGENT_ID = 1000;
const FIRST_SUBORDINATE = 100_000;
const HERE = describeContainers === describe && rootlessIsThere();

/** rootlesskit with dockerd, started as its own script does, without a network for containers. */
function startEngine({ uid, folder, env }: Person): ChildProcess {
  const place = ['--host', env['DOCKER_HOST'] ?? '', '--data-root', `${folder}/data`, '--exec-root', `${folder}/exec`];
  const engine = ['dockerd', '--rootless', ...place, '--pidfile', `${folder}/pid`, '--bridge', 'none'];
  const quiet = ['--iptables=false', '--ip-forward=false', '--log-level', 'warn'];
  const inside = `rm -rf /run/docker /run/containerd; exec ${[...engine, ...quiet].join(' ')}`;
  const kit = ['rootlesskit', '--net=host', `--state-dir=${folder}/run/kit`, '--copy-up=/etc', '--copy-up=/run'];
  const drop = [`--reuid=${uid}`, `--regid=${uid}`, '--init-groups', '--pdeathsig=TERM', '--'];
  return spawn('setpriv', [...drop, ...kit, '--propagation=rslave', 'sh', '-c', inside], {
    cwd: folder,
    env,
    stdio: ['ignore', 'ignore', openSync(join(folder, 'log'), 'a')],
  });
}

describe.skipIf(!HERE)('a rootless engine', () => {
  let bench: Bench;
  let someone: Person;
  let engine: ChildProcess;
  let svc: Svc;
  let upstream: TlsUpstream;

  const docker = (...args: string[]): Promise<Finished> => runAs(someone.uid, ['docker', ...args], someone.env);
  const svcAs = (...args: string[]): Promise<Finished> => {
    const [program, ...words] = svcOf(someone);
    return run(program, [...words, ...args], { env: someone.env, cwd: '/' });
  };
  const launch = (flags: readonly string[], command: readonly string[]): Promise<Finished> => {
    const image = ['--no-default-mount', '--image', bench.images.busybox];
    return svcAs('launch', ...image, ...flags, '--', ...command);
  };
  const containers = async (): Promise<string> => (await docker('ps', '-a', '-q')).stdout;

  beforeAll(async () => {
    bench = await openBench();
    someone = await makePerson(join(bench.engine.folder, 'bin'), (folder) => `unix://${join(folder, 'docker.sock')}`);
    engine = startEngine(someone);
    await waitFor('the rootless engine', async () => (await docker('info')).code === 0);
    const archive = join(someone.folder, 'image.tar');
    await bench.engine.docker('save', '--output', archive, bench.images.busybox);
    await runOk('chmod', ['644', archive]);
    await docker('load', '--input', archive);
    const command: [string, ...string[]] = [...svcOf(someone), 'up'];
    const ca = await createTestCa();
    upstream = await startTlsUpstream(await ca.issue([HOST]));
    const roots = join(someone.folder, 'ca.pem');
    writeFileSync(roots, ca.pem);
    svc = await Svc.up({
      home: join(someone.folder, 'home'),
      command,
      env: someone.env,
      upstreamCaFiles: [roots],
      resolve: [`${HOST}:127.0.0.1:${upstream.port}`],
    });
    await svc.secret('user/api', TOKEN);
    await svc.binding({ host: HOST, scheme: 'bearer', credential_ref: 'vault://user/api' });
  });
  afterAll(async () => {
    engine.kill('SIGTERM');
    await waitFor('the rootless engine to end', () => engine.exitCode !== null || engine.signalCode !== null);
    rmSync(someone.folder, { recursive: true, force: true });
    bench.clear();
  });
  afterAll(async () => {
    await svc.stop();
    await upstream.close();
  });

  it('runs a sealed container whose requests get their credential', async () => {
    upstream.reset();
    const done = await launch(['--egress=sealed'], ['/opt/clients/items', `https://${HOST}/items`]);
    expect({ code: done.code, stderr: done.code === 0 ? '' : done.stderr }).toEqual({ code: 0, stderr: '' });
    expect(upstream.requests.length).toBe(2);
    expect(upstream.last().headers('authorization')).toEqual([`Bearer ${TOKEN}`]);
  });

  it('gives the container only loopback, and a root user without rights on this machine', async () => {
    const started = await launch(['--egress=sealed', '--detach', '--name', 'rootless'], ['sleep', '600']);
    expect(started.code).toBe(0);
    const pid = (await docker('inspect', '--format', '{{.State.Pid}}', 'rootless')).stdout.trim();
    expect(readFileSync(`/proc/${pid}/net/route`, 'utf8').trim().split('\n')).toHaveLength(1);
    expect(/^Uid:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]).not.toBe('0');
    const stopped = await svcAs('sessions', 'stop', 'rootless');
    expect(stopped.code).toBe(0);
    expect(await containers()).toBe('');
  });

  it('says which user the agent is outside, who cannot write the project until then', async () => {
    const project = join(someone.folder, 'project');
    await runOk('install', ['-d', '-o', String(someone.uid), '-g', String(someone.uid), project]);
    const mount = ['--mount', `${project}:/home/agent/workspace`];
    const write = ['sh', '-c', 'echo kept > file && echo written'];
    const refused = await launch(mount, write);
    const user = /setfacl -R -m u:(\d+):rwX/.exec(refused.stderr)?.[1];
    expect([refused.stdout, user ?? refused.stderr]).toEqual(['', expect.stringMatching(/^1\d{5}$/)]);
    // What the list of access would do, which not every file system has.
    await runOk('chown', [String(user), project]);
    expect((await launch(mount, write)).stdout).toBe('written\n');
  });

  it('has no way out of such a container', async () => {
    const outside = await makeOutside(FIRST_SUBORDINATE + AGENT_ID - 1);
    try {
      const mounts = ['--mount', `${outside.project}:${outside.project}`, '--mount', '/usr:/mnt/usr:ro'];
      const attack = [...pythonBelow('/mnt'), '-c', ESCAPES, outside.targets];
      expectNoWayOut(await launch(['--egress=sealed', ...mounts], attack));
    } finally {
      await outside.stop();
    }
  });

  it('passes the exit code, and leaves no container', async () => {
    expect((await launch(['--egress=sealed'], ['sh', '-c', 'exit 42'])).code).toBe(42);
    expect(await containers()).toBe('');
  });
});
