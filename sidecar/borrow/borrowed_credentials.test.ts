import { chmodSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { borrowConsentsPath } from '../../machine/borrow/consents_file.ts';
import { checkCommand } from '../../machine/borrow/check_files.ts';
import type { ProgramRun } from '../../machine/borrow/run_program.ts';
import type { BorrowedForm, CredentialUse } from '../../shared/borrow/borrow_grant.ts';
import type { BorrowConsent } from '../../shared/borrow/borrow_calls.ts';
import { err, ok } from '../../shared/model/result.ts';
import { FakeClock } from '../testing/fakes.ts';
import { BorrowConsents } from './borrow_consents.ts';
import { BorrowedCredentials } from './borrowed_credentials.ts';

const REF = { owner: 'personal', path: 'user/github' } as const;
const USE: CredentialUse = { host: 'api.github.com', scheme: 'bearer', place: null, effect: 'read' };
const AS = { uid: process.getuid?.() ?? 0 };
const SIDECAR = 'sdc_01m7yjbz4dz98vffmftfxp52e5';
const JSON_FORM: BorrowedForm = { form: 'json', value: 'token', expires: 'expires' };

let home: string;
let program: string;
let clock: FakeClock;
let monotonic: number;
let runs: ProgramRun[];
let answer: (
  run: ProgramRun,
) => Promise<ReturnType<typeof ok<Buffer>> | ReturnType<typeof err<{ message: string; stderr: string }>>>;
let recorded: { readonly type: string; readonly data: object }[];
let consents: BorrowConsents;
let credentials: BorrowedCredentials;

beforeEach(() => {
  home = realpathSync(mkdtempSync(join(tmpdir(), 'svc-borrow-')));
  program = join(home, 'tool');
  writeFileSync(program, 'first', { mode: 0o700 });
  clock = new FakeClock();
  monotonic = 0;
  runs = [];
  recorded = [];
  answer = async () => ok(Buffer.from(`planted-value-${runs.length}\n`));
  consents = new BorrowConsents({ home, sidecarId: SIDECAR, clock, warn: () => undefined });
  credentials = new BorrowedCredentials({
    consents,
    clock,
    monotonicNow: () => monotonic,
    credentialCacheSeconds: 300,
    behindMs: () => 0,
    environment: () => ({ PATH: '/usr/bin' }),
    runsAs: AS,
    record: (event) => `evt_${recorded.push(event)}`,
    run: async (run) => {
      runs.push(run);
      return answer(run);
    },
  });
  credentials.useVersions([{ ...REF, version: 'sec_1.1' }]);
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

async function grantOf(output: BorrowedForm = { form: 'text' }): Promise<BorrowConsent['grant']> {
  const files = await checkCommand(program, ['auth', 'token'], AS);
  if (!files.ok) throw new Error(files.error);
  const where = { hosts: ['api.github.com'], scheme: 'bearer', effect: 'read' } as const;
  return {
    ...REF,
    program,
    args: ['auth', 'token'],
    env: { GH_HOST: 'a' },
    output,
    files: [...files.value],
    ...where,
    hosts: [...where.hosts],
  };
}

async function consent(output?: BorrowedForm): Promise<void> {
  expect((await consents.give(await grantOf(output))).ok).toBe(true);
}

async function resolve(use: CredentialUse | null = USE): Promise<string> {
  const got = await credentials.resolve(REF, use);
  return got.ok ? got.value.secret.reveal() : `${got.error.reason}: ${got.error.message}`;
}

function pass(ms: number): void {
  clock.advance(ms);
  monotonic += ms;
}

test('runs nothing without a consent on this machine, whatever the control plane says', async () => {
  expect(await resolve()).toMatch(/^borrow_not_consented: .* svc secret borrow add user\/github$/);
  expect(runs).toEqual([]);
});

test('runs exactly what was consented to, and records by what and until when', async () => {
  await consent();
  expect(await resolve()).toBe('planted-value-1');
  expect(runs).toEqual([
    { program, args: ['auth', 'token'], env: { PATH: '/usr/bin', GH_HOST: 'a' }, timeoutMs: 30_000, maxBytes: 131_072 },
  ]);
  expect(recorded).toMatchObject([
    {
      type: 'sandbox.proxy.credential_borrowed',
      data: {
        'svc.proxy.credential_ref': 'vault://user/github',
        'svc.borrow.program': 'tool',
        'svc.borrow.until': new Date(clock.now() + 300_000).toISOString(),
      },
    },
  ]);
  expect(JSON.stringify(recorded)).not.toContain('planted');
});

test.each<[string, CredentialUse | null]>([
  ['a binding that was changed to another host', { ...USE, host: 'evil.test' }],
  ['another scheme', { ...USE, scheme: 'query-param' }],
  ['a binding that may write', { ...USE, effect: null }],
  ['an MCP server, which is no request', null],
])('gives no value to %s, also while one is held', async (_what, use) => {
  await consent();
  await resolve();
  expect(await resolve(use)).toMatch(/^borrow_not_consented: /);
  expect(runs).toHaveLength(1);
});

test('runs once for a thousand requests', async () => {
  await consent();
  const all = await Promise.all(Array.from({ length: 1000 }, () => resolve()));
  expect(new Set(all)).toEqual(new Set(['planted-value-1']));
  expect(runs).toHaveLength(1);
});

test('uses a value for at most five minutes, and asks ahead', async () => {
  await consent();
  await resolve();
  pass(239_000);
  expect(await resolve()).toBe('planted-value-1');
  expect(runs).toHaveLength(1);
  pass(2_000);
  expect(await resolve()).toBe('planted-value-1');
  await expect.poll(() => credentials.heldUntil(REF)).toBe(clock.now() + 300_000);
  expect(await resolve()).toBe('planted-value-2');
});

test.each([
  ['the wall clock', () => clock.advance(60_000)],
  ['the monotonic clock', () => void (monotonic += 60_000)],
])('never uses a value past its own end by %s', async (_clock, passes) => {
  await consent(JSON_FORM);
  answer = async () => ok(Buffer.from(JSON.stringify({ token: `planted-${runs.length}`, expires: 60 })));
  expect(await resolve()).toBe('planted-1');
  answer = async () => err({ message: 'ended with status 1', stderr: '' });
  passes();
  expect(await resolve()).toMatch(/^credential_unavailable: .*ended with status 1/);
});

test('refuses a value that has ended when it arrives', async () => {
  await consent(JSON_FORM);
  answer = async () => ok(Buffer.from(JSON.stringify({ token: 'planted', expires: '2020-01-01T00:00:00Z' })));
  expect(await resolve()).toMatch(/^credential_unavailable: .*gave a value that has already ended/);
});

test('tells an agent nothing that a failed program wrote, and is not started again at once', async () => {
  await consent();
  answer = async () => err({ message: 'ended with status 1', stderr: 'please log in\n' });
  expect(await resolve()).toBe(
    'credential_unavailable: No value for vault://user/github: tool ended with status 1. See it on this machine with: svc secret borrow test user/github',
  );
  expect(credentials.failureOf(REF)).toMatchObject({ stderr: 'please log in' });
  expect(recorded.at(-1)).toMatchObject({
    type: 'sandbox.proxy.borrow_failed',
    data: { 'svc.proxy.reason': 'tool ended with status 1' },
  });
  pass(4_000);
  await resolve();
  expect(runs).toHaveLength(1);
  pass(2_000);
  await resolve();
  expect(runs).toHaveLength(2);
});

test('does not start a program that was replaced since the consent', async () => {
  await consent();
  writeFileSync(program, 'other', { mode: 0o700 });
  expect(await resolve()).toMatch(/^credential_unavailable: .*has changed since the consent/);
  writeFileSync(program, 'first');
  chmodSync(program, 0o777);
  pass(6_000);
  expect(await resolve()).toMatch(/^credential_unavailable: .*cannot be trusted/);
  expect(runs).toEqual([]);
});

test.each<[string, () => Promise<unknown> | void]>([
  ['the consent was withdrawn', () => consents.withdraw(REF)],
  ['the file of consents was deleted', () => rmSync(borrowConsentsPath(home))],
  ['the file of consents was opened to others', () => chmodSync(borrowConsentsPath(home), 0o644)],
])('drops the value when %s', async (_why, change) => {
  await consent();
  await resolve();
  await change();
  expect(await resolve()).toMatch(/^borrow_not_consented: /);
});

test('drops the value when the record changed, and forgets a run that was on its way', async () => {
  await consent();
  await resolve();
  credentials.useVersions([{ ...REF, version: 'sec_1.2' }]);
  expect(await resolve()).toBe('planted-value-2');
  pass(301_000);
  const late = resolve();
  credentials.useVersions([]);
  expect(await late).toMatch(/^credential_unavailable: .*was changed while its program ran/);
  expect(credentials.includes(REF)).toBe(false);
  expect(credentials.heldUntil(REF)).toBeNull();
});

test('counts no consent of another enrolment, and none whose text was edited', async () => {
  await consent();
  const path = borrowConsentsPath(home);
  const text = readFileSync(path, 'utf8');
  writeFileSync(path, text.replace('api.github.com', 'evil.test'));
  expect(await resolve({ ...USE, host: 'evil.test' })).toMatch(/^borrow_not_consented: /);
  writeFileSync(path, text);
  expect(await resolve()).toBe('planted-value-1');
  const other = new BorrowConsents({ home, sidecarId: `sdc_${'0'.repeat(26)}`, clock, warn: () => undefined });
  expect(other.find(REF)).toBeNull();
});
