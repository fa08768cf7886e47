import { exportJWK, generateKeyPair } from 'jose';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { addUser, type InProcess, startInProcess } from '../../../e2e/runtimes/in_process.ts';
import { Secret } from '../../../shared/model/secret.ts';
import { newId } from '../../../shared/wire/ids.ts';
import { findAccount } from '../../store/accounts.ts';
import { findHead } from '../../store/audit/audit_events.ts';
import { pruneAudit } from './audit_pruning.ts';
import { takeOverAudit } from './audit_takeover.ts';
import { verifyAudit } from './audit_verification.ts';
import type { Caller } from '../../kernel/caller.ts';
import { storeSecret } from '../vault/secrets.ts';
import { enrolSidecar } from '../sidecars/sidecars.ts';
import { acceptEvents } from './event_intake.ts';

let control: InProcess;
let owner: Caller;
let sidecar = '';
beforeEach(async () => {
  control = await startInProcess();
  const account = await findAccount(control.context.database, control.context.local?.userId ?? '');
  owner = { userId: account!.user.id, enterpriseId: account!.enterprise.id, role: 'owner' };
  sidecar = await enrol(owner);
  await record(5);
});
afterEach(() => control.stop());

const sql = (text: string, ...args: (string | number | null)[]) =>
  control.context.database.client.execute({ sql: text, args });
const verify = (caller = owner) => verifyAudit(control.context, caller);
const breakOf = async (caller = owner) => (await verify(caller)).first_break;

const publicKey = async (algorithm: string, crv: string) => {
  const { publicKey: key } = await generateKeyPair(algorithm, { crv, extractable: true });
  const { x } = await exportJWK(key);
  return x ?? '';
};

async function enrol(caller: Caller): Promise<string> {
  const enrolled = await enrolSidecar(control.context, caller, {
    name: 's',
    signing_key: { kty: 'OKP', crv: 'Ed25519', x: await publicKey('EdDSA', 'Ed25519') },
    receiving_key: { kty: 'OKP', crv: 'X25519', x: await publicKey('ECDH-ES', 'X25519') },
  });
  if (!enrolled.ok) throw new Error(enrolled.error.message);
  return enrolled.value.sidecar_id;
}

const textOf = (value: unknown) => (typeof value === 'string' ? value : '');

let made = 0;
/** Events of a sidecar, as its calls send them. */
async function record(count: number, sidecarId = sidecar, caller = owner): Promise<void> {
  const events = Array.from({ length: count }, () => ({
    id: newId('evt', new TextEncoder().encode(String((made += 1)).padStart(16, '0')), control.clock.now()),
    type: 'sandbox.proxy.passthrough',
    time: '2026-01-01T00:00:00.000Z',
    sidecar_id: null,
    session_id: null,
    actor: 'session',
    data: { 'svc.proxy.upstream.host': 'a.test' },
  }));
  const { enterpriseId, userId } = caller;
  const receivingKey = { kty: 'OKP', crv: 'X25519', x: '' } as const;
  const from = { sidecarId, enterpriseId, userId, ownOnly: false, nonce: 'n', receivingKey };
  const accepted = await acceptEvents(control.context, from, events);
  expect(accepted.ok).toBe(true);
}

const store = (path: string) =>
  storeSecret(control.context, owner, { path, value: new Secret('x'.repeat(20)), owner: 'personal' });

/** Deletes the events of a chain after a number and sets a head: an earlier copy of it or a forged one. */
async function rollBack(writer: string, sequence: number, seal: string | null): Promise<void> {
  await sql('DELETE FROM audit_events WHERE writer = ? AND sequence > ?', writer, sequence);
  const last = (await sql('SELECT hash FROM audit_events WHERE writer = ? AND sequence = ?', writer, sequence)).rows[0];
  const hash = textOf(last?.['hash']);
  await sql('UPDATE audit_heads SET sequence = ?, hash = ? WHERE writer = ?', sequence, hash, writer);
  if (seal !== null) await sql('UPDATE audit_heads SET seal = ? WHERE writer = ?', seal, writer);
}

const takeOut = async (writer: string) => {
  await sql('DELETE FROM audit_events WHERE writer = ?', writer);
  await sql('DELETE FROM audit_heads WHERE writer = ?', writer);
};

const give = async (table: string, writer: string, to: Caller) =>
  sql(`UPDATE ${table} SET enterprise_id = ? WHERE writer = ?`, to.enterpriseId, writer);

/** Makes it look like an earlier version's. */
async function makeFormer(): Promise<void> {
  const { vault } = control.context;
  for (const [table, name] of [
    ['audit_heads', 'svc audit head'],
    ['audit_beginnings', 'svc audit beginning'],
  ] as const) {
    for (const { writer, sequence, hash } of (await sql(`SELECT * FROM ${table} WHERE sequence > 0`)).rows) {
      const seal = await vault.mac(JSON.stringify([name, writer, Number(sequence), hash]));
      await sql(`UPDATE ${table} SET seal = ? WHERE writer = ?`, seal, textOf(writer));
    }
  }
  await sql('DELETE FROM audit_heads WHERE sequence = 0');
  await sql(`UPDATE audit_heads SET writers = 0, writers_hash = ''`);
  await sql('DELETE FROM audit_writers');
}
const takeOver = () => takeOverAudit(control.context.database, control.context.vault);

describe('a head that somebody wrote into the database', () => {
  test.each([
    ['of a sidecar’s chain', () => sidecar, () => record(1)],
    ['of the control plane’s own chain', () => owner.enterpriseId, () => store('late')],
  ])('gets no valid seal from the next event %s, which is still recorded', async (_, writerOf, go) => {
    await store('a');
    const writer = writerOf();
    const { sequence = 0 } = (await findHead(control.context.database, writer)) ?? {};
    await rollBack(writer, sequence - 1, null);
    await go();
    expect(await breakOf()).toMatchObject({ writer, reason: 'wrong_head' });
    await go();
    expect(await breakOf()).toMatchObject({ writer, reason: 'wrong_head' });
    const told = await sql(`SELECT writer, data FROM audit_events WHERE type = 'control.audit.head_broken'`);
    expect(told.rows).toHaveLength(1);
    expect(told.rows[0]).toMatchObject({ writer, data: expect.stringContaining(`"svc.audit.writer":"${writer}"`) });
  });

  test('is detected if it is an older sealed one and the later events are still there', async () => {
    const old = await findHead(control.context.database, sidecar);
    await record(3);
    const { sequence, hash, seal } = old!;
    await sql(
      'UPDATE audit_heads SET sequence = ?, hash = ?, seal = ? WHERE writer = ?',
      sequence,
      hash,
      seal,
      sidecar,
    );
    expect(await breakOf()).toMatchObject({ writer: sidecar, sequence: 5, reason: 'wrong_head' });
  });

  test('with a seal of an earlier version is invalid, with any key', async () => {
    const head = await findHead(control.context.database, sidecar);
    const former = await control.context.vault.mac(JSON.stringify(['svc audit head', sidecar, 5, head!.hash]));
    await sql('UPDATE audit_heads SET seal = ? WHERE writer = ?', former, sidecar);
    expect(await breakOf()).toMatchObject({ writer: sidecar, reason: 'wrong_head' });
    await expect(
      sql(
        'INSERT INTO audit_heads (writer, enterprise_id, sequence, hash, seal) VALUES (?, ?, 6, ?, ?)',
        'sdc_x',
        'e',
        'h',
        former,
      ),
    ).rejects.toThrow('earlier version');
  });
});

describe('a whole chain that is deleted from the database', () => {
  test('is missed, because the set of writers is sealed', async () => {
    await takeOut(sidecar);
    expect(await verify()).toMatchObject({ ok: false, writers: 2 });
    expect(await breakOf()).toEqual({ writer: sidecar, sequence: 0, event_id: null, reason: 'missing_chain' });
  });

  test.each([
    'DELETE FROM audit_writers WHERE writer = ?',
    `UPDATE audit_writers SET writer = 'sdc_x' WHERE writer = ?`,
  ])('is missed if its sidecar and its entry in the set are deleted too (%s)', async (statement) => {
    await takeOut(sidecar);
    await sql('DELETE FROM sidecars WHERE id = ?', sidecar);
    await sql(statement, sidecar);
    expect(await breakOf()).toMatchObject({ writer: owner.enterpriseId, reason: 'wrong_writers' });
  });

  test('is missed if the set is recounted, because the count is under the seal of the control plane’s own head', async () => {
    const before = await findHead(control.context.database, owner.enterpriseId);
    const second = await enrol(owner);
    await record(2, second);
    await takeOut(second);
    await sql('DELETE FROM audit_writers WHERE writer = ?', second);
    const { writers, writersHash } = before!;
    const own = 'UPDATE audit_heads SET writers = ?, writers_hash = ? WHERE writer = ?';
    await sql(own, writers, writersHash, owner.enterpriseId);
    expect(await breakOf()).toMatchObject({ writer: owner.enterpriseId, reason: 'wrong_head' });
  });

  test.each([
    ['a sidecar’s', () => sidecar, () => record(2)],
    ['the control plane’s own', () => owner.enterpriseId, () => store('late')],
  ])('cannot begin again: %s', async (_, writerOf, go) => {
    await takeOut(writerOf());
    await go();
    expect(await breakOf()).toMatchObject({ writer: writerOf(), reason: 'wrong_head' });
  });

  test('and an inserted one is not accepted', async () => {
    await sql(
      `INSERT INTO audit_heads (writer, enterprise_id, sequence, hash, seal) VALUES ('sdc_x', ?, 0, ?, 'v2.x')`,
      owner.enterpriseId,
      '0'.repeat(64),
    );
    expect(await breakOf()).toMatchObject({ writer: 'sdc_x', reason: 'wrong_head' });
  });
});

describe('events that are moved to another enterprise', () => {
  let other: Caller;
  let theirs = '';
  beforeEach(async () => {
    other = await addUser(control.context, null);
    theirs = await enrol(other);
    await record(5, theirs, other);
    expect(await verify(other)).toMatchObject({ ok: true, writers: 2 });
  });
  test('are detected on both sides if whole chains are swapped', async () => {
    for (const table of ['audit_heads', 'audit_events']) {
      await give(table, sidecar, other);
      await give(table, theirs, owner);
    }
    await sql('DELETE FROM audit_writers WHERE writer IN (?, ?)', sidecar, theirs);
    await sql(
      'INSERT INTO audit_writers VALUES (?, 2, ?), (?, 2, ?)',
      owner.enterpriseId,
      theirs,
      other.enterpriseId,
      sidecar,
    );
    expect(await breakOf()).toMatchObject({ writer: theirs, reason: 'wrong_head' });
    expect(await breakOf(other)).toMatchObject({ writer: sidecar, reason: 'wrong_head' });
  });

  test('are detected on both sides if moved one by one', async () => {
    await sql(
      'UPDATE audit_events SET enterprise_id = ? WHERE writer = ? AND sequence = 3',
      other.enterpriseId,
      sidecar,
    );
    expect(await breakOf()).toMatchObject({ writer: sidecar, sequence: 3, reason: 'wrong_enterprise' });
    expect(await breakOf(other)).toMatchObject({ writer: sidecar, reason: 'wrong_enterprise' });
  });

  test('are appended to a broken chain if their sidecar is moved with them', async () => {
    for (const table of ['audit_heads', 'audit_events']) await give(table, theirs, owner);
    await record(1, theirs, owner);
    expect(await breakOf()).toMatchObject({ writer: theirs, reason: 'wrong_head' });
  });

  test('cannot be removed by the other enterprise’s admin', async () => {
    await give('audit_heads', theirs, owner);
    control.clock.ms += 10 * 24 * 3_600_000;
    const before = new Date(control.clock.now() - 2 * 24 * 3_600_000).toISOString();
    const pruned = await pruneAudit(control.context, owner, { before, dry_run: false });
    expect(pruned).toMatchObject({ value: { broken: [{ writer: theirs, reason: 'wrong_head' }] } });
    const left = await sql('SELECT count(*) AS n FROM audit_events WHERE writer = ?', theirs);
    expect(left.rows[0]).toMatchObject({ n: 5 });
  });

  test('are checked against the indexed columns that repeat their content', async () => {
    await sql(`UPDATE audit_events SET host = 'b.test' WHERE writer = ? AND sequence = 2`, sidecar);
    expect(await breakOf()).toMatchObject({ writer: sidecar, sequence: 2, reason: 'wrong_hash' });
  });
});

describe('a database of a version with weaker seals', () => {
  test('is taken over once: every valid head is sealed again, and events continue', async () => {
    const silent = await enrol(owner);
    control.clock.ms += 10 * 24 * 3_600_000;
    const before = new Date(control.clock.now() - 5 * 24 * 3_600_000).toISOString();
    expect(await pruneAudit(control.context, owner, { before, dry_run: false })).toMatchObject({
      value: { broken: [] },
    });
    await record(2);
    await makeFormer();
    expect(await verify()).toMatchObject({ ok: false });
    expect(await takeOver()).toEqual([]);
    expect(await verify()).toMatchObject({ ok: true, writers: 3, first_break: null });
    const sealed = (await sql('SELECT * FROM audit_heads ORDER BY writer')).rows;
    expect(await takeOver()).toEqual([]);
    expect((await sql('SELECT * FROM audit_heads ORDER BY writer')).rows).toEqual(sealed);
    await record(3, silent);
    await store('a');
    expect(await verify()).toMatchObject({ ok: true, writers: 3 });
  });

  test.each([
    ['an altered head', () => sql('UPDATE audit_heads SET sequence = 4 WHERE writer = ?', sidecar), () => sidecar],
    ['a lost head', () => sql('DELETE FROM audit_heads WHERE writer = ?', sidecar), () => sidecar],
    [
      'a lost own head',
      () => sql('DELETE FROM audit_heads WHERE writer = ?', owner.enterpriseId),
      () => owner.enterpriseId,
    ],
  ])('leaves %s unchanged, and names it', async (_, alter, writerOf) => {
    await makeFormer();
    await alter();
    expect(await takeOver()).toEqual([{ enterpriseId: owner.enterpriseId, writer: writerOf() }]);
    expect(await breakOf()).toMatchObject({ writer: writerOf(), reason: 'wrong_head' });
  });

  test('is not taken over again if somebody deletes the set of writers and restores former seals', async () => {
    const head = await findHead(control.context.database, sidecar);
    const seal = await control.context.vault.mac(JSON.stringify(['svc audit head', sidecar, 5, head!.hash]));
    await record(3);
    await sql('DELETE FROM audit_writers');
    await rollBack(sidecar, 5, seal);
    await takeOver();
    expect(await breakOf()).toMatchObject({ writer: sidecar, reason: 'wrong_head' });
    expect((await sql('SELECT * FROM audit_writers')).rows).toEqual([]);
  });

  test('is taken over by one of two workers that start at once', async () => {
    await makeFormer();
    expect(await Promise.all([takeOver(), takeOver()])).toEqual([[], []]);
    expect(await verify()).toMatchObject({ ok: true });
  });
});
