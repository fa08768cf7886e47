import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type Answer, runCli, type RunResult, TestHome } from '../testing/run_cli.ts';
import { withoutJobToken } from './job_token.ts';
import { jobName } from './join_command.ts';

const ORIGIN = 'https://control.example.test';
const ID = '00000000000000000000000000';
const REQUEST_TOKEN = 'request-token-of-a-test';
const GITHUB = {
  GITHUB_ACTIONS: 'true',
  ACTIONS_ID_TOKEN_REQUEST_URL: 'https://tokens.example.test/request?api-version=2.0',
  ACTIONS_ID_TOKEN_REQUEST_TOKEN: REQUEST_TOKEN,
};
const part = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');
const TOKEN = `${part({ alg: 'RS256' })}.${part({
  iss: 'https://issuer.example.test',
  aud: 'other',
  repository: 'acme/app',
  'kubernetes.io': { namespace: 'ci\u001b[31m' },
})}.c2lnbmF0dXJl`;

let home: TestHome;
let folder: string;
beforeEach(() => {
  home = new TestHome();
  folder = mkdtempSync(join(tmpdir(), 'svc-join-'));
});
afterEach(() => {
  home.remove();
  rmSync(folder, { recursive: true, force: true });
});

const refused = (details: object): Answer => {
  const error = { code: 'join_refused', message: 'the token was refused', request_id: `req_${ID}`, details };
  return ({ url }) =>
    url.pathname === '/auth/join' ? { status: 403, body: { error } } : { status: 200, body: { value: TOKEN } };
};
const never: Answer = ({ url }) => {
  throw new Error(`unexpected call of ${url.href}`);
};

/** Without a state directory, unless `env` names one. */
function joinWith(
  flags: readonly string[],
  env: Record<string, string> = {},
  answer: Answer = never,
): Promise<RunResult> {
  const account = ['--service-account', `usr_${ID}`];
  return runCli(home, ['--control', ORIGIN, 'join', ...account, ...flags, '--', 'true'], {
    answer,
    env: { SVC_HOME: undefined, ...env },
    workingDirectory: folder,
  });
}

describe('the token', () => {
  test('is requested from GitHub Actions, for the control plane alone', async () => {
    const done = await joinWith([], GITHUB, refused({ reason: 'signature' }));
    const [asked, joined] = done.calls;
    expect([asked?.url.href, asked?.authorization]).toEqual([
      `https://tokens.example.test/request?api-version=2.0&audience=${encodeURIComponent(ORIGIN)}`,
      `Bearer ${REQUEST_TOKEN}`,
    ]);
    expect([joined?.url.href, joined?.authorization]).toEqual([`${ORIGIN}/auth/join`, null]);
    expect(joined?.body).toMatchObject({ service_account: `usr_${ID}`, token: TOKEN });
    expect(done.code).toBe(125);
    expect(done.stderr).not.toContain(TOKEN);
  });

  test('is read from a variable or a file', async () => {
    writeFileSync(join(folder, 'token'), `${TOKEN}\n`);
    for (const flags of [
      ['--token-variable', 'JOB_TOKEN'],
      ['--token-file', 'token'],
    ]) {
      const done = await joinWith(flags, { JOB_TOKEN: TOKEN }, refused({ reason: 'signature' }));
      expect(done.calls.map(({ url }) => url.pathname)).toEqual(['/auth/join']);
      expect(done.calls[0]?.body).toMatchObject({ token: TOKEN });
    }
  });

  test.each([
    ['outside of GitHub Actions', {}, [], 'this is no job of GitHub Actions'],
    ['without the permission', { GITHUB_ACTIONS: 'true' }, [], 'permissions: { id-token: write'],
    [
      'of a request to plain http',
      { ...GITHUB, ACTIONS_ID_TOKEN_REQUEST_URL: 'http://tokens.example.test/' },
      [],
      'not an https URL',
    ],
    ['of an unset variable', {}, ['--token-variable', 'JOB_TOKEN'], `id_tokens: { JOB_TOKEN: { aud: "${ORIGIN}" } }`],
    ['of a file that is not there', {}, ['--token-file', 'none'], 'none cannot be read (ENOENT)'],
    ['of a folder', {}, ['--token-file', '.'], 'is not a file'],
    [
      'that is no token',
      { JOB_TOKEN: 'planted' },
      ['--token-variable', 'JOB_TOKEN'],
      'is not a signed OpenID Connect token',
    ],
  ])('%s is refused, with the fix, before anything is called', async (_, env, flags, words) => {
    const done = await joinWith(flags, env);
    expect([done.code, done.stdout]).toEqual([125, '']);
    expect(done.stderr).toContain(words);
    expect(done.stderr).not.toMatch(/planted|request-token/);
  });

  test('and what requests one is not passed on to the command', () => {
    const env = { ...GITHUB, JOB_TOKEN: TOKEN, PATH: '/bin' };
    expect(withoutJobToken(env, { kind: 'github' })).toEqual({
      GITHUB_ACTIONS: 'true',
      JOB_TOKEN: TOKEN,
      PATH: '/bin',
    });
    const source = { kind: 'variable', name: 'JOB_TOKEN' } as const;
    expect(withoutJobToken(env, source)).toEqual({ GITHUB_ACTIONS: 'true', PATH: '/bin' });
  });
});

describe('a refused join', () => {
  test.each([
    [{ reason: 'audience' }, 'The token says: aud = "other"'],
    [{ reason: 'issuer' }, 'The token says: iss = "https://issuer.example.test"'],
    [{ reason: 'claims', claims: ['repository', 'ref'] }, 'The token says: ref = (nothing)'],
    [{ reason: 'unknown_service_account' }, 'svc service-account list'],
    [{ reason: 'used_before' }, 'Join once for each token'],
  ])('for %j says what the token has', async (details, words) => {
    const done = await joinWith([], GITHUB, refused(details));
    expect(done.code).toBe(125);
    expect(done.stderr).toContain('the token was refused (403 join_refused)');
    expect(done.stderr).toContain(words);
  });

  test('shows no control character of a claim', async () => {
    const details = { reason: 'claims', claims: ['kubernetes.io/namespace'] };
    const { stderr } = await joinWith([], GITHUB, refused(details));
    expect(stderr).toContain('kubernetes.io/namespace = "ci');
    expect(stderr).not.toContain('\u001b');
  });
});

describe('the state directory', () => {
  test('of svc is refused, and stays', async () => {
    const before = readdirSync(home.path);
    const done = await joinWith([], { ...GITHUB, SVC_HOME: home.path }, refused({ reason: 'signature' }));
    expect(done.code).toBe(125);
    expect(done.stderr).toContain('is not empty');
    expect(done.calls.map(({ url }) => url.pathname)).not.toContain('/auth/join');
    expect(readdirSync(home.path)).toEqual(before);
  });

  test('is deleted after a refused join', async () => {
    const own = join(folder, 'state');
    await joinWith(['--home', own], GITHUB, refused({ reason: 'signature' }));
    expect(readdirSync(folder)).toEqual([]);
  });
});

describe('the command line', () => {
  test.each([
    [['--service-account', 'deploy'], '--service-account is not an id'],
    [['--minutes', '4'], '--minutes is not a whole number from 5 to 1440'],
    [['--minutes', ''], '--minutes is not a whole number from 5 to 1440'],
    [['--audience', ' '], '--audience is empty'],
    [['--upstream-ca', 'none.pem'], 'none.pem does not exist'],
    [['--token-file', 'a', '--token-variable', 'B'], 'cannot be combined'],
  ])('%j is refused', async (flags, words) => {
    const done = await joinWith(flags, GITHUB);
    expect(done.code).toBe(2);
    expect(done.stderr).toContain(words);
  });

  test('needs no separator before the command, whose options are its own', async () => {
    const argv = ['--control', ORIGIN, 'join', '--service-account', `usr_${ID}`, 'claude', '--minutes', '4'];
    const done = await runCli(home, argv, { env: { SVC_HOME: undefined } });
    expect([done.code, done.stderr]).toEqual([125, expect.stringContaining('this is no job of GitHub Actions')]);
  });

  test('names the sidecar like the run of the job', () => {
    expect(jobName({ GITHUB_REPOSITORY: 'acme/app', GITHUB_RUN_ID: '17' })).toBe('acme/app 17');
    expect(jobName({ CI_PROJECT_PATH: 'a'.repeat(200), CI_JOB_ID: '18' })).toBe(`${'a'.repeat(70)} 18`);
    expect(jobName({})).not.toBe('');
  });
});
