import { type Client, LibsqlError, type ResultSet } from '@libsql/client/web';
import { DrizzleQueryError, type SQL, sql } from 'drizzle-orm';
import { SQLiteAsyncDialect } from 'drizzle-orm/sqlite-core';
import type { LibSQLDatabase } from 'drizzle-orm/libsql';
import { drizzle } from 'drizzle-orm/libsql/web';
import { err, ok, type Result } from '../../shared/model/result.ts';
import { Places } from './places.ts';
import { ReadTransactions } from './read_transactions.ts';

const WRITE_FAILED = 'database_write_failed';
const READ_FAILED = 'database_read_failed';

/** A statement of a write, as drizzle builds it. */
export interface Statement {
  toSQL(): { readonly sql: string; readonly params: unknown[] };
}

/** The database: typed reads, and writes that happen as a whole or not at all. */
export interface Database {
  /** Reads what was written last. */
  readonly read: LibSQLDatabase;
  /** A copy on another server, which follows the database and may lag; null when there is none. Never written to. */
  readonly replica: LibSQLDatabase | null;
  readonly client: Client;
  /**
   * Runs the statements in one write transaction without holding it across round trips. Refused with `conflict` when a
   * constraint does not hold: a guard, a key that is taken. The value is the rows each statement affected.
   */
  write(statements: readonly Statement[]): Promise<Result<readonly number[], 'conflict'>>;
  /** Readings that all see the database as it was at one time, whatever is written meanwhile. */
  readTogether<T>(read: (database: Database) => Promise<T>): Promise<T>;
}

/** How long a libSQL server may take to answer. */
const SERVER_MS = 10_000;

/** `fetch` for the client of a libSQL server: one that does not answer is a failure, and not a call that never ends. */
export function fetchInTime(request: Request, timeoutMs = SERVER_MS): Promise<Response> {
  return fetch(request, { signal: AbortSignal.timeout(timeoutMs) });
}

/** How long a replica may take: less, for the primary can answer too. */
const REPLICA_MS = 2_000;

/** `fetch` for the client of a replica. */
export function fetchReplica(request: Request): Promise<Response> {
  return fetchInTime(request, REPLICA_MS);
}

/** Of one program. More would only wait at the server: a database is written by one at a time. */
const MOST_WRITES = 2;

/**
 * Where the writes of a program on a libSQL server wait for one another. A server whose log is full resets it when nobody reads
 * there, and writes that wait for the lock read: of many, with readers between them, it stands still, and for as long as those
 * that were given up are sent again. Null for a file, whose driver writes at once. For one client; not where requests may not
 * wait for one another (workerd).
 */
export function placesToWrite({ protocol }: Pick<Client, 'protocol'>): Places | null {
  return protocol === 'file' ? null : new Places(MOST_WRITES, SERVER_MS);
}

/** The database behind a client, and its replica where there is one; every runtime brings its own clients. */
export function openDatabase(
  client: Client,
  replica: Client | null = null,
  placesOfWrites: Places | null = null,
): Database {
  const transactions = new ReadTransactions(client);
  const database: Database = {
    read: drizzle(client),
    replica: replica === null ? null : drizzle(replica),
    client,
    write: (statements) => write(client, placesOfWrites, statements),
    readTogether: (read) => transactions.run((together) => read({ ...database, read: together })),
  };
  return database;
}

async function write(
  client: Client,
  places: Places | null,
  statements: readonly Statement[],
): Promise<Result<readonly number[], 'conflict'>> {
  const batch = statements.map((each) => toLibsql(each));
  const send = () => client.batch(batch, 'write');
  try {
    const results = await (places === null ? send() : places.take(send));
    return ok(results.map((result) => result.rowsAffected));
  } catch (error) {
    if (isConstraint(error)) return err('conflict');
    throw Object.assign(new Error('a write failed', { cause: error }), { code: WRITE_FAILED });
  }
}

function toLibsql(each: Statement): { sql: string; args: (string | number | null)[] } {
  const built = each.toSQL();
  return { sql: built.sql, args: built.params.map((param) => toArgument(param)) };
}

function toArgument(param: unknown): string | number | null {
  if (typeof param === 'string' || typeof param === 'number' || param === null) return param;
  throw new TypeError(`a statement has a parameter of type ${typeof param}`);
}

function isConstraint(error: unknown): boolean {
  return error instanceof LibsqlError && error.code.startsWith('SQLITE_CONSTRAINT');
}

/** A statement from SQL text; for what drizzle has no builder for. */
export function statement(query: SQL): Statement {
  return { toSQL: () => new SQLiteAsyncDialect().sqlToQuery(query) };
}

/** The condition under which a write may happen: when it is false at that time, the whole write is a `conflict`. */
export function guard(condition: SQL): Statement[] {
  return [
    statement(sql`INSERT INTO write_guards (holds) SELECT (${condition})`),
    statement(sql`DELETE FROM write_guards`),
  ];
}

/** Reads by SQL text, before the schema is known. A server that cannot be reached is a failure of the database too. */
export async function readText(client: Client, text: string): Promise<ResultSet> {
  try {
    return await client.execute(text);
  } catch (error) {
    if (error instanceof LibsqlError) throw error;
    throw Object.assign(new Error('a reading failed', { cause: error }), { code: READ_FAILED });
  }
}

/** True for what is thrown when the database does not answer or does not do what it is asked. */
export function isDatabaseFailure(error: unknown): boolean {
  if (error instanceof DrizzleQueryError || error instanceof LibsqlError) return true;
  return error instanceof Error && 'code' in error && (error.code === WRITE_FAILED || error.code === READ_FAILED);
}

/**
 * Makes a new or used database file ready: readers do not wait for writers. What was answered survives a crash of the
 * machine too, at the price of one fsync for each write: `synchronous` stays FULL, its default, for a sidecar deletes its
 * copy of an audit event once it is accepted, and a revocation must not come undone. False when the file is damaged or is no database.
 */
export async function prepareFile(client: Client): Promise<boolean> {
  try {
    await client.execute('PRAGMA journal_mode = WAL');
    const check = await client.execute('PRAGMA quick_check(1)');
    return Object.values(check.rows[0] ?? {})[0] === 'ok';
  } catch (error) {
    if (isDamage(error)) return false;
    throw error;
  }
}

/** Puts everything into the database's own file, and leaves it. What readers of other programs hold back stays in the log beside it. */
export async function closeFile(client: Client): Promise<void> {
  if (client.protocol === 'file') await client.execute('PRAGMA wal_checkpoint(TRUNCATE)');
  client.close();
}

/** True for an error that says that the file is no database or has damaged pages. */
export function isDamage(error: unknown): boolean {
  return error instanceof LibsqlError && /^SQLITE_(NOTADB|CORRUPT)/.test(error.code);
}
