import { copyFile, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Client, createClient } from '@libsql/client';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { type InProcess, newMasterKey, startInProcess, TestClock } from '../../e2e/runtimes/in_process.ts';
import { openDatabase } from '../store/database.ts';
import { type Clock, SYSTEM_CLOCK } from './clock.ts';

const page = z.object({ items: z.array(z.object({ path: z.string(), description: z.string().nullable() })) });

let directory = '';
let primary: Client;
let replica: Client;
let control: InProcess;

const openAt = (name: string) => createClient({ url: `file:${join(directory, name)}`, timeout: 5_000 });
const secretsOf = async () => page.parse(await (await control.asUser('GET', '/v1/secrets')).json()).items;
const store = (path: string, description: string) =>
  control.asUser('POST', '/v1/secrets', { path, value: 'the value', description });

/** A replica of the primary as it is now. A secret's name shows that it was read there. */
async function replicate(): Promise<void> {
  await primary.execute('PRAGMA wal_checkpoint(TRUNCATE)');
  replica.close();
  await copyFile(join(directory, 'primary.db'), join(directory, 'replica.db'));
  replica.reconnect();
  await replica.execute("UPDATE secrets SET description = 'read at the replica'");
}

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'svc-replica-'));
  primary = openAt('primary.db');
  replica = openAt('replica.db');
  // Its sleep takes time: a replica read times out.
  const { ms } = new TestClock();
  const clock: Clock = { now: () => ms, sleep: (wait, signal) => SYSTEM_CLOCK.sleep(wait, signal) };
  control = await startInProcess({ database: openDatabase(primary, replica), masterKey: newMasterKey(), clock });
});
afterEach(async () => {
  await control.stop();
  primary.close();
  replica.close();
  await rm(directory, { recursive: true });
});

describe('a list', () => {
  test('comes from a replica that has everything recorded', async () => {
    await store('a', 'read at the primary');
    await replicate();
    expect(await secretsOf()).toMatchObject([{ path: 'a', description: 'read at the replica' }]);
  });

  test('comes from the primary after a write that the replica has not seen', async () => {
    await store('a', 'read at the primary');
    await replicate();
    await store('b', 'read at the primary');
    expect(await secretsOf()).toMatchObject([{ description: 'read at the primary' }, { path: 'b' }]);
    await replicate();
    expect(await secretsOf()).toMatchObject([{ description: 'read at the replica' }, { path: 'b' }]);
  });

  test("comes from the primary while the replica lacks an event of the enterprise's sidecar", async () => {
    const sidecar = await control.enrolSidecar();
    await store('a', 'read at the primary');
    await replicate();
    const event = {
      id: `evt_${'0'.repeat(26)}`,
      type: 'sandbox.proxy.passthrough',
      time: new Date(control.clock.ms).toISOString(),
      sidecar_id: null,
      session_id: null,
      actor: 'session',
      data: {},
    };
    expect((await sidecar.call('POST', '/v1/sidecar/events', { body: { events: [event] } })).status).toBe(200);
    expect(await secretsOf()).toMatchObject([{ description: 'read at the primary' }]);
  });

  test('comes from the primary if the replica is unreachable or empty', async () => {
    await store('a', 'read at the primary');
    expect(await secretsOf()).toMatchObject([{ description: 'read at the primary' }]);
    replica.close();
    expect(await secretsOf()).toMatchObject([{ description: 'read at the primary' }]);
  });

  test('comes from the primary if the replica fails after it reported its position', async () => {
    await store('a', 'read at the primary');
    await replicate();
    await replica.execute('DROP TABLE secrets');
    expect(await secretsOf()).toMatchObject([{ description: 'read at the primary' }]);
  });
});

test('authorisation data never comes from the replica', async () => {
  const sidecar = await control.enrolSidecar();
  await replicate();
  await control.asUser('DELETE', `/v1/sidecars/${sidecar.enrolled.sidecar_id}`);
  const refused = await sidecar.call('GET', '/v1/sidecar/snapshot?wait=0');
  expect(await refused.json()).toMatchObject({ error: { code: 'sidecar_revoked' } });
});
