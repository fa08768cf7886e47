import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { createClient } from '@libsql/client/web';
import { sql } from 'drizzle-orm';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type Database, fetchInTime, isDatabaseFailure, openDatabase, statement } from './database.ts';

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

const failureOf = (call: Promise<unknown>) => call.then(() => null).catch((error: unknown) => isDatabaseFailure(error));

describe('a database server that takes calls and never answers', () => {
  test('is a failure of the database for who reads', async () => {
    expect(await failureOf(database.read.all(sql`SELECT 1`))).toBe(true);
  });

  test('is a failure of the database for who writes', async () => {
    expect(await failureOf(database.write([statement(sql`SELECT 1`)]))).toBe(true);
  });
});
