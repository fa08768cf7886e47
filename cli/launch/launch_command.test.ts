import { createHash } from 'node:crypto';
import { mkdirSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { imageChecksIn } from '../../sandbox/contract/image_contract_cache.ts';
import { CONTAINER_ID, FakeDocker, IMAGE_ID, scriptWorkingEngine } from '../../sandbox/launch/testing/fake_docker.ts';
import { runCli, TestHome, type Answer, type RunOptions, type RunResult, type SeenCall } from '../testing/run_cli.ts';
import { CONTAINER_SESSION as SESSION, ME } from '../testing/session_samples.ts';
import { storedEvent } from '../testing/stored_event.ts';

let home: TestHome;
let docker: FakeDocker;
beforeEach(async () => {
  home = new TestHome();
  docker = scriptWorkingEngine(new FakeDocker(), 5);
  await docker.listen();
});
afterEach(async () => {
  home.remove();
  await docker.remove();
});

const STORED = 'stored-secret';

const servers: Answer = ({ method, url, body }) => {
  if (url.pathname === '/v1/me') return { status: 200, body: ME };
  if (url.pathname === '/v1/secrets/check') {
    const values = JSON.stringify(body).includes(STORED) ? [{ index: 0, path: 'team/x', owner: 'personal' }] : [];
    return { status: 200, body: { matches: values } };
  }
  if (url.pathname.endsWith('/unsealed')) return { status: 200, body: { value: 'planted-unsealed' } };
  if (method === 'POST' && url.pathname.endsWith('/sessions')) return { status: 201, body: SESSION };
  return { status: 204 };
};

const controlAway: Answer = (call) => {
  if (call.url.port === '7420') throw new TypeError('fetch failed', { cause: { code: 'ECONNREFUSED' } });
  return servers(call);
};

/** Without mounting the working directory, which in these tests is the state directory. */
function launch(argv: readonly string[], options: RunOptions = {}): Promise<RunResult> {
  const env = docker.env({ SVC_SANDBOX_IMAGE: 'team/agent', ...options.env });
  const line = argv.includes('--mount') ? argv : ['--no-default-mount', ...argv];
  return runCli(home, ['launch', ...line], { answer: servers, ...options, env });
}

const listCalls = (calls: readonly SeenCall[]): string[] => calls.map((call) => `${call.method} ${call.url.pathname}`);
const disabled = (calls: readonly SeenCall[]): unknown[] =>
  calls.filter(({ url }) => url.pathname.endsWith('/disabled')).map(({ body }) => body);
const used = ({ calls }: RunResult): unknown => Reflect.get(Object(calls[1]?.body), 'use_secrets');
/** A container without the proxy is made by the program `docker`, which knows the user's settings. */
const findCreate = () => docker.uses().find(({ args }) => args.includes('create'));
const isNoneMade = (): boolean => findCreate() === undefined && docker.creation() === null;

describe('the sandbox proxy of a launch', () => {
  test('off records the choice and runs the image unchanged: no session, CA, proxy or hardening', async () => {
    const run = await launch(['--sandbox-proxy=off', '--', 'tool']);
    expect(run.code).toBe(5);
    expect(disabled(run.calls)).toEqual([{ reason: 'user_opt_out', mode: 'docker', image: 'team/agent' }]);
    expect(listCalls(run.calls)).toEqual(['POST /v1/sandbox-proxy/disabled']);
    const use = findCreate();
    for (const option of ['--user', '--entrypoint', '--mount', '--cap-drop', '--env']) {
      expect(use?.args).not.toContain(option);
    }
    expect(Object.keys(use?.env ?? {}).filter((name) => /proxy|^SVC_/i.test(name))).toEqual([]);
  });

  test('the flag overrides the setting, and the setting the default', async () => {
    const off = { env: { SVC_SANDBOX_PROXY: 'off' } };
    expect(disabled((await launch(['--', 'tool'], off)).calls)).toHaveLength(1);
    const on = await launch(['--sandbox-proxy=on', '--', 'tool'], off);
    expect(disabled(on.calls)).toEqual([expect.objectContaining({ reason: 'preflight_failed' })]);
  });

  test.each(['', 'yes', 'ON', 'auto '])('refuses the value %j', async (value) => {
    const flag = await launch([`--sandbox-proxy=${value}`, '--', 'tool']);
    const setting = await launch(['--', 'tool'], { env: { SVC_SANDBOX_PROXY: value } });
    expect([flag.code, setting.code, flag.calls, setting.calls]).toEqual([2, 2, [], []]);
    expect(setting.stderr).toContain('SVC_SANDBOX_PROXY');
  });

  test('names the removed setting and its replacement', async () => {
    const run = await launch(['--', 'tool'], { env: { SVC_SANDBOX_PROXY_BOOTSTRAP: '1' } });
    expect(run).toMatchObject({ code: 2, calls: [] });
    expect(run.stderr).toContain('SVC_SANDBOX_PROXY_BOOTSTRAP is set, but this setting was removed');
    expect(run.stderr).toContain('SVC_SANDBOX_PROXY=auto|on|off');
  });

  test('none is unsupported: recorded, warned about, and run as a plain process', async () => {
    const plain = await runCli(home, ['launch', '--sandbox=none', '--', '/bin/sh', '-c', 'exit 9'], {
      answer: servers,
    });
    expect(plain.code).toBe(9);
    expect(disabled(plain.calls)).toEqual([{ reason: 'unsupported_sandbox_mode', mode: 'none' }]);
    expect(plain.stderr).toContain('without the proxy');
  });

  test('with --sandbox-proxy=on, none fails the preflight and nothing starts', async () => {
    const mode = 'none';
    const argv = ['launch', '--sandbox=none', '--sandbox-proxy=on', '--', '/bin/sh', '-c', 'exit 9'];
    const env = docker.env({ SVC_SANDBOX_IMAGE: 'team/agent' });
    const run = await runCli(home, argv, { answer: servers, env });
    expect(run.code).toBe(125);
    expect(disabled(run.calls)).toEqual([
      { reason: 'unsupported_sandbox_mode', mode, image: 'team/agent' },
      { reason: 'preflight_failed', mode, image: 'team/agent' },
    ]);
    expect(run.stderr).toContain('--sandbox-proxy=off');
    expect(docker.calls()).toEqual([]);
  });

  test('with podman fails the preflight where there is none, and nothing starts', async () => {
    const env = docker.env({ SVC_SANDBOX_IMAGE: 'team/agent', PATH: docker.folder });
    const run = await runCli(home, ['launch', '--sandbox=podman', '--', 'tool'], { answer: servers, env });
    expect(run.code).toBe(125);
    expect(disabled(run.calls)).toEqual([{ reason: 'preflight_failed', mode: 'podman', image: 'team/agent' }]);
    expect(run.stderr).toContain('the program `podman` is not on the PATH');
    expect(docker.calls()).toEqual([]);
  });

  test.each(['', 'Docker', 'lxc'])('refuses the sandbox %j', async (mode) => {
    const run = await launch([`--sandbox=${mode}`, '--', 'tool']);
    expect(run).toMatchObject({ code: 2, calls: [] });
    expect(run.stderr).toContain('use docker, podman or none');
  });

  test.each([['auto'], ['off']])('with %s, nothing runs that cannot be recorded', async (value) => {
    const argv = ['launch', `--sandbox-proxy=${value}`, '--sandbox=none', '--', 'tool'];
    const run = await runCli(home, argv, {
      env: docker.env(),
      answer: () => {
        throw new TypeError('fetch failed', { cause: { code: 'ECONNREFUSED' } });
      },
    });
    expect(run.code).toBe(3);
    expect(docker.calls()).toEqual([]);
  });

  test('refuses every launch without a sidecar', async () => {
    home.write('run.json', '{}');
    const runs = await Promise.all([launch(['--', 'tool']), launch(['--sandbox-proxy=off', '--', 'tool'])]);
    expect(runs.map(({ code }) => code)).toEqual([3, 3]);
    expect(docker.calls()).toEqual([]);
  });
});

const refusedEvent = (host: string): object =>
  storedEvent({ 'svc.proxy.upstream.host': host, 'svc.proxy.reason': 'egress_host_not_allowed' });

describe('a launch with the proxy', () => {
  beforeEach(async () => {
    const facts = { imageId: IMAGE_ID, agentUser: 'dev', uid: 1000, gid: 1000, home: '/home/dev' };
    const store = { layout: 'debian', hasJava: false, hasCertutil: false } as const;
    const helpers = {
      contractVersion: '1',
      entry: '/usr/local/bin/start',
      stepRunner: '/x',
      mcpNode: null,
      stepsRefused: null,
    } as const;
    await imageChecksIn(home.path, expect.unreachable).keep({ ...facts, ...store, ...helpers });
  });

  test('has a session with its owner, engine, image and unsealed credentials', async () => {
    const unsealed = { env: 'DB', reference: 'vault://team/db', host: 'db.example.com', reason: 'no HTTP' };
    const argv = ['--egress=sealed', '--ttl=1h', '--name=demo', '--unsealed'];
    const run = await launch([...argv, 'DB=vault://team/db,host=db.example.com,reason=no HTTP', '--', 'tool']);
    expect([run.code, run.stderr]).toEqual([5, '']);
    expect(listCalls(run.calls)).toEqual([
      'GET /v1/me',
      'POST /v1/sandbox-proxy/sessions',
      'POST /v1/sandbox-proxy/unsealed',
      'PUT /v1/sandbox-proxy/sessions/ses_1/container',
      'POST /v1/sandbox-proxy/sessions/ses_1/listener',
      'DELETE /v1/sandbox-proxy/sessions/ses_1',
      'GET /v1/audit-events',
    ]);
    const bodies = run.calls.map(({ body }) => body);
    const runtime = { program: 'docker', endpoint: docker.endpoint };
    const about = { image: 'team/agent', image_id: IMAGE_ID, runtime, detached: false, egress: 'sealed' };
    expect(bodies.slice(1, 5)).toEqual([
      {
        folder: home.path,
        name: 'demo',
        ttl_seconds: 3600,
        min_policy_version: 7,
        owner: { pid: process.pid, started: expect.any(String) },
        allowed_hosts: [],
        named_hosts: [],
        sandbox: { mode: 'docker', ...about, unsealed: [unsealed] },
      },
      { session_id: 'ses_1', ...unsealed },
      { container_id: CONTAINER_ID },
      { pid: 4242 },
    ]);
  });

  test('has the hosts of --allow and of its folder, and only what was typed may be private', async () => {
    home.write(
      'allowed_hosts.json',
      JSON.stringify({ version: 1, folders: { [realpathSync(home.path)]: ['b.test'] } }),
    );
    const flags = ['--egress=sealed', '--allow', 'A.test.', '--allow=*.C.test'];
    const run = await launch([...flags, '--', 'tool']);
    expect([run.code, run.stderr]).toEqual([5, '']);
    expect(run.calls[1]?.body).toMatchObject({
      sandbox: { egress: 'sealed' },
      allowed_hosts: ['*.c.test', 'b.test'],
      named_hosts: ['a.test'],
    });
    const shared = await launch(['--egress=sealed,public', '--', 'tool']);
    expect(shared.calls[1]?.body).toMatchObject({ sandbox: { egress: 'sealed,public' } });
    expect(shared.calls[1]?.body).not.toHaveProperty('allowed_hosts');
    const named = await launch(['--egress=sealed,public', '--allow', 'A.test.', '--', 'tool']);
    expect(named.calls[1]?.body).toMatchObject({ allowed_hosts: [], named_hosts: ['a.test'] });
    const pattern = await launch(['--egress=sealed,public', '--allow=*.a.test', '--', 'tool']);
    expect([pattern.code, pattern.stderr]).toEqual([2, expect.stringContaining('name a private one exactly')]);
    expect(docker.creation()?.HostConfig['NetworkMode']).toBe('none');
  });

  test.each(['open', 'sealed', 'sealed,public'])('with --egress=%s has the hosts of --plain-http', async (egress) => {
    home.write(
      'allowed_hosts.json',
      JSON.stringify({ version: 1, folders: { [realpathSync(home.path)]: ['http://b.test'] } }),
    );
    const run = await launch([`--egress=${egress}`, '--plain-http', 'A.test.', '--', 'tool']);
    expect(run.calls[1]?.body).toMatchObject({ plain_http_hosts: ['b.test'], plain_http_named: ['a.test'] });
    expect(JSON.stringify(run.calls[1]?.body)).not.toMatch(/"(?:allowed|named)_hosts":\[[^\]]/);
  });

  test.each(['open', 'sealed', 'sealed,public'])('with --egress=%s has the hosts at other ports', async (egress) => {
    const folders = { [realpathSync(home.path)]: ['b.test:8443'] };
    home.write('allowed_hosts.json', JSON.stringify({ version: 1, folders }));
    const run = await launch([`--egress=${egress}`, '--allow', 'A.test.:8443', '--', 'tool']);
    const [hosts, named] = [['b.test:8443'], ['a.test:8443']];
    const fields = egress === 'sealed' ? ['allowed_hosts', 'named_hosts'] : ['other_port_hosts', 'other_port_named'];
    const body = Object.entries(run.calls[1]?.body ?? {}).filter(([name]) => /^(?:allowed|named|other)/.test(name));
    expect(Object.fromEntries(body)).toEqual({ [fields[0] ?? '']: hosts, [fields[1] ?? '']: named });
  });

  test('uses the secrets of --use, before those of its confirmed folder', async () => {
    const text = 'secrets = ["user/home"]';
    home.write('.svc.toml', text);
    const sha256 = createHash('sha256').update(text).digest('hex');
    const folder = realpathSync(home.path);
    home.write('trusted_folders.json', JSON.stringify({ version: 1, folders: { [folder]: { sha256 } } }));
    const ofFolder = { reference: 'vault://user/home', by: 'folder', from: folder };
    expect(used(await launch(['--', 'tool']))).toEqual([ofFolder]);
    expect(used(await launch(['--use', 'user/work', '--', 'tool']))).toEqual([
      { reference: 'vault://user/work', by: 'option' },
      ofFolder,
    ]);
    home.write('.svc.toml', `${text}# changed`);
    const changed = await launch(['--', 'tool']);
    expect([changed.code, changed.stderr]).toEqual([
      125,
      expect.stringContaining('it was changed: nothing was started'),
    ]);
  });

  test('asks for less of the secrets that --scope names, and refuses one that is none', async () => {
    const run = await launch(['--scope', 'ci/github:repositories=website', '--', 'tool']);
    expect(Reflect.get(Object(run.calls[1]?.body), 'scopes')).toEqual([
      { reference: 'vault://ci/github', narrowing: { repositories: ['website'] } },
    ]);
    const refused = await launch(['--scope', 'ci/github:branches=main', '--', 'tool']);
    expect([refused.code, refused.stderr]).toEqual([125, expect.stringContaining('"branches"')]);
  });

  test('passes on how many requests may get a credential, and refuses what is no limit', async () => {
    const limits = ['--requests-per-minute', '60', '--requests-per-day', '2000', '--bytes-per-day', '500MB'];
    const run = await launch([...limits, 'tool']);
    const expected = { requests_per_minute: 60, requests_per_day: 2000, bytes_per_day: 500_000_000 };
    expect(run.calls[1]?.body).toMatchObject(expected);
    const size = await launch(['--bytes-per-day=much', '--', 'tool']);
    expect([size.code, size.stderr]).toEqual([125, expect.stringContaining('--bytes-per-day must be a whole number')]);
    const refused = await launch(['--requests-per-day', 'many', '--', 'tool']);
    expect([refused.code, refused.stderr]).toEqual([
      125,
      expect.stringContaining('--requests-per-day must be a whole number'),
    ]);
    const off = await launch(['--sandbox-proxy=off', '--requests-per-day', '5', '--', 'tool']);
    expect([off.code, off.stderr]).toEqual([2, expect.stringContaining('--requests-per-day needs the proxy')]);
  });

  test.each(['--sandbox=none', '--sandbox-proxy=off'])('refuses --scope with %s', async (off) => {
    const run = await launch([off, '--scope', 'ci/github:repositories=website', '--', 'tool']);
    expect([run.code, run.stderr]).toEqual([2, expect.stringContaining('--scope needs the proxy')]);
  });

  test.each(['--sandbox=none', '--sandbox-proxy=off'])('refuses --use with %s, which uses no account', async (off) => {
    const run = await launch([off, '--use', 'user/work', '--', 'tool']);
    expect([run.code, run.stderr]).toEqual([2, expect.stringContaining('--use needs the proxy')]);
    expect(isNoneMade()).toBe(true);
  });

  test('does not start if the list of its folder cannot be read', async () => {
    home.write('allowed_hosts.json', '{"version":1,"folders":{"/":["*"]}}');
    const run = await launch(['--egress=sealed', '--', 'tool']);
    expect(run.code).toBe(125);
    expect(run.stderr).toContain('is damaged: folders');
    expect(isNoneMade()).toBe(true);
  });

  test('names at its end what was refused, and the command that proposes it', async () => {
    const items = [refusedEvent('a.test'), refusedEvent('b.test'), refusedEvent('a.test')];
    const answer: Answer = (call) =>
      call.url.pathname === '/v1/audit-events' ? { status: 200, body: { items, next_cursor: null } } : servers(call);
    const run = await launch(['--egress=sealed', '--', 'tool'], { answer });
    expect([run.code, run.stderr]).toEqual([
      5,
      `svc: refused 2 hosts that the agent chose: a.test (2), b.test (1). To allow some of them here: svc allow --from-session ses_1 --folder ${home.path}\n`,
    ]);
  });

  test('names at its end an unbound host that got a placeholder', async () => {
    const items = [storedEvent({ 'svc.proxy.upstream.host': 'z.test', 'svc.proxy.reason': 'placeholder_unbound' })];
    const answer: Answer = (call) =>
      call.url.pathname === '/v1/audit-events' ? { status: 200, body: { items, next_cursor: null } } : servers(call);
    expect((await launch(['--', 'tool'], { answer })).stderr).toMatch(/^svc: bind z\.test\?/);
  });

  test('passes the MCP servers that its agent may use', async () => {
    const run = await launch(['--mcp', 'files', '--mcp=mcp_1', '--', 'tool']);
    expect(run.code).toBe(5);
    expect(run.calls[1]?.body).toMatchObject({ mcp_servers: ['files', 'mcp_1'] });
  });

  test.each(['sealed', 'sealed,public'])(
    'warns of MCP servers, which run outside, with --egress=%s',
    async (egress) => {
      const run = await launch([`--egress=${egress}`, '--mcp=files', '--mcp=wiki', '--', 'tool']);
      expect(run.code).toBe(5);
      expect(run.stderr).toContain('files, wiki run outside the sealed container; svc mcp status NAME shows what');
      expect((await launch(['--mcp=files', '--', 'tool'])).stderr).toBe('');
    },
  );

  test.each(['', 'Files', 'a_b', '../x'])('refuses the MCP server %j', async (name) => {
    const run = await launch([`--mcp=${name}`, '--', 'tool']);
    expect(run).toMatchObject({ code: 2, calls: [] });
    expect(run.stderr).toContain('svc mcp list');
  });

  test('puts neither its token nor a credential on a command line', async () => {
    await launch(['--unsealed', 'DB=vault://team/db,host=db.example.com,reason=no HTTP', '--', 'tool']);
    const lines = docker.uses().flatMap(({ args }) => args);
    expect(lines.filter((word) => word.includes('planted'))).toEqual([]);
    expect(docker.creation()?.Env).toMatchObject({
      SVC_TOKEN: 'planted-token',
      DB: 'planted-unsealed',
      SVC_AGENT_USER: 'dev',
    });
    expect(docker.creation()).toMatchObject({ User: '0', Entrypoint: ['/usr/local/bin/start'] });
  });

  test('prints its session with --detach', async () => {
    docker.on('start', 'exit 0');
    const run = await launch(['--detach', '--', 'tool']);
    expect([run.code, run.stdout]).toEqual([0, 'ses_1\n']);
    expect(listCalls(run.calls).at(-1)).toBe('POST /v1/sandbox-proxy/sessions/ses_1/listener');
  });

  test("continues with the sidecar's policy if the control plane is away", async () => {
    const run = await launch(['--', 'tool'], { answer: controlAway });
    expect(run.code).toBe(5);
    expect(run.stderr).toContain('using the policy that the sidecar has');
  });

  test("prints the sidecar's refusal and leaves no container", async () => {
    const error = { code: 'egress_unavailable', message: 'sealed needs root', request_id: 'r' };
    const answer: Answer = (call) =>
      call.url.pathname.endsWith('/sessions') ? { status: 409, body: { error } } : servers(call);
    const run = await launch(['--egress=sealed', '--', 'tool'], { answer });
    expect(run.code).toBe(125);
    expect(run.stderr).toContain('sealed needs root (409 egress_unavailable)');
    expect(isNoneMade()).toBe(true);
  });
});

describe('the preflight of a launch', () => {
  test('records an image that does not meet the contract, and starts nothing', async () => {
    const run = await launch(['--', 'tool']);
    expect(run.code).toBe(125);
    expect(listCalls(run.calls)).toEqual(['POST /v1/sandbox-proxy/disabled']);
    expect(disabled(run.calls)).toEqual([{ reason: 'preflight_failed', mode: 'docker', image: 'team/agent' }]);
    expect(run.stderr).toContain('bring-your-own-image proxy contract');
    expect(run.stderr).toContain('--sandbox-proxy=off');
    expect(isNoneMade()).toBe(true);
  });

  test('does the same for a missing image and a remote engine', async () => {
    docker.replies('GET /images/*/json', 404, 'no such image');
    const absent = await launch(['--', 'tool']);
    const remote = await launch(['--', 'tool'], { env: { DOCKER_HOST: 'tcp://10.0.0.1:2375' } });
    expect([absent.code, remote.code]).toEqual([125, 125]);
    expect(absent.stderr).toContain('docker pull team/agent');
    expect(remote.stderr).toContain('"tcp://10.0.0.1:2375", not a Unix socket of this machine');
    expect(disabled([...absent.calls, ...remote.calls])).toHaveLength(2);
  });

  test('says how to build an image if none is given', async () => {
    const run = await runCli(home, ['launch', '--', 'tool'], { answer: servers, env: docker.env() });
    expect(run).toMatchObject({ code: 2, calls: [] });
    expect(run.stderr).toContain('svc image build');
  });
});

describe('the mounts of a launch', () => {
  const off = ['--sandbox-proxy=off', '--no-default-mount'];

  test('include the working directory by default, and never the state directory', async () => {
    const run = await runCli(home, ['launch', '--sandbox-proxy=off', '--', 'tool'], {
      answer: servers,
      env: docker.env({ SVC_SANDBOX_IMAGE: 'team/agent' }),
    });
    // The test's working directory is the state directory itself.
    expect(run.code).toBe(125);
    expect(run.stderr).toContain('the working directory cannot be mounted');
    expect(run.stderr).toContain('--no-default-mount');
    expect(isNoneMade()).toBe(true);
  });

  test.each(['sidecar', 'escape/sidecar', '..', '/'])('%s is refused, and nothing starts', async (source) => {
    symlinkSync(home.path, join(home.path, 'escape'));
    const run = await launch([...off, '--mount', `${source}:/data`, '--', 'tool']);
    expect(run.code).toBe(125);
    expect(run.stderr).toContain('--mount: the source');
    expect([isNoneMade(), run.calls]).toEqual([true, []]);
  });

  test('refuses another state directory, an external database file, and the target of a linked key file', async () => {
    const other = join(docker.folder, 'other-home');
    const disk = join(docker.folder, 'disk');
    for (const folder of [other, disk, join(home.path, 'sidecar')]) mkdirSync(folder, { recursive: true });
    for (const name of ['control.db', 'identity.json']) writeFileSync(join(disk, name), '');
    symlinkSync(join(disk, 'identity.json'), join(home.path, 'sidecar', 'identity.json'));
    const isMountRefused = async (source: string, env: Record<string, string> = {}): Promise<boolean> => {
      const run = await launch(['--home', home.path, ...off, '--mount', `${source}:/data`, '--', 'tool'], { env });
      return run.code === 125 && run.stderr.includes('the state directory of svc') && isNoneMade();
    };
    // These tests use --home; the environment may name another state directory.
    expect(await isMountRefused(other, { SVC_HOME: other })).toBe(true);
    expect(await isMountRefused(disk)).toBe(true);
    rmSync(join(home.path, 'sidecar', 'identity.json'));
    for (const url of [`file:${join(disk, 'control.db')}`, `file://localhost${disk}/control%2Edb?mode=rw`]) {
      expect([url, await isMountRefused(disk, { SVC_DATABASE_URL: url })]).toEqual([url, true]);
    }
    expect(await isMountRefused(disk)).toBe(false);
  });

  test('refuses engine sockets, even of other engines', async () => {
    const run = await launch([...off, '--mount', `${docker.socket}:/data`, '--', 'tool']);
    expect(run.stderr).toContain('a container engine');
    expect(isNoneMade()).toBe(true);
  });

  test('accepts other folders, with links resolved', async () => {
    mkdirSync(join(docker.folder, 'project'));
    symlinkSync(join(docker.folder, 'project'), join(home.path, 'link'));
    const run = await launch([...off, '--mount', 'link:/data:ro', '--', 'tool']);
    expect(run.code).toBe(5);
    expect(findCreate()?.args).toContain(`type=bind,source=${join(docker.folder, 'project')},target=/data,readonly`);
  });
});

describe('the variables of a launch', () => {
  const off = ['--sandbox-proxy=off', '--'];

  test("take the caller's values and never go on a command line", async () => {
    const run = await launch(['--env', 'MODE', ...off, 'tool'], { env: { MODE: 'planted-value' } });
    expect(run.code).toBe(5);
    const use = findCreate();
    expect(use?.args.join(' ')).toContain('--env MODE --');
    expect(use?.args.join(' ')).not.toContain('planted-value');
    expect(use?.env['MODE']).toBe('planted-value');
  });

  test('refuses a stored secret and says how to seal it', async () => {
    const run = await launch(['--env', 'TOKEN', ...off, 'tool'], { env: { TOKEN: STORED } });
    expect(run.code).toBe(125);
    expect(run.stderr).toContain('--env TOKEN holds the stored secret vault://team/x');
    expect(run.stderr).toContain('svc binding add');
    expect(run.stderr).not.toContain(STORED);
    expect([isNoneMade(), disabled(run.calls)]).toEqual([true, []]);
  });

  test('refuses values that cannot be checked', async () => {
    const run = await launch(['--env', 'MODE', ...off, 'tool'], { env: { MODE: 'x' }, answer: controlAway });
    expect(run.code).toBe(3);
    expect(isNoneMade()).toBe(true);
  });

  test('refuses a value on the command line without repeating it', async () => {
    const run = await launch(['--env', 'MODE=planted-value', ...off, 'tool']);
    expect(run.code).toBe(2);
    expect(run.stderr).toContain('give only the name');
    expect(run.stderr).not.toContain('planted-value');
  });

  test('refuses a variable that is not set, and one given twice', async () => {
    const unset = await launch(['--env', 'NOT_SET', ...off, 'tool']);
    const unsealed = 'MODE=vault://a/b,host=h.example.com,reason=r';
    const twice = await launch(['--env', 'MODE', '--unsealed', unsealed, '--', 'tool'], { env: { MODE: 'x' } });
    expect([unset.code, twice.code]).toEqual([2, 2]);
    expect(unset.stderr).toContain('--env NOT_SET is not set in your environment');
    expect(twice.stderr).toContain('"MODE" is given twice');
  });
});

describe('what needs the proxy', () => {
  test.each([
    ['--egress=sealed'],
    ['--egress=sealed,public'],
    ['--relay'],
    ['--mcp=files'],
    ['--ttl=1h'],
    ['--unsealed=A=vault://a/b,host=h.example.com,reason=r'],
  ])('%s is refused without the proxy', async (option) => {
    const run = await launch([option, '--sandbox-proxy=off', '--', 'tool']);
    expect(run).toMatchObject({ code: 2, calls: [] });
    expect(run.stderr).toContain('needs the proxy, but --sandbox-proxy=off turns it off');
  });

  test.each([
    ['--egress=half', 'use open, sealed or sealed,public'],
    ['--allow=a.test', '--allow needs --egress=sealed: with --egress=open every host can be reached'],
    ['--workdir=work', 'use an absolute path'],
    ['--name=-x', 'letters, digits'],
    ['--image=--privileged', 'use a reference'],
    ['--ttl=soon', '--ttl'],
  ])('refuses %s', async (option, why) => {
    const run = await launch([option, '--', 'tool']);
    expect(run).toMatchObject({ code: 2, calls: [] });
    expect(run.stderr).toContain(why);
  });
});

test('options after the command belong to it, even without --', async () => {
  const run = await launch(['--sandbox-proxy', 'off', 'tool', '--json', '--name', 'x']);
  expect(run.code).toBe(5);
  const args = findCreate()?.args ?? [];
  expect(args.slice(args.indexOf('team/agent'))).toEqual(['team/agent', 'tool', '--json', '--name', 'x']);
});

test('a detached launch without the proxy prints its container id', async () => {
  docker.replies(`POST /containers/${CONTAINER_ID}/start`, 204);
  const run = await launch(['--detach', '--sandbox-proxy=off', '--', 'tool']);
  expect(run).toMatchObject({ code: 0, stdout: `${CONTAINER_ID}\n` });
  expect(docker.calls()).toEqual(['GET /images/team/agent/json', 'create', `POST /containers/${CONTAINER_ID}/start`]);
  expect(IMAGE_ID).toContain('sha256');
});
