import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type InProcess, parseReply, startInProcess } from '../../../e2e/runtimes/in_process.ts';
import { listAuditPage } from './audit_log.ts';
import { meReply } from '../../../shared/wire/account.ts';
import type { Caller } from '../../kernel/caller.ts';
import { eventStanding } from './event_standing.ts';

let control: InProcess;
let caller: Caller;
beforeEach(async () => {
  control = await startInProcess();
  const { userId = '' } = control.context.local ?? {};
  const me = await parseReply(meReply, control.asUser('GET', '/v1/me'));
  caller = { userId, enterpriseId: me.enterprise_id, role: 'owner' };
  for (const path of ['user/a', 'user/b', 'user/c']) await control.asUser('POST', '/v1/secrets', { path, value: 'v' });
});
afterEach(() => control.stop());

const sql = (text: string, ...args: (string | number)[]) =>
  control.context.database.client.execute({ sql: text, args });

/** Checks the event at this place of the enterprise's chain, counted from the newest (0). */
async function standing(back: number) {
  const page = await listAuditPage(control.context, caller, { limit: 10 });
  const event = page.ok ? page.value.items[back] : undefined;
  if (event === undefined) throw new Error('there is no such event');
  return eventStanding(control.context, event);
}

describe('an event in an unmodified log', () => {
  test.each([0, 1, 2])('fits its place, %i from the end', async (back) => {
    expect(await standing(back)).toEqual({ problem: null, isNewest: back === 0 });
  });
});

const OF_NEWEST = `writer = ?1 AND sequence = (SELECT max(sequence) FROM audit_events WHERE writer = ?1)`;
describe('an event is reported as not fitting', () => {
  test.each([
    ['when it was altered', `UPDATE audit_events SET actor = 'x' WHERE writer = ?1`, 1, 'wrong_hash'],
    [
      'when its data was altered',
      `UPDATE audit_events SET data = replace(data, 'user/', 'evil/') WHERE writer = ?1`,
      0,
      'wrong_hash',
    ],
    [
      'when the one before it was taken out',
      `DELETE FROM audit_events WHERE sequence < (SELECT max(sequence) FROM audit_events) AND writer = ?1`,
      0,
      'missing_event',
    ],
    ['when the ones after it were cut off', `DELETE FROM audit_events WHERE ${OF_NEWEST}`, 0, 'missing_event'],
    ['when its head is lost', `DELETE FROM audit_heads WHERE writer = ?1`, 0, 'wrong_head'],
    ['when its head has no seal', `UPDATE audit_heads SET seal = 'x' WHERE writer = ?1`, 0, 'wrong_head'],
  ])('%s', async (_, statement, back, problem) => {
    await sql(statement, caller.enterpriseId);
    expect(await standing(back)).toMatchObject({ problem });
  });
});
