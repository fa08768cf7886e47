import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { addUser, type InProcess, newMasterKey, startInProcess } from '../../../e2e/runtimes/in_process.ts';
import { Secret } from '../../../shared/model/secret.ts';
import { errorBody } from '../../../shared/wire/errors.ts';
import { MAX_SECRET_BYTES } from '../../../shared/model/secret.ts';
import { secretCheckReply } from '../../../shared/wire/secrets.ts';
import { findAccount } from '../../store/accounts.ts';
import { insertSecret } from '../../store/secrets.ts';
import type { Caller } from '../../kernel/caller.ts';
import { checkValues } from './secret_check.ts';
import { storeSecret } from './secrets.ts';
import { freshId, nowText } from '../../kernel/service_context.ts';
import { Vault } from '../../kernel/vault.ts';

let control: InProcess;
let planted = '';
beforeEach(async () => {
  control = await startInProcess();
  planted = `planted-${randomBytes(16).toString('hex')}`;
});
afterEach(() => control.stop());

const store = (path: string, value: string, owner = 'personal') =>
  control.asUser('POST', '/v1/secrets', { path, value, owner });
const ask = (values: unknown) => control.asUser('POST', '/v1/secrets/check', { values });
const check = async (...values: string[]) => secretCheckReply.parse(await (await ask(values)).json()).matches;
const sql = (text: string, ...args: string[]) => control.context.database.client.execute({ sql: text, args });

async function localCaller(): Promise<Caller> {
  const account = await findAccount(control.context.database, control.context.local?.userId ?? '');
  return { userId: account!.user.id, enterpriseId: account!.enterprise.id, role: 'admin' };
}
async function asCaller(caller: Caller, ...values: string[]) {
  const found = await checkValues(control.context, caller, values);
  return found.ok ? found.value.matches : null;
}

describe('checked values', () => {
  test("are found in personal secrets and the enterprise's, and nowhere else", async () => {
    await store('user/demo', planted);
    await store('shared/key', `${planted}-2`, 'enterprise');
    expect(await check('other', `${planted}-2`, planted, planted.slice(1), '')).toEqual([
      { index: 1, path: 'shared/key', owner: 'enterprise' },
      { index: 2, path: 'user/demo', owner: 'personal' },
    ]);
  });

  test('are reported at each vault place that holds them and each place where they were found', async () => {
    await store('a', planted);
    await store('b', planted);
    await store('c', planted, 'enterprise');
    const places = (await check(planted, planted)).map(({ index, path }) => `${index} ${path}`);
    expect(places.toSorted()).toEqual(['0 a', '0 b', '0 c', '1 a', '1 b', '1 c']);
  });

  test('are compared with the current values', async () => {
    await store('user/demo', planted);
    await store('user/demo', `${planted}-2`);
    expect(await check(planted, `${planted}-2`)).toMatchObject([{ index: 1 }]);
    await control.asUser('DELETE', '/v1/secrets/user/demo');
    expect(await check(planted, `${planted}-2`)).toEqual([]);
  });

  test('are compared exactly, including white space and special characters', async () => {
    const odd = `${planted}\n"\u2028\ufeff\\ \u{1f600} `;
    await store('user/demo', odd);
    expect(await check(odd.trim(), odd, `${planted}\ud800`)).toMatchObject([{ index: 1 }]);
  });

  test('are compared up to the largest possible secret', async () => {
    await store('user/demo', 'x'.repeat(MAX_SECRET_BYTES));
    expect(await check('x'.repeat(MAX_SECRET_BYTES), 'x'.repeat(MAX_SECRET_BYTES + 1))).toMatchObject([{ index: 0 }]);
  });

  test.each([
    ['too many', Array(65).fill('v')],
    ['not a list', 'v'],
    ['not texts', [1]],
  ])('are refused if they are %s', async (_, values) => {
    const reply = await ask(values);
    const { error } = errorBody.parse(await reply.json());
    expect([reply.status, error.code]).toEqual([400, 'invalid_input']);
  });
});

describe("other users' secrets", () => {
  test('never match, in the same or another enterprise', async () => {
    const owner = await localCaller();
    const colleague = await addUser(control.context, owner.enterpriseId);
    const stranger = await addUser(control.context, null);
    await store('user/demo', `${planted}-own`);
    await store('shared/key', `${planted}-shared`, 'enterprise');
    const values = [`${planted}-own`, `${planted}-shared`];
    expect(await asCaller(owner, ...values)).toHaveLength(2);
    expect(await asCaller(colleague, ...values)).toEqual([{ index: 1, path: 'shared/key', owner: 'enterprise' }]);
    expect(await asCaller(stranger, ...values)).toEqual([]);
  });

  test('do not match with an equal value if somebody replaces the fingerprint', async () => {
    const owner = await localCaller();
    const stranger = await addUser(control.context, null);
    await store('user/demo', planted);
    const value = new Secret(planted);
    await storeSecret(control.context, stranger, { path: 'user/demo', value, owner: 'personal' });
    const rows = await sql('SELECT DISTINCT fingerprint FROM secrets');
    expect(rows.rows).toHaveLength(2);
    expect(await asCaller(stranger, planted)).toHaveLength(1);
    await sql('UPDATE secrets SET fingerprint = (SELECT fingerprint FROM secrets WHERE owner_id = ?)', owner.userId);
    expect(await asCaller(stranger, planted)).toEqual([]);
  });
});

describe('a secret without a fingerprint', () => {
  test('from an earlier version gets one at the first check', async () => {
    await store('user/demo', planted);
    await sql('UPDATE secrets SET fingerprint = NULL');
    expect(await check(planted)).toMatchObject([{ path: 'user/demo' }]);
    expect((await sql('SELECT 1 FROM secrets WHERE fingerprint IS NULL')).rows).toEqual([]);
  });

  test("with an earlier key's fingerprint gets a new one", async () => {
    await store('user/demo', planted);
    const earlier = await Vault.open(newMasterKey());
    const { userId } = await localCaller();
    await sql('UPDATE secrets SET fingerprint = ?', await earlier.fingerprint(userId, new Secret(planted)));
    expect(await check(planted)).toMatchObject([{ path: 'user/demo' }]);
  });

  test('may be one of very many', async () => {
    const { context } = control;
    const { userId, enterpriseId } = await localCaller();
    const rows = Array.from({ length: 120 }, async (_, n) => {
      const place = { owner: userId, path: `many/${n}`, version: 1 };
      const sealed = await context.vault.seal(place, new Secret(`${planted}-${n}`));
      const times = { createdAt: nowText(context), updatedAt: nowText(context) };
      const { path, version } = place;
      const of = { id: freshId(context, 'sec'), enterpriseId, ownerId: userId, path, version };
      return { ...of, ...times, sealed, description: null, fingerprint: null, expiresAt: null };
    });
    await context.database.write((await Promise.all(rows)).flatMap((row) => insertSecret(context.database, row)));
    expect(await check(`${planted}-0`, `${planted}-119`)).toHaveLength(2);
  });

  test('that the vault cannot open stops the check, because it might be a match', async () => {
    await store('user/demo', planted);
    await sql("UPDATE secrets SET fingerprint = NULL, sealed = 'v1.AAAA.AAAA'");
    expect((await ask([planted])).status).toBe(500);
    expect(JSON.stringify(control.log)).toContain('vault_entry_damaged');
  });
});

test('a checked value appears in no reply, log line, audit event or database file', async () => {
  const stranger = `stranger-${randomBytes(16).toString('hex')}`;
  await store('user/demo', planted);
  const bodies = [[planted, stranger], [...Array(64).fill(planted), stranger], [planted, 1], `${planted} ${stranger}`];
  const replies = await Promise.all(bodies.map(async (values) => (await ask(values)).text()));
  await sql("UPDATE secrets SET fingerprint = NULL, sealed = 'v1.AAAA.AAAA'");
  replies.push(await (await ask([planted, stranger])).text());
  replies.push(await (await control.asUser('GET', '/v1/audit-events')).text());
  const seen = Buffer.concat([Buffer.from(JSON.stringify([replies, control.log])), await control.databaseBytes()]);
  expect(seen.includes('user/demo')).toBe(true);
  for (const value of [planted, stranger]) expect(seen.includes(value)).toBe(false);
});
