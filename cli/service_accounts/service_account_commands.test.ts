import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type Answer, runCli, type RunResult, TestHome } from '../testing/run_cli.ts';

const ID = `usr_${'0'.repeat(26)}`;
const OTHER = `usr_${'1'.repeat(26)}`;
const TIME = '2026-01-01T12:00:00.000Z';
const account = {
  id: ID,
  name: 'Deploy',
  issuer: 'https://token.actions.githubusercontent.com',
  audience: 'https://control.example.test',
  claims: { repository: 'acme/app', ref: 'refs/heads/*' },
  reach: 'own',
  minutes: 60,
  keys: null,
  live_sidecars: 2,
  created_at: TIME,
  last_joined_at: null,
  suspended_at: null,
  revision: 'r1',
};

let home: TestHome;
beforeEach(() => {
  home = new TestHome();
});
afterEach(() => home.remove());

const answer: Answer = ({ method }) => {
  if (method === 'GET')
    return { status: 200, body: { items: [account, { ...account, id: OTHER, name: ID }], next_cursor: null } };
  return method === 'DELETE' ? { status: 204 } : { status: 201, body: account };
};

function svc(...words: string[]): Promise<RunResult> {
  return runCli(home, ['service-account', ...words], { answer });
}

function written({ calls }: RunResult): readonly unknown[] {
  return calls.filter(({ method }) => method !== 'GET').map(({ method, url, body }) => [method, url.pathname, body]);
}

describe('create', () => {
  test('takes options', async () => {
    const flags = ['--issuer', 'github', '--claim', 'repository=acme/app', '--claim', 'sub=a=b', '--minutes', '30'];
    const done = await svc('create', 'Deploy', ...flags, '--reach', 'enterprise');
    expect([done.code, done.stdout]).toEqual([0, `${ID}\n`]);
    const { issuer } = account;
    const claims = { repository: 'acme/app', sub: 'a=b' };
    const body = { name: 'Deploy', issuer, claims, minutes: 30, reach: 'enterprise' };
    expect(written(done)).toEqual([['POST', '/v1/service-accounts', body]]);
  });

  test.each([
    ['JSON', '{"name": "Pod", "issuer": "https://cluster.example.test", "claims": {"sub": "a"}}'],
    ['YAML', 'name: Pod\nissuer: https://cluster.example.test\nclaims:\n  sub: a\n'],
  ])('takes a file of %s, the keys of a file, and options over the file', async (_, text) => {
    home.write('account', text);
    home.write('jwks', '{"keys": [{"kty": "RSA"}]}');
    const done = await svc('create', 'Other', '--file', 'account', '--keys', 'jwks');
    const body = {
      name: 'Other',
      issuer: 'https://cluster.example.test',
      claims: { sub: 'a' },
      keys: [{ kty: 'RSA' }],
    };
    expect(written(done)).toEqual([['POST', '/v1/service-accounts', body]]);
  });

  test.each([
    [['Deploy', '--issuer', 'github'], 'claims missing'],
    [['Deploy', '--claim', 'repository'], 'is not NAME=VALUE'],
    [['Deploy', '--claim', 'a=b', '--claim', 'a=c'], '"a" is given twice'],
    [['Deploy', '--minutes', 'ten'], '--minutes "ten" is not a whole number'],
    [['--file', 'none'], 'none cannot be read: it does not exist'],
    [['--file', 'list'], 'has no fields'],
    [['--file', 'broken'], 'is neither JSON nor YAML'],
    [['--keys', 'list-of-nothing'], 'is not a JWK set'],
  ])('%j is refused before anything is called', async (words, problem) => {
    home.write('list', '- a');
    home.write('broken', 'a: [');
    home.write('list-of-nothing', '{}');
    const done = await svc('create', ...words);
    expect([done.code, done.calls]).toEqual([2, []]);
    expect(done.stderr).toContain(problem);
  });
});

test('list and show print the rules, and everything with --json', async () => {
  const listed = await svc('list');
  expect(listed.stdout.split('\n')[0]?.split('\t')).toEqual([
    ID,
    'Deploy',
    account.issuer,
    'repository=acme/app ref=refs/heads/*',
    '2 live',
  ]);
  expect((await svc('show', 'deploy')).stdout).toContain('claim ref\trefs/heads/*\n');
  expect(JSON.parse((await svc('show', ID, '--json')).stdout)).toEqual(account);
});

test('an account that is named like an id is not taken for it', async () => {
  const done = await svc('remove', ID, '--yes');
  expect(written(done)).toEqual([['DELETE', `/v1/service-accounts/${ID}`, undefined]]);
});

test('suspend and resume keep the policy', async () => {
  const { name, issuer, audience, claims, reach, minutes } = account;
  for (const [command, suspended] of [
    ['suspend', true],
    ['resume', false],
  ] as const) {
    const body = { name, issuer, audience, claims, reach, minutes, suspended };
    const done = await svc(command, 'deploy');
    expect(written(done)).toEqual([['PUT', `/v1/service-accounts/${ID}`, body]]);
    expect(done.calls.at(-1)?.ifMatch).toBe('"r1"');
  }
});

test('remove asks first', async () => {
  const done = await svc('rm', 'deploy');
  expect([done.code, written(done)]).toEqual([2, []]);
  expect(done.stderr).toContain('--yes is missing');
  const gone = await svc('show', 'deploi');
  expect([gone.code, gone.stderr]).toEqual([1, expect.stringContaining('there is no service account "deploi"')]);
});
