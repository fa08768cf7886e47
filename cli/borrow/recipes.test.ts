import { chmodSync, mkdirSync, realpathSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { runProgram } from '../../machine/borrow/run_program.ts';
import { borrowConsentInput } from '../../shared/borrow/borrow_calls.ts';
import { readBorrowed } from '../../shared/borrow/read_output.ts';
import { runCli, TestHome } from '../testing/run_cli.ts';
import { RECIPES } from './recipes.ts';

let home: TestHome;
let bin: string;
beforeEach(() => {
  home = new TestHome();
  bin = join(realpathSync(home.path), 'bin');
  mkdirSync(bin);
});
afterEach(() => home.remove());

const TIME = '2026-01-01T11:59:00.000Z';
const RECORD = {
  id: 'sec_01m7yjbz4dz98vffmftfxp52e5',
  path: 'user/x',
  ref: 'vault://user/x',
  owner: 'personal',
  description: null,
  version: 1,
  source: { kind: 'borrowed' },
  minted: null,
  last_minted_at: null,
  failure: null,
  updated_at: TIME,
};

const add = (recipe: string, words: readonly string[]) =>
  runCli(
    home,
    [
      'secret',
      'borrow',
      'add',
      'user/x',
      '--host',
      'a.test',
      '--scheme',
      'bearer',
      '--yes',
      '--recipe',
      recipe,
      '--',
      ...words,
    ],
    {
      env: { PATH: bin },
      answer: ({ method, url }) => {
        if (url.port === '7421') return method === 'GET' ? { status: 200, body: { items: [] } } : { status: 204 };
        return { status: 200, body: { items: [RECORD] } };
      },
    },
  );

/** A program that stands in for a provider's CLI: it gives the value only for exactly these words. */
function standIn(program: string, words: readonly string[], output: string): void {
  const path = join(bin, program);
  writeFileSync(join(bin, 'output'), output);
  writeFileSync(
    path,
    `#!/bin/sh\n[ "$*" = '${words.join(' ')}' ] || { echo "not these words: $*" >&2; exit 1; }\ncat ${bin}/output\n`,
  );
  chmodSync(path, 0o700);
}

const KEYS = {
  Version: 1,
  AccessKeyId: 'ASIAIOSFODNN7EXAMPLE',
  SecretAccessKey: 'planted',
  SessionToken: 'token',
  Expiration: TIME,
};

test.each([
  ['gh', 'gh', [], 'auth token', 'planted\n'],
  [
    'gcloud',
    'gcloud',
    [],
    'config config-helper --format=json',
    JSON.stringify({ credential: { access_token: 'planted', token_expiry: TIME } }),
  ],
  [
    'aws',
    'aws',
    ['--profile', 'dev'],
    'configure export-credentials --format process --profile dev',
    JSON.stringify(KEYS),
  ],
  [
    'az',
    'az',
    ['--resource', 'https://a.test/'],
    'account get-access-token --output json --resource https://a.test/',
    JSON.stringify({ accessToken: 'planted', expires_on: 1_767_268_740 }),
  ],
  ['keyring', 'secret-tool', ['service', 'demo'], 'lookup service demo', 'planted'],
  ['macos-keychain', 'security', ['-s', 'demo', '-a', 'me'], 'find-generic-password -w -s demo -a me', 'planted\n'],
  ['op', 'op', ['op://v/i/f'], 'read --no-newline op://v/i/f', 'planted'],
  ['vault', 'vault', ['-field=token', 'secret/app'], 'kv get -field=token secret/app', 'planted\n'],
  ['bao', 'bao', ['-field=token', 'secret/app'], 'kv get -field=token secret/app', 'planted\n'],
  ['doppler', 'doppler', ['TOKEN'], 'secrets get --plain TOKEN', 'planted\n'],
  ['infisical', 'infisical', ['TOKEN'], 'secrets get --plain --silent TOKEN', 'planted\n'],
])(
  'the recipe %s asks %s (a stand-in) for one value and reads its output',
  async (recipe, program, words, asked, output) => {
    standIn(program, asked.split(' '), output);
    const run = await add(recipe, words);
    expect([run.code, run.stderr]).toEqual([0, '']);
    const { grant } = borrowConsentInput.parse(run.calls.at(-1)?.body);
    expect([grant.program, ...grant.args].join(' ')).toBe(`${join(bin, program)} ${asked}`);
    const how = { env: { PATH: '/usr/bin:/bin' }, timeoutMs: 20_000, maxBytes: 10_000 };
    const got = await runProgram({ program: grant.program, args: grant.args, ...how });
    const read = readBorrowed(grant.output, got.ok ? got.value.toString() : '', Date.parse(TIME));
    expect(read.ok && read.value.secret.reveal()).toBe('planted');
    expect(read.ok && read.value.expiresAtMs).toBe(output.startsWith('{') ? Date.parse(TIME) : null);
  },
);

test('an ended login of AWS IAM Identity Center is a failure that says how to log in again', async () => {
  const words = ['--profile', 'sso-dev'];
  standIn('aws', ['configure', 'export-credentials', '--format', 'process', ...words], '');
  // As the AWS CLI answers (botocore's TokenRetrievalError), with exit status 255.
  const said = 'Error when retrieving token from sso: Token has expired and refresh failed';
  writeFileSync(join(bin, 'aws'), `#!/bin/sh\necho '${said}' >&2\nexit 255\n`);
  const run = await add('aws', words);
  expect([run.code, run.stderr]).toEqual([0, '']);
  const { grant } = borrowConsentInput.parse(run.calls.at(-1)?.body);
  const how = { env: { PATH: '/usr/bin:/bin' }, timeoutMs: 20_000, maxBytes: 10_000 };
  const got = await runProgram({ program: grant.program, args: grant.args, ...how });
  expect(got).toMatchObject({ ok: false });
  expect(JSON.stringify(got)).toContain('255');
  expect(JSON.stringify(got)).toContain(said);
});

test('covers every recipe, and says what one needs', async () => {
  expect(Object.keys(RECIPES)).toHaveLength(11);
  expect((await add('op', [])).stderr).toContain(
    'the recipe op needs to know which value: write -- op://VAULT/ITEM/FIELD',
  );
  expect((await add('toString', [])).stderr).toContain('--recipe is none of gh, gcloud');
});
