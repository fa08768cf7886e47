import { type Client, LibsqlError } from '@libsql/client/web';
import { err, ok, type Result } from '../../shared/model/result.ts';
import { isDamage, readText } from './database.ts';
import { MIGRATIONS, type Migration } from './migrations.ts';
import type { Refusal } from '../../shared/model/refusal.ts';

export type MigrationRefusalReason = 'database_newer' | 'migration_changed' | 'database_damaged';

interface Applied {
  readonly number: number;
  readonly appliedAt: string;
  readonly checksum: string;
}

const MAKE_LOG = `CREATE TABLE IF NOT EXISTS schema_migrations (
  number INTEGER PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL, applied_at TEXT NOT NULL) STRICT`;

/**
 * Migrates a database to this program's schema and returns the numbers of the applied steps. An empty database gets all of
 * them in one transaction, any other one after the other. Two programs may run it at once: a step's first statement claims
 * its number, so the loser's transaction is rolled back as a whole, and it reads the version again. If it refuses, nothing
 * is changed.
 */
export async function migrate(
  client: Client,
  now: string,
  migrations: readonly Migration[] = MIGRATIONS,
): Promise<Result<readonly number[], Refusal<MigrationRefusalReason>>> {
  try {
    return await applyPending(client, now, migrations);
  } catch (error) {
    if (isDamage(error)) return err({ reason: 'database_damaged', message: DAMAGED });
    throw error;
  }
}

const DAMAGED =
  'the database is damaged or not a libSQL database: restore it from a backup, or move the file away to start with a new one (nothing was changed)';

async function applyPending(
  client: Client,
  now: string,
  migrations: readonly Migration[],
): Promise<Result<readonly number[], Refusal<MigrationRefusalReason>>> {
  const checksums = await Promise.all(migrations.map((migration) => checksum(migration)));
  const ours: number[] = [];
  for (;;) {
    const applied = await readApplied(client);
    const problem = compare(applied, checksums);
    if (problem !== null) return err(problem);
    const next = applied.length === 0 ? migrations : migrations.slice(applied.length, applied.length + 1);
    if (next.length === 0) return ok(ours);
    if (await applyTogether(client, next, checksums, now)) ours.push(...next.map((step) => step.number));
  }
}

/** The version of a database compared with this program's schema. */
interface SchemaStatus {
  /** The number of the newest step that the database has; 0 for an empty one. */
  readonly schema: number;
  /** How many of this program's steps it lacks. */
  readonly pending: number;
  readonly steps: readonly { readonly number: number; readonly name: string; readonly applied_at: string | null }[];
  /** Why this program cannot use the database, or null. */
  readonly refusal: Refusal<MigrationRefusalReason> | null;
}

/** Only reads. */
export async function schemaStatus(
  client: Client,
  migrations: readonly Migration[] = MIGRATIONS,
): Promise<SchemaStatus> {
  const applied = await readApplied(client);
  const checksums = await Promise.all(migrations.map((migration) => checksum(migration)));
  const steps = migrations.map(({ number, name }, index) => {
    return { number, name, applied_at: applied[index]?.appliedAt ?? null };
  });
  const pending = steps.filter((step) => step.applied_at === null).length;
  return { schema: applied.at(-1)?.number ?? 0, pending, steps, refusal: compare(applied, checksums) };
}

async function readApplied(client: Client): Promise<Applied[]> {
  const known = await readText(client, `SELECT 1 FROM sqlite_schema WHERE name = 'schema_migrations'`);
  if (known.rows.length === 0) return [];
  const result = await readText(client, 'SELECT number, checksum, applied_at FROM schema_migrations ORDER BY number');
  return result.rows.map(({ number, checksum: sum, applied_at: appliedAt }) => ({
    number: Number(number),
    appliedAt: typeof appliedAt === 'string' ? appliedAt : '',
    checksum: typeof sum === 'string' ? sum : '',
  }));
}

function compare(applied: readonly Applied[], checksums: readonly string[]): Refusal<MigrationRefusalReason> | null {
  const newest = applied.at(-1)?.number ?? 0;
  if (newest > checksums.length) {
    const message = `the database has schema ${newest} and this version of svc knows ${checksums.length}: start the newer version that created it`;
    return { reason: 'database_newer', message };
  }
  const changed = applied.find((step, index) => step.number !== index + 1 || step.checksum !== checksums[index]);
  if (changed === undefined) return null;
  const message = `schema step ${changed.number} of the database differs from the one of this svc version: start the version that created it`;
  return { reason: 'migration_changed', message };
}

/** Applies these steps in one transaction. False if another program applied one of them first. */
async function applyTogether(
  client: Client,
  steps: readonly Migration[],
  checksums: readonly string[],
  now: string,
): Promise<boolean> {
  const statements = steps.flatMap(({ number, name, statements: changes }) => [
    {
      sql: 'INSERT INTO schema_migrations (number, name, checksum, applied_at) VALUES (?, ?, ?, ?)',
      args: [number, name, checksums[number - 1] ?? '', now],
    },
    ...changes,
  ]);
  try {
    await client.batch([MAKE_LOG, ...statements], 'write');
    return true;
  } catch (error) {
    const claimedElsewhere = error instanceof LibsqlError && error.code.startsWith('SQLITE_CONSTRAINT');
    if (!claimedElsewhere) throw error;
    return false;
  }
}

/** SHA-256 (hex) of a step's statements. */
async function checksum(migration: Migration): Promise<string> {
  const bytes = new TextEncoder().encode(migration.statements.join(';\n'));
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes));
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
