import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { z } from 'zod';
import { FakeVault } from '../testing/fake_vault.ts';
import { runCli, TestHome, type Answer, type RunOptions, type RunResult } from '../testing/run_cli.ts';
import { LOGIN } from '../testing/login_sample.ts';
import { ME, SESSION as SESSION_WITH_PLACEHOLDER } from '../testing/session_samples.ts';
import { countText } from './run_summary.ts';

const MINE = {
  name: 'mine',
  title: 'My agent',
  command: 'opencode',
  install: 'make install',
  tried: null,
  source: { title: 'My notes', url: 'https://example.com/' },
  logins: [],
  variables: { MY_MODEL: 'small' },
};
const KEY = 'sk-ant-api03-a-real-key-of-the-person';
const TOKEN = 'sk-ant-oat01-a-real-token-of-the-person';
const SESSION = { ...SESSION_WITH_PLACEHOLDER, sentinels: [] };

let home: TestHome;
let vault: FakeVault;
let sentinels: readonly { env: string; value: string }[];
beforeEach(() => {
  home = new TestHome();
  vault = new FakeVault();
  sentinels = [];
  mkdirSync(join(home.path, 'bin'));
  program('claude', 'printf "%s\\n" "$0" "$@" > args; env > env; exit 7');
  program('opencode', 'env > env');
});
afterEach(() => home.remove());

function program(name: string, script: string): void {
  writeFileSync(join(home.path, 'bin', name), `#!/bin/sh\n${script}\n`);
  chmodSync(join(home.path, 'bin', name), 0o755);
}

function ownProfile(changes: object): void {
  mkdirSync(join(home.path, 'agents'), { mode: 0o700 });
  home.write('agents/mine.yaml', stringify({ ...MINE, ...changes }));
}

const answer: Answer = (call) => {
  const path = call.url.pathname;
  if (path === '/v1/me') return { status: 200, body: ME };
  if (path === '/v1/audit-events') return { status: 200, body: { items: [], next_cursor: null } };
  if (!path.startsWith('/v1/sandbox-proxy/')) return vault.answer(call);
  return call.method === 'POST' ? { status: 201, body: { ...SESSION, sentinels } } : { status: 204 };
};
const controlAway: Answer = (call) => {
  if (call.url.port === '7420') throw new TypeError('fetch failed', { cause: { code: 'ECONNREFUSED' } });
  return answer(call);
};
const svc = (args: readonly string[], options: RunOptions = {}): Promise<RunResult> => {
  vault.beginCommand();
  const PATH = `${join(home.path, 'bin')}:/usr/bin:/bin`;
  return runCli(home, args, { answer, ...options, env: { PATH, ...options.env } });
};
const logIn = (agent: string, value: string, ...flags: readonly string[]): Promise<RunResult> =>
  svc(['login', agent, '--stdin', ...flags], { stdin: `${value}\n` });
const readEnv = (): ReadonlyMap<string, string> =>
  new Map(
    readFileSync(join(home.path, 'env'), 'utf8')
      .split('\n')
      .map((line) => {
        const [name = '', value = ''] = line.split(/=(.*)/s);
        return [name, value];
      }),
  );
const placeholderOf = (variable: string): string => {
  const found = vault.bindings.find((record) => JSON.stringify(record['sentinel']).includes(`"${variable}"`));
  return String(Reflect.get(found?.['sentinel'] ?? {}, 'value'));
};

describe('svc login AGENT', () => {
  test('stores the credential and binds the hosts of the login that it is for', async () => {
    expect(await logIn('claude', TOKEN)).toMatchObject({ code: 0 });
    expect(vault.values).toEqual({ 'user/claude-subscription': TOKEN });
    expect(vault.bindings).toMatchObject([
      { host: 'api.anthropic.com', scheme: 'bearer', sentinel: { env: 'CLAUDE_CODE_OAUTH_TOKEN' }, body: 'stream' },
    ]);
    expect(placeholderOf('CLAUDE_CODE_OAUTH_TOKEN')).toMatch(/^sk-ant-oat01-[A-Za-z0-9]{93}AA$/);
  });

  test('again replaces the value, and keeps bindings and placeholder', async () => {
    await logIn('claude', KEY);
    const before = structuredClone(vault.bindings);
    expect(await logIn('claude', `${KEY}2`)).toMatchObject({ code: 0 });
    expect(vault.values).toEqual({ 'user/anthropic': `${KEY}2` });
    expect(vault.bindings).toEqual(before);
  });

  test('uses what svc seal has made', async () => {
    await svc(['seal', 'anthropic', '--stdin'], { stdin: KEY });
    const before = structuredClone(vault.bindings);
    await logIn('claude', `${KEY}2`);
    expect(vault.bindings).toEqual(before);
    expect(vault.values).toEqual({ 'user/anthropic': `${KEY}2` });
  });

  test.each([
    ['claude', 'ghp_something'],
    ['claude', 'sk-proj-something'],
    ['codex', KEY],
    ['gemini', TOKEN],
    ['gemini', 'another-form-of-key'],
    ['qwen', `sk-proj-${'a1B2'.repeat(12)}`],
    ['mine', `npm_${'a1B2'.repeat(9)}`],
  ])('refuses for %s a credential of another service, without repeating it', async (agent, value) => {
    ownProfile({ logins: [LOGIN] });
    const run = await logIn(agent, value);
    expect(run).toMatchObject({ code: 2, stdout: '' });
    expect(run.stderr).toContain('nothing was stored');
    expect(run.stderr).not.toContain(value);
    expect(vault.values).toEqual({});
    expect(vault.bindings).toEqual([]);
  });

  test('takes it all the same with --as', async () => {
    expect(await logIn('claude', 'another-form-of-key', '--as', 'key')).toMatchObject({ code: 0 });
    expect(vault.values).toEqual({ 'user/anthropic': 'another-form-of-key' });
    expect(await logIn('claude', KEY, '--as', 'nothing')).toMatchObject({ code: 2 });
  });

  test('does not overwrite a secret that the agent does not use', async () => {
    await svc(['secret', 'set', 'user/anthropic', '--stdin'], { stdin: 'of something else' });
    const run = await logIn('claude', KEY);
    expect(run.code).toBe(1);
    expect(run.stderr).toContain('--secret user/anthropic');
    expect(vault.values).toEqual({ 'user/anthropic': 'of something else' });
    expect(vault.bindings).toEqual([]);
  });

  test('binds a secret that is stored already', async () => {
    await svc(['secret', 'set', 'team/claude', '--stdin'], { stdin: KEY });
    expect((await svc(['login', 'claude', '--secret', 'team/claude'])).stderr).toContain('--as key: Anthropic API key');
    expect(await svc(['login', 'claude', '--as', 'key', '--secret', 'team/claude'])).toMatchObject({ code: 0 });
    expect(vault.bindings).toMatchObject([{ credential_ref: 'vault://team/claude' }]);
    const missing = await svc(['login', 'codex', '--secret', 'team/nothing']);
    expect(missing).toMatchObject({ code: 1 });
    expect(missing.stderr).toContain('vault://team/nothing is not stored');
  });

  test('adds a second account at a path of its own, with a placeholder of its own, and keeps the first one', async () => {
    await logIn('claude', KEY);
    const first = structuredClone(vault.bindings);
    const added = await logIn('claude', `${KEY}-work`, '--secret', 'user/anthropic-work');
    expect(added).toMatchObject({ code: 0, stderr: expect.stringContaining('--use user/anthropic-work claude') });
    expect(added.stderr).toContain('requests to api.anthropic.com without a placeholder will get no credential');
    expect(vault.values).toEqual({ 'user/anthropic': KEY, 'user/anthropic-work': `${KEY}-work` });
    expect(vault.bindings.slice(0, 1)).toEqual(first);
    expect(vault.bindings.slice(1)).toMatchObject([{ credential_ref: 'vault://user/anthropic-work' }]);
    expect(workPlaceholder()).not.toBe(placeholderOf('ANTHROPIC_API_KEY'));
    const before = structuredClone(vault.bindings);
    await logIn('claude', `${KEY}-new`, '--secret', 'user/anthropic-work');
    await logIn('claude', `${KEY}-of-first`);
    expect(vault.values).toEqual({ 'user/anthropic': `${KEY}-of-first`, 'user/anthropic-work': `${KEY}-new` });
    expect(vault.bindings).toEqual(before);
    await svc(['claude']);
    expect(readEnv().get('ANTHROPIC_API_KEY')).toBe(placeholderOf('ANTHROPIC_API_KEY'));
    await svc(['run', '--use', 'user/anthropic-work', 'claude']);
    expect(readEnv().get('ANTHROPIC_API_KEY')).toBe(workPlaceholder());
  });

  test('adds no second account unless the person names its path, nor over a secret of something else', async () => {
    await svc(['secret', 'set', 'team/claude', '--stdin'], { stdin: KEY });
    await svc(['login', 'claude', '--as', 'key', '--secret', 'team/claude']);
    delete vault.values['team/claude'];
    const unnamed = await logIn('claude', KEY);
    expect(unnamed).toMatchObject({ code: 1, stderr: expect.stringContaining('--secret PATH') });
    await svc(['secret', 'set', 'user/other', '--stdin'], { stdin: 'of something else' });
    const taken = await logIn('claude', KEY, '--secret', 'user/other');
    expect(taken).toMatchObject({ code: 1, stderr: expect.stringContaining('vault://user/other is stored already') });
    expect(vault.values).toEqual({ 'user/other': 'of something else' });
    expect(vault.bindings).toHaveLength(1);
  });

  test('keeps one own login of an agent, and says how to add an account', async () => {
    const run = await svc(['login', 'claude', '--as', 'account', '--secret', 'user/second']);
    expect(run).toMatchObject({ code: 2, calls: [] });
    expect(run.stderr).toContain('svc login claude --as subscription --secret PATH');
  });

  test('binds every host of a login with one placeholder', async () => {
    await logIn('copilot', 'github_pat_11ABCDEFG');
    expect(vault.hosts()).toHaveLength(5);
    expect(new Set(vault.bindings.map((record) => JSON.stringify(record['sentinel']))).size).toBe(1);
  });

  test.each([1, 2, 3, 4, 5, 6])('changes nothing if call %d fails', async (failing) => {
    vault.failAtChange = failing;
    const run = await logIn('copilot', 'github_pat_11ABCDEFG');
    expect(run).toMatchObject({ code: 1 });
    expect(run.stderr).toContain('nothing was changed');
    expect(vault.bindings).toEqual([]);
    expect(vault.values).toEqual({});
  });

  test('refuses its own placeholder, and keeps the key', async () => {
    await logIn('codex', 'sk-proj-a-real-key-of-the-person');
    for (const value of [placeholderOf('OPENAI_API_KEY'), 'sk-proj-svc-stand-in-not-a-key-0123456789']) {
      const run = await logIn('codex', value, '--as', 'key');
      expect(run).toMatchObject({ code: 2, stdout: '' });
      expect(run.stderr).toContain('this is a placeholder of svc, not a credential: nothing was stored');
    }
    expect(vault.values).toEqual({ 'user/openai': 'sk-proj-a-real-key-of-the-person' });
  });

  test.each([`sk-ant-api03-${'a1B2'.repeat(20)}`, 'a-credential-of-no-known-shape-but-long'])(
    'does not repeat a credential that was given as the name',
    async (value) => {
      for (const command of ['login', 'seal']) {
        const run = await svc([command, value]);
        expect(run).toMatchObject({ code: 2, stdout: '', calls: [] });
        expect(run.stderr).toContain('of this name');
        expect(run.stderr).not.toContain(value);
      }
    },
  );

  test('starts nothing and says how to give the credential where nobody can be asked', async () => {
    const run = await svc(['login', 'claude']);
    expect([run.code, run.calls]).toEqual([2, []]);
    expect(run.stderr).toContain('--stdin');
    expect(run.stderr).not.toContain('secret set');
  });

  test('refuses a credential as an argument', async () => {
    const run = await svc(['login', 'claude', KEY]);
    expect(run).toMatchObject({ code: 2, calls: [] });
    expect(run.stderr).toContain('the process list and the shell history would show it');
    expect(run.stderr).not.toContain(KEY);
  });
});

const workPlaceholder = (): string => {
  const found = vault.bindings.find((record) => record['credential_ref'] === 'vault://user/anthropic-work');
  return String(Reflect.get(found?.['sentinel'] ?? {}, 'value'));
};

const sessionBody = ({ calls }: RunResult): unknown =>
  calls.find(({ method, url }) => method === 'POST' && url.pathname.endsWith('/sessions'))?.body;

describe('two accounts of an agent', () => {
  test('the agent gets the placeholder of the account that --use chooses', async () => {
    await svc(['seal', 'anthropic', '--stdin'], { stdin: KEY });
    await svc(['seal', 'anthropic', '--as', 'user/anthropic-work', '--stdin'], { stdin: `${KEY}-work` });
    expect(sessionBody(await svc(['claude']))).not.toHaveProperty('use_secrets');
    const first = readEnv().get('ANTHROPIC_API_KEY');
    const run = await svc(['run', '--use', 'user/anthropic-work', 'claude']);
    expect(sessionBody(run)).toMatchObject({
      use_secrets: [{ reference: 'vault://user/anthropic-work', by: 'option' }],
    });
    expect([readEnv().get('ANTHROPIC_API_KEY'), workPlaceholder()]).toEqual([
      workPlaceholder(),
      expect.not.stringMatching(`^${first}$`),
    ]);
  });

  test('a profile of your own chooses with secrets, and names no value', async () => {
    ownProfile({ secrets: ['user/github-work'] });
    expect(sessionBody(await svc(['mine']))).toMatchObject({
      use_secrets: [{ reference: 'vault://user/github-work', by: 'profile', from: 'mine' }],
    });
    home.write('agents/mine.yaml', stringify({ ...MINE, secrets: [`ghp_${'a1B2'.repeat(9)}`] }));
    const refused = await svc(['mine']);
    expect(refused.stderr).toContain('secrets.0: looks like a credential');
    expect(refused.stderr).not.toContain('a1B2');
  });
});

describe('svc NAME', () => {
  test('runs the agent with a placeholder, its arguments as they are, and its exit status', async () => {
    await logIn('claude', KEY);
    const run = await svc(['claude', '-p', 'say hi', '--json', '--', '-x']);
    expect(run.code).toBe(7);
    expect(readFileSync(join(home.path, 'args'), 'utf8').split('\n').slice(1, -1)).toEqual([
      '-p',
      'say hi',
      '--json',
      '--',
      '-x',
    ]);
    expect(readEnv().get('ANTHROPIC_API_KEY')).toBe(placeholderOf('ANTHROPIC_API_KEY'));
    expect(JSON.parse(readFileSync(join(home.path, '.claude.json'), 'utf8'))).toMatchObject({
      customApiKeyResponses: { approved: [placeholderOf('ANTHROPIC_API_KEY').slice(-20)] },
    });
    expect(run.stderr).toBe('svc: 0 requests, 0 with a credential, 0 refused; svc audit list --session ses_1\n');
    expect(
      run.calls.find(({ url, method }) => method === 'POST' && url.pathname.endsWith('/sessions'))?.body,
    ).toMatchObject({ name: 'claude' });
  });

  test('says nothing at the end with --quiet or --json', async () => {
    await logIn('claude', KEY);
    expect(await svc(['run', '--quiet', 'claude'])).toMatchObject({ code: 7, stderr: '' });
    expect(await svc(['--json', 'claude'])).toMatchObject({ code: 7, stderr: '', stdout: '' });
  });

  test('takes away every other credential that the agent would use', async () => {
    await logIn('claude', TOKEN);
    const env = { ANTHROPIC_API_KEY: KEY, ANTHROPIC_AUTH_TOKEN: KEY, CLAUDE_CODE_OAUTH_TOKEN: TOKEN, KEPT: '1' };
    await svc(['claude'], { env });
    const seen = readEnv();
    expect(seen.get('CLAUDE_CODE_OAUTH_TOKEN')).toBe(placeholderOf('CLAUDE_CODE_OAUTH_TOKEN'));
    expect([seen.get('ANTHROPIC_API_KEY'), seen.get('ANTHROPIC_AUTH_TOKEN'), seen.get('KEPT')]).toEqual([
      undefined,
      undefined,
      '1',
    ]);
    expect(readFileSync(join(home.path, 'env'), 'utf8')).not.toContain('of-the-person');
  });

  test.each(['ANTHROPIC_AUTH_TOKEN', 'ANTHROPIC_API_KEY'])('does not pass on %s with --keep-env', async (name) => {
    await logIn('claude', KEY);
    const run = await svc(['run', '--keep-env', name, 'claude'], { env: { [name]: KEY } });
    expect(run).toMatchObject({ code: 125, calls: [] });
    expect(run.stderr).toContain(`--keep-env ${name}: Claude Code would use it instead of its placeholder`);
  });

  test('uses one login of several, the one that --login names', async () => {
    await logIn('claude', KEY);
    await logIn('claude', TOKEN);
    await svc(['claude']);
    expect(readEnv().has('CLAUDE_CODE_OAUTH_TOKEN')).toBe(false);
    await svc(['run', '--login', 'subscription', 'claude']);
    expect(readEnv().has('ANTHROPIC_API_KEY')).toBe(false);
    expect(readEnv().get('CLAUDE_CODE_OAUTH_TOKEN')).toMatch(/^sk-ant-oat01-/);
  });

  test('uses all logins where the agent has a model of each', async () => {
    await logIn('claude', KEY);
    await logIn('codex', 'sk-proj-a-real-key-of-the-person');
    await svc(['opencode']);
    expect([readEnv().get('ANTHROPIC_API_KEY'), readEnv().get('OPENAI_API_KEY')]).toEqual([
      placeholderOf('ANTHROPIC_API_KEY'),
      placeholderOf('OPENAI_API_KEY'),
    ]);
  });

  test('does not start without a credential, and says how to give it', async () => {
    const run = await svc(['claude', '-p', 'x']);
    expect(run.code).toBe(125);
    expect(run.stderr).toContain('svc login claude --stdin');
    expect(run.calls.some(({ method }) => method === 'POST')).toBe(false);
  });

  test('counts as not stored if the secret is gone', async () => {
    await logIn('claude', KEY);
    delete vault.values['user/anthropic'];
    expect(await svc(['claude'])).toMatchObject({ code: 125 });
  });

  test('says that the agent is not installed before it asks for anything', async () => {
    const run = await svc(['gemini']);
    expect(run).toMatchObject({ code: 127, calls: [] });
    expect(run.stderr).toContain('npm install -g @google/gemini-cli');
  });

  test('takes the placeholder that the sidecar hands out while the control plane is away', async () => {
    sentinels = [{ env: 'CLAUDE_CODE_OAUTH_TOKEN', value: 'sk-ant-oat01-placeholder' }];
    expect(await svc(['claude'], { answer: controlAway, env: { ANTHROPIC_API_KEY: KEY } })).toMatchObject({ code: 7 });
    expect(readEnv().get('CLAUDE_CODE_OAUTH_TOKEN')).toBe('sk-ant-oat01-placeholder');
    expect(readEnv().has('ANTHROPIC_API_KEY')).toBe(false);
  });

  test('warns of a login of the agent itself', async () => {
    await logIn('claude', KEY);
    mkdirSync(join(home.path, '.claude'));
    home.write('.claude/.credentials.json', '{}');
    expect((await svc(['claude'])).stderr).toContain('.credentials.json holds a login of Claude Code itself');
  });

  test('warns of a login of the agent itself where the profile would have written its placeholder', async () => {
    program('codex', 'exit 0');
    await logIn('codex', 'sk-proj-a-real-key-of-the-person');
    expect((await svc(['run', '--quiet', 'codex'])).stderr).toBe('');
    for (const text of ['{"tokens":1}', '{"OPENAI_API_KEY":"sk-proj-an-earlier-placeholder"}']) {
      home.write('.codex/auth.json', text);
      expect((await svc(['codex'])).stderr).toContain('auth.json holds a login of OpenAI Codex itself');
    }
  });
});

describe('svc run', () => {
  test('runs an agent by its profile, and a command of the same name after --', async () => {
    await logIn('claude', KEY);
    await svc(['run', '--name', 'n', 'claude', '--quiet']);
    expect(readEnv().get('ANTHROPIC_API_KEY')).toBe(placeholderOf('ANTHROPIC_API_KEY'));
    expect(readFileSync(join(home.path, 'args'), 'utf8')).toContain('--quiet\n');
    await svc(['run', '--', 'claude']);
    expect(readEnv().has('ANTHROPIC_API_KEY')).toBe(false);
  });
});

describe("a user's own profile", () => {
  test('is a command, and is listed', async () => {
    ownProfile({});
    expect(await svc(['mine'])).toMatchObject({ code: 0 });
    expect(readEnv().get('MY_MODEL')).toBe('small');
    await svc(['mine'], { env: { MY_MODEL: 'large' } });
    expect(readEnv().get('MY_MODEL')).toBe('large');
    expect(await svc(['run', 'mine'])).toMatchObject({ code: 0 });
    expect((await svc(['--help'])).stdout).toContain('run mine, by your own profile');
    expect((await svc(['completion', 'bash'])).stdout).toContain("'mine'");
    expect((await svc(['miine'])).stderr).toContain('Did you mean mine?');
    expect((await svc(['agents'])).stdout).toContain('mine\tMy agent\tyes\tyour own\tno\tnone');
  });
});

describe('svc agents', () => {
  test('lists what is installed, tried and stored', async () => {
    await logIn('claude', KEY);
    const { stdout } = await svc(['agents', '--json']);
    const { items } = z.object({ items: z.array(z.looseObject({ name: z.string() })) }).parse(JSON.parse(stdout));
    const row = (name: string): unknown => items.find((each) => each.name === name);
    expect(row('claude')).toMatchObject({
      title: 'Claude Code',
      installed: true,
      logins: [{ name: 'key', credential_ref: 'vault://user/anthropic' }],
      profile: null,
    });
    expect(row('goose')).toMatchObject({ installed: false, tried: null });
    expect(stdout).not.toContain(KEY);
  });
});

test.each([
  [[], '0 requests, 0 with a credential, 0 refused'],
  [['binding'], '1 request, 1 with a credential, 0 refused'],
  [['binding', 'connector', 'passthrough', 'refused', null], '4 requests, 2 with a credential, 1 refused'],
] as const)('%j are counted as %s', (kinds, text) => {
  const events = kinds.map((kind) => ({ data: kind === null ? {} : { 'svc.proxy.mediation': kind } }));
  expect(countText(events)).toBe(text);
});

test('a connection that is carried unread is counted once, as a request without a credential', () => {
  const data = { 'svc.proxy.mediation': 'passthrough' } as const;
  const events = ['tunnel_opened', 'tunnel_closed'].map((reason) => ({
    data: { ...data, 'svc.proxy.reason': reason },
  }));
  expect(countText(events)).toBe('1 request, 0 with a credential, 0 refused');
});

test('a refresh that svc answered itself is counted as a request without a credential', () => {
  const data = { 'svc.proxy.mediation': 'connector', 'svc.proxy.reason': 'answered_locally' } as const;
  expect(countText([{ data }])).toBe('1 request, 0 with a credential, 0 refused');
});
