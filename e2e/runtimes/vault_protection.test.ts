import { generateKeyPairSync } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { KmsStub } from '../support/kms_stub.ts';
import { plantSecret, searchFiles } from '../support/planted_secret.ts';
import { Svc } from '../support/svc.ts';

// The master key behind a passphrase, and wrapped by a KMS (a stub: ../support/kms_stub.ts), from the command that protects it to a
// start that needs it. The keyring is tried in vault_keyring.test.ts.

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

const listedSecrets = async () => JSON.stringify((await svc.api('GET', '/v1/secrets')).body);

it('a vault behind a passphrase serves on, starts with it only, and is changed under it', async () => {
  const { home } = svc;
  const keyFile = join(home, 'vault.key');
  const key = readFileSync(keyFile, 'utf8').trim();
  await svc.secret('user/demo', VALUE);
  const short = await svc.cli(['vault', 'protect', 'passphrase', '--stdin'], { input: 'too short' });
  expect([short.code, short.stderr]).toEqual([2, expect.stringContaining('at least 16')]);
  const done = await svc.cli(['vault', 'protect', 'passphrase', '--stdin'], { input: PASSPHRASE });
  expect([done.code, done.stdout]).toEqual([0, expect.stringContaining('opens with the passphrase only')]);
  expect(await listedSecrets()).toContain('user/demo');
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
  expect(await listedSecrets()).toContain('user/after');
});

it('a vault that a KMS wraps starts with it only, and is changed under it', async () => {
  const KEY = 'arn:aws:kms:eu-central-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab';
  const keys = { AccessKeyId: 'AKIAIOSFODNN7EXAMPLE', SecretAccessKey: plantSecret() };
  const { publicKey: serviceAccount } = generateKeyPairSync('ed25519');
  const stub = new KmsStub({
    keys: [KEY],
    accessKeyId: keys.AccessKeyId,
    secretAccessKey: keys.SecretAccessKey,
    serviceAccount,
  });
  const { url, server } = await stub.start();
  try {
    const file = join(folder, 'aws.json');
    writeFileSync(file, JSON.stringify(keys), { mode: 0o600 });
    const env = { SVC_KMS_URL: url, SVC_KMS_CREDENTIALS_FILE: file };
    const { home } = svc;
    const alias = await svc.cli(['vault', 'protect', 'kms', '--key', KEY.replace('key/', 'alias/')], { env });
    expect([alias.code, alias.stderr]).toEqual([2, expect.stringContaining('not an alias')]);
    const key = readFileSync(join(home, 'vault.key'), 'utf8').trim();
    const done = await svc.cli(['vault', 'protect', 'kms', '--key', KEY], { env });
    expect([done.code, done.stdout]).toEqual([0, expect.stringContaining('opens with the key of the KMS only')]);
    await svc.stop({ keepHome: true });
    for (const hidden of [key, keys.SecretAccessKey]) expect(searchFiles(home, hidden).holding).toEqual([]);
    await expect(Svc.up({ home })).rejects.toThrow(/SVC_KMS_CREDENTIALS_FILE is not set/);
    svc = await Svc.up({ home, env });
    const rotated = await svc.cli(['vault', 'rotate'], { env });
    expect([rotated.code, rotated.stderr]).toEqual([0, expect.not.stringContaining('could not be opened')]);
    expect(await listedSecrets()).toContain('user/after');
    expect((await svc.cli(['doctor'], { env })).stdout).toContain(`vault.key is wrapped by ${KEY}`);
    expect(new Set(stub.asked)).toEqual(new Set(['TrentService.Encrypt', 'TrentService.Decrypt']));
  } finally {
    server.close();
  }
});
