import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createClient as createFileClient } from '@libsql/client';
import { createClient } from '@libsql/client/web';
import { sql } from 'drizzle-orm';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import {
  type Database,
  fetchInTime,
  isDatabaseFailure,
  openDatabase,
  createWriteSlots,
  prepareFile,
  statement,
} from './database.ts';

let server: Server;
let database: Database;

beforeEach(async () => {
  server = createServer(() => undefined);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const url = `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}`;
  database = openDatabase(createClient({ url, fetch: (request: Request) => fetchInTime(request, 50) }));
});
afterEach(async () => {
  server.closeAllConnections();
  server.close();
  await once(server, 'close');
});

test('a database file keeps acknowledged writes when the machine fails', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'svc-database-'));
  const client = createFileClient({ url: `file:${join(directory, 'control.db')}` });
  expect(await prepareFile(client)).toBe(true);
  expect((await client.execute('PRAGMA journal_mode')).rows[0]?.['journal_mode']).toBe('wal');
  expect((await client.execute('PRAGMA synchronous')).rows[0]?.['synchronous']).toBe(2);
  client.close();
  await rm(directory, { recursive: true });
});

const failureOf = (call: Promise<unknown>) => call.then(() => null).catch((error: unknown) => isDatabaseFailure(error));

const settle = async () => {
  for (let turn = 0; turn < 10; turn += 1) await new Promise((resolve) => setImmediate(resolve));
};

test('a program sends a server at most two writes at a time, because waiting ones would keep it from resetting its log', async () => {
  const sent: (() => void)[] = [];
  const fetch = () => {
    const { promise, reject } = Promise.withResolvers<Response>();
    sent.push(() => reject(new Error('gone')));
    return promise;
  };
  const client = createClient({ url: 'http://127.0.0.1:1', fetch });
  const limited = openDatabase(client, null, createWriteSlots(client));
  const writes = Array.from({ length: 5 }, () => failureOf(limited.write([statement(sql`SELECT 1`)])));
  for (let ended = 0; ended < 5; ended += 1) {
    await settle();
    expect(sent.length).toBe(Math.min(ended + 2, 5));
    sent[ended]?.();
  }
  expect(await Promise.all(writes)).toEqual([true, true, true, true, true]);
});

describe('a database server that accepts calls and never answers', () => {
  test('is a database failure for readers', async () => {
    expect(await failureOf(database.read.all(sql`SELECT 1`))).toBe(true);
  });

  test('is a database failure for writers', async () => {
    expect(await failureOf(database.write([statement(sql`SELECT 1`)]))).toBe(true);
  });
});
