import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { plantSecret, searchFiles } from '../support/planted_secret.ts';
import { Svc } from '../support/svc.ts';

// The master key behind a passphrase, from the command that protects it to a start that needs it. The keyring is tried in
// vault_keyring.test.ts.

const PASSPHRASE = plantSecret();
const VALUE = plantSecret();
const folder = mkdtempSync(join(tmpdir(), 'svc-e2e-protection-'));
let svc: Svc;

beforeAll(async () => {
  svc = await Svc.up();
});
afterAll(async () => {
  await svc.stop();
  rmSync(folder, { recursive: true, force: true });
});

it('a vault behind a passphrase serves on, starts with it only, and is changed under it', async () => {
  const { home } = svc;
  const keyFile = join(home, 'vault.key');
  const key = readFileSync(keyFile, 'utf8').trim();
  await svc.secret('user/demo', VALUE);
  const short = await svc.cli(['vault', 'protect', 'passphrase', '--stdin'], { input: 'too short' });
  expect([short.code, short.stderr]).toEqual([2, expect.stringContaining('at least 16')]);
  const done = await svc.cli(['vault', 'protect', 'passphrase', '--stdin'], { input: PASSPHRASE });
  expect([done.code, done.stdout]).toEqual([0, expect.stringContaining('opens with the passphrase only')]);
  expect((await svc.cli(['secret', 'list'])).stdout).toContain('user/demo');
  await svc.stop({ keepHome: true });
  for (const hidden of [key, PASSPHRASE]) expect(searchFiles(home, hidden).holding).toEqual([]);

  await expect(Svc.up({ home })).rejects.toThrow(/SVC_VAULT_PASSPHRASE_FILE/);
  const file = join(folder, 'passphrase');
  writeFileSync(file, `${PASSPHRASE}\n`, { mode: 0o600 });
  const env = { SVC_VAULT_PASSPHRASE_FILE: file };
  svc = await Svc.up({ home, env });
  const refused = await svc.cli(['vault', 'status']);
  expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('SVC_VAULT_PASSPHRASE_FILE')]);
  const rotated = await svc.cli(['vault', 'rotate'], { env });
  expect([rotated.code, rotated.stdout]).toEqual([0, expect.stringContaining('everything is sealed with the new key')]);
  await svc.secret('user/after', VALUE);
  const status = await svc.cli(['vault', 'status', '--json'], { env });
  expect(JSON.parse(status.stdout)).toMatchObject({ finished: true, protection: 'passphrase' });
  const back = await svc.cli(['vault', 'protect', 'none'], { env });
  expect([back.code, readFileSync(keyFile, 'utf8').trim()]).toEqual([0, expect.stringMatching(/^[\w-]{43}$/)]);
  expect(readFileSync(keyFile, 'utf8').trim()).not.toBe(key);
  expect((await svc.cli(['secret', 'list'])).stdout).toContain('user/after');
});
