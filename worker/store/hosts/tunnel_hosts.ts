import { and, asc, eq, gt, inArray, or, sql } from 'drizzle-orm';
import { type Database, guard, type Statement } from '../database.ts';
import { tunnelHosts } from '../tables.ts';

export type TunnelHostRow = typeof tunnelHosts.$inferSelect;

export async function findTunnelHost(
  database: Database,
  ownerIds: readonly string[],
  id: string,
): Promise<TunnelHostRow | null> {
  const rows = await database.read
    .select()
    .from(tunnelHosts)
    .where(and(eq(tunnelHosts.id, id), inArray(tunnelHosts.ownerId, [...ownerIds])));
  return rows[0] ?? null;
}

/** The entry of this owner for this host or pattern. */
export async function findTunnelHostAt(
  database: Database,
  { ownerId, host }: Pick<TunnelHostRow, 'ownerId' | 'host'>,
): Promise<TunnelHostRow | null> {
  const rows = await database.read
    .select()
    .from(tunnelHosts)
    .where(and(eq(tunnelHosts.ownerId, ownerId), eq(tunnelHosts.host, host)));
  return rows[0] ?? null;
}

/** Entries of these owners in the order of owner and host, after a position. */
export async function listTunnelHosts(
  database: Database,
  page: {
    readonly ownerIds: readonly string[];
    readonly after: Pick<TunnelHostRow, 'ownerId' | 'host'> | null;
    readonly limit: number;
  },
): Promise<TunnelHostRow[]> {
  const { after } = page;
  const later =
    after &&
    or(
      gt(tunnelHosts.ownerId, after.ownerId),
      and(eq(tunnelHosts.ownerId, after.ownerId), gt(tunnelHosts.host, after.host)),
    );
  return database.read
    .select()
    .from(tunnelHosts)
    .where(and(inArray(tunnelHosts.ownerId, [...page.ownerIds]), later ?? undefined))
    .orderBy(asc(tunnelHosts.ownerId), asc(tunnelHosts.host))
    .limit(page.limit);
}

export function insertTunnelHost(database: Database, row: TunnelHostRow): Statement[] {
  return [database.read.insert(tunnelHosts).values(row)];
}

export function deleteTunnelHost(database: Database, { id }: TunnelHostRow): Statement[] {
  return [
    ...guard(sql`EXISTS (SELECT 1 FROM tunnel_hosts WHERE id = ${id})`),
    database.read.delete(tunnelHosts).where(eq(tunnelHosts.id, id)),
  ];
}
