import { compactVerify, importJWK } from 'jose';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { addUser, type InProcess, parseReply, startInProcess } from '../../../e2e/runtimes/in_process.ts';
import type { TestSidecar } from '../../../e2e/runtimes/sidecar_client.ts';
import {
  AUDIT_HEADS_TYP,
  type AuditHead,
  auditHeadsChecked,
  auditHeadsPayload,
  auditHeadsReply,
  auditStatement,
  auditStatementReply,
  exportedHead,
  writeKnownHeads,
} from '../../../shared/wire/audit_heads.ts';
import { newId } from '../../../shared/wire/ids.ts';
import { findHead } from '../../store/audit/audit_events.ts';
import { checkHeads } from './audit_heads.ts';

let control: InProcess;
let sidecar: TestSidecar;
beforeEach(async () => {
  control = await startInProcess();
  sidecar = await control.enrolSidecar();
  await send(4);
});
afterEach(() => control.stop());

const writer = () => sidecar.enrolled.sidecar_id;
const sql = (text: string, ...args: (string | number)[]) =>
  control.context.database.client.execute({ sql: text, args });

let made = 0;
async function send(count: number): Promise<void> {
  const events = Array.from({ length: count }, () => ({
    id: newId('evt', new TextEncoder().encode(String((made += 1)).padStart(16, '0'))),
    type: 'sandbox.proxy.passthrough',
    time: '2026-01-01T00:00:00.000Z',
    sidecar_id: null,
    session_id: null,
    actor: 'session',
    data: {},
  }));
  expect((await sidecar.call('POST', '/v1/sidecar/events', { body: { events } })).status).toBe(200);
}

const exportHeads = () => parseReply(auditHeadsReply, control.asUser('GET', '/v1/audit-events/heads'));
async function check(heads: readonly AuditHead[]) {
  const bare = heads.map(({ writer: of, sequence, hash }) => ({ writer: of, sequence, hash }));
  return parseReply(auditHeadsChecked, control.asUser('POST', '/v1/audit-events/heads/check', { heads: bare }));
}
const ownOf = (heads: readonly AuditHead[]) => heads.find((head) => head.writer === writer())!;

const ask = async (known: readonly AuditHead[], nonce = 'nonce-of-the-heads-call') => {
  const target = `/v1/sidecar/audit-heads?known=${writeKnownHeads(known)}`;
  const reply = await sidecar.call('GET', target, { claims: { jti: nonce } });
  return sidecar.verify(await reply.text(), AUDIT_HEADS_TYP, auditHeadsPayload);
};

/** Restores the whole database to an earlier state. */
async function copyDatabase(): Promise<() => Promise<void>> {
  const tables = ['audit_events', 'audit_heads', 'audit_writers', 'audit_beginnings'];
  for (const table of tables) await sql(`CREATE TABLE copy_${table} AS SELECT * FROM ${table}`);
  return async () => {
    for (const table of tables) {
      await sql(`DELETE FROM ${table}`);
      await sql(`INSERT INTO ${table} SELECT * FROM copy_${table}`);
    }
  };
}

describe('exported heads', () => {
  test('are each signed, with their writer and time', async () => {
    const { heads, control_plane_key: jwk, ...rest } = await exportHeads();
    expect(new Set(heads.map((head) => head.sequence))).toEqual(new Set([1, 4]));
    const key = await importJWK(jwk, 'EdDSA');
    for (const { signed, ...head } of heads) {
      const { payload, protectedHeader } = await compactVerify(signed, key);
      expect(protectedHeader.typ).toBe('svc-audit-head+jws');
      const { control_plane_id, enterprise_id, taken_at, ...of } = exportedHead.parse(
        JSON.parse(new TextDecoder().decode(payload)),
      );
      expect({ control_plane_id, enterprise_id, taken_at }).toEqual(rest);
      expect(of).toEqual(head);
    }
  });

  test('are confirmed by a log that continues, and reported as pruned if their events were removed', async () => {
    const { heads } = await exportHeads();
    await send(3);
    expect(await check(heads)).toMatchObject({ ok: true, heads: [{ standing: 'kept' }, { standing: 'kept' }] });
    control.clock.ms += 10 * 24 * 3_600_000;
    await send(1);
    const before = new Date(control.clock.now() - 24 * 3_600_000).toISOString();
    expect((await control.asUser('POST', '/v1/audit-events/prune', { before })).status).toBe(200);
    expect(await check([ownOf(heads)])).toMatchObject({ ok: true, heads: [{ standing: 'pruned' }] });
  });

  test('show that the whole database was restored to an older copy, which verifies on its own', async () => {
    const putBack = await copyDatabase();
    await send(3);
    const { heads } = await exportHeads();
    await putBack();
    const verified = await (await control.asUser('GET', '/v1/audit-events/verify')).json();
    expect(verified).toMatchObject({ ok: true });
    expect(await check([ownOf(heads)])).toMatchObject({ ok: false, heads: [{ standing: 'behind' }] });
    await send(3);
    expect(await check([ownOf(heads)])).toMatchObject({ ok: false, heads: [{ standing: 'differs' }] });
  });

  test('show that an older head of one chain was restored and the later events deleted', async () => {
    const old = await findHead(control.context.database, writer());
    const { sequence, hash, seal } = old!;
    await send(3);
    const { heads } = await exportHeads();
    await sql('DELETE FROM audit_events WHERE writer = ? AND sequence > ?', writer(), sequence);
    const putBack = 'UPDATE audit_heads SET sequence = ?, hash = ?, seal = ? WHERE writer = ?';
    await sql(putBack, sequence, hash, seal, writer());
    expect(await check([ownOf(heads)])).toMatchObject({ ok: false, heads: [{ standing: 'behind' }] });
  });

  test('of a chain that is gone, or of another enterprise, are missing', async () => {
    const { heads } = await exportHeads();
    const other = await addUser(control.context, null);
    const foreign = await checkHeads(control.context, other, [ownOf(heads)]);
    expect(foreign).toMatchObject({ ok: false, heads: [{ standing: 'missing' }] });
    await sql('DELETE FROM audit_heads WHERE writer = ?', writer());
    expect(await check([ownOf(heads)])).toMatchObject({ heads: [{ standing: 'missing' }] });
  });
});

const state = () => parseReply(auditStatementReply, control.asUser('GET', '/v1/audit-events/statement'));

describe('the statement of the chains', () => {
  test('is signed, and says where each chain begins and ends', async () => {
    control.clock.ms += 10 * 24 * 3_600_000;
    await send(2);
    const before = new Date(control.clock.now() - 24 * 3_600_000).toISOString();
    expect((await control.asUser('POST', '/v1/audit-events/prune', { before })).status).toBe(200);
    const { signed, control_plane_key: jwk } = await state();
    const { payload, protectedHeader } = await compactVerify(signed, await importJWK(jwk, 'EdDSA'));
    expect(protectedHeader.typ).toBe('svc-audit-statement+jws');
    const { chains } = auditStatement.parse(JSON.parse(new TextDecoder().decode(payload)));
    const { heads } = await exportHeads();
    expect(chains.map(({ writer: of, sequence, hash }) => ({ writer: of, sequence, hash }))).toEqual(
      heads.map(({ writer: of, sequence, hash }) => ({ writer: of, sequence, hash })),
    );
    expect(chains.find((chain) => chain.writer === writer())).toMatchObject({
      sequence: 6,
      beginning: { sequence: 4 },
    });
  });

  test('is refused while a beginning has no valid seal', async () => {
    control.clock.ms += 10 * 24 * 3_600_000;
    await send(1);
    const before = new Date(control.clock.now() - 24 * 3_600_000).toISOString();
    await control.asUser('POST', '/v1/audit-events/prune', { before });
    await sql('UPDATE audit_beginnings SET sequence = 3 WHERE writer = ?', writer());
    const reply = await control.asUser('GET', '/v1/audit-events/statement');
    expect([reply.status, await reply.text()]).toEqual([409, expect.stringContaining('is not sealed')]);
  });
});

describe("a sidecar's question about the log", () => {
  test('gets a signed reply: the heads of its own and the control plane’s chain, and the state of the heads it knows', async () => {
    const { heads } = await exportHeads();
    const bare = heads.map(({ writer: of, sequence, hash }) => ({ writer: of, sequence, hash }));
    const told = await ask([ownOf(bare), { ...ownOf(bare), sequence: 9 }, { ...ownOf(bare), sequence: 2 }]);
    expect(told).toMatchObject({ sidecar_id: writer(), nonce: 'nonce-of-the-heads-call' });
    expect(told.heads.toSorted((a, b) => a.sequence - b.sequence)).toEqual(
      bare.toSorted((a, b) => a.sequence - b.sequence),
    );
    expect(told.known.map(({ standing }) => standing)).toEqual(['kept', 'behind', 'differs']);
  });

  test('is refused if it is not a list of heads', async () => {
    for (const known of ['x', 'sdc_1.2.zz', 'a.b.c,'.repeat(40)]) {
      expect((await sidecar.call('GET', `/v1/sidecar/audit-heads?known=${known}`)).status).toBe(400);
    }
  });
});
