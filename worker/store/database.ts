import { type Client, LibsqlError } from '@libsql/client/web';
import { type SQL, sql } from 'drizzle-orm';
import { SQLiteAsyncDialect } from 'drizzle-orm/sqlite-core';
import type { LibSQLDatabase } from 'drizzle-orm/libsql';
import { drizzle } from 'drizzle-orm/libsql/web';
import { err, ok, type Result } from '../../shared/model/result.ts';

/** A statement of a write, as drizzle builds it. */
export interface Statement {
  toSQL(): { readonly sql: string; readonly params: unknown[] };
}

/** The database: typed reads, and writes that happen as a whole or not at all. */
export interface Database {
  readonly read: LibSQLDatabase;
  readonly client: Client;
  /**
   * Runs the statements in one write transaction without holding it across round trips. Refused with `conflict` when a
   * constraint does not hold: a guard, a key that is taken. The value is the rows each statement affected.
   */
  write(statements: readonly Statement[]): Promise<Result<readonly number[], 'conflict'>>;
}

/** The database behind a client; every runtime brings its own client. */
export function openDatabase(client: Client): Database {
  return {
    read: drizzle(client),
    client,
    async write(statements) {
      const batch = statements.map((each) => toLibsql(each));
      try {
        const results = await client.batch(batch, 'write');
        return ok(results.map((result) => result.rowsAffected));
      } catch (error) {
        if (isConstraint(error)) return err('conflict');
        throw error;
      }
    },
  };
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
