import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type Answer, type RunOptions, type RunResult, runCli, TestHome } from '../testing/run_cli.ts';
import { FakeVault } from '../testing/fake_vault.ts';
import { ME } from '../testing/session_samples.ts';

const TIME = '2026-01-01T12:00:00.000Z';
const LOGIN_ID = 'plg_00000000000000000000000000';
const HOSTS = ['api.github.com', 'github.com', 'uploads.github.com', 'ghcr.io'];
const REFUSAL = { status: 400, body: { error: { code: 'invalid_input', message: 'no', request_id: 'req_1' } } };

let home: TestHome;
let vault: FakeVault;
let login: { state: string; who: string | null };
let refusesToStore: boolean;
let sessionInput: Record<string, unknown>;
/** What was done, in order, and what was opened and stored. */
let done: string[];
let opened: unknown;
let stored: unknown;
/** What the program of this test says about its options. */
let help: string;

beforeEach(() => {
  home = new TestHome();
  vault = new FakeVault();
  [login, refusesToStore, sessionInput, done] = [{ state: 'held', who: 'octo' }, false, {}, []];
  [opened, stored, help] = [null, null, '--insecure-storage'];
  mkdirSync(join(home.path, '.config/gh'), { recursive: true });
});
afterEach(() => home.remove());

/** It writes what it got, as gh does, and keeps its environment and arguments. */
function installGh(): void {
  const lines = [
    '#!/bin/sh',
    `case "$*" in *--help*) echo '${help}'; exit 0;; esac`,
    `env > '${home.path}/environment'; echo "$*" > '${home.path}/arguments'`,
    `cp '${home.path}/next.yml' '${home.path}/.config/gh/hosts.yml'`,
  ];
  writeFileSync(join(home.path, 'gh'), `${lines.join('\n')}\n`);
  chmodSync(join(home.path, 'gh'), 0o755);
}

const answer: Answer = (call) => {
  const { pathname: path } = call.url;
  if (call.method !== 'GET') done.push(`${call.method} ${path.replace(LOGIN_ID, 'ID')}`);
  if (path === '/v1/me') return { status: 200, body: ME };
  if (path === '/v1/sandbox-proxy/sessions') {
    sessionInput = Object(call.body);
    const { placeholder } = Object(sessionInput['login']);
    home.write('next.yml', `github.com:\n    user: octo\n    oauth_token: ${placeholder}\n`);
    const reply = { session_id: 'ses_1', token: 't', proxy_url: 'http://ses_1:t@127.0.0.1:7421' };
    const sentinels = [{ env: 'GH_TOKEN', value: 'own-placeholder-of-the-session' }];
    return { status: 201, body: { ...reply, ca_bundle_path: '/bundle.pem', sentinels } };
  }
  if (path === '/v1/sandbox-proxy/sessions/ses_1') {
    return call.method === 'DELETE' ? { status: 204 } : { status: 200, body: { login: { id: LOGIN_ID, ...login } } };
  }
  if (path === '/v1/pending-logins') {
    opened = call.body;
    const times = { created_at: TIME, expires_at: TIME };
    return { status: 201, body: { id: LOGIN_ID, ...Object(call.body), state: 'open', account: null, ...times } };
  }
  if (path.endsWith('/store')) {
    stored = call.body;
    return refusesToStore ? REFUSAL : { status: 200, body: { ref: 'vault://user/github' } };
  }
  if (path.startsWith('/v1/pending-logins')) return { status: 204 };
  return vault.answer(call);
};
const svc = (args: readonly string[], options: RunOptions = {}): Promise<RunResult> => {
  installGh();
  vault.beginCommand();
  return runCli(home, ['login', 'gh', ...args], {
    answer,
    ...options,
    env: { PATH: `${home.path}:/usr/bin:/bin`, ...options.env },
  });
};
const placeholder = (): unknown => Object(sessionInput['login']).placeholder;

describe('svc login gh', () => {
  test('shows whose account it is, makes the bindings of svc seal github, and stores the token last', async () => {
    const run = await svc([], { terminal: true, typed: ['y'] });
    expect(run.stderr).toContain('gh logged in: octo');
    expect(run.code).toBe(0);
    expect(opened).toEqual({
      program: 'gh',
      token_url: 'https://github.com/login/oauth/access_token',
      client_id: '178c6fc778ccc68e1d6a',
      grants: ['device_code'],
    });
    expect(vault.hosts()).toEqual(HOSTS);
    expect(stored).toEqual({ path: 'user/github', description: 'sealed for GitHub' });
    const own = vault.bindings.find(({ host }) => host === 'api.github.com');
    expect(placeholder()).toBe(Object(own?.['sentinel']).value);
    expect(done.filter((what) => what.startsWith('POST')).slice(-2)).toEqual([
      'POST /v1/host-bindings',
      'POST /v1/pending-logins/ID/store',
    ]);
    expect(run.stderr).not.toContain('does not have the placeholder');
  });

  test('keeps the token variables from gh, lets it ask nothing, and its token out of the keyring', async () => {
    await svc(['--yes'], { env: { GITHUB_TOKEN: 'own' } });
    const environment = readFileSync(join(home.path, 'environment'), 'utf8');
    expect(environment).not.toMatch(/^(?:GH|GITHUB)_TOKEN=/m);
    expect(environment).toContain('GH_PROMPT_DISABLED=1');
    const base = 'auth login --hostname github.com --web --git-protocol https';
    expect(readFileSync(join(home.path, 'arguments'), 'utf8')).toBe(`${base} --insecure-storage\n`);
    help = 'an earlier version';
    await svc(['--yes']);
    expect(readFileSync(join(home.path, 'arguments'), 'utf8')).toBe(`${base}\n`);
  });

  test('stores nothing if the person says no', async () => {
    const run = await svc([], { terminal: true, typed: ['n'] });
    expect(run.code).toBe(1);
    expect(run.stderr).toContain('nothing was stored: svc has deleted the token');
    expect([vault.hosts(), stored]).toEqual([[], null]);
    expect(done.at(-1)).toBe('DELETE /v1/pending-logins/ID');
  });

  test.each([
    ['gh did not log in', { state: 'waiting', who: null }],
    ['could not be stored', { state: 'not_stored', who: null }],
    ['was withheld or lost', { state: 'withheld', who: null }],
    ['two programs asked', { state: 'contested', who: 'octo' }],
    ['GitHub did not say whose login it is', { state: 'held', who: null }],
  ])('stores nothing if %s', async (said, session) => {
    login = session;
    const run = await svc(['--yes']);
    expect(run.code).toBe(1);
    expect(run.stderr).toContain(said);
    expect([vault.hosts(), stored]).toEqual([[], null]);
    expect(done.at(-1)).toBe('DELETE /v1/pending-logins/ID');
  });

  test('deletes the bindings again if the token cannot be stored', async () => {
    refusesToStore = true;
    const run = await svc(['--yes']);
    expect(run.code).toBe(1);
    expect(run.stderr).toContain('nothing was changed');
    expect(vault.hosts()).toEqual([]);
  });

  test('shows the secret that it replaces, and keeps a placeholder that a person chose', async () => {
    await svc(['--yes']);
    vault.values['user/github'] = 'an earlier token';
    const own = vault.bindings.find(({ host }) => host === 'api.github.com');
    Object.assign(own ?? {}, { sentinel: { value: 'ghp_placeholder_of_their_own', env: 'GH_TOKEN' } });
    const run = await svc([], { terminal: true, typed: ['y'] });
    expect(run.stderr).toContain('It replaces vault://user/github');
    expect(run.code).toBe(0);
    expect(placeholder()).toBe('ghp_placeholder_of_their_own');
    expect(vault.hosts()).toEqual(HOSTS);
  });

  test('stores nothing if a binding was changed while the person logged in', async () => {
    await svc(['--yes']);
    stored = null;
    const run = await svc(['--yes'], {
      answer: (call) => {
        if (call.url.pathname === '/v1/sandbox-proxy/sessions/ses_1' && call.method === 'DELETE') vault.bindings.pop();
        return answer(call);
      },
    });
    expect(run.stderr).toContain('were changed meanwhile');
    expect([run.code, stored]).toEqual([1, null]);
  });

  test('warns if the file of gh holds another credential', async () => {
    const other = ['ghp', 'a1B2'.repeat(9)].join('_');
    const run = await svc(['--yes'], {
      answer: (call) => {
        const reply = answer(call);
        if (call.url.pathname.endsWith('/sessions')) home.write('next.yml', `oauth_token: ${other}\n`);
        return reply;
      },
    });
    expect(run.stderr).toContain('does not have the placeholder');
    expect(run.stderr).toContain('holds another credential');
    expect(run.stderr).not.toContain(other);
  });

  test.each([
    ['nobody can be asked', [], 'nobody can be asked here'],
    ['a credential is given', ['--stdin', '--yes'], 'takes no credential'],
    ['an import is wanted', ['--import', '--yes'], 'imports nothing'],
  ])('does nothing if %s', async (_what, args, said) => {
    const run = await svc(args);
    expect(run.code).toBe(2);
    expect(run.stderr).toContain(said);
    expect(done).toEqual([]);
  });
});
