import { alias } from 'drizzle-orm/sqlite-core';
import { and, asc, count, eq, getTableColumns, gt, inArray, isNotNull, ne, or, sql } from 'drizzle-orm';
import type { ShareKind } from '../../../shared/wire/sharing/shares.ts';
import { type Database, guard, type Statement } from '../database.ts';
import { connectors, groups, hostBindings, mcpServers, shareAcceptances, shares, users } from '../tables.ts';

export type ShareRow = typeof shares.$inferSelect;
const receivers = alias(users, 'receivers');

/** Without its spec, which may have a megabyte. */
const { spec: _, ...CONNECTOR } = getTableColumns(connectors);

/** What is shared is in one of `binding`, `connector` and `server`. */
const SHARE = {
  share: shares,
  binding: hostBindings,
  connector: CONNECTOR,
  server: mcpServers,
  sharer: { id: users.id, displayName: users.displayName, role: users.role, suspendedAt: users.suspendedAt },
  receiver: { id: receivers.id, displayName: receivers.displayName },
  group: { id: groups.id, name: groups.name },
};

/** A share with what is shared, and the people that it is between. */
export type ShownShare = Awaited<ReturnType<typeof listShares>>[number];
/** The same with the revision that one receiver accepted. */
export type ReceivedShare = Awaited<ReturnType<typeof listReceivedShares>>[number];

interface IdPage {
  readonly after: string | null;
  readonly limit: number;
}

/** The shares of an enterprise, or those that one of its users gave, oldest first. */
export async function listShares(
  database: Database,
  { enterpriseId, ownerId, after, limit }: IdPage & { readonly enterpriseId: string; readonly ownerId?: string },
) {
  return selectShares(database)
    .where(
      and(
        hasThing,
        eq(shares.enterpriseId, enterpriseId),
        ownerId === undefined ? undefined : eq(shares.ownerId, ownerId),
        after === null ? undefined : gt(shares.id, after),
      ),
    )
    .orderBy(asc(shares.id))
    .limit(limit);
}

function selectShares(database: Database) {
  return database.read
    .select(SHARE)
    .from(shares)
    .innerJoin(users, eq(users.id, shares.ownerId))
    .leftJoin(hostBindings, isShared(hostBindings))
    .leftJoin(connectors, isShared(connectors))
    .leftJoin(mcpServers, isShared(mcpServers))
    .leftJoin(receivers, eq(receivers.id, shares.userId))
    .leftJoin(groups, eq(groups.id, shares.groupId));
}

/** Whoever shares it owns it. Ids are unique among the kinds. */
function isShared(table: typeof hostBindings | typeof connectors | typeof mcpServers) {
  return and(eq(table.id, shares.resourceId), eq(table.ownerId, shares.ownerId));
}

const hasThing = or(isNotNull(hostBindings.id), isNotNull(connectors.id), isNotNull(mcpServers.id));

/** A user of an enterprise. */
interface Receiver {
  readonly userId: string;
  readonly enterpriseId: string;
}

/** Which shares are meant: of one kind, bindings of some host patterns, or one thing. */
export interface ShareFilter {
  readonly kind?: ShareKind | undefined;
  readonly hosts?: readonly string[] | undefined;
  readonly resourceId?: string | undefined;
}

/** What colleagues share with a user, or with a group that it is in, oldest first. */
export async function listReceivedShares(
  database: Database,
  { userId, enterpriseId }: Receiver,
  { kind, hosts, resourceId }: ShareFilter = {},
) {
  const accepted = and(eq(shareAcceptances.shareId, shares.id), eq(shareAcceptances.userId, userId));
  return database.read
    .select({ ...SHARE, acceptedRevision: shareAcceptances.revision })
    .from(shares)
    .innerJoin(users, eq(users.id, shares.ownerId))
    .leftJoin(hostBindings, isShared(hostBindings))
    .leftJoin(connectors, isShared(connectors))
    .leftJoin(mcpServers, isShared(mcpServers))
    .leftJoin(receivers, eq(receivers.id, shares.userId))
    .leftJoin(groups, eq(groups.id, shares.groupId))
    .leftJoin(shareAcceptances, accepted)
    .where(
      and(
        hasThing,
        eq(shares.enterpriseId, enterpriseId),
        ne(shares.ownerId, userId),
        or(
          eq(shares.userId, userId),
          sql`${shares.groupId} IN (SELECT group_id FROM group_members WHERE user_id = ${userId})`,
        ),
        kind === undefined ? undefined : eq(shares.kind, kind),
        hosts === undefined ? undefined : inArray(hostBindings.host, [...hosts]),
        resourceId === undefined ? undefined : eq(shares.resourceId, resourceId),
      ),
    )
    .orderBy(asc(shares.id));
}

/** A share of this enterprise. */
export async function findShare(database: Database, enterpriseId: string, id: string): Promise<ShownShare | null> {
  const rows = await selectShares(database).where(
    and(hasThing, eq(shares.id, id), eq(shares.enterpriseId, enterpriseId)),
  );
  return rows[0] ?? null;
}

/** The share of the same thing with the same receiver. */
export async function findSameShare(
  database: Database,
  { resourceId, userId, groupId }: Pick<ShareRow, 'resourceId' | 'userId' | 'groupId'>,
): Promise<ShareRow | null> {
  const isSame = sql`coalesce(${shares.userId}, ${shares.groupId}) = ${userId ?? groupId}`;
  const rows = await database.read
    .select()
    .from(shares)
    .where(and(eq(shares.resourceId, resourceId), isSame));
  return rows[0] ?? null;
}

/** How often its owner shares a binding. */
export async function countSharesOf(
  database: Database,
  { id, ownerId }: { readonly id: string; readonly ownerId: string },
) {
  const own = and(eq(shares.resourceId, id), eq(shares.ownerId, ownerId));
  return (await database.read.select({ n: count() }).from(shares).where(own))[0]?.n ?? 0;
}

/** The thing of a share in this revision, as a condition. */
function isStill({ kind, resourceId, ownerId }: ShareRow, revision: string) {
  const table = { host_binding: hostBindings, connector: connectors, mcp_server: mcpServers }[kind];
  return sql`EXISTS (SELECT 1 FROM ${table} WHERE ${table.id} = ${resourceId} AND ${table.ownerId} = ${ownerId}
    AND ${table.updatedAt} = ${revision})`;
}

/** Stores a share of something as it was read (`revision`); a conflict if it changed, or if the receiver is gone. */
export function insertShare(database: Database, row: ShareRow, revision: string): Statement[] {
  const receiver =
    row.userId === null
      ? sql`SELECT 1 FROM groups WHERE id = ${row.groupId} AND enterprise_id = ${row.enterpriseId}`
      : sql`SELECT 1 FROM users WHERE id = ${row.userId} AND enterprise_id = ${row.enterpriseId} AND left_at IS NULL`;
  return [...guard(sql`${isStill(row, revision)} AND EXISTS (${receiver})`), database.read.insert(shares).values(row)];
}

export function deleteShare(database: Database, id: string): Statement[] {
  return [
    ...guard(sql`EXISTS (SELECT 1 FROM shares WHERE id = ${id})`),
    database.read.delete(shares).where(eq(shares.id, id)),
  ];
}

/** Stores that a user accepts a share in this revision. */
export function acceptShare(
  database: Database,
  share: ShareRow,
  { userId, revision }: { readonly userId: string; readonly revision: string },
): Statement[] {
  const accepted = { shareId: share.id, userId };
  return [
    ...guard(sql`EXISTS (SELECT 1 FROM shares WHERE id = ${share.id}) AND ${isStill(share, revision)}`),
    ...declineShare(database, accepted),
    database.read.insert(shareAcceptances).values({ ...accepted, revision }),
  ];
}

/** Takes an acceptance back. */
export function declineShare(
  database: Database,
  { shareId, userId }: { readonly shareId: string; readonly userId: string },
): Statement[] {
  const isOne = and(eq(shareAcceptances.shareId, shareId), eq(shareAcceptances.userId, userId));
  return [database.read.delete(shareAcceptances).where(isOne)];
}
