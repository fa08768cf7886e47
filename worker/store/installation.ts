import { and, eq, ne, sql, type SQL } from 'drizzle-orm';
import { ok } from '../../shared/model/result.ts';
import { type Database, guard, type Statement, statement } from './database.ts';
import { installation } from './tables.ts';

/** Values stored once per installation. */
export type InstallationName =
  | 'control_plane_id'
  | 'vault_key_check'
  /** During a master key change: the same, sealed with the previous key. */
  | 'vault_key_previous_check'
  /** Marks the key that seals; absent until the first change of the master key. */
  | 'vault_key_mark'
  | 'signing_key_public'
  | 'signing_key_sealed'
  | 'local_user_id'
  /** The console's own host name in local mode. */
  | 'console_host'
  /** Until when other workers do not remove expired audit events. */
  | 'audit_retention_until';

export async function readInstallation(database: Database): Promise<ReadonlyMap<string, string>> {
  const rows = await database.read.select().from(installation);
  return new Map(rows.map((row) => [row.name, row.value]));
}

/** Sets a name once; if it is set already, the whole write is a conflict. */
export function setOnce(database: Database, name: InstallationName, value: string): Statement {
  return database.read.insert(installation).values({ name, value });
}

/** Sets a name, replacing its value. */
export function setAnew(database: Database, name: InstallationName, value: string): Statement {
  return database.read
    .insert(installation)
    .values({ name, value })
    .onConflictDoUpdate({ target: installation.name, set: { value } });
}

export function forget(database: Database, name: InstallationName): Statement {
  return database.read.delete(installation).where(eq(installation.name, name));
}

/** Replaces a value, if it was not changed since it was read. */
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

/** True while a name has the value that was read. */
export function guardInstalled(name: InstallationName, value: string): Statement[] {
  return guard(sql`EXISTS (SELECT 1 FROM installation WHERE name = ${name} AND value = ${value})`);
}

/**
 * Takes a turn that expires; a conflict while another worker has it. Both times are RFC 3339 in UTC. A turn that ends
 * later than this one would was taken by a wrong clock and is ignored.
 */
export function takeTurn(
  database: Database,
  name: InstallationName,
  times: { readonly now: string; readonly until: string },
): Statement[] {
  const taken = sql`SELECT 1 FROM installation WHERE name = ${name} AND value > ${times.now} AND value <= ${times.until}`;
  return [...guard(sql`NOT EXISTS (${taken})`), setAnew(database, name, times.until)];
}

/** The error code of a write by a worker whose key no longer seals. */
export const MASTER_KEY_CHANGED = 'master_key_changed';

/**
 * The database for a worker that seals with the key of this mark. After a change to another master key its writes throw
 * with the code {@link MASTER_KEY_CHANGED}, because what it seals would be lost with the old key. Callers may take a
 * conflict for their own, such as a call id that was used before, so it must not be one.
 */
export function withSealGuard(database: Database, seals: SealingKey): Database {
  const fenced = withSealCondition(database, seals);
  return {
    ...database,
    async write(statements) {
      const written = await fenced.write(statements);
      if (!written.ok && (await isKeyChanged(database, seals))) {
        throw Object.assign(new Error('another master key seals now'), { code: MASTER_KEY_CHANGED });
      }
      return written;
    },
  };
}

/** Like {@link withSealGuard}, but such a write is a conflict. */
export function withSealCondition(database: Database, seals: SealingKey): Database {
  const isCurrent = statement(
    sql`INSERT INTO write_guards (holds) SELECT 0 WHERE EXISTS (SELECT 1 FROM installation WHERE ${isOther(seals)})`,
  );
  return {
    ...database,
    async write(statements) {
      const written = await database.write([isCurrent, ...statements]);
      return written.ok ? ok(written.value.slice(1)) : written;
    },
  };
}

interface SealingKey {
  readonly keyMark: string;
}

async function isKeyChanged(database: Database, seals: SealingKey): Promise<boolean> {
  return (await database.read.select().from(installation).where(isOther(seals))).length > 0;
}

function isOther({ keyMark }: SealingKey): SQL | undefined {
  return and(eq(installation.name, 'vault_key_mark'), ne(installation.value, keyMark));
}
