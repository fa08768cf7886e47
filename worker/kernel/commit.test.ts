import { afterEach, beforeEach, expect, test } from 'vitest';
import { addUser, type InProcess, startInProcess } from '../../e2e/runtimes/in_process.ts';
import { ok } from '../../shared/model/result.ts';
import { type AuditDraft, type Chain, commit } from './commit.ts';

let control: InProcess;
beforeEach(async () => {
  control = await startInProcess();
});
afterEach(() => control.stop());

const EVENT: AuditDraft = { type: 'control.user.deleted', actor: null, data: {} };

async function newChain(): Promise<Chain> {
  const { enterpriseId } = await addUser(control.context, null);
  return { enterpriseId, writer: enterpriseId };
}

async function eventsOf({ writer }: Chain): Promise<number> {
  const sql = 'SELECT count(*) AS events FROM audit_events WHERE writer = ?';
  const { rows } = await control.context.database.client.execute({ sql, args: [writer] });
  return Number(rows[0]?.['events']);
}

test('a change with events in another chain is decided again if that one was continued meanwhile', async () => {
  const [own, other] = [await newChain(), await newChain()];
  let runs = 0;
  const written = await commit(control.context, own, async () => {
    runs += 1;
    const value = await eventsOf(other);
    const meanwhile = async () => ok({ statements: [], events: [EVENT], value: null });
    if (runs <= 2) await commit(control.context, other, meanwhile);
    return ok({ statements: [], events: [EVENT], elsewhere: [{ chain: other, events: [EVENT] }], value });
  });
  expect(written).toEqual(ok((await eventsOf(other)) - 1));
});
