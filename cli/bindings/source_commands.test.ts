import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { runCli, TestHome, type Answer } from '../testing/run_cli.ts';
import { sourceSample } from '../testing/source_sample.ts';

let home: TestHome;
let key: string;
beforeEach(() => {
  home = new TestHome();
  key = join(home.path, 'key');
  writeFileSync(key, 'planted-key', { mode: 0o600 });
});
afterEach(() => home.remove());

const RECORD = sourceSample({
  last_minted_at: '2026-01-01T11:00:00.000Z',
  failure: { message: 'id.example.test refused (invalid_client)', at: '2026-01-01T11:59:00.000Z' },
});

const PLAN = {
  kind: 'client_credentials',
  value: 'token',
  minted_for: 'the scope a',
  identity: 'the client build',
  scope: ['a'],
  audience: null,
  provider_url: 'https://id.example.test/token',
  life_seconds: null,
  until_at_latest: '2026-01-02T12:00:00.000Z',
  key_checked: true,
};

const control: Answer = ({ method, url }) => {
  if (url.pathname === '/v1/secret-sources/test') {
    return { status: 200, body: { minted_for: 'the scope a', until: '2026-01-01T12:59:00.000Z', left: 'ends' } };
  }
  if (url.pathname === '/v1/secret-sources/dry-run') return { status: 200, body: PLAN };
  return method === 'POST' ? { status: 201, body: RECORD } : { status: 200, body: { items: [RECORD] } };
};

const FIELDS = ['--set', 'client_id=build', '--set', 'token_url=https://id.example.test/token'];
const add = (...more: readonly string[]) =>
  runCli(home, ['secret', 'source', 'add', 'ci/build', 'client_credentials', '--file', key, ...more], {
    answer: control,
  });

test('adds a source with its key, which is in no output', async () => {
  const run = await add(...FIELDS, '--set', 'scopes=a,b');
  expect(run).toMatchObject({ code: 0, stdout: 'vault://ci/build\n', stderr: '' });
  expect(run.calls.at(-1)?.body).toMatchObject({
    path: 'ci/build',
    owner: 'personal',
    key: 'planted-key',
    source: { kind: 'client_credentials', client_id: 'build', scopes: ['a', 'b'] },
  });
});

test.each([
  [
    ['--set', 'client_id=build'],
    'a source of the kind client_credentials needs more fields: add --set token_url=VALUE\n',
  ],
  [['--set', 'client_id=build', '--set', 'token_url=x'], 'the field token_url of the source: '],
  [['--set', 'planted-key'], 'a value of --set names no field of client_credentials: write FIELD=VALUE with one of '],
  [[...FIELDS, '--value', 'planted-key'], 'the key of a source cannot be given on the command line: '],
  [['planted-key', ...FIELDS], 'the key of a source cannot be given on the command line: '],
])('refuses %j before anything is sent, and quotes no value', async (more, problem) => {
  const run = await add(...more);
  expect([run.code, run.calls]).toEqual([2, []]);
  expect(run.stderr).toContain(`svc: ${problem}`);
  expect(run.stderr).not.toContain('planted-key');
});

test('without fields, lists the values of a field that has only a few', async () => {
  const run = await runCli(home, ['secret', 'source', 'add', 'ci/build', 'aws_web_identity'], { answer: control });
  expect(run.stderr).toMatch(/^ +algorithm: .*\. RS256, ES256$/m);
});

test('without fields, lists those of the kind and says which are needed, before it asks for the key', async () => {
  const run = await runCli(home, ['secret', 'source', 'add', 'ci/build', 'doppler'], { answer: control });
  expect([run.code, run.calls]).toEqual([2, []]);
  expect(run.stderr).toContain('add --set project=VALUE --set config=VALUE --set secret_name=VALUE');
  expect(run.stderr).toMatch(/^ +project \(needed\): /m);
  expect(run.stderr).toMatch(/^ +doppler_url: /m);
});

test('refuses an unknown kind, and names those that exist', async () => {
  const run = await runCli(home, ['secret', 'source', 'add', 'ci/build', 'vault', '--file', key], { answer: control });
  expect([run.code, run.calls]).toEqual([2, []]);
  expect(run.stderr).toMatch(/"vault" is no kind of source: write one of .*github_app/);
});

test('shows a source with its last failure, and says which path has none', async () => {
  const shown = await runCli(home, ['secret', 'source', 'show', 'ci/build'], { answer: control });
  expect(shown.stdout).toContain('last failure: id.example.test refused (invalid_client)');
  const listed = await runCli(home, ['secret', 'source', 'list'], { answer: control });
  expect(listed.stdout).toContain('vault://ci/build');
  const none = await runCli(home, ['secret', 'source', 'show', 'ci/other'], { answer: control });
  expect([none.code, none.stderr]).toEqual([1, expect.stringContaining('vault://ci/other has no source')]);
});

const paged: Answer = ({ url }) => {
  const isFirst = url.searchParams.get('cursor') === null;
  const record = isFirst ? RECORD : { ...RECORD, path: 'ci/other', ref: 'vault://ci/other' };
  return { status: 200, body: { items: [record], next_cursor: isFirst ? 'bmV4dA' : null } };
};

test('the sources of every page are found', async () => {
  const run = await runCli(home, ['secret', 'source', 'show', 'ci/other'], { answer: paged });
  expect([run.code, run.stdout]).toEqual([0, expect.stringContaining('vault://ci/other')]);
});

test('a test says what would be minted, and until when', async () => {
  const run = await runCli(home, ['secret', 'source', 'test', 'ci/build'], { answer: control });
  expect(run.stdout).toBe(
    'a value for the scope a, until 2026-01-01T12:59:00.000Z; it was discarded; its provider accepts it until then\n',
  );
  expect(run.calls.at(-1)?.body).toEqual({ path: 'ci/build', owner: 'personal' });
});

test('a dry run of a new source has its key checked, and prints what would be minted', async () => {
  const run = await add(...FIELDS, '--dry-run');
  expect(run.calls.map(({ url }) => url.pathname)).toEqual(['/v1/secret-sources/dry-run']);
  expect(run.calls[0]?.body).toMatchObject({ source: { client_id: 'build' }, key: 'planted-key' });
  expect(run.stdout).toBe(`would be minted; nothing was asked or stored:
  value: a token for the scope a
  speaks for: the client build
  scope: a
  asked of: https://id.example.test/token
  until: the provider decides; 2026-01-02T12:00:00.000Z at the latest
  key: it has the form that is needed
`);
});

test('a dry run needs no key, and is one object with --json', async () => {
  const args = ['secret', 'source', 'add', 'ci/build', 'client_credentials', '--dry-run', '--json'];
  const run = await runCli(home, [...args, ...FIELDS], { answer: control });
  expect([run.code, JSON.parse(run.stdout)]).toEqual([0, PLAN]);
  expect(run.calls[0]?.body).not.toHaveProperty('key');
  const stored = await runCli(home, ['secret', 'source', 'test', 'ci/build', '--dry-run', '--json'], {
    answer: control,
  });
  expect(JSON.parse(stored.stdout)).toEqual(PLAN);
  expect(stored.calls[0]?.body).toEqual({ path: 'ci/build', owner: 'personal' });
});

test('a dry run of a source of Vault says by which call its value is read', async () => {
  const plan = {
    ...PLAN,
    kind: 'vault_kv',
    value: 'kept_value',
    minted_for: 'the field password of secret/ci/db at vault.test',
    identity: 'the token of the source',
    scope: ['field password'],
    provider_url: 'https://vault.test/v1/secret/data/ci/db',
    life_seconds: 300,
  };
  const fields = ['vault_url=https://vault.test', 'secret_path=ci/db', 'field=password', 'version=3'];
  const set = fields.flatMap((field) => ['--set', field]);
  const run = await runCli(home, ['secret', 'source', 'add', 'ci/db', 'vault_kv', '--dry-run', ...set], {
    answer: () => ({ status: 200, body: plan }),
  });
  expect(run.calls[0]?.body).toMatchObject({ source: { kind: 'vault_kv', version: 3, authentication: 'token' } });
  expect(run.stdout).toContain('value: the field password of secret/ci/db at vault.test\n');
  expect(run.stdout).toContain('asked of: https://vault.test/v1/secret/data/ci/db\n');
});

test('an AppRole without its role id is refused by the name of the field', async () => {
  const set = ['vault_url=https://vault.test', 'secret_path=ci/db', 'field=a', 'authentication=approle'];
  const args = ['secret', 'source', 'add', 'ci/db', 'vault_kv', '--dry-run', ...set.flatMap((each) => ['--set', each])];
  const run = await runCli(home, args, { answer: control });
  expect([run.code, run.calls]).toEqual([2, []]);
  expect(run.stderr).toContain('the field role_id of the source: is needed for approle');
});
