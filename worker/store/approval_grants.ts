import { and, desc, eq, gt, isNull, lt, or, sql, type SQL } from 'drizzle-orm';
import type { ApprovalViewer } from './approvals.ts';
import { type Database, guard, type Statement } from './database.ts';
import { isApproverOf } from './people/approval_rules.ts';
import { approvalGrants, approvals } from './tables.ts';

export type GrantRow = typeof approvalGrants.$inferSelect;

/** A grant, and whether its connector or MCP server is gone or another one than it was given for. */
export interface ListedGrant {
  readonly grant: GrantRow;
  readonly isChanged: boolean;
}

/** The request that a grant may cover. */
export interface CoveredRequest extends Pick<
  GrantRow,
  'userId' | 'subjectId' | 'action' | 'covers' | 'sidecarId' | 'sessionId' | 'rules'
> {}

/**
 * The grant that lets this request through at `now`; null if there is none. It is one of the request's own user, sidecar and
 * session, for the same version of the same operation, given under the rules about who approves that hold now. A grant of a tool's calls ends with any change of its server's configuration,
 * whose version is only what somebody wrote there.
 */
export async function findGrantFor(database: Database, asked: CoveredRequest, now: string): Promise<GrantRow | null> {
  const { userId, subjectId, action, covers, sidecarId, sessionId, rules } = asked;
  const rows = await database.read
    .select()
    .from(approvalGrants)
    .where(
      and(
        eq(approvalGrants.userId, userId),
        eq(approvalGrants.subjectId, subjectId),
        eq(approvalGrants.action, action),
        eq(approvalGrants.covers, covers),
        eq(approvalGrants.rules, rules),
        sql`NOT ${hasChanged()}`,
        sql`${approvalGrants.sidecarId} IS ${sidecarId}`,
        sql`${approvalGrants.sessionId} IS ${sessionId}`,
        isNull(approvalGrants.revokedAt),
        gt(approvalGrants.endsAt, now),
        or(isNull(approvalGrants.times), lt(approvalGrants.used, approvalGrants.times)),
      ),
    )
    .limit(1);
  return rows[0] ?? null;
}

/** Newest first. */
export function listGrants(
  database: Database,
  viewer: ApprovalViewer,
  page: { readonly before: string | null; readonly limit: number },
): Promise<ListedGrant[]> {
  const earlier = page.before === null ? undefined : lt(approvalGrants.id, page.before);
  return database.read
    .select({ grant: approvalGrants, isChanged: hasChanged() })
    .from(approvalGrants)
    .where(and(eq(approvalGrants.enterpriseId, viewer.enterpriseId), visibleTo(viewer), earlier))
    .orderBy(desc(approvalGrants.id))
    .limit(page.limit);
}

export async function findGrant(database: Database, viewer: ApprovalViewer, id: string): Promise<GrantRow | null> {
  const rows = await database.read
    .select()
    .from(approvalGrants)
    .where(and(eq(approvalGrants.id, id), visibleTo(viewer)));
  return rows[0] ?? null;
}

function hasChanged(): SQL<boolean> {
  const { subject, subjectId, subjectVersion, givenAt } = approvalGrants;
  const connector = sql`SELECT 1 FROM connectors WHERE connectors.id = ${subjectId} AND version = ${subjectVersion}`;
  const server = sql`SELECT 1 FROM mcp_servers WHERE mcp_servers.id = ${subjectId} AND updated_at <= ${givenAt}`;
  return sql`(CASE ${subject} WHEN 'connector' THEN NOT EXISTS (${connector}) ELSE NOT EXISTS (${server}) END)`.mapWith(
    Boolean,
  );
}

/** Whoever may see its approvals. */
function visibleTo({ userId, enterpriseId, isAdmin, role }: ApprovalViewer): SQL | undefined {
  return or(
    eq(approvalGrants.userId, userId),
    isAdmin ? eq(approvalGrants.subjectOwnerId, enterpriseId) : undefined,
    role === null ? undefined : isApproverOf('approval_grants', { userId, enterpriseId, role }),
  );
}

export function insertGrant(database: Database, row: GrantRow): Statement[] {
  return [database.read.insert(approvalGrants).values(row)];
}

/** Counts one use, if nobody has used or revoked the grant since it was read: each use is written once. */
export function countUse(database: Database, { id, used }: GrantRow, now: string): Statement[] {
  return [
    ...guard(sql`EXISTS (SELECT 1 FROM approval_grants WHERE id = ${id} AND used = ${used} AND revoked_at IS NULL)`),
    database.read
      .update(approvalGrants)
      .set({ used: used + 1, lastUsedAt: now })
      .where(eq(approvalGrants.id, id)),
  ];
}

/** Ends a grant, and the approval that it was given with unless that was used. */
export function endGrant(
  database: Database,
  { id }: GrantRow,
  by: Pick<GrantRow, 'revokedAt' | 'revokedBy'>,
): Statement[] {
  return [
    ...guard(sql`EXISTS (SELECT 1 FROM approval_grants WHERE id = ${id} AND revoked_at IS NULL)`),
    database.read.update(approvalGrants).set(by).where(eq(approvalGrants.id, id)),
    database.read
      .update(approvals)
      .set({ state: 'expired' })
      .where(and(eq(approvals.grantId, id), eq(approvals.state, 'approved'))),
  ];
}
