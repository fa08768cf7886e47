import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { addUser, type InProcess, startInProcess } from '../../../e2e/runtimes/in_process.ts';
import { sha256Hex } from '../../kernel/sha256.ts';
import { chainBreak } from '../../../shared/audit/hash_chain.ts';
import { ok } from '../../../shared/model/result.ts';
import { auditEventsPage, auditVerification } from '../../../shared/wire/audit_events.ts';
import { newId } from '../../../shared/wire/ids.ts';
import { findAccount } from '../../store/accounts.ts';
import { beginChains, findHead, listChain } from '../../store/audit/audit_events.ts';
import { sealTaken } from '../../store/sealed_rows.ts';
import { listAuditPage, toStoredEvent } from './audit_log.ts';
import { pruneAudit, type PruneLimits } from './audit_pruning.ts';
import { retainAudit } from './audit_retention.ts';
import { sealHead, withWriter } from '../../kernel/audit_seals.ts';
import { verifyAudit } from './audit_verification.ts';
import type { Caller } from '../../kernel/caller.ts';
import { commit, emptyHead } from '../../kernel/commit.ts';
import type { ServiceContext } from '../../kernel/service_context.ts';
import { killAtWrite } from '../../store/testing/kill_at_write.ts';

const DAY_MS = 24 * 3_600_000;
const SIDECAR = 'sdc_one';
const OTHER = 'sdc_other';

let control: InProcess;
let owner: Caller;
beforeEach(async () => {
  control = await startInProcess();
  const account = await findAccount(control.context.database, control.context.local?.userId ?? '');
  owner = { userId: account!.user.id, enterpriseId: account!.enterprise.id, role: 'owner' };
});
afterEach(() => control.stop());

const inDays = (days: number) => new Date(control.clock.now() + days * DAY_MS).toISOString();
const sql = (text: string, ...args: (string | number)[]) =>
  control.context.database.client.execute({ sql: text, args });

let made = 0;
/** Events of a writer, received now. */
async function record(count: number, writer = SIDECAR, caller = owner, time = inDays(0)): Promise<void> {
  const events = Array.from({ length: count }, () => ({
    id: newId('evt', new TextEncoder().encode(String((made += 1)).padStart(16, '0')), control.clock.now()),
    type: 'sandbox.proxy.passthrough' as const,
    time,
    sidecar_id: null,
    session_id: null,
    actor: 'session',
    data: { 'svc.proxy.upstream.host': 'a.test' },
  }));
  if ((await findHead(control.context.database, writer)) === null) await begin(caller.enterpriseId, writer);
  const written = await commit(control.context, { enterpriseId: caller.enterpriseId, writer }, async () =>
    ok({ statements: [], events, value: null }),
  );
  expect(written.ok).toBe(true);
}

/** A writer that begins without an event of the control plane, which would be counted here. */
async function begin(enterpriseId: string, writer: string): Promise<void> {
  const { database, vault } = control.context;
  const own = await findHead(database, enterpriseId);
  if (own === null) throw new Error('the enterprise has no chain');
  const set = await withWriter(own, writer);
  const seal = await sealHead(vault, { ...own, ...set });
  const written = await database.write([
    ...beginChains(
      database,
      [{ enterpriseId, number: set.writers, writer }],
      [await emptyHead(vault, { enterpriseId, writer })],
    ),
    sealTaken(database, own, { ...set, seal }),
  ]);
  expect(written.ok).toBe(true);
}

async function prune(
  before: string,
  how: { context?: ServiceContext; dryRun?: boolean; caller?: Caller; limits?: PruneLimits } = {},
) {
  const input = { before, dry_run: how.dryRun ?? false };
  const pruned = await pruneAudit(how.context ?? control.context, how.caller ?? owner, input, how.limits);
  if (!pruned.ok) throw Object.assign(new Error(pruned.error.message), { code: pruned.error.code });
  return pruned.value;
}

/** Small limits, so that few events take many writes. */
const SMALL: PruneLimits = { eventsPerWrite: 10, chainsPerWrite: 2, writes: 3 };

/** Repeats until nothing is left to remove. */
async function pruneAll(before: string): Promise<number> {
  let removed = 0;
  for (;;) {
    const pruned = await prune(before, { limits: SMALL });
    removed += pruned.removed;
    if (pruned.finished) return removed;
  }
}

const verify = (caller = owner) => verifyAudit(control.context, caller);
const chainOf = async (writer: string) => (await verify()).chains.find((chain) => chain.writer === writer);

/** 30 old events of one sidecar and 4 of another, 5 recent ones of the first. */
async function plant(): Promise<string> {
  await record(30);
  await record(4, OTHER);
  control.clock.ms += 100 * DAY_MS;
  const before = inDays(-1);
  await record(5);
  return before;
}

describe('removing old audit events', () => {
  test('removes what was received before the time; the rest verifies from its new beginning', async () => {
    const before = await plant();
    const was = await verify();
    expect(await prune(before, { dryRun: true })).toMatchObject({ removed: 34, finished: true });
    expect(await verify()).toEqual(was);
    expect(await prune(before)).toEqual({ before, dry_run: false, removed: 34, finished: true, broken: [] });
    expect(await verify()).toMatchObject({ ok: true, removed: 34, first_break: null });
    expect(await chainOf(SIDECAR)).toMatchObject({ events: 5, removed: 30, begins_at: inDays(0) });
    expect(await chainOf(OTHER)).toMatchObject({ events: 0, removed: 4, begins_at: null });
    expect(await prune(before)).toMatchObject({ removed: 0, finished: true });
    await record(2, OTHER);
    expect(await chainOf(OTHER)).toMatchObject({ events: 2, removed: 4 });
    expect(await verify()).toMatchObject({ ok: true });
  });

  test('is itself an event: who, before when, how many', async () => {
    const before = await plant();
    await prune(before);
    const page = await listAuditPage(control.context, owner, { limit: 500, type: 'control.audit.' });
    expect(page).toMatchObject({
      value: {
        items: [
          {
            type: 'control.audit.pruned',
            actor: owner.userId,
            data: { 'svc.audit.before': before, 'svc.audit.removed': 34 },
          },
        ],
      },
    });
  });

  test('uses the time an event was received, not the time its writer gave it', async () => {
    for (const time of [inDays(-1_000), inDays(1_000)]) await record(3, SIDECAR, owner, time);
    control.clock.ms += 10 * DAY_MS;
    expect(await prune(inDays(-11))).toMatchObject({ removed: 0 });
    expect(await prune(inDays(-9))).toMatchObject({ removed: 6 });
  });

  test('keeps exported heads verifiable: a chain begins after the removed events and ends at its head', async () => {
    await prune(await plant());
    const chain = await chainOf(SIDECAR);
    let end = { sequence: chain!.removed, hash: chain!.beginning_hash };
    for (const row of await listChain(control.context.database, SIDECAR, { after: 0, limit: 100 })) {
      expect(chainBreak(end, toStoredEvent(row), sha256Hex)).toBe(null);
      end = { sequence: row.sequence, hash: row.hash };
    }
    expect(end).toEqual({ sequence: 35, hash: chain!.head_hash });
  });

  test('works through the API', async () => {
    const before = await plant();
    const reply = await control.asUser('POST', '/v1/audit-events/prune', { before });
    expect([reply.status, await reply.json()]).toMatchObject([200, { removed: 34, finished: true }]);
    const listed = await control.asUser('GET', '/v1/audit-events');
    expect(auditEventsPage.parse(await listed.json()).items).toHaveLength(6);
    const verified = await control.asUser('GET', '/v1/audit-events/verify');
    expect(auditVerification.parse(await verified.json())).toMatchObject({ ok: true, removed: 34 });
  });

  test('continues with further calls if there is much to remove', async () => {
    await record(61);
    for (const writer of ['sdc_a', 'sdc_b', 'sdc_c']) await record(1, writer);
    control.clock.ms += 100 * DAY_MS;
    expect(await prune(inDays(-1), { limits: SMALL })).toMatchObject({ removed: 22, finished: false });
    expect(await prune(inDays(-1), { limits: SMALL })).toMatchObject({ removed: 30, finished: false });
    expect(await prune(inDays(-1), { limits: SMALL })).toMatchObject({ removed: 12, finished: true });
    expect(await verify()).toMatchObject({ ok: true, removed: 64 });
  });

  test('is for admins only, and never removes the last day', async () => {
    await plant();
    const member = await addUser(control.context, owner.enterpriseId);
    await expect(prune(inDays(-1), { caller: member })).rejects.toMatchObject({ code: 'admin_required' });
    const caller = await addUser(control.context, owner.enterpriseId, 'admin');
    await expect(prune(inDays(-1), { caller })).resolves.toMatchObject({ removed: 34 });
    await expect(prune(inDays(-0.9))).rejects.toMatchObject({ code: 'invalid_input' });
    const reply = await control.asUser('POST', '/v1/audit-events/prune', { before: inDays(1) });
    expect([reply.status, await reply.json()]).toMatchObject([400, { error: { details: { fields: [{}] } } }]);
    expect((await control.send('/v1/audit-events/prune', { method: 'POST' })).status).toBe(401);
  });

  test('does not affect another enterprise', async () => {
    const stranger = await addUser(control.context, null);
    await record(7, 'sdc_foreign', stranger);
    const before = await plant();
    const was = await verify(stranger);
    expect(await prune(before)).toMatchObject({ removed: 34 });
    expect(await verify(stranger)).toEqual(was);
    expect(await prune(before, { caller: stranger })).toMatchObject({ removed: 7 });
    expect(await verify()).toMatchObject({ ok: true, removed: 34 });
  });
});

const forge = (sequence: number) =>
  sql(
    `INSERT INTO audit_beginnings SELECT writer, enterprise_id, sequence, hash, 'forged' FROM audit_events
     WHERE writer = ? AND sequence = ?`,
    SIDECAR,
    sequence,
  );
const cut = (sequence: number) => sql('DELETE FROM audit_events WHERE writer = ? AND sequence <= ?', SIDECAR, sequence);
const breakOf = async () => (await verify()).first_break;

describe('an attacker with the database but without the key', () => {
  test('is detected when cutting events off the beginning', async () => {
    await plant();
    await cut(3);
    expect(await breakOf()).toMatchObject({ writer: SIDECAR, sequence: 1, reason: 'missing_event' });
    await forge(4);
    expect(await breakOf()).toMatchObject({ reason: 'wrong_beginning' });
    await sql('UPDATE audit_beginnings SET sequence = 3');
    expect(await breakOf()).toMatchObject({ reason: 'wrong_beginning' });
  });

  test('is detected when continuing from a real beginning, restoring an earlier one, or removing one', async () => {
    await record(10);
    control.clock.ms += 10 * DAY_MS;
    await record(10);
    control.clock.ms += 10 * DAY_MS;
    await prune(inDays(-15));
    const [earlier] = (await sql('SELECT * FROM audit_beginnings')).rows;
    await cut(15);
    expect(await breakOf()).toMatchObject({ sequence: 11, reason: 'missing_event' });
    await sql('UPDATE audit_beginnings SET sequence = 15');
    expect(await breakOf()).toMatchObject({ reason: 'wrong_beginning' });
    await sql('UPDATE audit_beginnings SET sequence = 10, writer = ?', 'sdc_moved');
    expect(await breakOf()).toMatchObject({ sequence: 1, reason: 'missing_event' });
    expect(earlier?.['sequence']).toBe(10);
  });

  test('is detected when removing a head too', async () => {
    const before = await plant();
    await prune(before);
    await sql('DELETE FROM audit_heads WHERE writer = ?', OTHER);
    expect(await breakOf()).toMatchObject({ writer: OTHER, reason: 'wrong_head' });
  });

  test('cannot have an altered event pruned, which would hide it', async () => {
    const before = await plant();
    await sql(`UPDATE audit_events SET actor = 'nobody' WHERE writer = ? AND sequence = 7`, SIDECAR);
    const broken = [{ writer: SIDECAR, sequence: 7, reason: 'wrong_hash' }];
    expect(await prune(before)).toMatchObject({ removed: 4, finished: true, broken });
    expect(await breakOf()).toMatchObject(broken[0]!);
    expect(await chainOf(SIDECAR)).toMatchObject({ events: 35, removed: 0 });
    await forge(3);
    await cut(3);
    expect(await prune(before)).toMatchObject({ removed: 0, broken: [{ reason: 'wrong_beginning' }] });
  });
});

/** Ends at one of its writes: before the write, or right after it with the reply lost. */
function killAt(write: number, when: 'before' | 'after'): ServiceContext {
  return { ...control.context, database: killAtWrite(control.context.database, write, when) };
}

/** The total of all removal events. */
async function sumRemoved(): Promise<number> {
  const page = await listAuditPage(control.context, owner, { limit: 500, type: 'control.audit.pruned' });
  if (!page.ok) throw new Error(page.error.message);
  return page.value.items.reduce((sum, event) => sum + (event.data['svc.audit.removed'] ?? 0), 0);
}

describe('concurrent removal', () => {
  test.each(['before', 'after'] as const)(
    'when killed %s any of its writes, has recorded everything that is gone',
    async (when) => {
      await record(52);
      control.clock.ms += 10 * DAY_MS;
      const before = inDays(-1);
      for (let write = 0; write < 3; write += 1) {
        await expect(prune(before, { context: killAt(write === 0 ? 1 : 0, when), limits: SMALL })).rejects.toThrow(
          'killed',
        );
        const verified = await verify();
        expect([verified.ok, verified.removed]).toEqual([true, await sumRemoved()]);
      }
      await pruneAll(before);
      expect([(await verify()).removed, await sumRemoved()]).toEqual([52, 52]);
    },
  );

  test('removes each event once, also while events arrive and chains are verified', async () => {
    await record(200);
    await record(40, OTHER);
    control.clock.ms += 10 * DAY_MS;
    const before = inDays(-1);
    const verified: boolean[] = [];
    const [one, two] = await Promise.all([
      pruneAll(before),
      pruneAll(before),
      (async () => {
        for (let at = 0; at < 10; at += 1) await record(3, at % 2 === 0 ? SIDECAR : OTHER);
      })(),
      (async () => {
        for (let at = 0; at < 10; at += 1) verified.push((await verify()).ok);
      })(),
    ]);
    expect(one + two).toBe(240);
    expect(new Set(verified)).toEqual(new Set([true]));
    expect(await verify()).toMatchObject({ ok: true, removed: 240 });
    expect(await sumRemoved()).toBe(240);
  });

  test('does not make a chain look broken whose beginning is removed while it is verified', async () => {
    await record(600);
    control.clock.ms += 10 * DAY_MS;
    const before = inDays(-1);
    const { database } = control.context;
    let reads = 0;
    const read = new Proxy(database.read, {
      get(target, name) {
        if (name !== 'select') return Reflect.get(target, name, target);
        reads += 1;
        return target.select.bind(target);
      },
    });
    const walking = verifyAudit({ ...control.context, database: { ...database, read } }, owner);
    await pruneAll(before);
    await record(3);
    expect(await walking).toMatchObject({ ok: true, first_break: null });
    expect(reads).toBeGreaterThan(3);
  });
});

const retain = (days: number, context: ServiceContext = control.context) => retainAudit(context, days);

describe('expired events', () => {
  test('are removed for all enterprises, by one worker per hour', async () => {
    const stranger = await addUser(control.context, null);
    await record(7, 'sdc_foreign', stranger);
    await plant();
    expect(await retain(101)).toEqual({ removed: 0, finished: true, broken: [] });
    expect(await retain(30)).toBe(null);
    await sql(`UPDATE installation SET value = ? WHERE name = 'audit_retention_until'`, inDays(1_000));
    const [one, two] = await Promise.all([retain(30), retain(30)]);
    expect([one, two].filter((each) => each !== null)).toEqual([{ removed: 41, finished: true, broken: [] }]);
    for (const caller of [owner, stranger]) expect(await verify(caller)).toMatchObject({ ok: true });
    const page = await listAuditPage(control.context, owner, { limit: 10, type: 'control.audit.' });
    expect(page).toMatchObject({ value: { items: [{ actor: null, data: { 'svc.audit.removed': 34 } }] } });
  });

  test('are left to the next turn if there are many; it does not wait an hour', async () => {
    await record(31);
    control.clock.ms += 10 * DAY_MS;
    expect(await retainAudit(control.context, 5, SMALL)).toMatchObject({ removed: 30, finished: false });
    expect(await retain(5)).toMatchObject({ removed: 1, finished: true });
    expect(await verify()).toMatchObject({ ok: true, removed: 31 });
  });

  test('are kept if their chain is broken; this is reported and does not block other chains', async () => {
    await plant();
    await sql(`UPDATE audit_events SET actor = 'nobody' WHERE writer = ? AND sequence = 7`, SIDECAR);
    const broken = [{ writer: SIDECAR, sequence: 7, reason: 'wrong_hash' }];
    expect(await retain(30)).toMatchObject({ removed: 4, finished: true, broken });
  });

  test('are left when the program is asked to stop', async () => {
    await plant();
    const stopping = AbortSignal.abort();
    expect(await retain(30, { ...control.context, stopping })).toMatchObject({ removed: 0, finished: false });
    expect(await retain(30)).toMatchObject({ removed: 34 });
  });
});
