import { and, count, desc, eq, gt, inArray, isNotNull, lt, lte, or, sql, type SQL } from 'drizzle-orm';
import type { Role } from '../../shared/model/role.ts';
import type { ApprovalState } from '../../shared/wire/approvals.ts';
import { type Database, guard, type Statement } from './database.ts';
import { isApproverOf } from './people/approval_rules.ts';
import { approvals, sidecars, users } from './tables.ts';

export type ApprovalRow = typeof approvals.$inferSelect;

/**
 * Who may see an approval: its user, the admins if the connector or MCP server is the enterprise's, and whoever approves it by a
 * rule of the enterprise.
 */
export interface ApprovalViewer {
  readonly userId: string;
  readonly enterpriseId: string;
  readonly isAdmin: boolean;
  /** Null: sees only its own. */
  readonly role: Role | null;
}

export async function findApproval(
  database: Database,
  viewer: ApprovalViewer,
  id: string,
): Promise<ApprovalRow | null> {
  const rows = await database.read
    .select()
    .from(approvals)
    .where(and(eq(approvals.id, id), visibleTo(viewer)));
  return rows[0] ?? null;
}

/** Newest first. */
export async function listApprovals(
  database: Database,
  viewer: ApprovalViewer,
  page: { readonly state?: ApprovalState | undefined; readonly before: string | null; readonly limit: number },
): Promise<ApprovalRow[]> {
  const { state, before } = page;
  const inState = state === undefined ? undefined : eq(approvals.state, state);
  const earlier = before === null ? undefined : lt(approvals.id, before);
  return database.read
    .select()
    .from(approvals)
    .where(and(eq(approvals.enterpriseId, viewer.enterpriseId), visibleTo(viewer), inState, earlier))
    .orderBy(desc(approvals.id))
    .limit(page.limit);
}

/** How many are pending and not overdue at `now`. */
export async function countVisiblePending(database: Database, viewer: ApprovalViewer, now: string): Promise<number> {
  const pending = and(eq(approvals.state, 'pending'), gt(approvals.expiresAt, now));
  const rows = await database.read
    .select({ n: count() })
    .from(approvals)
    .where(and(eq(approvals.enterpriseId, viewer.enterpriseId), visibleTo(viewer), pending));
  return rows[0]?.n ?? 0;
}

/** The latest decisions about an operation or a tool, newest first. */
export function listDecidedOfKind(
  database: Database,
  viewer: ApprovalViewer,
  { subjectId, action }: Pick<ApprovalRow, 'subjectId' | 'action'>,
  limit: number,
): Promise<ApprovalRow[]> {
  const kind = and(eq(approvals.subjectId, subjectId), eq(approvals.action, action));
  return database.read
    .select()
    .from(approvals)
    .where(
      and(eq(approvals.enterpriseId, viewer.enterpriseId), visibleTo(viewer), kind, isNotNull(approvals.decidedBy)),
    )
    .orderBy(desc(approvals.id))
    .limit(limit);
}

/** The names of the users and sidecars that ask, by their ids. */
export async function nameAskers(
  database: Database,
  rows: readonly Pick<ApprovalRow, 'userId' | 'sidecarId'>[],
): Promise<{ readonly people: ReadonlyMap<string, string>; readonly sidecars: ReadonlyMap<string, string> }> {
  const userIds = [...new Set(rows.map(({ userId }) => userId))];
  const sidecarIds = [...new Set(rows.flatMap(({ sidecarId }) => sidecarId ?? []))];
  const { read } = database;
  const found = await read
    .select({ id: users.id, name: users.displayName })
    .from(users)
    .where(inArray(users.id, userIds));
  const machines = await read
    .select({ id: sidecars.id, name: sidecars.name })
    .from(sidecars)
    .where(inArray(sidecars.id, sidecarIds));
  return {
    people: new Map(found.map(({ id, name }) => [id, name])),
    sidecars: new Map(machines.map(({ id, name }) => [id, name])),
  };
}

function visibleTo({ userId, enterpriseId, isAdmin, role }: ApprovalViewer): SQL | undefined {
  return or(
    eq(approvals.userId, userId),
    isAdmin ? eq(approvals.subjectOwnerId, enterpriseId) : undefined,
    role === null ? undefined : isApproverOf('approvals', { userId, enterpriseId, role }),
  );
}

/** The approvals of one identical request, newest first. */
export async function findApprovalsOf(
  database: Database,
  request: Pick<ApprovalRow, 'userId' | 'subjectId' | 'fingerprint'>,
  limit: number,
): Promise<ApprovalRow[]> {
  const { userId, subjectId, fingerprint } = request;
  const same = [eq(approvals.userId, userId), eq(approvals.subjectId, subjectId)];
  return database.read
    .select()
    .from(approvals)
    .where(and(...same, eq(approvals.fingerprint, fingerprint)))
    .orderBy(desc(approvals.id))
    .limit(limit);
}

/** Expired approvals of an enterprise. */
export async function findOverdueApprovals(
  database: Database,
  enterpriseId: string,
  now: string,
  limit: number,
): Promise<ApprovalRow[]> {
  const undecided = and(eq(approvals.state, 'pending'), lte(approvals.expiresAt, now));
  const unused = and(eq(approvals.state, 'approved'), lte(approvals.validUntil, now));
  return database.read
    .select()
    .from(approvals)
    .where(
      and(
        eq(approvals.enterpriseId, enterpriseId),
        inArray(approvals.state, ['pending', 'approved']),
        or(undecided, unused),
      ),
    )
    .limit(limit);
}

/**
 * How many requests of a user are pending, optionally of one session. Requests without a session count as one session.
 */
export async function countPending(
  database: Database,
  userId: string,
  session?: Pick<ApprovalRow, 'sidecarId' | 'sessionId'>,
): Promise<number> {
  const ofSession =
    session && sql`${approvals.sidecarId} IS ${session.sidecarId} AND ${approvals.sessionId} IS ${session.sessionId}`;
  const rows = await database.read
    .select({ n: count() })
    .from(approvals)
    .where(and(eq(approvals.userId, userId), eq(approvals.state, 'pending'), ofSession));
  return rows[0]?.n ?? 0;
}

export function insertApproval(database: Database, row: ApprovalRow): Statement[] {
  return [database.read.insert(approvals).values(row)];
}

/** Changes an approval if it is still in the state it was read in; of two concurrent changes one succeeds. */
export function changeApproval(database: Database, row: ApprovalRow, change: Partial<ApprovalRow>): Statement[] {
  return [
    ...guard(sql`EXISTS (SELECT 1 FROM approvals WHERE id = ${row.id} AND state = ${row.state})`),
    database.read.update(approvals).set(change).where(eq(approvals.id, row.id)),
  ];
}
