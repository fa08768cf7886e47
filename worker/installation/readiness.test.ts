import { afterEach, beforeEach, expect, test } from 'vitest';
import { type InProcess, startInProcess } from '../../e2e/runtimes/in_process.ts';
import { ProgramLifetime } from '../kernel/lifetime.ts';

let control: InProcess;
let lifetime: ProgramLifetime;
beforeEach(async () => {
  lifetime = new ProgramLifetime(() => undefined);
  control = await startInProcess({ lifetime });
});
afterEach(() => control.stop());

const ready = async () => {
  const reply = await control.send('/v1/ready');
  return [reply.status, await reply.json()];
};

test('a program is ready if its database has every migration, or newer ones', async () => {
  expect(await ready()).toMatchObject([200, { status: 'ready' }]);
  await control.context.database.client.execute(
    "INSERT INTO schema_migrations (number, name, checksum, applied_at) VALUES (999, 'next', 'x', 'now')",
  );
  expect(await ready()).toEqual([200, { status: 'ready', schema: 999 }]);
});

test('a program that seals with a replaced master key is not ready', async () => {
  await control.context.database.client.execute("INSERT INTO installation VALUES ('vault_key_mark', 'another')");
  expect(await ready()).toMatchObject([503, { error: { message: expect.stringContaining('master key was changed') } }]);
});

test('a program that is stopping is not ready, but healthy', async () => {
  lifetime.beginStop();
  expect(await ready()).toMatchObject([503, { error: { code: 'not_ready' } }]);
  expect((await control.send('/v1/health')).status).toBe(200);
});

test('a program is not ready while its database lacks a migration', async () => {
  await control.context.database.client.execute(
    'DELETE FROM schema_migrations WHERE number = (SELECT max(number) FROM schema_migrations)',
  );
  expect(await ready()).toMatchObject([
    503,
    { error: { code: 'not_ready', message: expect.stringContaining('1 step') } },
  ]);
});
