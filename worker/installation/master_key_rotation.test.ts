import { randomBytes } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Client, createClient } from '@libsql/client';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { newLocalKey, newMasterKey, NO_OUTBOUND, TestClock } from '../../e2e/runtimes/in_process.ts';
import { Secret } from '../../shared/model/secret.ts';
import { oidcSealPlace } from '../sign_in/providers/enterprise_provider.ts';
import { findAccount } from '../store/accounts.ts';
import { type Database, openDatabase } from '../store/database.ts';
import { findEnterpriseOidc, putEnterpriseOidc } from '../store/enterprise_settings.ts';
import { findFlow, insertFlow } from '../store/oauth_flows.ts';
import { findSealedSecret } from '../store/secrets.ts';
import { listSealedSigningKeys } from '../store/sealed_rows.ts';
import { requestDeviceCode } from '../tokens/device_codes.ts';
import { findWaitingProgram } from '../tokens/device_approval.ts';
import { pruneAudit } from '../services/audit/audit_pruning.ts';
import { verifyAudit } from '../services/audit/audit_verification.ts';
import type { Caller } from '../kernel/caller.ts';
import { ProgramLifetime } from '../kernel/lifetime.ts';
import { rotateMasterKey } from './master_key_rotation.ts';
import { listSinks } from '../store/audit/audit_sinks.ts';
import { openTarget } from '../services/sinks/sink_target.ts';
import { addSink } from '../services/sinks/sinks.ts';
import { openPendingLogin } from '../services/connectors/pending_logins.ts';
import { sealPlace } from '../services/oauth/oauth_flow.ts';
import { SEALED_KINDS } from './sealed_kinds.ts';
import { checkValues } from '../services/vault/secret_check.ts';
import { openRow, storeSecret } from '../services/vault/secrets.ts';
import type { ProgramContext } from './program_context.ts';
import { start, type StartInput } from './start.ts';
import { NO_TURNS } from '../kernel/turns.ts';
import { vaultStatus } from './vault_status.ts';
import { Vault } from '../kernel/vault.ts';
import { killAtWrite } from '../store/testing/kill_at_write.ts';

const before = newMasterKey();
const after = newMasterKey();
const localKey = new Secret(newLocalKey());
const FLOW = { id: 'flow', connectorId: 'con_1' };

let directory = '';
let client: Client;
let database: Database;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'svc-rotation-'));
  client = createClient({ url: `file:${join(directory, 'control.db')}`, timeout: 5_000 });
  await client.execute('PRAGMA synchronous = OFF');
  database = openDatabase(client);
});
afterEach(async () => {
  client.close();
  await rm(directory, { recursive: true, force: true });
});

function startWith(masterKey: Secret, previousMasterKey: Secret | null = null, change: Partial<StartInput> = {}) {
  const lifetime = new ProgramLifetime(() => undefined);
  const keys = { masterKey, previousMasterKey, makeMasterKey: null, localKey, publicUrl: 'https://control.test' };
  const base = { clock: new TestClock(), turns: NO_TURNS, outbound: NO_OUTBOUND, lifetime };
  return start({ database, ...base, ...keys, ...change });
}

async function worker(masterKey: Secret, previousMasterKey: Secret | null = null): Promise<ProgramContext> {
  const started = await startWith(masterKey, previousMasterKey);
  if (!started.ok) throw new Error(started.error.message);
  return started.value;
}

async function callerOf(context: ProgramContext): Promise<Caller> {
  const account = await findAccount(context.database, context.local?.userId ?? '');
  return { userId: account!.user.id, enterpriseId: account!.enterprise.id, role: 'owner' };
}

type Planted = ReadonlyMap<string, string>;

async function store(context: ProgramContext, path: string, value: string): Promise<void> {
  const caller = await callerOf(context);
  const stored = await storeSecret(context, caller, { path, value: new Secret(value), owner: 'personal' });
  if (!stored.ok) throw new Error(stored.error.message);
}

/** One or more of everything that the vault seals. */
async function plant(context: ProgramContext, count = 3): Promise<Planted> {
  const planted = new Map<string, string>();
  for (let at = 0; at < count; at += 1) {
    const value = randomBytes(12).toString('hex');
    planted.set(`user/secret-${at}`, value);
    await store(context, `user/secret-${at}`, value);
  }
  const { enterpriseId, userId } = await callerOf(context);
  await context.accessKeys.signer(context.database);
  await context.accessKeys.rotate(context.database, { atOnce: false });
  const sealed = await context.vault.seal(sealPlace(FLOW), new Secret('verifier'));
  const times = { expiresAt: 4_000_000_000, intervalSeconds: 5, nextPollAt: 0 };
  const flow = { ...FLOW, userId, grant: 'device' as const, redirectUri: null, sealed, ...times };
  await context.database.write(insertFlow(context.database, flow, 0));
  const opened = await openPendingLogin(context, await callerOf(context), {
    program: 'claude',
    token_url: 'https://auth.example.test/token',
    client_id: 'c',
    grants: ['authorization_code'],
  });
  if (!opened.ok) throw new Error(opened.error.message);
  const sealedSecret = await context.vault.seal(oidcSealPlace(enterpriseId), new Secret('client secret'));
  const oidc = { enterpriseId, issuer: 'https://idp.test', clientId: 'c', sealedSecret, updatedAt: '2026-01-01' };
  await context.database.write(putEnterpriseOidc(context.database, oidc));
  const url = 'https://siem.example.test/in';
  const sink = { kind: 'webhook' as const, name: 'siem', url, from: 'now' as const };
  expect(await addSink(context, await callerOf(context), sink)).toMatchObject({ ok: true });
  const later = context.clock.now() + 3 * 24 * 3_600_000;
  const inDays = { ...context, clock: { now: () => later, sleep: async () => undefined } };
  const dayAfter = new Date(later - 2 * 24 * 3_600_000).toISOString();
  await pruneAudit(inDays, await callerOf(context), { before: dayAfter, dry_run: false });
  return planted;
}

/** All planted values, as a worker reads them. */
async function expectAllReadable(context: ProgramContext, planted: Planted): Promise<void> {
  const caller = await callerOf(context);
  for (const [path, value] of planted) {
    const row = await findSealedSecret(context.database, { ownerId: caller.userId, path });
    expect((await openRow(context, row!)).reveal()).toBe(value);
  }
  const { vault } = context;
  const keys = await listSealedSigningKeys(context.database, { after: '', limit: 10 });
  expect(keys).toHaveLength(2);
  await context.accessKeys.signer(context.database);
  const flow = await findFlow(context.database, FLOW.id, 0);
  expect((await vault.open(sealPlace(FLOW), flow!.sealed))?.reveal()).toBe('verifier');
  const oidc = await findEnterpriseOidc(context.database, caller.enterpriseId);
  const clientSecret = await vault.open(oidcSealPlace(caller.enterpriseId), oidc!.sealedSecret);
  expect(clientSecret?.reveal()).toBe('client secret');
  const [sink] = await listSinks(context.database, caller.enterpriseId);
  expect((await openTarget(vault, sink!))?.signing).toMatch(/^whsec_/);
  expect(await verifyAudit(context, caller)).toMatchObject({ ok: true });
}

/** Every sealed text in the database, found by its format in any table. */
async function sealedTexts(): Promise<string[]> {
  const tables = await client.execute("SELECT name FROM sqlite_master WHERE type = 'table'");
  const rows = await Promise.all(tables.rows.map((row) => client.execute(`SELECT * FROM "${textOf(row['name'])}"`)));
  const cells = rows.flatMap((table) => table.rows.flatMap((row) => Object.values(row)));
  return cells.filter((cell): cell is string => typeof cell === 'string' && /^v1\.[\w-]{20,}\.[\w-]{20,}$/.test(cell));
}

function textOf(cell: unknown): string {
  return typeof cell === 'string' ? cell : '';
}

/** How many of the sealed texts a key opens, and how many there are. */
async function countOpened(key: Secret): Promise<{ opens: number; of: number }> {
  const vault = await Vault.open(key);
  const kinds = SEALED_KINDS.filter(({ name }) => !name.startsWith('audit_'));
  const pages = await Promise.all(kinds.map((kind) => kind.page(database, { after: '', limit: 1000 })));
  const examined = await Promise.all(pages.flat().map((row) => row.examine({ before: null, after: vault })));
  const installed = new Map(
    (await client.execute('SELECT name, value FROM installation')).rows.map((row) => [
      textOf(row['name']),
      textOf(row['value']),
    ]),
  );
  const check = { owner: 'installation', path: 'vault-key-check', version: 1 };
  const checks = [installed.get('vault_key_check'), installed.get('vault_key_previous_check')];
  const openedChecks = await Promise.all(checks.map((text) => vault.open(check, text ?? '')));
  const opens =
    examined.filter(({ state }) => state === 'current').length +
    openedChecks.filter((secret) => secret !== null).length;
  return { opens, of: (await sealedTexts()).length };
}

async function rotate(on: Database = database) {
  const done = await rotateMasterKey(on, { before, after });
  if (!done.ok) throw new Error(done.error.message);
  return done.value;
}

describe('changing the master key', () => {
  test('seals everything with the new key, and leaves nothing that the old one opens', async () => {
    const planted = await plant(await worker(before), 60);
    const old = await countOpened(before);
    expect(old.opens).toBe(old.of);
    const report = await rotate();
    expect(report.damaged).toEqual([]);
    expect(report.resealed).toMatchObject({
      secrets: 60,
      access_token_keys: 2,
      oauth_flows: 1,
      pending_logins: 1,
      enterprise_clients: 1,
      sinks: 1,
      audit_beginnings: 1,
    });
    const count = (await sealedTexts()).length;
    expect(await countOpened(before)).toEqual({ opens: 0, of: count });
    expect(await countOpened(after)).toEqual({ opens: count, of: count });
    await expectAllReadable(await worker(after), planted);
  });

  test("keeps the control plane's identity, and the fingerprints of stored secrets", async () => {
    const context = await worker(before);
    const planted = await plant(context);
    await rotate();
    const anew = await worker(after);
    expect(anew.controlPlane.publicKey).toEqual(context.controlPlane.publicKey);
    const rows = await client.execute('SELECT fingerprint FROM secrets');
    expect(rows.rows.every((row) => textOf(row['fingerprint']).startsWith(anew.vault.fingerprintMark))).toBe(true);
    const found = await checkValues(anew, await callerOf(anew), [planted.get('user/secret-1') ?? '', 'other']);
    expect(found).toMatchObject({ value: { matches: [{ index: 0, path: 'user/secret-1' }] } });
  });

  test('changes nothing when run again, and can continue to a third key', async () => {
    const planted = await plant(await worker(before));
    await rotate();
    const rows = await sealedTexts();
    const again = await rotate();
    expect(Object.values(again.resealed).every((count) => count === 0)).toBe(true);
    expect(await sealedTexts()).toEqual(rows);
    const third = newMasterKey();
    expect(await rotateMasterKey(database, { before: after, after: third })).toMatchObject({ ok: true });
    await expectAllReadable(await worker(third), planted);
    expect(await startWith(after)).toMatchObject({ error: { reason: 'wrong_vault_key' } });
  });

  test.each(['before', 'after'] as const)('loses nothing when killed %s any of its writes', async (when) => {
    const planted = await plant(await worker(before));
    let kills = 0;
    for (let write = 0; ; write += 1) {
      const done = await rotateMasterKey(killAtWrite(database, write, when), { before, after }).catch(() => null);
      await expectAllReadable(await worker(after, before), planted);
      if (done !== null) break;
      kills += 1;
      // Back to the old key half-way: that is an ordinary change, and the next run starts from the beginning.
      const back = await rotateMasterKey(database, { before: after, after: before });
      expect(back.ok ? 'is already' : back.error.message).toContain('is already');
      await expectAllReadable(await worker(before, after), planted);
      expect((await countOpened(before)).opens).toBe((await sealedTexts()).length);
    }
    expect(kills).toBeGreaterThan(6);
    expect((await countOpened(before)).opens).toBe(0);
    await expectAllReadable(await worker(after), planted);
  });

  test('continues after every kill; meanwhile no worker starts that lacks a key', async () => {
    const planted = await plant(await worker(before));
    for (let run = 0; run < 4; run += 1) {
      await expect(
        rotateMasterKey(killAtWrite(database, run === 0 ? 1 : 0, 'after'), { before, after }),
      ).rejects.toThrow('killed');
      expect(await startWith(after)).toMatchObject({ error: { reason: 'missing_vault_key' } });
      expect(await startWith(before)).toMatchObject({ error: { reason: 'wrong_vault_key' } });
      expect(await startWith(before, after)).toMatchObject({ error: { reason: 'wrong_vault_key' } });
    }
    await rotate();
    await expectAllReadable(await worker(after), planted);
  });
});

describe('wrong keys', () => {
  test.each([
    ['a wrong old key', newMasterKey(), after],
    ['the same key twice', before, before],
    ['the two swapped', after, before],
  ])('are refused without a change: %s', async (_name, old, anew) => {
    await plant(await worker(before));
    const files = await databaseBytes();
    const refused = await rotateMasterKey(database, { before: old, after: anew });
    expect(refused).toMatchObject({ error: { reason: 'wrong_vault_key' } });
    expect(await databaseBytes()).toEqual(files);
    expect(await startWith(before)).toMatchObject({ ok: true });
  });

  test('with a third one during a change are refused', async () => {
    await plant(await worker(before));
    await expect(rotateMasterKey(killAtWrite(database, 1, 'after'), { before, after })).rejects.toThrow('killed');
    const third = { before: after, after: newMasterKey() };
    expect(await rotateMasterKey(database, third)).toMatchObject({ error: { reason: 'wrong_vault_key' } });
    await rotate();
    await worker(after);
  });

  test('a value that neither key opens is reported and unchanged; an altered audit head gets no new seal', async () => {
    const context = await worker(before);
    await plant(context);
    await client.execute("UPDATE secrets SET sealed = 'v1.x.y' WHERE path = 'user/secret-0'");
    await client.execute('UPDATE audit_heads SET sequence = sequence - 1');
    const { damaged } = await rotate();
    expect(damaged.map((each) => each.split(' ')[0])).toEqual(['secrets', 'audit_heads']);
    const anew = await worker(after);
    expect(await verifyAudit(anew, await callerOf(anew))).toMatchObject({ ok: false });
    const [row] = (await client.execute("SELECT sealed FROM secrets WHERE path = 'user/secret-0'")).rows;
    expect(row?.['sealed']).toBe('v1.x.y');
  });

  test('an unused database is refused', async () => {
    await startWith(before);
    await client.execute("DELETE FROM installation WHERE name = 'vault_key_check'");
    expect(await rotateMasterKey(database, { before, after })).toMatchObject({ error: { reason: 'database_empty' } });
  });
});

describe('workers that serve meanwhile', () => {
  test('with both keys can read and write all the time, whichever key seals', async () => {
    const planted = new Map(await plant(await worker(before)));
    const serving = [await worker(before, after), await worker(after, before)];
    for (const [at, context] of serving.entries()) {
      await store(context, `user/by-${at}`, `value-${at}`);
      planted.set(`user/by-${at}`, `value-${at}`);
    }
    for (const context of serving) await expectAllReadable(context, planted);
    const [, ready] = serving;
    let writes = 0;
    await rotate({
      ...database,
      async write(statements) {
        const written = await database.write(statements);
        writes += 1;
        await store(ready!, 'user/secret-0', `replaced-${writes}`);
        await store(ready!, `user/new-${writes}`, `new-${writes}`);
        planted.set('user/secret-0', `replaced-${writes}`).set(`user/new-${writes}`, `new-${writes}`);
        await expectAllReadable(ready!, planted);
        return written;
      },
    });
    expect(writes).toBeGreaterThan(6);
    expect((await countOpened(before)).opens).toBe(0);
    await expectAllReadable(await worker(after), planted);
  });

  test("do not lose a value that they replace between the rotation's read and write", async () => {
    const planted = new Map(await plant(await worker(before)));
    const ready = await worker(after, before);
    let isBegun = false;
    await rotate({
      ...database,
      async write(statements) {
        if (isBegun) await store(ready, 'user/secret-1', 'newer');
        isBegun = true;
        return database.write(statements);
      },
    });
    await expectAllReadable(await worker(after), planted.set('user/secret-1', 'newer'));
  });

  test('with only the old key cannot write: the value would be lost with that key', async () => {
    const left = await worker(before);
    const behind = await worker(before, after);
    const planted = await plant(left);
    await rotate();
    for (const context of [left, behind]) {
      await expect(store(context, 'user/late', 'lost')).rejects.toMatchObject({ code: 'master_key_changed' });
      await expect(store(context, 'user/secret-0', 'lost')).rejects.toMatchObject({ code: 'master_key_changed' });
    }
    await expectAllReadable(await worker(after), planted);
  });

  test('with both keys recognise a code that the other key made', async () => {
    const old = await worker(before);
    const device = await requestDeviceCode(old, { clientName: 'svc', address: null });
    if (!device.ok) throw new Error(device.error.message);
    const ready = await worker(after, before);
    const found = await findWaitingProgram(ready, await callerOf(ready), device.value.user_code);
    expect(found).toMatchObject({ value: { client: 'svc' } });
    const alone = { ...ready, vault: await Vault.open(after) };
    expect(await findWaitingProgram(alone, await callerOf(ready), device.value.user_code)).toMatchObject({ ok: false });
  });
});

/** A credential with a lease until this time. */
async function insertLease(holder: string, until: number): Promise<void> {
  await client.execute('DELETE FROM connector_credentials');
  await client.execute({
    sql: `INSERT INTO connector_credentials
      (connector_id, owner_id, path, kind, state, renewable, lease, lease_until, updated_at)
      VALUES ('con_1', 'usr_1', 'a', 'oauth2', 'ready', 1, ?, ?, '2026-01-01')`,
    args: [holder, until],
  });
}

describe('a refresh of an OAuth credential', () => {
  test('is waited for, so that a worker with the old key can store the result', async () => {
    const left = await worker(before);
    const clock = new TestClock();
    await insertLease('somebody', clock.now() + 30_000);
    const told: string[] = [];
    let looks = 0;
    const sleep = async () => {
      looks += 1;
      if (looks < 3) return;
      await store(left, 'user/refreshed', 'the only token');
      await client.execute('UPDATE connector_credentials SET lease = NULL, lease_until = NULL');
    };
    const how = { clock: { now: () => clock.now(), sleep }, onProgress: (progress: string) => told.push(progress) };
    expect(await rotateMasterKey(database, { before, after }, how)).toMatchObject({ ok: true });
    expect(looks).toBe(3);
    expect(told[0]).toContain('refresh');
    const anew = await worker(after);
    const row = await findSealedSecret(database, { ownerId: (await callerOf(anew)).userId, path: 'user/refreshed' });
    expect((await openRow(anew, row!)).reveal()).toBe('the only token');
  });

  test('is not waited for if its worker is dead, or if it is a pause', async () => {
    await worker(before);
    const clock = new TestClock();
    await insertLease('backoff', clock.now() + 30_000);
    let slept = 0;
    const counting = {
      now: () => clock.now() + slept,
      sleep: async (milliseconds: number) => void (slept += milliseconds),
    };
    const how = { clock: counting, onProgress: () => undefined };
    expect(await rotateMasterKey(database, { before, after }, how)).toMatchObject({ ok: true });
    expect(slept).toBe(0);
    await insertLease('somebody', clock.now() + 3_600_000);
    const next = { before: after, after: newMasterKey() };
    expect(await rotateMasterKey(database, next, how)).toMatchObject({ ok: true });
    expect(slept).toBe(45_000);
  });
});

const summary = async (masterKey: Secret | null, previousMasterKey: Secret | null) => {
  const status = await vaultStatus(database, { masterKey, previousMasterKey });
  if (!status.ok) return status.error.reason;
  const sum = (of: 'current' | 'previous' | 'damaged') =>
    status.value.values.reduce((total, count) => total + count[of], 0);
  return [status.value.finished, sum('current') > 0, sum('previous') > 0, sum('damaged')];
};

describe('the report of which key seals what', () => {
  test('is right before, during and after a change', async () => {
    await plant(await worker(before));
    expect(await summary(before, null)).toEqual([true, true, false, 0]);
    expect(await summary(after, before)).toEqual([false, false, true, 0]);
    expect(await summary(after, null)).toBe('wrong_vault_key');
    await expect(rotateMasterKey(killAtWrite(database, 2, 'after'), { before, after })).rejects.toThrow('killed');
    expect(await summary(after, before)).toEqual([false, true, true, 0]);
    expect(await summary(after, null)).toBe('missing_vault_key');
    expect(await summary(null, null)).toBe('missing_vault_key');
    await rotate();
    await client.execute("UPDATE secrets SET sealed = 'v1.x.y' WHERE path = 'user/secret-0'");
    expect(await summary(after, null)).toEqual([true, true, false, 1]);
  });
});

/** The files that seal or make keyed hashes. A new one must be part of the master key change, and added here. */
test('every user of the vault is part of the master key change', async () => {
  const folder = new URL('..', import.meta.url).pathname;
  const names = (await readdir(folder, { recursive: true })).filter((name) => /(?<![.]test)[.]ts$/.test(name));
  const callers = await Promise.all(
    names.map(async (name) => {
      const text = await readFile(join(folder, name), 'utf8');
      return /\b(vault|before|after)\.(seal|mac|macs|fingerprint)\(/.test(text) ? [name] : [];
    }),
  );
  expect(callers.flat().toSorted()).toEqual([
    'installation/sealed_kinds.ts',
    'installation/vault_key_check.ts',
    'kernel/audit_seals.ts',
    'kernel/control_key.ts',
    'services/connectors/pending_logins.ts',
    'services/oauth/oauth_flow.ts',
    'services/push/push_key.ts',
    'services/push/push_subscriptions.ts',
    'services/sinks/sink_target.ts',
    // Stores nothing: fingerprints are compared with each other.
    'services/sources/given_up_values.ts',
    'services/sources/minted_value.ts',
    'services/sources/secret_sources.ts',
    // Stores nothing: a ticket that the new key does not open is asked for again.
    'services/vault/moves/receive_moved.ts',
    'services/vault/secret_check.ts',
    'services/vault/secrets.ts',
    'sign_in/enterprise_settings.ts',
    'sign_in/linking.ts',
    'sign_in/merge.ts',
    'sign_in/signup.ts',
    'sign_in/throttle.ts',
    'tokens/access_keys.ts',
    'tokens/device_codes.ts',
  ]);
});

async function databaseBytes(): Promise<unknown> {
  const tables = [
    'installation',
    'secrets',
    'signing_keys',
    'oauth_flows',
    'pending_logins',
    'enterprise_oidc',
    'audit_sinks',
    'audit_heads',
  ];
  return Promise.all(tables.map(async (name) => (await client.execute(`SELECT * FROM ${name}`)).rows));
}
