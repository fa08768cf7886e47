import { and, count, desc, eq, getTableColumns, inArray, isNotNull, lt, ne, not, or, sql, type SQL } from 'drizzle-orm';
import type { Role } from '../../shared/model/role.ts';
import type { ApprovalState } from '../../shared/wire/approvals.ts';
import { type Database, guard, type Statement } from './database.ts';
import { type ApprovalRuleRow, hasEndedVote, hasVoted, isApprover, isRowAbout } from './people/approval_rules.ts';
import { approvals, sidecars, users } from './tables.ts';

export type ApprovalRow = typeof approvals.$inferSelect;

/**
 * Who may see an approval: its user, the admins if the connector or MCP server is the enterprise's, and by a rule of the enterprise
 * whoever may approve it while it waits, and whoever approved it afterwards.
 */
export interface ApprovalViewer {
  readonly userId: string;
  readonly enterpriseId: string;
  readonly isAdmin: boolean;
  /** Null: sees only its own. */
  readonly role: Role | null;
}

/**
 * Whether an approval can be neither decided nor used any more: its time is over, its connector has or had another version than the one that
 * was asked for, which may have another effect, its MCP server another name, other rules hold for what was approved, or somebody who
 * approved it may not do so any more.
 */
function isOver(now: string): SQL {
  const connector = sql`EXISTS (SELECT 1 FROM connectors
    WHERE connectors.id = approvals.connector_id AND connectors.version = approvals.connector_version)`;
  const server = sql`EXISTS (SELECT 1 FROM mcp_servers
    WHERE mcp_servers.id = approvals.connector_id AND mcp_servers.name = approvals.connector_fqn)`;
  return sql`(approvals.state IN ('pending', 'approved') AND (
    CASE approvals.state WHEN 'pending' THEN approvals.expires_at ELSE approvals.valid_until END <= ${now}
    OR approvals.ended = 1
    OR NOT CASE approvals.subject WHEN 'connector' THEN ${connector} ELSE ${server} END
    OR (approvals.state = 'approved' AND ${hasEndedVote(sql`approvals.id`)})))`;
}

/** An approval that is over reads as expired, before that is written too. */
function columnsAt(now: string) {
  const state = sql<ApprovalState>`CASE WHEN ${isOver(now)} THEN 'expired' ELSE approvals.state END`;
  return { ...getTableColumns(approvals), state };
}

export async function findApproval(
  database: Database,
  viewer: ApprovalViewer,
  { id, now }: { readonly id: string; readonly now: string },
): Promise<ApprovalRow | null> {
  const rows = await database.read
    .select(columnsAt(now))
    .from(approvals)
    .where(and(eq(approvals.id, id), visibleTo(viewer)));
  return rows[0] ?? null;
}

/** Newest first. */
export async function listApprovals(
  database: Database,
  viewer: ApprovalViewer,
  page: {
    readonly state?: ApprovalState | undefined;
    readonly before: string | null;
    readonly limit: number;
    readonly now: string;
  },
): Promise<ApprovalRow[]> {
  const { state, before, now } = page;
  const inState = state === undefined ? undefined : eq(approvals.state, state);
  const earlier = before === null ? undefined : lt(approvals.id, before);
  return database.read
    .select(columnsAt(now))
    .from(approvals)
    .where(and(eq(approvals.enterpriseId, viewer.enterpriseId), visibleTo(viewer), inState, earlier))
    .orderBy(desc(approvals.id))
    .limit(page.limit);
}

/** How many wait at `now`. */
export async function countVisiblePending(database: Database, viewer: ApprovalViewer, now: string): Promise<number> {
  const pending = and(eq(approvals.state, 'pending'), not(isOver(now)));
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
    role === null ? undefined : and(eq(approvals.state, 'pending'), isApprover({ userId, enterpriseId, role })),
    role === null ? undefined : and(ne(approvals.state, 'pending'), hasVoted(sql`approvals.id`, userId)),
  );
}

/** The approvals of one identical request, newest first. */
export async function findApprovalsOf(
  database: Database,
  request: Pick<ApprovalRow, 'userId' | 'subjectId' | 'fingerprint'>,
  { limit, now }: { readonly limit: number; readonly now: string },
): Promise<ApprovalRow[]> {
  const { userId, subjectId, fingerprint } = request;
  const same = [eq(approvals.userId, userId), eq(approvals.subjectId, subjectId)];
  return database.read
    .select(columnsAt(now))
    .from(approvals)
    .where(and(...same, eq(approvals.fingerprint, fingerprint)))
    .orderBy(desc(approvals.id))
    .limit(limit);
}

/** The approvals of an enterprise that are over, and whose state does not say so yet. */
export async function findOverdueApprovals(
  database: Database,
  enterpriseId: string,
  now: string,
  limit: number,
): Promise<ApprovalRow[]> {
  return database.read
    .select()
    .from(approvals)
    .where(
      and(eq(approvals.enterpriseId, enterpriseId), inArray(approvals.state, ['pending', 'approved']), isOver(now)),
    )
    .limit(limit);
}

/** What was approved, not used yet, and is what a rule is about. */
export function listApprovedAbout(database: Database, rule: ApprovalRuleRow): Promise<ApprovalRow[]> {
  return database.read
    .select()
    .from(approvals)
    .where(
      and(
        eq(approvals.enterpriseId, rule.enterpriseId),
        eq(approvals.state, 'approved'),
        isRowAbout('approvals', rule),
      ),
    );
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

/** Uses what was approved, if it is not over at that moment: no event of the enterprise's chain orders this write. */
export function useApproved(
  database: Database,
  row: ApprovalRow,
  change: Pick<ApprovalRow, 'usedBy'> & { readonly usedAt: string },
): Statement[] {
  return [
    ...guard(sql`EXISTS (SELECT 1 FROM approvals WHERE approvals.id = ${row.id} AND NOT ${isOver(change.usedAt)})`),
    ...changeApproval(database, row, { ...change, state: 'used' }),
  ];
}
