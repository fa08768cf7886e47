import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, readlinkSync } from 'node:fs';
import { release } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterEach, expect, it } from 'vitest';
import type { Result } from '../../shared/model/result.ts';
import { AGENT_HARDENING } from '../../sandbox/engine/agent_hardening.ts';
import { containerLabels, HOME_LABEL, homeLabelOf } from '../../sandbox/engine/container_labels.ts';
import type {
  ContainerRuntime,
  ContainerSpec,
  ContainerState,
  ExecSpec,
} from '../../sandbox/engine/container_runtime.ts';
import { homeVolumesAt } from '../../sandbox/engine/home_volumes.ts';

/** An engine on which the contract is tried. */
export interface EngineOnTrial {
  readonly runtime: ContainerRuntime;
  /** The environment that the runtime was opened with. */
  readonly env: Readonly<Record<string, string>>;
  /** An image with `sh`, whose user is `agent`, number 1000. */
  readonly image: string;
  /** A folder that the containers' agent may write, and that the engine can mount. */
  readonly folder: string;
}

const SPEC: Omit<ContainerSpec, 'image'> = {
  name: null,
  labels: {},
  env: {},
  mounts: [],
  workdir: null,
  user: null,
  entrypoint: null,
  command: [],
  tty: false,
  stdin: false,
  network: 'none',
  hardening: AGENT_HARDENING,
  enginesProxies: 'left_out',
};
const EXEC: ExecSpec = { command: [], env: {}, user: null, workdir: null, tty: false, stdin: false, stdio: 'pipe' };

/** Of this run: others may use the same engine. */
const NAME = `svc-contract-${process.pid}`;

/** Ends at once when it is told to. */
const WAITING = "trap 'exit 9' TERM; while :; do sleep 0.1; done";

function valueOf<T>(result: Result<T, { readonly message: string }>): T {
  if (!result.ok) throw new Error(result.error.message);
  return result.value;
}

const endOf = async (child: ChildProcess): Promise<{ code: number; stdout: string; stderr: string }> => {
  if (child.stdout === null || child.stderr === null) throw new Error('its streams are not ours');
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
  return { code: child.exitCode ?? -1, stdout, stderr };
};

/** What every engine does behind the port `container_runtime.ts`, with real containers. */
export function describeEngine(open: () => EngineOnTrial): void {
  const created: string[] = [];
  const create = async (spec: Partial<ContainerSpec>): Promise<string> => {
    const id = valueOf(await open().runtime.create({ ...SPEC, image: open().image, ...spec }));
    created.push(id);
    return id;
  };
  // Also after a failure. One that is gone already is removed too.
  afterEach(async () => {
    for (const id of created.splice(0).toReversed()) valueOf(await open().runtime.remove(id));
  });
  const stateOf = async (id: string): Promise<ContainerState> => {
    const state = valueOf(await open().runtime.inspect(id));
    if (state === null) throw new Error(`${id} is gone`);
    return state;
  };
  const pidOf = async (id: string): Promise<number> => {
    const pid = valueOf(await open().runtime.pidOf(id));
    if (pid === null) throw new Error(`${id} does not run`);
    return pid;
  };

  it('knows its images, and which it lacks', async () => {
    const { runtime, image } = open();
    const found = valueOf(await runtime.inspectImage(image));
    expect(found).toMatchObject({
      id: expect.stringMatching(/^sha256:[0-9a-f]{64}$/),
      user: expect.stringMatching(/./),
    });
    // By its id too, which is what a launch runs.
    expect(valueOf(await runtime.inspectImage(found.id)).id).toBe(found.id);
    expect(await runtime.inspectImage('svc-e2e/none:1')).toMatchObject({
      ok: false,
      error: { reason: 'image_missing' },
    });
    expect(valueOf(await runtime.makeEmptyImage(`svc-e2e-empty:${process.pid}`))).toBeUndefined();
    expect(valueOf(await runtime.inspectImage(`svc-e2e-empty:${process.pid}`)).entrypoint).toEqual([]);
  });

  it('creates a container without starting it, with its mounts and its variables', async () => {
    const { runtime, folder } = open();
    mkdirSync(join(folder, 'a,"b'), { mode: 0o777 });
    const readOnly = join(folder, 'a,"b');
    const id = await create({
      env: { PLAIN: 'one\ntwo', XDG_CONFIG_HOME: '/home/agent/.config' },
      mounts: [
        { source: folder, target: '/data', readOnly: false },
        { source: readOnly, target: '/seen', readOnly: true },
      ],
      workdir: '/data',
      command: ['sh', '-c', 'printf "%s" "$PLAIN$XDG_CONFIG_HOME" > written; touch /seen/x 2>/dev/null || exit 7'],
    });
    expect(await stateOf(id)).toMatchObject({ running: false, wasStarted: false, pid: null });
    expect(valueOf(await runtime.pidOf(id))).toBeNull();
    const child = runtime.start(id, { stdin: false, tty: false });
    const [code]: unknown[] = await once(child, 'close');
    expect(code).toBe(7);
    expect(readFileSync(join(folder, 'written'), 'utf8')).toBe('one\ntwo/home/agent/.config');
    expect(await stateOf(id)).toMatchObject({ running: false, wasStarted: true, exitCode: 7 });
  });

  it('runs it without rights and with only loopback, and programs in it', async () => {
    const { runtime } = open();
    const id = await create({ command: ['sh', '-c', WAITING], workdir: '/' });
    valueOf(await runtime.startDetached(id));
    const pid = await pidOf(id);
    const readStatus = (): string => readFileSync(`/proc/${pid}/status`, 'utf8');
    // The runtime loads the filter after the start is reported, right before the first program.
    await expect.poll(readStatus).toMatch(/^Seccomp:\s2$/m);
    const status = readStatus();
    expect(status).toMatch(/^NoNewPrivs:\s1$/m);
    expect(status).toMatch(/^CapEff:\s0{16}$/m);
    expect(readFileSync(`/proc/${pid}/net/route`, 'utf8').trim().split('\n')).toHaveLength(1);
    const asked = await endOf(
      runtime.exec(id, {
        ...EXEC,
        command: ['sh', '-c', 'id -u; pwd; echo "$ONE"; exit 3'],
        env: { ONE: 'x y' },
        workdir: '/tmp',
      }),
    );
    expect(asked).toEqual({ code: 3, stdout: '1000\n/tmp\nx y\n', stderr: '' });
    const asRoot = await endOf(runtime.exec(id, { ...EXEC, command: ['id', '-u'], user: '0' }));
    expect(asRoot.stdout).toBe('0\n');
    const fed = runtime.exec(id, { ...EXEC, command: ['cat'], stdin: true });
    fed.stdin?.end('fed');
    expect((await endOf(fed)).stdout).toBe('fed');
    // Another container can share its network, and nothing else.
    const other = await create({ command: ['sh', '-c', WAITING], network: { container: id } });
    valueOf(await runtime.startDetached(other));
    const namespace = async (of: string, name: string): Promise<string> =>
      readlinkSync(`/proc/${await pidOf(of)}/ns/${name}`);
    expect(await namespace(other, 'net')).toBe(await namespace(id, 'net'));
    expect(await namespace(other, 'pid')).not.toBe(await namespace(id, 'pid'));
    // A signal reaches its first process, whose code is what the wait gives.
    const waited = runtime.wait(id);
    valueOf(await runtime.signal(id, 'SIGTERM'));
    expect(valueOf(await waited)).toBe(9);
    expect(await stateOf(id)).toMatchObject({ running: false, exitCode: 9 });
  });

  it('starts one whose streams are ours, and which sees the end of its input', async () => {
    const { runtime } = open();
    const script = 'echo begun >&2; tr a-z A-Z; exit 4';
    const id = await create({ stdin: true, keepsNoLog: true, command: ['sh', '-c', script] });
    const { input, output, said } = valueOf(await runtime.startWithStreams(id));
    input.end('x'.repeat(100_000));
    expect(await text(output)).toBe('X'.repeat(100_000));
    expect(valueOf(await runtime.wait(id))).toBe(4);
    expect(said()).toContain('begun');
    const left = await create({ stdin: true, command: ['sh', '-c', 'cat > /dev/null; exit 5'] });
    const streams = valueOf(await runtime.startWithStreams(left));
    streams.output.destroy();
    expect(valueOf(await runtime.wait(left))).toBe(5);
  });

  it('gives a confined one a root that it cannot write, and no more memory', async () => {
    const { runtime } = open();
    const id = await create({
      confinement: { memory: 64, cpus: 1, tmpfs: ['/tmp:rw,nosuid,nodev,mode=1777,size=1m'] },
      command: ['sh', '-c', 'touch /tmp/x && ! touch /x && ! head -c 2000000 /dev/zero > /tmp/large'],
      user: '0',
    });
    const [code]: unknown[] = await once(runtime.start(id, { stdin: false, tty: false }), 'close');
    expect(code).toBe(0);
  });

  it('finds containers by their labels, and removes them', async () => {
    const { runtime, folder } = open();
    const labels = containerLabels(folder, 'ses_contract');
    const id = await create({ labels, name: NAME, command: ['sh', '-c', WAITING] });
    const twice = await runtime.create({ ...SPEC, image: open().image, name: NAME });
    expect(twice).toMatchObject({ ok: false, error: { reason: 'engine_refused' } });
    valueOf(await runtime.startDetached(id));
    const found = valueOf(await runtime.listByLabel(HOME_LABEL, homeLabelOf(folder)));
    const home = homeLabelOf(folder);
    expect(found).toEqual([{ id, name: NAME, running: true, session: 'ses_contract', home }]);
    // It runs, and is removed all the same; what is gone already is removed too.
    valueOf(await runtime.remove(id));
    valueOf(await runtime.remove(id));
    expect(valueOf(await runtime.inspect(id))).toBeNull();
    expect(valueOf(await runtime.listByLabel(HOME_LABEL, home))).toEqual([]);
  });

  it('keeps a home in a volume, and takes none that is not of svc', async () => {
    const { runtime, env, folder } = open();
    const volumes = homeVolumesAt(env, runtime.endpoint);
    const label = homeLabelOf(folder);
    const home = { name: `svc-home-${NAME}`, agent: 'claude', folder: '/a folder\nof two lines' };
    valueOf(await volumes.create(home, label));
    valueOf(await volumes.create(home, label));
    expect(valueOf(await volumes.list(label))).toEqual([home]);
    expect(await volumes.create(home, 'another')).toMatchObject({ ok: false, error: { reason: 'engine_refused' } });
    const mounted = { volumes: [{ volume: home.name, target: '/home/agent' }] };
    for (const script of ['echo kept > /home/agent/file', 'grep -q kept /home/agent/file']) {
      const id = await create({ ...mounted, command: ['sh', '-c', script], removedAtEnd: true });
      const [code]: unknown[] = await once(runtime.start(id, { stdin: false, tty: false }), 'close');
      expect(code).toBe(0);
      await expect.poll(() => runtime.inspect(id)).toEqual({ ok: true, value: null });
    }
    valueOf(await volumes.remove(home.name));
    expect(valueOf(await volumes.list(label))).toEqual([]);
  });

  it('probes an image as root without a network, and says why it failed', async () => {
    const { runtime, image } = open();
    expect(valueOf(await runtime.runProbe(image, 'id -u; wc -l < /proc/net/route'))).toBe('0\n1\n');
    const failed = await runtime.runProbe(image, 'echo no such thing >&2; exit 1');
    expect(failed).toMatchObject({ ok: false, error: { message: expect.stringContaining('no such thing') } });
  });

  it('is this machine, by its kernel, and has no network that is not there', async () => {
    const { runtime } = open();
    expect(valueOf(await runtime.host()).kernelRelease).toBe(release());
    expect(await runtime.gatewayOf('svc-none')).toMatchObject({ ok: false, error: { reason: 'network_missing' } });
  });
}
