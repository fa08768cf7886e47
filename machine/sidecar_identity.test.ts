import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { FakeControlPlane } from '../sidecar/testing/fake_control_plane.ts';
import {
  generateSidecarKeys,
  type IdentityRecord,
  identityPath,
  loadIdentity,
  saveIdentity,
} from './sidecar_identity.ts';

let home: string;
let path: string;
let record: IdentityRecord;

beforeEach(async () => {
  home = mkdtempSync(join(tmpdir(), 'svc-identity-'));
  path = identityPath(join(home, 'sidecar'));
  const plane = new FakeControlPlane();
  await plane.start();
  const keys = await generateSidecarKeys();
  record = await plane.adopt({ signing_key: keys.signing, receiving_key: keys.receiving });
  await plane.stop();
});

afterEach(() => {
  rmSync(home, { recursive: true });
});

/** Writes any text as the identity file. */
async function overwrite(text: string): Promise<void> {
  await saveIdentity(path, record);
  writeFileSync(path, text);
}

describe('an identity', () => {
  it('is null if the sidecar was never enrolled', async () => {
    expect(await loadIdentity(path)).toEqual({ ok: true, value: null });
  });

  it('round-trips through a file that only its owner can read', async () => {
    await saveIdentity(path, record);
    expect(await loadIdentity(path)).toMatchObject({ ok: true, value: { sidecarId: record.sidecar_id } });
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(statSync(join(home, 'sidecar')).mode & 0o777).toBe(0o700);
    expect(readdirSync(join(home, 'sidecar'))).toEqual(['identity.json']);
  });

  it.each<[string, () => string]>([
    ['empty', () => ''],
    ['half written', () => JSON.stringify(record).slice(0, 90)],
    ['another object', () => '[]'],
    ['without a key', () => JSON.stringify({ ...record, signing_key: undefined })],
    ['with an invalid key', () => JSON.stringify({ ...record, signing_key: { ...record.signing_key, d: 'x' } })],
    ['of a later version', () => JSON.stringify({ ...record, version: 2 })],
  ])('that is %s is an error with the file and the fix, and the file is kept', async (_what, text) => {
    await overwrite(text());
    const loaded = await loadIdentity(path);
    expect(loaded).toMatchObject({
      ok: false,
      error: { reason: 'state_file_corrupt', message: expect.stringContaining(path) },
    });
    expect(!loaded.ok && loaded.error.message).toMatch(/identity[.]json is damaged: .*move it away/);
    expect(readFileSync(path, 'utf8')).toBe(text());
  });

  it('that others can read is refused with the fix', async () => {
    await saveIdentity(path, record);
    chmodSync(path, 0o640);
    const loaded = await loadIdentity(path);
    expect(loaded).toMatchObject({ ok: false, error: { reason: 'state_file_exposed' } });
    expect(!loaded.ok && loaded.error.message).toContain(`chmod 600 ${path}`);
  });

  it('that cannot be read is an error, not a new identity', async () => {
    writeFileSync(join(home, 'file'), '', { mode: 0o600 });
    expect(await loadIdentity(join(home, 'file', 'identity.json'))).toMatchObject({
      ok: false,
      error: { reason: 'state_file_unreadable' },
    });
  });

  it('is complete or absent if a write fails', async () => {
    writeFileSync(join(home, 'file'), '');
    await expect(saveIdentity(join(home, 'file', 'identity.json'), record)).rejects.toThrow('');
    expect(existsSync(join(home, 'file', 'identity.json'))).toBe(false);
  });
});
