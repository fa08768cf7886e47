import { type Client, LibsqlError, type ResultSet } from '@libsql/client/web';
import { DrizzleQueryError, type SQL, sql } from 'drizzle-orm';
import { SQLiteAsyncDialect } from 'drizzle-orm/sqlite-core';
import type { LibSQLDatabase } from 'drizzle-orm/libsql';
import { drizzle } from 'drizzle-orm/libsql/web';
import { err, ok, type Result } from '../../shared/model/result.ts';
import { Slots } from './slots.ts';
import { ReadTransactions } from './read_transactions.ts';

const WRITE_FAILED = 'database_write_failed';
const READ_FAILED = 'database_read_failed';

/** A statement of a write, as built by drizzle. */
export interface Statement {
  toSQL(): { readonly sql: string; readonly params: unknown[] };
}

/** The database: typed reads, and atomic writes. */
export interface Database {
  /** Reads the latest writes. */
  readonly read: LibSQLDatabase;
  /** A replica of the database on another server, which may lag; null if there is none. Never written to. */
  readonly replica: Pick<Database, 'readTogether'> | null;
  readonly client: Client;
  /**
   * Runs the statements in one write transaction, without holding it across round trips. A `conflict` if a constraint
   * fails: a guard, or a key that exists. The value is the number of rows that each statement changed.
   */
  write(statements: readonly Statement[]): Promise<Result<readonly number[], 'conflict'>>;
  /** Reads that all see the database at one point in time. */
  readTogether<T>(read: (database: Database) => Promise<T>): Promise<T>;
}

/** How long a libSQL server may take to answer. */
const SERVER_MS = 10_000;

/** `fetch` for the client of a libSQL server. A call without an answer fails after the timeout. */
export function fetchInTime(request: Request, timeoutMs = SERVER_MS): Promise<Response> {
  return fetch(request, { signal: AbortSignal.timeout(timeoutMs) });
}

/** How long a replica may take; less, because the primary can answer too. */
const REPLICA_MS = 2_000;

/** `fetch` for the client of a replica. */
export function fetchReplica(request: Request): Promise<Response> {
  return fetchInTime(request, REPLICA_MS);
}

/** Concurrent writes of one program. More would only wait at the server, which writes one at a time. */
const MOST_WRITES = 2;

/**
 * Queues the writes of a program to a libSQL server. A server resets its full log only when nobody reads, and writes
 * that wait for the lock are readers: with many of them it could hang, and retries would prolong that. Null for a file,
 * whose driver writes at once. One queue per client; not where requests cannot wait for each other (workerd).
 */
export function createWriteSlots({ protocol }: Pick<Client, 'protocol'>): Slots | null {
  return protocol === 'file' ? null : new Slots(MOST_WRITES, SERVER_MS);
}

/** The database of a client, with its replica if there is one. Each runtime has its own clients. */
export function openDatabase(client: Client, replica: Client | null = null, slots: Slots | null = null): Database {
  const readingAt = (at: Client): Database['readTogether'] => {
    const transactions = new ReadTransactions(at);
    return (read) => transactions.run((together) => read({ ...database, read: together }));
  };
  const database: Database = {
    read: drizzle(client),
    replica: replica === null ? null : { readTogether: readingAt(replica) },
    client,
    write: (statements) => write(client, slots, statements),
    readTogether: readingAt(client),
  };
  return database;
}

async function write(
  client: Client,
  slots: Slots | null,
  statements: readonly Statement[],
): Promise<Result<readonly number[], 'conflict'>> {
  const batch = statements.map((each) => toLibsql(each));
  const send = () => client.batch(batch, 'write');
  try {
    const results = await (slots === null ? send() : slots.take(send));
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

/** A statement from SQL text, where drizzle has no builder. */
export function statement(query: SQL): Statement {
  return { toSQL: () => new SQLiteAsyncDialect().sqlToQuery(query) };
}

/** A precondition of a write: if it is false, the whole write is a `conflict`. */
export function guard(condition: SQL): Statement[] {
  return [
    statement(sql`INSERT INTO write_guards (holds) SELECT (${condition})`),
    statement(sql`DELETE FROM write_guards`),
  ];
}

/** Reads by SQL text, before the schema is known. An unreachable server is a database failure. */
export async function readText(client: Client, text: string): Promise<ResultSet> {
  try {
    return await client.execute(text);
  } catch (error) {
    if (error instanceof LibsqlError) throw error;
    throw Object.assign(new Error('a read failed', { cause: error }), { code: READ_FAILED });
  }
}

/** True for errors that mean the database does not answer or fails. */
export function isDatabaseFailure(error: unknown): boolean {
  if (error instanceof DrizzleQueryError || error instanceof LibsqlError) return true;
  return error instanceof Error && 'code' in error && (error.code === WRITE_FAILED || error.code === READ_FAILED);
}

/**
 * Prepares a new or existing database file. Readers do not wait for writers. Acknowledged writes survive a crash of the
 * machine, at the cost of one fsync per write: `synchronous` keeps its default FULL, because a sidecar deletes its copy
 * of an accepted audit event, and a revocation must not be undone. False if the file is damaged or not a database.
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

/** Writes the log into the database file and closes it. Pages that other programs still read stay in the log. */
export async function closeFile(client: Client): Promise<void> {
  if (client.protocol === 'file') await client.execute('PRAGMA wal_checkpoint(TRUNCATE)');
  client.close();
}

/** True for an error that says the file is not a database or has damaged pages. */
export function isDamage(error: unknown): boolean {
  return error instanceof LibsqlError && /^SQLITE_(NOTADB|CORRUPT)/.test(error.code);
}
