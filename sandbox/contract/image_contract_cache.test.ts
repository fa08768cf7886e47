import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { imageChecksIn } from './image_contract_cache.ts';
import type { ImageFacts } from './image_contract_facts.ts';

const facts: ImageFacts = {
  imageId: 'sha256:abc',
  contractVersion: '1',
  agentUser: 'agent',
  uid: 1000,
  gid: 1000,
  home: '/home/agent',
  layout: 'alpine',
  hasJava: false,
  hasCertutil: false,
  entry: '/usr/local/bin/svc-run-with-proxy-ca',
  stepRunner: '/usr/local/bin/svc-run-step',
  mcpNode: null,
  stepsRefused: null,
};

let home = '';
let warnings: string[] = [];
const file = (): string => join(home, 'image_checks.json');
const checks = (): ReturnType<typeof imageChecksIn> => imageChecksIn(home, (text) => warnings.push(text));
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'svc-checks-'));
  warnings = [];
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

test('caches an image by its id in a file that only its owner can read', async () => {
  expect(checks().find('sha256:abc')).toBeNull();
  await checks().keep(facts);
  expect(checks().find('sha256:abc')).toEqual(facts);
  expect(checks().find('sha256:other')).toBeNull();
  expect(statSync(file()).mode & 0o777).toBe(0o600);
});

test('keeps the newest hundred images', async () => {
  for (let n = 0; n < 103; n += 1) await checks().keep({ ...facts, imageId: `sha256:${n}` });
  expect([0, 2, 3, 102].map((n) => checks().find(`sha256:${n}`)?.imageId)).toEqual([
    undefined,
    undefined,
    'sha256:3',
    'sha256:102',
  ]);
});

test.each<[string, (text: string) => string]>([
  ['damaged', (text) => text.slice(0, -5)],
  ['empty', () => ''],
  ['of another kind', () => '[]'],
  ['of another probe', (text) => text.replace(/"probe":"./, '"probe":"x')],
  ['not what it says', (text) => text.replace('"uid":1000', '"uid":0')],
  ['too large', (text) => text + ' '.repeat(300_000)],
])('ignores and replaces a file that is %s', async (_what, change) => {
  await checks().keep(facts);
  writeFileSync(file(), change(readFileSync(file(), 'utf8')));
  expect(checks().find('sha256:abc')).toBeNull();
  await checks().keep(facts);
  expect(checks().find('sha256:abc')).toEqual(facts);
});

test('ignores a file that others can read', async () => {
  await checks().keep(facts);
  chmodSync(file(), 0o644);
  expect(checks().find('sha256:abc')).toBeNull();
});

test('warns if it cannot be written, and continues', async () => {
  mkdirSync(file());
  await checks().keep(facts);
  expect(warnings).toHaveLength(1);
  expect(warnings[0]).toContain('not cached');
});
