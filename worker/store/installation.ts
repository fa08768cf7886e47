import { and, eq, sql } from 'drizzle-orm';
import { ok } from '../../shared/model/result.ts';
import { type Database, guard, type Statement, statement } from './database.ts';
import { installation } from './tables.ts';

/** What an installation remembers about itself. */
export type InstallationName =
  | 'control_plane_id'
  | 'vault_key_check'
  /** While the master key is changed: the same, sealed with the one before. */
  | 'vault_key_previous_check'
  /** Which key everything is sealed with; absent until the master key is changed for the first time. */
  | 'vault_key_mark'
  | 'signing_key_public'
  | 'signing_key_sealed'
  | 'local_user_id'
  /** The host name that the console of local mode has to itself. */
  | 'console_host'
  /** Until when no worker begins to remove audit events whose time is up: one has, or does it. */
  | 'audit_retention_until';

export async function readInstallation(database: Database): Promise<ReadonlyMap<string, string>> {
  const rows = await database.read.select().from(installation);
  return new Map(rows.map((row) => [row.name, row.value]));
}

/** Sets a name once; a name that is set already makes the whole write a conflict. */
export function setOnce(database: Database, name: InstallationName, value: string): Statement {
  return database.read.insert(installation).values({ name, value });
}

/** Sets a name, whatever it was. */
export function setAnew(database: Database, name: InstallationName, value: string): Statement {
  return database.read
    .insert(installation)
    .values({ name, value })
    .onConflictDoUpdate({ target: installation.name, set: { value } });
}

export function forget(database: Database, name: InstallationName): Statement {
  return database.read.delete(installation).where(eq(installation.name, name));
}

/** Replaces a value that is still the one that was read. */
export function replaceInstalled(
  database: Database,
  name: InstallationName,
  values: { readonly before: string; readonly after: string },
): Statement {
  return database.read
    .update(installation)
    .set({ value: values.after })
    .where(and(eq(installation.name, name), eq(installation.value, values.before)));
}

/** Holds while a name has the value that was read. */
export function stillInstalled(name: InstallationName, value: string): Statement[] {
  return guard(sql`EXISTS (SELECT 1 FROM installation WHERE name = ${name} AND value = ${value})`);
}

/**
 * Takes a turn that is over by itself: a conflict while another worker has it. Both times are RFC 3339 in UTC. A turn that
 * would end later than this one was taken by a clock that is wrong, and holds nobody up.
 */
export function takeTurn(
  database: Database,
  name: InstallationName,
  times: { readonly now: string; readonly until: string },
): Statement[] {
  const taken = sql`SELECT 1 FROM installation WHERE name = ${name} AND value > ${times.now} AND value <= ${times.until}`;
  return [...guard(sql`NOT EXISTS (${taken})`), setAnew(database, name, times.until)];
}

/**
 * The database as a worker sees it that seals with the key of this mark: once the database is changed to another master
 * key, none of its writes happens, for what it seals would be lost with the old key.
 */
export function sealingWith(database: Database, { keyMark }: { readonly keyMark: string }): Database {
  const other = sql`SELECT 1 FROM installation WHERE name = 'vault_key_mark' AND value <> ${keyMark}`;
  const isCurrent = statement(sql`INSERT INTO write_guards (holds) SELECT 0 WHERE EXISTS (${other})`);
  return {
    ...database,
    async write(statements) {
      const written = await database.write([isCurrent, ...statements]);
      return written.ok ? ok(written.value.slice(1)) : written;
    },
  };
}
