import { and, asc, count, eq, gt, inArray, ne, or, sql } from 'drizzle-orm';
import { type Database, guard, type Statement } from './database.ts';
import { bindingCredentials, hostBindings } from './tables.ts';

export type HostBindingRow = typeof hostBindings.$inferSelect;

export async function findHostBinding(
  database: Database,
  ownerIds: readonly string[],
  id: string,
): Promise<HostBindingRow | null> {
  const rows = await database.read
    .select()
    .from(hostBindings)
    .where(and(eq(hostBindings.id, id), inArray(hostBindings.ownerId, [...ownerIds])));
  return rows[0] ?? null;
}

/** The other binding with the same owner, pattern and sentinel. */
export async function findHostBindingAt(
  database: Database,
  binding: Pick<HostBindingRow, 'id' | 'ownerId' | 'host' | 'sentinel'>,
): Promise<HostBindingRow | null> {
  const rows = await database.read
    .select()
    .from(hostBindings)
    .where(
      and(
        eq(hostBindings.ownerId, binding.ownerId),
        eq(hostBindings.host, binding.host),
        eq(hostBindings.sentinel, binding.sentinel),
        ne(hostBindings.id, binding.id),
      ),
    );
  return rows[0] ?? null;
}

/** Bindings of these owners with one of these patterns, in the order of owner, host and id. */
export async function findHostBindingsOn(
  database: Database,
  ownerIds: readonly string[],
  hosts: readonly string[],
): Promise<HostBindingRow[]> {
  return database.read
    .select()
    .from(hostBindings)
    .where(and(inArray(hostBindings.ownerId, [...ownerIds]), inArray(hostBindings.host, [...hosts])))
    .orderBy(asc(hostBindings.ownerId), asc(hostBindings.host), asc(hostBindings.id));
}

/** Where a page of bindings continues. */
type BindingPosition = Pick<HostBindingRow, 'ownerId' | 'host' | 'id'>;

/** Bindings of these owners in the order of owner, host and id, after a position. */
export async function listHostBindings(
  database: Database,
  page: {
    readonly ownerIds: readonly string[];
    readonly host?: string | undefined;
    readonly after: BindingPosition | null;
    readonly limit: number;
  },
): Promise<HostBindingRow[]> {
  const { after, host } = page;
  const later =
    after &&
    or(
      gt(hostBindings.ownerId, after.ownerId),
      and(eq(hostBindings.ownerId, after.ownerId), gt(hostBindings.host, after.host)),
      and(eq(hostBindings.ownerId, after.ownerId), eq(hostBindings.host, after.host), gt(hostBindings.id, after.id)),
    );
  const onHost = host === undefined ? undefined : eq(hostBindings.host, host);
  return database.read
    .select()
    .from(hostBindings)
    .where(and(inArray(hostBindings.ownerId, [...page.ownerIds]), onHost, later ?? undefined))
    .orderBy(asc(hostBindings.ownerId), asc(hostBindings.host), asc(hostBindings.id))
    .limit(page.limit);
}

/** `paths`: the vault paths that the binding refers to, in its owner's namespace. */
export function insertHostBinding(database: Database, row: HostBindingRow, paths: readonly string[]): Statement[] {
  return [database.read.insert(hostBindings).values(row), ...credentialRows(database, row, paths)];
}

/** Replaces a binding, if it was not changed since it was read (`before`: its `updated_at` then). */
export function replaceHostBinding(
  database: Database,
  row: HostBindingRow,
  paths: readonly string[],
  before: string,
): Statement[] {
  const unchanged = sql`EXISTS (SELECT 1 FROM host_bindings WHERE id = ${row.id} AND updated_at = ${before})`;
  const { host, sentinel, record, updatedAt } = row;
  return [
    ...guard(unchanged),
    database.read.update(hostBindings).set({ host, sentinel, record, updatedAt }).where(eq(hostBindings.id, row.id)),
    database.read.delete(bindingCredentials).where(eq(bindingCredentials.bindingId, row.id)),
    ...credentialRows(database, row, paths),
  ];
}

export function deleteHostBinding(database: Database, row: HostBindingRow): Statement[] {
  return [
    ...guard(sql`EXISTS (SELECT 1 FROM host_bindings WHERE id = ${row.id})`),
    database.read.delete(hostBindings).where(eq(hostBindings.id, row.id)),
    database.read.delete(bindingCredentials).where(eq(bindingCredentials.bindingId, row.id)),
  ];
}

/** The placeholders of these owners' bindings. */
export async function listSentinels(database: Database, ownerIds: readonly string[]): Promise<string[]> {
  const rows = await database.read
    .selectDistinct({ sentinel: hostBindings.sentinel })
    .from(hostBindings)
    .where(and(inArray(hostBindings.ownerId, [...ownerIds]), ne(hostBindings.sentinel, '')));
  return rows.map(({ sentinel }) => sentinel);
}

export async function countHostBindings(database: Database, ownerIds: readonly string[]): Promise<number> {
  const rows = await database.read
    .select({ n: count() })
    .from(hostBindings)
    .where(inArray(hostBindings.ownerId, [...ownerIds]));
  return rows[0]?.n ?? 0;
}

function credentialRows(database: Database, row: HostBindingRow, paths: readonly string[]): Statement[] {
  const rows = [...new Set(paths)].map((path) => ({ bindingId: row.id, ownerId: row.ownerId, path }));
  return rows.length === 0 ? [] : [database.read.insert(bindingCredentials).values(rows)];
}
