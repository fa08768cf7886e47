import { chmodSync, realpathSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { sha256Hex } from '../../machine/sha256.ts';
import { type BorrowedItem, borrowConsentInput } from '../../shared/borrow/borrow_calls.ts';
import { grantText } from '../../shared/borrow/borrow_grant.ts';
import { type Answer, runCli, type RunOptions, TestHome } from '../testing/run_cli.ts';
import { findBorrowProblems } from './borrow_findings.ts';

let home: TestHome;
let program: string;
let consents: BorrowedItem[];
let sources: object[];
let secrets: object[];
beforeEach(() => {
  home = new TestHome();
  program = join(realpathSync(home.path), 'tool');
  writeFileSync(program, 'first');
  chmodSync(program, 0o700);
  [consents, sources, secrets] = [[], [], []];
});
afterEach(() => home.remove());

const FACTS = {
  id: 'sec_01m7yjbz4dz98vffmftfxp52e5',
  path: 'user/github',
  ref: 'vault://user/github',
  owner: 'personal',
  description: null,
  version: 1,
};
const TIME = '2026-01-01T11:59:00.000Z';
const RECORD = {
  ...FACTS,
  source: { kind: 'borrowed' },
  minted: null,
  last_minted_at: null,
  failure: null,
  updated_at: TIME,
};
const STORED = { ...FACTS, created_at: TIME, updated_at: TIME };

const answer: Answer = ({ method, url }) => {
  if (url.pathname === '/v1/secret-sources')
    return method === 'POST' ? { status: 201, body: RECORD } : { status: 200, body: { items: sources } };
  if (url.pathname === '/v1/secrets') return { status: 200, body: { items: secrets, next_cursor: null } };
  if (url.pathname === '/v1/borrowed-secrets/test')
    return { status: 200, body: { until: TIME, states_end: true, key_set: false } };
  if (url.pathname === '/v1/borrowed-secrets' && method === 'GET') return { status: 200, body: { items: consents } };
  return { status: 204 };
};

const WHERE = ['--host', 'api.github.com', '--scheme', 'bearer'];
const add = (
  more: readonly string[] = [...WHERE, '--yes'],
  command: readonly string[] = [program, 'auth', 'token'],
  options: RunOptions = {},
) => runCli(home, ['secret', 'borrow', 'add', 'user/github', ...more, '--', ...command], { answer, ...options });

const cli = (...args: readonly string[]) => runCli(home, ['secret', 'borrow', ...args], { answer });

function itemOf(body: unknown): BorrowedItem {
  const { grant, hash } = borrowConsentInput.parse(body);
  return {
    grant,
    hash,
    sidecar_id: `sdc_${'0'.repeat(26)}`,
    consented_at: TIME,
    in_use: true,
    held_until: null,
    failure: null,
    problem: null,
  };
}

test('sends the record without the program, and the consent with what was shown', async () => {
  const run = await add();
  expect(run).toMatchObject({ code: 0, stdout: 'vault://user/github\n', stderr: '' });
  const [record, consent] = run.calls.filter(({ method }) => method === 'POST');
  expect([record?.url.port, record?.body]).toEqual([
    '7420',
    { path: 'user/github', owner: 'personal', source: { kind: 'borrowed' } },
  ]);
  expect([consent?.url.port, consent?.url.pathname]).toEqual(['7421', '/v1/borrowed-secrets']);
  const grant = {
    owner: 'personal',
    path: 'user/github',
    program,
    args: ['auth', 'token'],
    env: {},
    output: { form: 'text' },
    files: [{ path: program, sha256: sha256Hex('first') }],
    hosts: ['api.github.com'],
    scheme: 'bearer',
    effect: 'read',
  } as const;
  expect(consent?.body).toEqual({ grant, hash: sha256Hex(grantText(grant)) });
});

test('shows the header that a value goes into', async () => {
  const run = await add([
    '--host',
    'a.test',
    '--scheme',
    'header-template',
    '--header',
    'X-Api-Key',
    '--effect',
    'read',
  ]);
  expect(run.stdout).toContain('a.test with the scheme header-template, in the header x-api-key');
});

test('names the header of a session token, which a consent to sign does not cover', async () => {
  const run = await add(['--host', 's3.test', '--scheme', 'sigv4-resign', '--header', 'X-Amz-Security-Token', '--yes']);
  expect(run.calls.at(-1)?.body).toMatchObject({ grant: { scheme: 'sigv4-resign', place: 'x-amz-security-token' } });
});

test('asks at a terminal, and changes nothing without a yes', async () => {
  const no = await add(WHERE, undefined, { terminal: true, typed: ['n'] });
  expect(no.code).toBe(1);
  expect(no.calls.filter(({ method }) => method === 'POST')).toEqual([]);
  expect(no.stdout).toContain(`runs       ${program} auth token`);
  expect(no.stdout).toContain('for        api.github.com with the scheme bearer');
  const yes = await add(WHERE, undefined, { terminal: true, typed: ['y'] });
  expect(yes.code).toBe(0);
});

test('gives no consent without a terminal and without --yes', async () => {
  const run = await add([...WHERE, '--json']);
  expect(run.code).toBe(1);
  expect(JSON.parse(run.stdout)).toMatchObject({ consented: false, grant: { program } });
  expect(run.calls.filter(({ method }) => method === 'POST')).toEqual([]);
});

test('asks again when anything has changed, and shows what', async () => {
  consents = [itemOf((await add()).calls.at(-1)?.body)];
  sources = [RECORD];
  const same = await add(WHERE);
  expect(same.code).toBe(0);
  expect(same.calls.filter(({ method }) => method === 'POST')).toEqual([]);
  writeFileSync(program, 'second');
  const changed = await add(['--host', 'evil.test', '--scheme', 'bearer'], undefined, { terminal: true, typed: ['n'] });
  expect(changed.stdout).toContain('changed    - for api.github.com with the scheme bearer');
  expect(changed.stdout).toContain('changed    + for evil.test with the scheme bearer');
  expect(changed.stdout).toContain(`changed    + file ${program}, SHA-256 ${sha256Hex('second')}`);
});

test('does not replace a stored value', async () => {
  secrets = [STORED];
  const run = await add();
  expect([run.code, run.stderr]).toEqual([
    1,
    expect.stringContaining('vault://user/github has a stored value, which this would delete'),
  ]);
  expect(run.calls.filter(({ method }) => method === 'POST')).toEqual([]);
});

test.each([
  [['--scheme', 'bearer', '--yes'], undefined, '--host is missing'],
  [['--host', 'a.test', '--yes'], undefined, '--scheme is missing'],
  [['--host', '*', '--scheme', 'bearer', '--yes'], undefined, '--host covers every host'],
  [['--host', 'a.test', '--scheme', 'header-template', '--yes'], undefined, '--header is missing'],
  [['--host', 'a.test', '--scheme', 'query-param', '--yes'], undefined, '--query-param is missing'],
  [[...WHERE, '--yes', '--header', 'x-key'], undefined, '--header is for --scheme header-template'],
  [
    ['--host', 'a.test', '--scheme', 'sigv4-resign', '--yes', '--header', 'x-key'],
    undefined,
    '--header is for --scheme header-template',
  ],
  [[...WHERE, '--yes', '--query-param', 'key'], undefined, '--query-param is for --scheme query-param'],
  [
    [...WHERE, '--yes', '--env', 'LD_PRELOAD=x'],
    undefined,
    '--env LD_PRELOAD changes what the system loads into programs',
  ],
  [[...WHERE, '--yes', '--env', 'PATH=/tmp'], undefined, '--env PATH chooses which program a name stands for'],
  [[...WHERE, '--yes', '--env', 'planted'], undefined, '--env needs NAME=VALUE'],
  [[...WHERE, '--yes', '--json-expires', 'a'], undefined, '--json-expires needs --json-value'],
  [[...WHERE, '--yes', '--aws', '--json-value', 'a'], undefined, 'give either --aws or --json-value'],
  [[...WHERE, '--yes'], [], 'there is no program: write it after --'],
  [[...WHERE, '--yes'], ['no-such-program-here'], 'there is no program "no-such-program-here" on this machine'],
  [[...WHERE, '--yes'], ['/usr/bin/cat', 'tool'], 'the program runs in /, where "tool" is no file'],
])('refuses %j with %j', async (options, command, message) => {
  const run = await add(options, command);
  expect([run.code === 0, run.stderr]).toEqual([false, expect.stringContaining(message)]);
  expect(run.calls.filter(({ method }) => method === 'POST')).toEqual([]);
});

test('lists, shows, tests and withdraws what was consented to', async () => {
  consents = [
    {
      ...itemOf((await add()).calls.at(-1)?.body),
      failure: { message: 'tool ended with status 1', stderr: 'log in', at: TIME },
    },
  ];
  expect((await cli('list')).stdout).toBe(
    `vault://user/github\tpersonal\t${program} auth token\tapi.github.com\t-\ttool ended with status 1: log in\n`,
  );
  expect((await cli('show', 'user/github')).stdout).toContain('problem    tool ended with status 1: log in');
  expect((await cli('show', 'user/none')).stderr).toContain(
    'nobody on this machine has consented to borrow vault://user/none',
  );
  expect((await cli('test', 'user/github')).stdout).toBe(`a value until ${TIME}; it was discarded\n`);
  const removed = await cli('rm', 'user/github', '--json');
  expect(JSON.parse(removed.stdout)).toEqual({ withdrawn: 'user/github' });
  expect(removed.calls.at(-1)?.body).toEqual({ path: 'user/github', owner: 'personal' });
});

test('doctor reports a consent whose file has changed, and a program that fails', async () => {
  const item = itemOf((await add()).calls.at(-1)?.body);
  expect(findBorrowProblems([])).toEqual([]);
  expect(findBorrowProblems([item])).toMatchObject([{ level: 'ok' }]);
  expect(
    findBorrowProblems([{ ...item, problem: 'A file that it runs has changed since the consent.' }]),
  ).toMatchObject([{ level: 'problem', fix: expect.stringContaining('svc secret borrow show user/github') }]);
});
