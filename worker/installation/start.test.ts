import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createClient } from '@libsql/client';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { newLocalKey, newMasterKey, NO_OUTBOUND, TestClock } from '../../e2e/runtimes/in_process.ts';
import { Secret } from '../../shared/model/secret.ts';
import { findAccount } from '../store/accounts.ts';
import { openDatabase } from '../store/database.ts';
import { ProgramLifetime } from '../kernel/lifetime.ts';
import { storeSecret } from '../services/vault/secrets.ts';
import { start, type StartInput } from './start.ts';
import { NO_TURNS } from '../kernel/turns.ts';

let directory = '';
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'svc-start-'));
});
afterEach(() => rm(directory, { recursive: true, force: true }));

const key = newMasterKey();
const localKey = new Secret(newLocalKey());

function startWith(change: Partial<StartInput> = {}) {
  const client = createClient({ url: `file:${join(directory, 'control.db')}`, timeout: 5_000 });
  const keys = { masterKey: key, makeMasterKey: null, localKey };
  const lifetime = new ProgramLifetime(() => undefined);
  const base = { clock: new TestClock(), turns: NO_TURNS, outbound: NO_OUTBOUND, lifetime, ...keys };
  return start({ database: openDatabase(client), ...base, ...change }).finally(() => client.close());
}

describe('starting the control plane', () => {
  test('creates its identity once and keeps it', async () => {
    const [first, second] = [await startWith(), await startWith()];
    expect(first.ok && second.ok).toBe(true);
    if (!first.ok || !second.ok) return;
    expect(second.value.controlPlane.id).toBe(first.value.controlPlane.id);
    expect(second.value.controlPlane.publicKey).toEqual(first.value.controlPlane.publicKey);
    expect(second.value.local?.userId).toBe(first.value.local?.userId);
  });

  test('creates one identity and one user, also for two programs that start at once', async () => {
    const started = await Promise.all([startWith(), startWith(), startWith()]);
    const identities = started.map((each) => each.ok && [each.value.controlPlane.id, each.value.local?.userId].join());
    expect(new Set(identities).size).toBe(1);
    expect(identities[0]).toMatch(/^cpl_\w+,usr_\w+$/);
  });

  test('refuses another key than the one that sealed the data', async () => {
    await startWith();
    expect(await startWith({ masterKey: newMasterKey() })).toMatchObject({ error: { reason: 'wrong_vault_key' } });
    expect(await startWith()).toMatchObject({ ok: true });
  });

  test('never creates a key if data is sealed', async () => {
    await startWith();
    const makeMasterKey = vi.fn<() => Promise<Secret>>(async () => newMasterKey());
    expect(await startWith({ masterKey: null, makeMasterKey })).toMatchObject({
      error: { reason: 'missing_vault_key' },
    });
    expect(makeMasterKey).not.toHaveBeenCalled();
  });

  test('takes the key that another program has stored since, if it used the database first', async () => {
    await startWith();
    expect(await startWith({ masterKey: null, rereadMasterKey: async () => key })).toMatchObject({ ok: true });
    expect(await startWith({ masterKey: null, rereadMasterKey: async () => null })).toMatchObject({
      error: { reason: 'missing_vault_key' },
    });
  });

  test('creates no key if there are secrets but the key check is lost', async () => {
    const started = await startWith();
    if (!started.ok) throw new Error(started.error.message);
    const client = createClient({ url: `file:${join(directory, 'control.db')}`, timeout: 5_000 });
    const database = openDatabase(client);
    const account = await findAccount(database, started.value.local?.userId ?? '');
    const caller = { userId: account!.user.id, enterpriseId: account!.enterprise.id, role: 'admin' as const };
    const secret = { path: 'user/demo', value: new Secret('v'), owner: 'personal' as const };
    await storeSecret({ ...started.value, database }, caller, secret);
    await client.execute('DELETE FROM installation');
    client.close();
    const makeMasterKey = vi.fn<() => Promise<Secret>>(async () => newMasterKey());
    expect(await startWith({ masterKey: null, makeMasterKey })).toMatchObject({
      error: { reason: 'database_damaged' },
    });
    expect(await startWith({ masterKey: newMasterKey() })).toMatchObject({ error: { reason: 'database_damaged' } });
    expect(makeMasterKey).not.toHaveBeenCalled();
  });

  test('creates a key for a new database only where allowed', async () => {
    expect(await startWith({ masterKey: null })).toMatchObject({ error: { reason: 'missing_vault_key' } });
    const made = newMasterKey();
    expect(await startWith({ masterKey: null, makeMasterKey: async () => made })).toMatchObject({ ok: true });
    expect(await startWith({ masterKey: made })).toMatchObject({ ok: true });
  });
});
