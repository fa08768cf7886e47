import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { connectorSpec } from '../../shared/wire/connectors/connector_spec.ts';
import { refreshPlaceholder } from '../../shared/connect/token_request.ts';
import { FakeVault } from '../testing/fake_vault.ts';
import { runCli, TestHome, type Answer, type RunOptions, type RunResult, type SeenCall } from '../testing/run_cli.ts';

const ACCESS = 'sk-ant-oat01-planted-access-token';
const REFRESH = 'sk-ant-ort01-planted-refresh-token';
const LOGIN = {
  claudeAiOauth: {
    accessToken: ACCESS,
    refreshToken: REFRESH,
    expiresAt: Date.parse('2026-01-01T20:00:00Z'),
    refreshTokenExpiresAt: 7,
    scopes: ['user:inference'],
    subscriptionType: 'max',
  },
  mcpOAuth: { server: 'other' },
};
const CREDENTIAL = {
  kind: 'oauth2',
  ref: 'vault://connectors/login/claude',
  state: 'ready',
  updated_at: '2026-01-01T12:00:00.000Z',
  expires_at: null,
  client_id: 'client',
  token_url: null,
  scopes: [],
  renewable: true,
};

let home: TestHome;
let vault: FakeVault;
let file: string;
/** The bodies of what was stored, or the deletion. */
let credentials: unknown[];
let connectors: unknown[];
/** Called when the tokens are stored. */
let onStored: () => void;
let failsToStore: boolean;
let refusesToStore = false;
let failsToDelete: boolean;
beforeEach(() => {
  home = new TestHome();
  vault = new FakeVault();
  [credentials, connectors, failsToStore, failsToDelete] = [[], [], false, false];
  onStored = () => {};
  refusesToStore = false;
  mkdirSync(join(home.path, '.claude'));
  file = join(home.path, '.claude', '.credentials.json');
  home.write('.claude/.credentials.json', JSON.stringify(LOGIN));
});
afterEach(() => {
  chmodSync(join(home.path, '.claude'), 0o700);
  home.remove();
});

const FAILURE = { status: 500, body: { error: { code: 'internal_error', message: 'it failed', request_id: 'req_1' } } };
const REFUSAL = { status: 400, body: { error: { code: 'invalid_input', message: 'no', request_id: 'req_1' } } };
/** The installed connector, with its credential if tokens are stored. */
function installed(): readonly object[] {
  const last = connectors.at(-1);
  if (last === undefined) return [];
  const call = { body: last, url: new URL('http://svc.test/?owner=personal') };
  const { spec: _spec, warnings: _warnings, ...summary } = { spec: null, warnings: null, ...install(call, true).body };
  const updated_at = credentials.length === 0 || credentials.at(-1) === 'deleted' ? null : CREDENTIAL.updated_at;
  return [{ ...summary, credential: { ...CREDENTIAL, updated_at } }];
}
const answer: Answer = (call) => {
  if (!call.url.pathname.startsWith('/v1/connectors')) return vault.answer(call);
  if (call.method === 'POST') return install(call);
  if (call.method === 'GET') return { status: 200, body: { items: installed(), next_cursor: null } };
  if (call.method === 'DELETE') {
    credentials.push('deleted');
    return failsToDelete ? FAILURE : { status: 204 };
  }
  if (refusesToStore) return REFUSAL;
  if (failsToStore) return FAILURE;
  credentials.push(call.body);
  onStored();
  return { status: 200, body: CREDENTIAL };
};
function install({ body, url }: Pick<SeenCall, 'body' | 'url'>, isListed = false): { status: number; body: object } {
  if (!isListed) connectors.push(body);
  const spec = connectorSpec.parse(body);
  const { fqn, version, title } = spec.connector;
  const times = { created_at: '2026-01-01T12:00:00.000Z', updated_at: '2026-01-01T12:00:00.000Z' };
  const facts = { owner: url.searchParams.get('owner'), fqn, version, title, content_hash: '0'.repeat(64) };
  return {
    status: 201,
    body: {
      id: `con_${'0'.repeat(26)}`,
      ...facts,
      ...times,
      hosts: spec.hosts,
      operation_count: 1,
      active: true,
      credential: CREDENTIAL,
      installed_by: 'usr_1',
      spec,
      warnings: [],
    },
  };
}
const svc = (args: readonly string[], options: RunOptions = {}): Promise<RunResult> => {
  vault.beginCommand();
  return runCli(home, args, { answer, ...options, env: { PATH: '/usr/bin:/bin', ...options.env } });
};
const importing = (...more: string[]): Promise<RunResult> => svc(['login', 'claude', '--import', '--yes', ...more]);
const text = (): string => readFileSync(file, 'utf8');
const placeholder = (): string => String(Reflect.get(vault.bindings[0]?.['sentinel'] ?? {}, 'value'));

describe('svc login AGENT --import', () => {
  test('stores the tokens, and leaves placeholders and no copy', async () => {
    chmodSync(file, 0o640);
    const run = await importing();
    expect(run).toMatchObject({ code: 0 });
    expect(credentials).toEqual([
      {
        kind: 'oauth2',
        client_id: '9d1c250a-e61b-44d9-88ed-5944d1962f5e',
        content_hash: '0'.repeat(64),
        access_token: ACCESS,
        refresh_token: REFRESH,
        expires_at: '2026-01-01T20:00:00.000Z',
      },
    ]);
    expect(connectors).toMatchObject([
      { hosts: ['platform.claude.com'], credential: { login: { hosts: ['api.anthropic.com'] } } },
    ]);
    expect(vault.bindings).toMatchObject([
      { host: 'api.anthropic.com', scheme: 'bearer', credential_ref: 'vault://connectors/login/claude' },
    ]);
    expect(placeholder()).toMatch(/^sk-ant-oat01-[A-Za-z0-9]{93}AA$/);
    expect(JSON.parse(text())).toEqual({
      claudeAiOauth: {
        scopes: ['user:inference'],
        subscriptionType: 'max',
        accessToken: placeholder(),
        refreshToken: refreshPlaceholder(placeholder()),
        expiresAt: Date.parse('2026-01-01T12:00:00Z') + 315_360_000_000,
      },
      mcpOAuth: { server: 'other' },
    });
    expect(statSync(file).mode & 0o777).toBe(0o640);
    expect(readdirSync(join(home.path, '.claude'))).toEqual(['.credentials.json']);
    for (const said of [run.stdout, run.stderr]) {
      expect(said).not.toContain(ACCESS);
      expect(said).not.toContain(REFRESH);
    }
  });

  test('shows the account and what changes, and asks first', async () => {
    const declined = await svc(['login', 'claude', '--import'], { terminal: true, typed: ['n'] });
    expect(declined.code).toBe(1);
    expect(declined.stderr).toContain('plan max');
    expect(declined.stderr).toContain('Stays in the file as it is: mcpOAuth.');
    expect([text(), credentials, connectors]).toEqual([JSON.stringify(LOGIN), [], []]);
    expect(await svc(['login', 'claude', '--import'], { terminal: true, typed: ['y'] })).toMatchObject({ code: 0 });
    expect(text()).not.toContain(REFRESH);
  });

  test('changes nothing where nobody can be asked', async () => {
    expect(await svc(['login', 'claude', '--import'])).toMatchObject({ code: 2 });
    expect([text(), credentials, connectors]).toEqual([JSON.stringify(LOGIN), [], []]);
  });

  test('keeps the file if the tokens cannot be stored', async () => {
    failsToStore = true;
    expect(await importing()).toMatchObject({ code: 1 });
    expect(text()).toBe(JSON.stringify(LOGIN));
    expect(credentials).toEqual(['deleted']);
  });

  test('takes the tokens back out of svc if the file was changed meanwhile', async () => {
    onStored = () => home.write('.claude/.credentials.json', JSON.stringify({ ...LOGIN, refreshed: true }));
    const run = await importing();
    expect(run.code).toBe(1);
    expect(run.stderr).toContain('svc keeps no copy');
    expect(credentials.at(-1)).toBe('deleted');
    expect(text()).toContain(REFRESH);
  });

  test('says that both have the tokens if svc cannot give them up', async () => {
    failsToDelete = true;
    onStored = () => home.write('.claude/.credentials.json', '{}');
    const run = await importing();
    expect(run.code).toBe(1);
    expect(run.stderr).toContain('and may be in svc, and only one of them may refresh them');
    expect(run.stderr).toContain('svc connector rm login/claude');
  });

  test('takes the tokens back out of svc if it is not known whether they were stored', async () => {
    onStored = () => {
      throw new TypeError('fetch failed');
    };
    const run = await importing();
    expect(run.stderr).toContain('svc keeps no copy');
    expect(credentials.at(-1)).toBe('deleted');
    expect(text()).toBe(JSON.stringify(LOGIN));
  });

  test('binds nothing while the tokens are stored and the file is written', async () => {
    let bound = -1;
    onStored = () => {
      bound = vault.bindings.length;
    };
    await importing();
    expect([bound, vault.bindings.length]).toEqual([0, 1]);
    home.write('.claude/.credentials.json', JSON.stringify(LOGIN));
    await importing();
    expect([bound, vault.bindings.length]).toEqual([0, 1]);
  });

  test('if the new tokens are refused, keeps an earlier login and its placeholder', async () => {
    await importing();
    const before = placeholder();
    home.write('.claude/.credentials.json', JSON.stringify(LOGIN));
    refusesToStore = true;
    expect(await importing()).toMatchObject({ code: 1 });
    expect(credentials).toHaveLength(1);
    expect(placeholder()).toBe(before);
    expect(text()).toBe(JSON.stringify(LOGIN));
  });

  test('is completed by the same command if it ended before the hosts were bound', async () => {
    vault.failAtChange = 1;
    const run = await importing();
    expect(run.code).not.toBe(0);
    expect(run.stderr).toContain('the tokens are in svc');
    expect(vault.bindings).toEqual([]);
    vault.failAtChange = 0;
    expect(await importing()).toMatchObject({ code: 0 });
    expect(JSON.parse(text())).toMatchObject({ claudeAiOauth: { accessToken: placeholder() } });
    expect(credentials).toHaveLength(1);
  });

  test('says that it replaces a stored login', async () => {
    await importing();
    home.write('.claude/.credentials.json', JSON.stringify(LOGIN));
    const run = await svc(['login', 'claude', '--import'], { terminal: true, typed: ['n'] });
    expect(run.stderr).toContain('It replaces the login that was stored in svc');
  });

  test('is one at a time', async () => {
    home.write('import.lock', JSON.stringify({ supervisor: { pid: process.pid, started: null }, programs: [] }));
    expect((await svc(['login', 'claude', '--import', '--yes', '--home', home.path])).stderr).toContain(
      'another login is being stored',
    );
    expect([text(), credentials, connectors]).toEqual([JSON.stringify(LOGIN), [], []]);
  });

  test('takes a file that a variable leads to only if it is named', async () => {
    const env = { CLAUDE_CONFIG_DIR: join(home.path, '.claude') };
    const refused = await svc(['login', 'claude', '--import', '--yes'], { env });
    expect(refused.stderr).toContain('CLAUDE_CONFIG_DIR leads to');
    expect([text(), credentials]).toEqual([JSON.stringify(LOGIN), []]);
    const asked = await svc(['login', 'claude', '--import'], { env, terminal: true, typed: ['n'] });
    expect(asked.stderr).toContain('CLAUDE_CONFIG_DIR led to this file');
    expect(await svc(['login', 'claude', '--import', '--yes', '--file', file], { env })).toMatchObject({ code: 0 });
  });

  test('changes nothing if a folder of the file is a link', async () => {
    renameSync(join(home.path, '.claude'), join(home.path, 'elsewhere'));
    symlinkSync(join(home.path, 'elsewhere'), join(home.path, '.claude'));
    const run = await importing();
    expect(run.stderr).toContain('is a symbolic link');
    expect(credentials).toEqual([]);
  });

  test('does not take placeholders for a login', async () => {
    await importing();
    const after = text();
    const again = await importing();
    expect(again).toMatchObject({ code: 1 });
    expect(again.stderr).toContain('has placeholders of svc and no tokens');
    expect(credentials).toHaveLength(1);
    expect(text()).toBe(after);
  });

  test('leaves a file that no run warns of, and is used by a run only while it has its placeholders', async () => {
    home.write('claude', '#!/bin/sh\nexit 0\n', 0o755);
    await svc(['login', 'claude', '--stdin'], { stdin: 'sk-ant-api03-a-key-of-the-person' });
    await importing();
    const run = async (login: string): Promise<string> => {
      const env = { PATH: `${home.path}:/usr/bin:/bin` };
      return (await svc(['run', '--login', login, 'claude'], { env })).stderr;
    };
    for (const login of ['account', 'key']) {
      const said = await run(login);
      expect(said).not.toContain('holds a login of Claude Code itself');
      expect(said).not.toContain('has no placeholders');
    }
    write({ refreshToken: 'sk-ant-ort01-another' });
    expect(await run('key')).toContain('holds a login of Claude Code itself');
    expect(await run('account')).toContain('its file has no placeholders');
  });

  test('replaces the login after a fresh one, with the same placeholder', async () => {
    await importing();
    const before = placeholder();
    const fresh = { claudeAiOauth: { ...LOGIN.claudeAiOauth, refreshToken: 'sk-ant-ort01-fresh' } };
    home.write('.claude/.credentials.json', JSON.stringify(fresh));
    expect(await importing()).toMatchObject({ code: 0 });
    expect(credentials.at(-1)).toMatchObject({ refresh_token: 'sk-ant-ort01-fresh' });
    expect(placeholder()).toBe(before);
  });

  test.each([
    ['is missing', () => renameSync(file, `${file}.away`), 'has no login in'],
    ['is a link', () => (renameSync(file, `${file}.away`), symlinkSync(`${file}.away`, file)), 'is a symbolic link'],
    ['has a login of another client', () => write({ clientId: 'other' }), 'holds a login of another client'],
    ['has no refresh token', () => write({ refreshToken: '' }), 'holds no login with'],
    ['has placeholders of another svc', () => write({ refreshToken: refreshPlaceholder(ACCESS) }), 'has placeholders'],
    ['is no JSON', () => home.write('.claude/.credentials.json', '{'), 'is no JSON object'],
  ])('changes nothing if the file %s', async (_what, prepare, message) => {
    prepare();
    const before = existsSync(file) ? text() : null;
    const run = await importing();
    expect(run.code).toBe(1);
    expect(run.stderr).toContain(message);
    expect([existsSync(file) ? text() : null, credentials, connectors]).toEqual([before, [], []]);
  });

  test('knows no own login of an agent without one', async () => {
    expect(await svc(['login', 'gemini', '--import', '--yes'])).toMatchObject({ code: 2 });
  });
});

function write(changes: object): void {
  const login = { ...LOGIN, claudeAiOauth: { ...LOGIN.claudeAiOauth, ...changes } };
  home.write('.claude/.credentials.json', JSON.stringify(login));
}
