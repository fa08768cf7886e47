import { readFileSync } from 'node:fs';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type InProcess, parseReply, startInProcess } from '../../e2e/runtimes/in_process.ts';
import { PENDING_LOGIN_SECONDS, pendingLogin } from '../../shared/wire/pending_logins.ts';
import { periodicTurns } from './periodic_turns.ts';
import { startTurnTimer } from './turn_timer.ts';

let control: InProcess;
beforeEach(async () => {
  control = await startInProcess();
});
afterEach(() => control.stop());

const open = async (program: string): Promise<string> => {
  const facts = { token_url: 'https://auth.example.test/token', client_id: 'client', grants: ['authorization_code'] };
  return (await parseReply(pendingLogin, control.asUser('POST', '/v1/pending-logins', { program, ...facts }))).id;
};
const ids = async (): Promise<unknown[]> =>
  (await control.context.database.client.execute('SELECT id FROM pending_logins')).rows.map(({ id }) => id);

test('logins that have expired are deleted without a further login, and others stay', async () => {
  const [expired, between] = [await open('claude'), PENDING_LOGIN_SECONDS - 60];
  control.clock.ms += between * 1000;
  const waiting = await open('codex');
  for (const { take } of periodicTurns({}, () => undefined)) await take(control.context);
  expect(await ids()).toEqual([expired, waiting]);
  control.clock.ms += 61_000;
  for (const { take } of periodicTurns({}, () => undefined)) await take(control.context);
  expect(await ids()).toEqual([waiting]);
});

test('each turn is taken at the start of the program', async () => {
  await open('claude');
  control.clock.ms += PENDING_LOGIN_SECONDS * 1000;
  const stop = new AbortController();
  const work: Promise<unknown>[] = [];
  startTurnTimer({
    turns: periodicTurns({}, () => undefined),
    context: () => control.context,
    lifetime: { stopping: stop.signal, defer: (_what, run) => void work.push(run()) },
  });
  stop.abort();
  await Promise.all(work);
  expect(await ids()).toEqual([]);
});

test('the turns come each minute on Cloudflare too, because the documents promise events within about a minute', () => {
  const deployed = readFileSync(new URL('../../wrangler.toml', import.meta.url), 'utf8');
  expect(/^crons = (.*)$/m.exec(deployed)?.[1]).toBe('["* * * * *"]');
});
