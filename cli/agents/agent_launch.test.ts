import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { refreshPlaceholder } from '../../shared/connect/token_request.ts';
import { imageChecksIn } from '../../sandbox/contract/image_contract_cache.ts';
import { homeLabelOf } from '../../sandbox/engine/container_labels.ts';
import { FakeDocker, IMAGE_ID, scriptVolumes, scriptWorkingEngine } from '../../sandbox/launch/testing/fake_docker.ts';
import { FakeVault } from '../testing/fake_vault.ts';
import { runCli, TestHome, type Answer, type RunOptions, type RunResult } from '../testing/run_cli.ts';
import { CONTAINER_SESSION as SESSION, ME } from '../testing/session_samples.ts';

const KEY = 'sk-ant-api03-a-real-key-of-the-person';

let home: TestHome;
let docker: FakeDocker;
let vault: FakeVault;
let folder: string;
beforeEach(async () => {
  isAway = false;
  home = new TestHome();
  vault = new FakeVault();
  folder = mkdtempSync(join(tmpdir(), 'svc-project-'));
  // Otherwise svc warns that the agent of the image may not write there.
  chmodSync(folder, 0o777);
  docker = scriptWorkingEngine(new FakeDocker(), 5);
  await docker.listen();
  const facts = { imageId: IMAGE_ID, agentUser: 'dev', uid: 1000, gid: 1000, home: '/home/dev' };
  const store = { layout: 'debian', hasJava: false, hasCertutil: false } as const;
  const helpers = {
    contractVersion: '1',
    entry: '/start',
    stepRunner: '/x',
    mcpNode: null,
    stepsRefused: null,
  } as const;
  await imageChecksIn(home.path, expect.unreachable).keep({ ...facts, ...store, ...helpers });
  await svc(['login', 'claude', '--stdin'], { stdin: KEY });
});
afterEach(async () => {
  home.remove();
  rmSync(folder, { recursive: true, force: true });
  await docker.remove();
});

/** As if the person had also a login that is not used here. */
const OTHER_LOGIN = { env: 'CLAUDE_CODE_OAUTH_TOKEN', value: 'placeholder-of-the-other-login' };

/** The placeholder of the agent's own login. */
const OWN = `sk-ant-oat01-${'p'.repeat(93)}AA`;
/** Stands for it in a table: it has no variable. */
const OWN_LOGIN = {};

const OF_OTHERS = 'a-credential-of-another-program';

/** As if the person had imported the login of Claude Code, whose file also has a credential of another program. */
function importLogin(): void {
  const login = {
    id: `bnd_${'0'.repeat(26)}`,
    credential_ref: 'vault://connectors/login/claude',
    sentinel: { value: OWN },
  };
  vault.bindings.push({ ...vault.bindings[0], ...login });
  const claudeAiOauth = { accessToken: OWN, refreshToken: refreshPlaceholder(OWN), scopes: ['user:inference'] };
  mkdirSync(join(home.path, '.claude'));
  home.write(
    '.claude/.credentials.json',
    JSON.stringify({ claudeAiOauth: { ...claudeAiOauth, other: OF_OTHERS }, mcpOAuth: OF_OTHERS }),
  );
}

/** The files that the container prepares. */
const wantedHome = () =>
  z
    .object({ files: z.array(z.looseObject({ write: z.string() })), placeholders: z.array(z.string()) })
    .loose()
    .parse(JSON.parse(Reflect.get(created().env, 'SVC_AGENT_HOME') ?? ''));

let isAway: boolean;
const answer: Answer = (call) => {
  const path = call.url.pathname;
  if (isAway && !path.startsWith('/v1/sandbox-proxy/') && path !== '/v1/me') throw new TypeError('fetch failed');
  if (path === '/v1/me') return { status: 200, body: ME };
  if (path === '/v1/audit-events') return { status: 200, body: { items: [], next_cursor: null } };
  if (path.endsWith('/unsealed')) return { status: 200, body: { value: 'planted-unsealed' } };
  if (!path.startsWith('/v1/sandbox-proxy/')) return vault.answer(call);
  const sentinels = [{ env: 'ANTHROPIC_API_KEY', value: placeholder() }, OTHER_LOGIN];
  return call.method === 'POST' && path.endsWith('/sessions')
    ? { status: 201, body: { ...SESSION, sentinels } }
    : { status: 204 };
};
const svc = (args: readonly string[], options: RunOptions = {}): Promise<RunResult> => {
  vault.beginCommand();
  return runCli(home, args, { answer, workingDirectory: folder, ...options, env: { ...docker.env(), ...options.env } });
};
const launch = (...args: readonly string[]): Promise<RunResult> => svc(['launch', '--image', 'team/agent', ...args]);
const placeholder = (): string => String(Reflect.get(vault.bindings[0]?.['sentinel'] ?? {}, 'value'));
/** The container that was made last: its command, its environment, and the volume with the agent's home. */
const created = () => {
  const creation = docker.creation();
  const volume = creation?.HostConfig.Mounts.find(({ Source }) => Source.startsWith('svc-home-'));
  return { command: creation?.Cmd ?? [], env: creation?.Env ?? {}, volume: volume?.Source ?? '' };
};
/** HOME and FOLDER stand for what only a test knows. */
const LABELS = { 'svc.home': 'HOME', 'svc.agent': 'claude', 'svc.folder': '"FOLDER"' };

describe('svc launch NAME', () => {
  test('runs the agent with its placeholder, in a home of its own, and counts its requests', async () => {
    const run = await launch('claude', '-p', 'hi', '--quiet');
    expect(run).toMatchObject({ code: 5 });
    expect(run.stderr).toBe('svc: 0 requests, 0 with a credential, 0 refused; svc audit list --session ses_1\n');
    const { command, env, volume } = created();
    expect(command.slice(-4)).toEqual(['claude', '-p', 'hi', '--quiet']);
    expect(env).toMatchObject({ ANTHROPIC_API_KEY: placeholder(), DISABLE_AUTOUPDATER: '1' });
    const ofHome = { Type: 'volume', Source: volume, Target: '/home/dev' };
    expect(docker.creation()?.HostConfig.Mounts).toContainEqual(ofHome);
    expect(docker.bodiesOf('POST /volumes/create')).toEqual([
      {
        Name: volume,
        Labels: {
          'svc.home': homeLabelOf(home.path),
          'svc.agent': 'claude',
          'svc.folder': JSON.stringify(folder),
        },
      },
    ]);
  });

  test('hands out the placeholder of no other login of the agent, and nothing that it would prefer', async () => {
    await launch('claude');
    const { env } = created();
    expect(env).toHaveProperty('ANTHROPIC_API_KEY');
    expect(env).not.toHaveProperty('CLAUDE_CODE_OAUTH_TOKEN');
    expect(Object.values(env)).not.toContain(OTHER_LOGIN.value);
  });

  test.each([
    ['--env', 'ANTHROPIC_AUTH_TOKEN'],
    ['--unsealed', 'CLAUDE_CODE_OAUTH_TOKEN=vault://user/anthropic,host=api.anthropic.com,reason=x'],
  ])('refuses %s for a variable that it would prefer to its placeholder', async (option, value) => {
    const run = await svc(['launch', '--image', 'team/agent', option, value, 'claude'], {
      env: { ANTHROPIC_AUTH_TOKEN: 'planted' },
    });
    expect(run).toMatchObject({ code: 2, calls: [] });
    expect(run.stderr).toContain('would use it instead of its placeholder');
    expect(docker.creation()).toBeNull();
  });

  test("uses the agent's own login, whose file it writes with placeholders and nothing else of it", async () => {
    importLogin();
    expect((await launch('claude')).stderr).toContain('0 refused');
    const { env } = created();
    expect(env).not.toHaveProperty('ANTHROPIC_API_KEY');
    expect(env).not.toHaveProperty('CLAUDE_CODE_OAUTH_TOKEN');
    const [file] = wantedHome().files;
    expect(file).toEqual({
      path: '~/.claude/.credentials.json',
      write: 'login',
      json: {
        claudeAiOauth: {
          accessToken: OWN,
          refreshToken: refreshPlaceholder(OWN),
          expiresAt: expect.any(Number),
          scopes: ['user:inference'],
        },
      },
    });
    expect(wantedHome()).toMatchObject({ placeholders: [OWN] });
    expect(JSON.stringify(env)).not.toContain(OF_OTHERS);
  });

  test("uses another login than the agent's own if that is wanted, or if the person's file does not have it", async () => {
    importLogin();
    await launch('--login', 'key', 'claude');
    expect(created().env).toMatchObject({ ANTHROPIC_API_KEY: placeholder() });
    expect(wantedHome()).toMatchObject({ files: [{ path: '~/.claude.json' }, {}], placeholders: [placeholder()] });
    rmSync(join(home.path, '.claude', '.credentials.json'));
    rmSync(join(docker.folder, 'uses'));
    await launch('claude');
    expect(created().env).toMatchObject({ ANTHROPIC_API_KEY: placeholder() });
    const refused = await launch('--login', 'account', 'claude');
    expect(refused).toMatchObject({ code: 125 });
    expect(refused.stderr).toContain('the own login of Claude Code is not in svc, or its file has no placeholders');
  });

  test.each([
    [[], OWN_LOGIN],
    [['--login', 'account'], OWN_LOGIN],
    [['--login', 'key'], { ANTHROPIC_API_KEY: expect.any(String) }],
    [['--login', 'subscription'], { CLAUDE_CODE_OAUTH_TOKEN: OTHER_LOGIN.value }],
  ] as const)('uses with %j what the session has, if the control plane is away', async (flags, expected) => {
    importLogin();
    isAway = true;
    await launch(...flags, 'claude');
    const { env } = created();
    expect(env).toMatchObject(expected === OWN_LOGIN ? {} : expected);
    expect(wantedHome().files.some(({ write }) => write === 'login')).toBe(expected === OWN_LOGIN);
    expect(wantedHome().placeholders).toHaveLength(1);
    const names = ['ANTHROPIC_API_KEY', 'CLAUDE_CODE_OAUTH_TOKEN'];
    expect(names.filter((name) => name in env)).toEqual(Object.keys(expected));
  });

  test('reaches, sealed, also the hosts of its profile', async () => {
    const run = await launch('--egress=sealed', '--allow', 'docs.example.com', 'claude');
    const { body } = run.calls.find(({ method, url }) => method === 'POST' && url.pathname.endsWith('/sessions')) ?? {};
    expect(body).toMatchObject({ sandbox: { egress: 'sealed' }, named_hosts: ['docs.example.com'] });
    expect(Reflect.get(Object(body), 'allowed_hosts')).toContain('platform.claude.com');
  });

  test('uses the account that --use chooses, and the placeholder of no other one', async () => {
    const first = placeholder();
    const work = { id: `bnd_${'1'.repeat(26)}`, credential_ref: 'vault://user/anthropic-work' };
    const sentinel = { value: 'sk-ant-api03-placeholder-of-work', env: 'ANTHROPIC_API_KEY' };
    vault.bindings.push({ ...vault.bindings[0], ...work, sentinel });
    vault.values['user/anthropic-work'] = 'a-key';
    const run = await launch('--use', 'user/anthropic-work', 'claude');
    const { body } = run.calls.find(({ method, url }) => method === 'POST' && url.pathname.endsWith('/sessions')) ?? {};
    expect(body).toMatchObject({ use_secrets: [{ reference: 'vault://user/anthropic-work', by: 'option' }] });
    expect(created().env).toMatchObject({ ANTHROPIC_API_KEY: sentinel.value });
    expect(wantedHome().placeholders).toEqual([sentinel.value]);
    expect(JSON.stringify(wantedHome())).not.toContain(first);
  });

  test('prepares the files of the home in the container, with placeholders only', async () => {
    await launch('claude');
    const { command } = created();
    expect(wantedHome()).toMatchObject({
      files: [
        { path: '~/.claude.json', json: { customApiKeyResponses: { approved: [placeholder().slice(-20)] } } },
        { json: { projects: { '/home/agent/workspace': { hasTrustDialogAccepted: true } } } },
      ],
      credentialFiles: [{ path: '~/.claude/.credentials.json', tokens: null }],
      placeholders: [placeholder()],
    });
    // Other users of the machine may list the arguments of processes.
    const listed = JSON.stringify([docker.uses().map(({ args }) => args), command]);
    expect(listed).not.toContain(placeholder());
    expect(listed).not.toContain(KEY);
    expect(command.at(-1)).toBe('claude');
  });

  test('uses the same home in the same folder, and another one elsewhere', async () => {
    const volumes = new Set<string>();
    for (const workingDirectory of [folder, folder, join(folder, 'other')]) {
      mkdirSync(workingDirectory, { recursive: true });
      rmSync(join(docker.folder, 'uses'), { force: true });
      await svc(['launch', '--image', 'team/agent', 'claude'], { workingDirectory });
      volumes.add(created().volume);
    }
    expect(volumes.size).toBe(2);
    expect(JSON.parse(readFileSync(join(home.path, 'agent_homes.json'), 'utf8'))).toEqual({
      id: expect.stringMatching(/^[0-9a-f]{32}$/),
      endpoints: [docker.endpoint],
    });
  });

  test('uses another home for another project, mount in the home, or image, wherever the command was given', async () => {
    const other = join(folder, 'other');
    mkdirSync(other);
    const volumes: string[] = [];
    for (const options of [
      [],
      ['--mount', `${other}:/home/agent/workspace`],
      ['--mount', `${folder}:/home/agent/workspace:ro`],
      ['--no-default-mount'],
      ['--mount', `${other}:/home/dev/data`],
      ['--image', 'team/other'],
      ['--mount', `${other}:/data`],
    ]) {
      rmSync(join(docker.folder, 'uses'), { force: true });
      await launch(...options, 'claude');
      volumes.push(created().volume);
    }
    expect(volumes).not.toContain('');
    expect(volumes.pop()).toBe(volumes[0]);
    expect(new Set(volumes).size).toBe(volumes.length);
    rmSync(join(docker.folder, 'uses'), { force: true });
    await svc(['launch', '--image', 'team/agent', 'claude'], { workingDirectory: other });
    expect(created().volume).toBe(volumes[1]);
  });

  test('says that the home may keep what it was given in plaintext', async () => {
    const run = await launch('--unsealed', 'DB=vault://team/db,host=db.example.com,reason=x', 'claude');
    expect(run.stderr).toContain('Claude Code could write DB into its home, which stays');
    expect(run.stderr).not.toContain('planted-unsealed');
  });

  test('uses another home in a state directory that was made anew', async () => {
    await launch('claude');
    const before = created().volume;
    rmSync(join(docker.folder, 'uses'));
    rmSync(join(home.path, 'agent_homes.json'));
    await launch('claude');
    expect(created().volume).toMatch(/^svc-home-claude-/);
    expect(created().volume).not.toBe(before);
  });

  test.each([
    ['without its labels', { Driver: 'local', Labels: null, Options: null }],
    ['of another driver', { Driver: 'nfs', Labels: LABELS, Options: null }],
    ['that is a folder of the machine', { Driver: 'local', Labels: LABELS, Options: { o: 'bind', device: '/' } }],
    ['for another folder', { Driver: 'local', Labels: { ...LABELS, 'svc.folder': '"/other"' }, Options: {} }],
  ])('does not use as its home a volume %s', async (_what, volume) => {
    const text = JSON.stringify(volume)
      .replaceAll('HOME', homeLabelOf(home.path))
      .replace('FOLDER', JSON.stringify(folder).slice(1, -1));
    scriptVolumes(docker, () => JSON.parse(text));
    const run = await launch('claude');
    expect(run.code).toBe(125);
    expect(run.stderr).toMatch(/the volume svc-home-claude-\w+ is there already, and svc did not make it/);
    expect(docker.creation()).toBeNull();
  });

  test('refuses what is for building an image, for an image of your own', async () => {
    for (const option of [['--base', 'node:24'], ['--rebuild']]) {
      const run = await launch(...option, 'claude');
      expect(run).toMatchObject({ code: 2, calls: [] });
      expect(run.stderr).toContain('is for the image that svc makes, and --image names another');
    }
  });

  test('refuses a mount in a folder of the home, whose place an agent could choose', async () => {
    const run = await launch('--mount', `${folder}:/home/dev/.config/gh`, 'claude');
    expect(run.code).toBe(2);
    expect(run.stderr).toContain("/home/dev/.config/gh is in a folder of the agent's home, which an agent can replace");
    expect(docker.creation()).toBeNull();
  });

  test('refuses a mount over the home', async () => {
    const run = await launch('--mount', `${folder}:/home/dev`, 'claude');
    expect(run.code).toBe(2);
    expect(run.stderr).toContain('/home/dev is the home of the agent, which svc keeps in a volume');
    expect(docker.creation()).toBeNull();
  });

  test.each(['--sandbox-proxy=off', '--sandbox=none'])('needs the proxy: not with %s', async (flag) => {
    const args =
      flag === '--sandbox=none' ? ['launch', flag, 'claude'] : ['launch', '--image', 'team/agent', flag, 'claude'];
    expect(await svc(args)).toMatchObject({ code: 2, calls: [] });
    expect(docker.calls()).toEqual([]);
  });

  test('runs a command of that name after --, and takes no option of agents for it', async () => {
    expect(await launch('--', 'claude', 'x')).toMatchObject({ code: 5, stderr: '' });
    expect(created().command.slice(-3)).toEqual(['--', 'claude', 'x']);
    expect(created().volume).toBe('');
    const run = await launch('--rebuild', '--', 'claude');
    expect(run).toMatchObject({ code: 2 });
    expect(run.stderr).toContain('--rebuild is for an agent, and no agent is named');
  });

  test('does not use the image that a setting names for commands', async () => {
    docker.replies('GET /images/*/json', 404, 'none').on('pull', 'echo no such host >&2; exit 1');
    const run = await svc(['launch', '--base', 'localhost/none', 'claude'], {
      env: { SVC_SANDBOX_IMAGE: 'team/agent' },
    });
    expect(run.code).toBe(125);
    expect(run.stderr).toContain('the base image localhost/none could not be fetched');
    expect(docker.creation()).toBeNull();
  });
});

const volume = (name: string, agent: string, where: string): object => ({
  Name: name,
  Driver: 'local',
  Labels: { 'svc.agent': agent, 'svc.folder': JSON.stringify(where) },
  Options: null,
});
const removed = (): readonly string[] => docker.calls().filter((call) => call.startsWith('DELETE '));

describe('the homes of agents', () => {
  beforeEach(() => {
    home.write('agent_homes.json', JSON.stringify({ endpoints: [docker.endpoint] }));
    const volumes = [volume('svc-home-claude-1', 'claude', folder), volume('svc-home-codex-2', 'codex', '/a\nb')];
    docker.replies('GET /volumes', 200, { Volumes: volumes });
    for (const name of ['svc-home-claude-1', 'svc-home-codex-2']) docker.replies(`DELETE /volumes/${name}`, 204);
  });

  test('are listed, those of this state directory', async () => {
    const run = await svc(['agents', 'homes', '--json']);
    expect(JSON.parse(run.stdout)).toEqual({
      homes: [
        { volume: 'svc-home-claude-1', agent: 'claude', folder },
        { volume: 'svc-home-codex-2', agent: 'codex', folder: '/a\nb' },
      ],
    });
    const filters = JSON.stringify({ label: [`svc.home=${homeLabelOf(home.path)}`, 'svc.agent'] });
    expect(docker.calls()[0]).toBe(`GET /volumes?filters=${encodeURIComponent(filters)}`);
  });

  test('are removed by name, and --forget removes the one of this folder', async () => {
    expect(await svc(['agents', 'homes', '--forget', 'svc-home-other'])).toMatchObject({ code: 1 });
    expect(removed()).toEqual([]);
    expect(await svc(['launch', '--forget', 'claude'])).toMatchObject({ code: 0, calls: [] });
    expect(removed()).toEqual(['DELETE /volumes/svc-home-claude-1']);
    expect((await svc(['launch', '--forget', 'codex'])).stdout).toContain('has no home for');
    await svc(['agents', 'homes', '--forget-all']);
    expect(removed()).toHaveLength(3);
  });

  test('that a container uses are not removed, and the engine says why', async () => {
    docker.replies('DELETE /volumes/svc-home-claude-1', 409, 'volume is in use');
    const run = await svc(['launch', '--forget', 'claude']);
    expect(run.code).toBe(1);
    expect(run.stderr).toContain('volume is in use');
  });
});
