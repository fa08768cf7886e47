import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { imageChecksIn } from '../../sandbox/contract/image_contract_cache.ts';
import { homeLabelOf } from '../../sandbox/engine/container_labels.ts';
import { FakeDocker, IMAGE_ID, scriptWorkingEngine } from '../../sandbox/launch/testing/fake_docker.ts';
import { FakeVault } from '../testing/fake_vault.ts';
import { runCli, TestHome, type Answer, type RunOptions, type RunResult } from '../testing/run_cli.ts';
import { CONTAINER_SESSION as SESSION, ME } from '../testing/session_samples.ts';

const KEY = 'sk-ant-api03-a-real-key-of-the-person';

let home: TestHome;
let docker: FakeDocker;
let vault: FakeVault;
let folder: string;
beforeEach(async () => {
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

const answer: Answer = (call) => {
  const path = call.url.pathname;
  if (path === '/v1/me') return { status: 200, body: ME };
  if (path === '/v1/audit-events') return { status: 200, body: { items: [], next_cursor: null } };
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
const created = () => {
  const use = docker.uses().find(({ args }) => args.includes('create') && !args.includes('volume'));
  return { args: use?.args ?? [], env: use?.env ?? {} };
};
const volumeOf = (args: readonly string[]): string => /source=(svc-home-[^,]+)/.exec(args.join(' '))?.[1] ?? '';

describe('svc launch NAME', () => {
  test('runs the agent with its placeholder, in a home of its own, and counts its requests', async () => {
    const run = await launch('claude', '-p', 'hi', '--quiet');
    expect(run).toMatchObject({ code: 5 });
    expect(run.stderr).toBe('svc: 0 requests, 0 with a credential, 0 refused; svc audit list --session ses_1\n');
    const { args, env } = created();
    expect(args.slice(-4)).toEqual(['claude', '-p', 'hi', '--quiet']);
    expect(env).toMatchObject({ ANTHROPIC_API_KEY: placeholder(), DISABLE_AUTOUPDATER: '1' });
    expect(args.join(' ')).toContain(`type=volume,source=${volumeOf(args)},target=/home/dev`);
    expect(docker.commands()).toContainEqual([
      'volume',
      'create',
      '--label',
      `svc.home=${homeLabelOf(home.path)}`,
      '--label',
      'svc.agent=claude',
      '--label',
      `svc.folder=${JSON.stringify(folder)}`,
      '--',
      volumeOf(args),
    ]);
  });

  test('hands out the placeholder of no other login of the agent, and nothing that it would prefer', async () => {
    await launch('claude');
    const { args, env } = created();
    expect(args).toContain('ANTHROPIC_API_KEY');
    expect(args).not.toContain('CLAUDE_CODE_OAUTH_TOKEN');
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
    expect(created().args).toEqual([]);
  });

  test("uses another login than the agent's own, whose file is not in the container", async () => {
    const own = `sk-ant-oat01-${'p'.repeat(93)}AA`;
    const login = {
      id: `bnd_${'0'.repeat(26)}`,
      credential_ref: 'vault://connectors/login/claude',
      sentinel: { value: own },
    };
    vault.bindings.push({ ...vault.bindings[0], ...login });
    mkdirSync(join(home.path, '.claude'));
    home.write('.claude/.credentials.json', JSON.stringify({ claudeAiOauth: { accessToken: own } }));
    expect((await launch('claude')).stderr).toContain('0 refused');
    const { args, env } = created();
    expect(env).toMatchObject({ ANTHROPIC_API_KEY: placeholder() });
    expect(args.join(' ')).not.toContain(own);
    const refused = await launch('--login', 'account', 'claude');
    expect(refused).toMatchObject({ code: 2, calls: [] });
    expect(refused.stderr).toContain('--login key or --login subscription');
  });

  test('reaches, sealed, also the hosts of its profile', async () => {
    const run = await launch('--egress=sealed', '--allow', 'docs.example.com', 'claude');
    const { body } = run.calls.find(({ method, url }) => method === 'POST' && url.pathname.endsWith('/sessions')) ?? {};
    expect(body).toMatchObject({ sandbox: { egress: 'sealed' }, named_hosts: ['docs.example.com'] });
    expect(Reflect.get(Object(body), 'allowed_hosts')).toContain('platform.claude.com');
  });

  test('prepares the files of the home in the container, with placeholders only', async () => {
    await launch('claude');
    const { args } = created();
    const wanted: unknown = JSON.parse(args.at(-2) ?? '');
    expect(wanted).toMatchObject({
      files: [
        { path: '~/.claude.json', json: { customApiKeyResponses: { approved: [placeholder().slice(-20)] } } },
        { json: { projects: { '/home/agent/workspace': { hasTrustDialogAccepted: true } } } },
      ],
      credentialFiles: ['~/.claude/.credentials.json'],
      placeholders: [placeholder()],
    });
    expect(args.join(' ')).not.toContain(KEY);
    expect(args.at(-1)).toBe('claude');
  });

  test('uses the same home in the same folder, and another one elsewhere', async () => {
    const volumes = new Set<string>();
    for (const workingDirectory of [folder, folder, join(folder, 'other')]) {
      mkdirSync(workingDirectory, { recursive: true });
      rmSync(join(docker.folder, 'uses'), { force: true });
      await svc(['launch', '--image', 'team/agent', 'claude'], { workingDirectory });
      volumes.add(volumeOf(created().args));
    }
    expect(volumes.size).toBe(2);
    expect(JSON.parse(readFileSync(join(home.path, 'agent_homes.json'), 'utf8'))).toEqual({
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
      volumes.push(volumeOf(created().args));
    }
    expect(volumes).not.toContain('');
    expect(volumes.pop()).toBe(volumes[0]);
    expect(new Set(volumes).size).toBe(volumes.length);
    rmSync(join(docker.folder, 'uses'), { force: true });
    await svc(['launch', '--image', 'team/agent', 'claude'], { workingDirectory: other });
    expect(volumeOf(created().args)).toBe(volumes[1]);
  });

  test('refuses a mount in a folder of the home, whose place an agent could choose', async () => {
    const run = await launch('--mount', `${folder}:/home/dev/.config/gh`, 'claude');
    expect(run.code).toBe(2);
    expect(run.stderr).toContain("/home/dev/.config/gh is in a folder of the agent's home, which an agent can replace");
    expect(created().args).toEqual([]);
  });

  test('refuses a mount over the home', async () => {
    const run = await launch('--mount', `${folder}:/home/dev`, 'claude');
    expect(run.code).toBe(2);
    expect(run.stderr).toContain('/home/dev is the home of the agent, which svc keeps in a volume');
    expect(created().args).toEqual([]);
  });

  test.each(['--sandbox-proxy=off', '--sandbox=none', '--sandbox=podman'])(
    'needs the proxy: not with %s',
    async (flag) => {
      const args =
        flag === '--sandbox=none' ? ['launch', flag, 'claude'] : ['launch', '--image', 'team/agent', flag, 'claude'];
      expect(await svc(args)).toMatchObject({ code: 2, calls: [] });
      expect(docker.uses()).toEqual([]);
    },
  );

  test('runs a command of that name after --, and takes no option of agents for it', async () => {
    expect(await launch('--', 'claude', 'x')).toMatchObject({ code: 5, stderr: '' });
    expect(created().args.slice(-3)).toEqual(['--', 'claude', 'x']);
    expect(volumeOf(created().args)).toBe('');
    const run = await launch('--rebuild', '--', 'claude');
    expect(run).toMatchObject({ code: 2 });
    expect(run.stderr).toContain('--rebuild is for an agent, and no agent is named');
  });

  test('does not use the image that a setting names for commands', async () => {
    docker.on('image', 'echo none >&2; exit 1').on('pull', 'echo no such host >&2; exit 1');
    const run = await svc(['launch', '--base', 'localhost/none', 'claude'], {
      env: { SVC_SANDBOX_IMAGE: 'team/agent' },
    });
    expect(run.code).toBe(125);
    expect(run.stderr).toContain('the base image localhost/none could not be fetched');
    expect(created().args).toEqual([]);
  });
});

const line = (name: string, agent: string, where: string): string => [name, agent, JSON.stringify(where)].join('\t');
const removed = (): readonly (readonly string[])[] => docker.commands().filter(([, verb]) => verb === 'rm');

describe('the homes of agents', () => {
  beforeEach(() => {
    home.write('agent_homes.json', JSON.stringify({ endpoints: [docker.endpoint] }));
    writeFileSync(
      join(docker.folder, 'volumes'),
      `${line('svc-home-claude-1', 'claude', folder)}\n${line('svc-home-codex-2', 'codex', '/a\nb')}\n`,
    );
    docker.on('volume', `[ "$2" != ls ] || cat ${docker.folder}/volumes`);
  });

  test('are listed, those of this state directory', async () => {
    const run = await svc(['agents', 'homes', '--json']);
    expect(JSON.parse(run.stdout)).toEqual({
      homes: [
        { volume: 'svc-home-claude-1', agent: 'claude', folder },
        { volume: 'svc-home-codex-2', agent: 'codex', folder: '/a\nb' },
      ],
    });
    expect(docker.commands()[0]).toContain(`label=svc.home=${homeLabelOf(home.path)}`);
  });

  test('are removed by name, and --forget removes the one of this folder', async () => {
    expect(await svc(['agents', 'homes', '--forget', 'svc-home-other'])).toMatchObject({ code: 1 });
    expect(removed()).toEqual([]);
    expect(await svc(['launch', '--forget', 'claude'])).toMatchObject({ code: 0, calls: [] });
    expect(removed()).toEqual([['volume', 'rm', '--', 'svc-home-claude-1']]);
    expect((await svc(['launch', '--forget', 'codex'])).stdout).toContain('has no home for');
    await svc(['agents', 'homes', '--forget-all']);
    expect(removed()).toHaveLength(3);
  });

  test('that a container uses are not removed, and the engine says why', async () => {
    docker.on(
      'volume',
      `[ "$2" != ls ] || cat ${docker.folder}/volumes; [ "$2" != rm ] || { echo volume is in use >&2; exit 1; }`,
    );
    const run = await svc(['launch', '--forget', 'claude']);
    expect(run.code).toBe(1);
    expect(run.stderr).toContain('volume is in use');
  });
});
