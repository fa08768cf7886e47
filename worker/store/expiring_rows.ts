import { eq, lt, sql } from 'drizzle-orm';
import type { SQLiteColumn, SQLiteTable } from 'drizzle-orm/sqlite-core';
import { type Database, guard, type Statement } from './database.ts';

/** Stores a row of a table whose rows expire, and deletes the expired ones. */
export function insertExpiring<T extends SQLiteTable & { readonly expiresAt: SQLiteColumn }>(
  database: Database,
  table: T,
  row: T['$inferInsert'],
  nowSeconds: number,
): Statement[] {
  return [
    database.read.delete(table).where(lt(table.expiresAt, nowSeconds)),
    database.read.insert<SQLiteTable>(table).values(row),
  ];
}

/** Uses up the row with this key; of two concurrent callers one succeeds, the other gets a conflict. */
export function takeRow(database: Database, table: SQLiteTable, key: SQLiteColumn, value: string): Statement[] {
  return [
    ...guard(sql`EXISTS (SELECT 1 FROM ${table} WHERE ${key} = ${value})`),
    database.read.delete(table).where(eq(key, value)),
  ];
}
