import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { type Client, createClient } from '@libsql/client';
import { sql } from 'drizzle-orm';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type Database, openDatabase, statement } from './database.ts';

let directory = '';
let client: Client;
let database: Database;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'svc-read-'));
  client = createClient({ url: `file:${join(directory, 'control.db')}`, timeout: 5_000 });
  await client.execute('PRAGMA journal_mode = WAL');
  await client.execute('CREATE TABLE counted (n INTEGER NOT NULL)');
  database = openDatabase(client);
});
afterEach(async () => {
  client.close();
  await rm(directory, { recursive: true });
});

const countRows = async ({ read }: Database) => (await read.all(sql`SELECT n FROM counted`)).length;
const fail = () => Promise.reject(new Error('of this test'));
const count = () => database.write([statement(sql`INSERT INTO counted VALUES (1)`)]);

test('reads of one transaction do not see concurrent writes, and the next ones do', async () => {
  const seen = await database.readTogether(async (together) => {
    const before = await countRows(together);
    expect(await count()).toEqual({ ok: true, value: [1] });
    return [before, await countRows(together)];
  });
  expect(seen).toEqual([0, 0]);
  expect(await database.readTogether(countRows)).toBe(1);
});

test("transactions beyond the limit of a file's connections wait, and leave some connections for others", async () => {
  let most = 0;
  let open = 0;
  const readings = Array.from({ length: 50 }, () =>
    database.readTogether(async (together) => {
      most = Math.max(most, (open += 1));
      const counted = await countRows(together);
      await setImmediate();
      open -= 1;
      return counted;
    }),
  );
  expect((await count()).ok).toBe(true);
  await Promise.all(readings);
  expect(most).toBe(8);
});

test('a failed read returns its connection', async () => {
  for (let number = 0; number < 30; number += 1) {
    await expect(database.readTogether(fail)).rejects.toThrow('of this test');
  }
  expect(await database.readTogether(countRows)).toBe(0);
});
