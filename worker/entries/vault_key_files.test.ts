import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createClient } from '@libsql/client';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { newLocalKey, newMasterKey, NO_OUTBOUND, TestClock } from '../../e2e/runtimes/in_process.ts';
import { Secret } from '../../shared/model/secret.ts';
import { ProgramLifetime } from '../kernel/lifetime.ts';
import { rotateMasterKey } from '../installation/master_key_rotation.ts';
import { start } from '../installation/start.ts';
import { NO_TURNS } from '../kernel/turns.ts';
import { openDatabase } from '../store/database.ts';
import { contextOfKeys, keyVersion } from './node_vault_key.ts';
import { beginKeyChange, endKeyChange, masterKeys } from './vault_key_files.ts';

let home = '';
const before = newMasterKey();
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'svc-vault-key-'));
  await writeFile(join(home, 'vault.key'), `${before.reveal()}\n`, { mode: 0o600 });
});
afterEach(() => rm(home, { recursive: true, force: true }));

async function readKeys(): Promise<(string | undefined)[]> {
  const { masterKey, previousMasterKey } = await masterKeys({}, home);
  return [masterKey?.reveal(), previousMasterKey?.reveal()];
}

describe('the file of the master key', () => {
  test('has the old or the new key at each step, and both exist until the end', async () => {
    expect(await readKeys()).toEqual([before.reveal(), undefined]);
    const change = await beginKeyChange({}, home, before);
    expect(change.before.reveal()).toBe(before.reveal());
    expect(await readKeys()).toEqual([change.after.reveal(), before.reveal()]);
    expect((await stat(join(home, 'vault.key.change'))).mode & 0o777).toBe(0o600);
    await endKeyChange({}, home, change);
    expect(await readKeys()).toEqual([change.after.reveal(), undefined]);
    expect(await readdir(home)).toEqual(['vault.key']);
    expect((await stat(join(home, 'vault.key'))).mode & 0o777).toBe(0o600);
  });

  test('a killed run continues with the same new key', async () => {
    const first = await beginKeyChange({}, home, before);
    await writeFile(join(home, 'vault.key'), `${before.reveal()}\n`);
    expect(await readKeys()).toEqual([before.reveal(), first.after.reveal()]);
    const second = await beginKeyChange({}, home, before);
    expect(second.after.reveal()).toBe(first.after.reveal());
    expect(await readKeys()).toEqual([first.after.reveal(), before.reveal()]);
  });

  test('two runs at once have the same new key', async () => {
    const [one, other] = await Promise.all([beginKeyChange({}, home, before), beginKeyChange({}, home, before)]);
    expect(one.after.reveal()).toBe(other.after.reveal());
    await Promise.all([endKeyChange({}, home, one), endKeyChange({}, home, other)]);
    expect(await readKeys()).toEqual([one.after.reveal(), undefined]);
  });

  test('a change of other keys, or a damaged one, is refused and overwrites nothing', async () => {
    await writeFile(join(home, 'vault.key.change'), `${newMasterKey().reveal()}\n${newMasterKey().reveal()}\n`);
    await expect(beginKeyChange({}, home, before)).rejects.toMatchObject({ code: 'vault_key_damaged' });
    await writeFile(join(home, 'vault.key.change'), 'half a k');
    await expect(beginKeyChange({}, home, before)).rejects.toMatchObject({ code: 'vault_key_damaged' });
    await expect(readKeys()).rejects.toMatchObject({ code: 'vault_key_damaged' });
    expect((await readFile(join(home, 'vault.key'), 'utf8')).trim()).toBe(before.reveal());
  });

  test('the settings take precedence over the files', async () => {
    const [vaultKey, vaultKeyPrevious] = [newMasterKey(), newMasterKey()];
    expect(await masterKeys({ vaultKey, vaultKeyPrevious }, home)).toEqual({
      masterKey: vaultKey,
      previousMasterKey: vaultKeyPrevious,
    });
  });
});

test('a serving worker has both keys from the first request after the file was replaced, and continues after the end', async () => {
  const client = createClient({ url: `file:${join(home, 'control.db')}`, timeout: 5_000 });
  const database = openDatabase(client);
  const lifetime = new ProgramLifetime(() => undefined);
  const services = { database, clock: new TestClock(), turns: NO_TURNS, outbound: NO_OUTBOUND, lifetime };
  const keys = { masterKey: before, makeMasterKey: null, localKey: new Secret(newLocalKey()) };
  const started = await start({ ...services, ...keys });
  if (!started.ok) throw new Error(started.error.message);
  const refusals: unknown[] = [];
  const asStarted = { context: started.value, version: keyVersion(home) };
  const current = contextOfKeys({ home, settings: {}, database, ...asStarted, log: ({ code }) => refusals.push(code) });
  expect(await current()).toBe(started.value);
  const place = { owner: 'usr_1', path: 'user/a', version: 1 };
  const sealed = await started.value.vault.seal(place, new Secret('value'));

  const change = await beginKeyChange({}, home, before);
  const context = await current();
  expect(await current()).toBe(context);
  expect((await context.vault.open(place, sealed))?.reveal()).toBe('value');
  expect(await rotateMasterKey(database, change)).toMatchObject({ ok: true });
  await endKeyChange({}, home, change);
  const anew = await current();
  expect(anew).not.toBe(context);
  const oldSeal = await started.value.vault.mac('head');
  expect([await context.vault.macs('head'), await anew.vault.macs('head')]).toEqual([
    expect.arrayContaining([oldSeal]),
    [await context.vault.mac('head')],
  ]);
  expect((await context.database.write([])).ok).toBe(true);
  await expect(started.value.database.write([])).rejects.toMatchObject({ code: 'master_key_changed' });
  await context.accessKeys.rotate(context.database, { atOnce: true });
  expect(refusals).toEqual([]);

  await writeFile(join(home, 'vault.key'), `${newMasterKey().reveal()}-\n`);
  expect(await current()).toBe(anew);
  expect(await current()).toBe(anew);
  expect(refusals).toEqual(['vault_key_damaged']);
  await writeFile(join(home, 'vault.key'), `${change.after.reveal()}\n`);
  expect((await (await current()).database.write([])).ok).toBe(true);
  expect(refusals).toEqual(['vault_key_damaged']);
  client.close();
});
