import { and, asc, desc, eq, gt, inArray, isNull, lt, or, sql, type SQL } from 'drizzle-orm';
import type { ApprovalViewer } from './approvals.ts';
import { type Database, guard, type Statement } from './database.ts';
import { type ApprovalRuleRow, hasEndedVote, hasVoted, isRowAbout } from './people/approval_rules.ts';
import { approvalGrants, approvals, approvalVotes } from './tables.ts';

export type GrantRow = typeof approvalGrants.$inferSelect;

/** A grant as it stands now. */
export interface ListedGrant {
  readonly grant: GrantRow;
  /** Its connector or MCP server is gone, or has become another one than it was given for, or other rules hold. */
  readonly isChanged: boolean;
  /** Somebody who gave it may not approve any more. */
  readonly hasLostGiver: boolean;
  /** Who gave it. */
  readonly givers: readonly string[];
}

/** The request that a grant may cover. */
export interface CoveredRequest extends Pick<
  GrantRow,
  'userId' | 'subjectId' | 'action' | 'covers' | 'sidecarId' | 'sessionId'
> {}

/**
 * The grant that lets this request through at `now`; null if there is none. It is one of the request's own user, sidecar and
 * session, for the same version of the same operation, and everybody who gave it may still approve. A grant of a tool's calls ends with
 * any change of its server's configuration, whose version is only what somebody wrote there.
 */
export async function findGrantFor(database: Database, asked: CoveredRequest, now: string): Promise<GrantRow | null> {
  const { userId, subjectId, action, covers, sidecarId, sessionId } = asked;
  const rows = await database.read
    .select()
    .from(approvalGrants)
    .where(
      and(
        eq(approvalGrants.userId, userId),
        eq(approvalGrants.subjectId, subjectId),
        eq(approvalGrants.action, action),
        eq(approvalGrants.covers, covers),
        sql`NOT ${hasChanged()}`,
        sql`NOT ${hasLostGiver()}`,
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
export async function listGrants(
  database: Database,
  viewer: ApprovalViewer,
  page: { readonly before: string | null; readonly limit: number },
): Promise<ListedGrant[]> {
  const earlier = page.before === null ? undefined : lt(approvalGrants.id, page.before);
  const rows = await database.read
    .select({ grant: approvalGrants, isChanged: hasChanged(), hasLostGiver: hasLostGiver().mapWith(Boolean) })
    .from(approvalGrants)
    .where(and(eq(approvalGrants.enterpriseId, viewer.enterpriseId), visibleTo(viewer), earlier))
    .orderBy(desc(approvalGrants.id))
    .limit(page.limit);
  const approvalIds = rows.flatMap(({ grant }) => grant.approvalId ?? []);
  const votes = await database.read
    .select({ approvalId: approvalVotes.approvalId, userId: approvalVotes.userId })
    .from(approvalVotes)
    .where(inArray(approvalVotes.approvalId, approvalIds))
    .orderBy(asc(approvalVotes.votedAt), asc(approvalVotes.userId));
  return rows.map((row) => {
    const given = votes.filter(({ approvalId }) => approvalId === row.grant.approvalId).map(({ userId }) => userId);
    return { ...row, givers: given.length === 0 ? [row.grant.userId] : given };
  });
}

/** The grants that have not ended by their time, and are for what a rule is about. */
export function listGrantsAbout(database: Database, rule: ApprovalRuleRow, now: string): Promise<GrantRow[]> {
  const isOpen = and(isNull(approvalGrants.revokedAt), gt(approvalGrants.endsAt, now));
  return database.read
    .select()
    .from(approvalGrants)
    .where(and(eq(approvalGrants.enterpriseId, rule.enterpriseId), isOpen, isRowAbout('approval_grants', rule)));
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
  return sql`(${approvalGrants.ended} = 1
    OR CASE ${subject} WHEN 'connector' THEN NOT EXISTS (${connector}) ELSE NOT EXISTS (${server}) END)`.mapWith(
    Boolean,
  );
}

function hasLostGiver(): SQL {
  return hasEndedVote(sql`approval_grants.approval_id`);
}

/** Its user, the admins if the connector or MCP server is the enterprise's, and whoever gave it. */
function visibleTo({ userId, enterpriseId, isAdmin, role }: ApprovalViewer): SQL | undefined {
  return or(
    eq(approvalGrants.userId, userId),
    isAdmin ? eq(approvalGrants.subjectOwnerId, enterpriseId) : undefined,
    role === null ? undefined : hasVoted(sql`approval_grants.approval_id`, userId),
  );
}

export function insertGrant(database: Database, row: GrantRow): Statement[] {
  return [database.read.insert(approvalGrants).values(row)];
}

/** Counts one use, if nobody has used or revoked the grant since it was read: each use is written once. */
export function countUse(database: Database, { id, used }: GrantRow, now: string): Statement[] {
  return [
    ...guard(
      sql`EXISTS (SELECT 1 FROM approval_grants WHERE id = ${id} AND used = ${used} AND revoked_at IS NULL AND ended = 0)`,
    ),
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
