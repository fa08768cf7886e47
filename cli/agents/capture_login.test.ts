import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { refreshPlaceholder } from '../../shared/connect/token_request.ts';
import { connectorSpec } from '../../shared/wire/connectors/connector_spec.ts';
import { type Answer, type RunOptions, type RunResult, runCli, type SeenCall, TestHome } from '../testing/run_cli.ts';
import { FakeVault } from '../testing/fake_vault.ts';
import { ME } from '../testing/session_samples.ts';

const TIME = '2026-01-01T12:00:00.000Z';
const LOGIN_ID = 'plg_00000000000000000000000000';
const CREDENTIAL = {
  kind: 'oauth2',
  ref: 'vault://connectors/login/claude',
  state: 'ready',
  updated_at: null as string | null,
  expires_at: null,
  client_id: 'client',
  token_url: null,
  scopes: [],
  renewable: true,
};
const FAILURE = { status: 500, body: { error: { code: 'internal_error', message: 'it failed', request_id: 'req_1' } } };
const REFUSAL = { status: 400, body: { error: { code: 'invalid_input', message: 'no', request_id: 'req_1' } } };

let home: TestHome;
let vault: FakeVault;
let state: string;
let refusesToStore: boolean;
let fails: string | null;
let storedAt: string | null;
/** What the session was opened with. */
let session: { readonly login?: { readonly placeholder: string } };
/** What was done, in order. */
let done: string[];

beforeEach(() => {
  home = new TestHome();
  vault = new FakeVault();
  [state, refusesToStore, fails, storedAt, session, done] = ['held', false, null, null, {}, []];
  mkdirSync(join(home.path, '.claude'));
  const program = join(home.path, 'claude');
  // It writes what it got, as the agent does, and keeps its environment.
  writeFileSync(
    program,
    `#!/bin/sh\nenv > '${home.path}/environment'\ncp '${home.path}/next.json' '${home.path}/.claude/.credentials.json' 2>/dev/null\nexit 0\n`,
  );
  chmodSync(program, 0o755);
});
afterEach(() => home.remove());

function connectorOf({ body }: Pick<SeenCall, 'body'>): object {
  const spec = connectorSpec.parse(body);
  const { fqn, version, title } = spec.connector;
  return {
    id: `con_${'0'.repeat(26)}`,
    owner: 'personal',
    fqn,
    version,
    title,
    content_hash: '0'.repeat(64),
    hosts: spec.hosts,
    operation_count: 1,
    active: true,
    credential: { ...CREDENTIAL, updated_at: storedAt },
    installed_by: 'usr_1',
    created_at: TIME,
    updated_at: TIME,
    spec,
    warnings: [],
  };
}
const INSTALLED = {
  schema_version: 1,
  connector: { fqn: 'login/claude', version: '1.0.0', title: 'Login' },
  hosts: ['auth.example.test'],
  credential: {
    kind: 'oauth2',
    token_url: 'https://auth.example.test/token',
    login: { client_id: 'client', hosts: ['api.anthropic.com'] },
  },
  operations: [{ name: 'token', method: 'POST', path: '/token', effect: 'write' }],
};

function pendingLogin({ body }: Pick<SeenCall, 'body'>): object {
  const account = { who: 'dev@example.test', plan: 'max\u001B[31m', may_make_keys: true };
  const facts = Object(body);
  return {
    id: LOGIN_ID,
    program: 'claude',
    token_url: facts.token_url ?? 'https://auth.example.test/token',
    client_id: 'client',
    grants: ['authorization_code'],
    state: 'held',
    account,
    created_at: TIME,
    expires_at: TIME,
  };
}

const answer: Answer = (call) => {
  const { pathname: path } = call.url;
  const what = `${call.method} ${path.replace(LOGIN_ID, 'ID')}`;
  if (call.method !== 'GET') done.push(what);
  if (fails !== null && call.method === 'POST' && path.endsWith(fails)) return FAILURE;
  if (path === '/v1/me') return { status: 200, body: ME };
  if (path === '/v1/sandbox-proxy/sessions') {
    session = Object(call.body);
    home.write('next.json', JSON.stringify(fileWith(session.login?.placeholder ?? '')));
    const reply = { session_id: 'ses_1', token: 't', proxy_url: 'http://ses_1:t@127.0.0.1:7421' };
    return { status: 201, body: { ...reply, ca_bundle_path: '/bundle.pem', sentinels: [] } };
  }
  if (path === '/v1/sandbox-proxy/sessions/ses_1') {
    return call.method === 'DELETE'
      ? { status: 204 }
      : { status: 200, body: { login: { id: LOGIN_ID, state, who: null } } };
  }
  if (path.startsWith('/v1/pending-logins')) {
    if (call.method === 'DELETE') return { status: 204 };
    if (!path.endsWith('/store')) return { status: call.method === 'POST' ? 201 : 200, body: pendingLogin(call) };
    return refusesToStore ? REFUSAL : { status: 200, body: { ref: CREDENTIAL.ref } };
  }
  if (path === '/v1/connectors') {
    if (call.method === 'POST') return { status: 201, body: connectorOf(call) };
    const items = storedAt === null ? [] : [connectorOf({ body: INSTALLED })];
    return { status: 200, body: { items, next_cursor: null } };
  }
  return vault.answer(call);
};

const fileWith = (placeholder: string): object => ({
  claudeAiOauth: { accessToken: placeholder, refreshToken: refreshPlaceholder(placeholder), expiresAt: 1 },
});
const svc = (args: readonly string[], options: RunOptions = {}): Promise<RunResult> => {
  vault.beginCommand();
  return runCli(home, ['login', 'claude', '--as', 'account', ...args], {
    answer,
    ...options,
    env: { PATH: `${home.path}:/usr/bin:/bin`, ANTHROPIC_API_KEY: 'sk-ant-api03-planted', ...options.env },
  });
};
const bindings = () => vault.bindings.map(({ host, sentinel }) => [host, Object(sentinel).value]);

describe('svc login AGENT --as account', () => {
  test('shows whose account it is, stores the tokens, and binds the placeholder that the agent got', async () => {
    const run = await svc(['--yes']);
    expect(run.stderr).toContain('dev@example.test, plan max');
    expect(run.stderr).not.toContain('\u001B');
    expect(run.stderr).toContain('may make lasting API keys');
    expect(run.stderr).not.toContain('does not have the placeholders');
    expect(run.code).toBe(0);
    expect(bindings()).toEqual([['api.anthropic.com', session.login?.placeholder]]);
    expect(done.filter((each) => !each.includes('secrets/check'))).toEqual([
      'POST /v1/pending-logins',
      'POST /v1/sandbox-proxy/sessions',
      'DELETE /v1/sandbox-proxy/sessions/ses_1',
      'POST /v1/connectors',
      'POST /v1/pending-logins/ID/store',
      'POST /v1/host-bindings',
    ]);
  });

  test('says if it replaces a login, and deletes its bindings', async () => {
    await svc(['--yes']);
    const [before] = bindings();
    storedAt = TIME;
    const run = await svc(['--yes']);
    expect(run.stderr).toContain(`replaces the login that was stored in svc at ${TIME}`);
    expect(bindings()).toEqual([['api.anthropic.com', session.login?.placeholder]]);
    expect(bindings()).not.toEqual([before]);
  });

  test("passes on nothing of the user's NO_PROXY, so the agent cannot get its tokens past svc", async () => {
    await svc(['--yes'], { env: { NO_PROXY: '.corp.test,auth.example.test,.anthropic.com' } });
    const written = readFileSync(join(home.path, 'environment'), 'utf8');
    expect(written).toMatch(/^NO_PROXY=localhost,127\.0\.0\.1,::1$/m);
    expect(written).not.toContain('.corp.test');
  });

  test.each([
    ['says where the answer of the provider is', false, 'svc asks the provider to revoke them'],
    ['says that they may be valid if the control plane is of an earlier version', true, 'They may still be valid'],
  ])('of an agent whose provider revokes tokens %s', async (_what, isEarlier, said) => {
    writeFileSync(join(home.path, 'codex'), '#!/bin/sh\nexit 0\n', { mode: 0o755 });
    const opened: string[][] = [];
    const refusing: Answer = (call) => {
      if (call.method !== 'POST' || call.url.pathname !== '/v1/pending-logins') return answer(call);
      const names = Object.keys(Object(call.body));
      opened.push(names);
      return isEarlier && names.includes('revocation_url') ? REFUSAL : answer(call);
    };
    vault.beginCommand();
    const options = { answer: refusing, terminal: true, typed: ['n'], env: { PATH: `${home.path}:/usr/bin:/bin` } };
    const run = await runCli(home, ['login', 'codex', '--as', 'account'], options);
    expect(run.stderr).toContain(said);
    const facts = ['program', 'token_url', 'client_id', 'grants'];
    const revocation = ['revocation_url', 'token_request'];
    expect(opened).toEqual([[...facts, ...revocation], ...(isEarlier ? [facts] : [])]);
    expect(done.at(-1)).toBe('DELETE /v1/pending-logins/ID');
  });

  test('stores nothing if the person says no, and deletes the tokens', async () => {
    const run = await svc([], { terminal: true, typed: ['n'] });
    expect(run.code).toBe(1);
    expect(run.stderr).toContain('svc has deleted the tokens');
    expect(done.at(-1)).toBe('DELETE /v1/pending-logins/ID');
    expect(done).not.toContain('POST /v1/connectors');
    expect(bindings()).toEqual([]);
  });

  test.each([
    ['waiting', 'did not log in through svc'],
    ['withheld', 'withheld or lost'],
    ['not_stored', 'could not be stored'],
    ['contested', 'two programs asked'],
  ])('stores nothing if the login is %s', async (now, message) => {
    state = now;
    const run = await svc(['--yes']);
    expect(run.code).toBe(1);
    expect(run.stderr).toContain(message);
    expect(done.at(-1)).toBe('DELETE /v1/pending-logins/ID');
    expect(done).not.toContain('POST /v1/pending-logins/ID/store');
    expect(bindings()).toEqual([]);
  });

  test('keeps an earlier login with its placeholder if the new tokens are refused', async () => {
    await svc(['--yes']);
    const before = bindings();
    refusesToStore = true;
    const run = await svc(['--yes']);
    expect(run.code).not.toBe(0);
    expect(bindings()).toEqual(before);
  });

  test.each([
    ['/store', 'may be in svc, and no session uses them, and the earlier login is not used any more'],
    ['/v1/host-bindings', 'are in svc, and no session uses them, and the earlier login is not used any more'],
  ])('says what is stored if the control plane fails at %s', async (path, message) => {
    await svc(['--yes']);
    fails = path;
    const run = await svc(['--yes']);
    expect(run.code).not.toBe(0);
    expect(run.stderr).toContain(message);
    expect(run.stderr).toContain('svc connector rm login/claude');
    expect(bindings()).toEqual([]);
  });

  test.each(['held', 'waiting', 'not_stored', 'withheld', 'contested'])(
    'names real tokens that the agent wrote into its file if the login is %s',
    async (now) => {
      state = now;
      home.write(
        'claude',
        `#!/bin/sh\necho '{"claudeAiOauth":{"accessToken":"sk-ant-oat01-planted","refreshToken":"planted"}}' > '${home.path}/.claude/.credentials.json'\n`,
        0o755,
      );
      const run = await svc(['--yes']);
      expect(run.stderr).toContain('has tokens of a login that svc did not capture');
      expect(run.stderr).toContain('svc login claude --import');
      expect(run.stderr).not.toContain('planted');
    },
  );

  test('says nothing of tokens that were in the file before', async () => {
    state = 'waiting';
    home.write('.claude/.credentials.json', '{"claudeAiOauth":{"accessToken":"own","refreshToken":"own"}}');
    home.write('claude', '#!/bin/sh\nexit 0\n', 0o755);
    expect((await svc(['--yes'])).stderr).not.toContain('did not capture');
  });

  test('warns if the agent keeps something else in its file', async () => {
    home.write(
      'claude',
      `#!/bin/sh\necho '{"claudeAiOauth":{"accessToken":"own"}}' > '${home.path}/.claude/.credentials.json'\n`,
      0o755,
    );
    expect((await svc(['--yes'])).stderr).toContain('does not have the placeholders of this login');
  });

  test('gives the agent no key of the person', async () => {
    await svc(['--yes']);
    expect(readFileSync(join(home.path, 'environment'), 'utf8')).not.toContain('planted');
  });

  test.each([
    ['where nobody can be asked', [], 'nobody can be asked'],
    ['with a credential', ['--yes', '--stdin'], 'takes no credential'],
    ['by a code that the agent does not know', ['--yes', '--device'], 'no login with a code'],
  ])('does nothing %s', async (_what, args, message) => {
    const run = await svc(args);
    expect(run.code).toBe(2);
    expect(run.stderr).toContain(message);
    expect(done).toEqual([]);
  });
});
