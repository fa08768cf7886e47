import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { keyFindings } from './key_findings.ts';

const KEY = 'arn:aws:kms:eu-central-1:123456789012:key/k';
let home: string;
let credentials: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'svc-key-findings-'));
  credentials = join(home, 'credentials.json');
  writeFileSync(join(home, 'vault.key'), `{"protection":"kms","key":"${KEY}"}\n`);
  writeFileSync(credentials, '{}', { mode: 0o600 });
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

const levels = (env: Record<string, string>) => keyFindings(home, env).map(({ level, text }) => [level, text]);

it('names the key of the KMS, and says nothing of keys that no KMS wraps', () => {
  const named = ['ok', `vault.key is wrapped by ${KEY}`];
  expect(levels({ SVC_KMS_CREDENTIALS_FILE: credentials })).toEqual([named]);
  expect(levels({ SVC_VAULT_KEY: 'x' })).toEqual([]);
  writeFileSync(join(home, 'vault.key'), 'the-key-itself\n');
  expect(levels({})).toEqual([]);
  rmSync(join(home, 'vault.key'));
  expect(levels({})).toEqual([]);
});

it('says if the credentials of the KMS are not named, not there, or for everybody', () => {
  expect(levels({})).toContainEqual(['warning', 'SVC_KMS_CREDENTIALS_FILE is not set here']);
  const gone = join(home, 'gone.json');
  expect(levels({ SVC_KMS_CREDENTIALS_FILE: gone })).toContainEqual(['problem', expect.stringContaining('not a file')]);
  chmodSync(credentials, 0o644);
  expect(levels({ SVC_KMS_CREDENTIALS_FILE: credentials })).toContainEqual([
    'problem',
    expect.stringContaining('can be read by other users (mode 0644)'),
  ]);
});
