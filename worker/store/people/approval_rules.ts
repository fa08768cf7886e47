import { and, asc, eq, gt, inArray, isNull, notInArray, type SQL, sql } from 'drizzle-orm';
import type { Approver } from '../../../shared/approvals/approval_rules.ts';
import { hasRole, type Role, ROLES } from '../../../shared/model/role.ts';
import { type Database, guard, type Statement } from '../database.ts';
import { approvalRules, approvalVotes, groupMembers, groups, users } from '../tables.ts';

export type ApprovalRuleRow = typeof approvalRules.$inferSelect;
export type ApprovalVoteRow = typeof approvalVotes.$inferSelect;

/** A rule with the name of its group; null if it has none, or if the group is gone. */
export interface NamedRule extends ApprovalRuleRow {
  readonly groupName: string | null;
}

/** What a request is about, as values or columns. */
interface RuleTarget {
  readonly subject: SQL;
  readonly name: SQL;
  readonly action: SQL;
  readonly effect: SQL;
}

/** What a rule is about, as values or columns. */
interface RuleScope {
  readonly subject: SQL;
  readonly name: SQL;
  readonly action: SQL;
  readonly effects: SQL;
}

const SCOPE_COLUMNS: RuleScope = {
  subject: sql`approval_rules.subject`,
  name: sql`approval_rules.name`,
  action: sql`approval_rules.action`,
  effects: sql`approval_rules.effects`,
};

/** A table of requests, each of which rules may be about. */
type RequestTable = 'approvals' | 'approval_grants';

/** The columns of a table of requests. */
function targetOf(table: RequestTable): RuleTarget {
  const column = (name: string) => sql.raw(`${table}.${name}`);
  return {
    subject: column('subject'),
    name: column('connector_fqn'),
    action: column('operation'),
    effect: column('effect'),
  };
}

/** Whether a rule is about a request. An operation whose effect is not known has every effect. */
function isAbout({ subject, name, action, effect }: RuleTarget, rule = SCOPE_COLUMNS): SQL {
  return sql`${rule.subject} = ${subject} AND ${fits(rule.name, name)}
    AND ${fits(rule.action, action)} AND (${rule.effects} IS NULL OR ${effect} IS NULL
    OR instr(${rule.effects}, ',' || ${effect} || ',') > 0)`;
}

/** Whether this rule, which may be stored or not, is about a row of the table. */
export function isRowAbout(table: RequestTable, rule: ApprovalRuleRow): SQL {
  const { subject, name, action, effects, enterpriseId } = rule;
  const scope = { subject: sql`${subject}`, name: sql`${name}`, action: sql`${action}`, effects: sql`${effects}` };
  return sql`(${sql.raw(table)}.enterprise_id = ${enterpriseId} AND ${isAbout(targetOf(table), scope)})`;
}

function fits(pattern: SQL, text: SQL): SQL {
  const beginning = sql`substr(${pattern}, 1, length(${pattern}) - 1)`;
  return sql`(CASE WHEN substr(${pattern}, -1) = '*'
    THEN substr(lower(${text}), 1, length(${pattern}) - 1) = lower(${beginning})
    ELSE lower(${text}) = lower(${pattern}) END)`;
}

/** Whose approvals count by which rules. */
export interface RuleViewer {
  readonly userId: string;
  readonly enterpriseId: string;
  readonly role: Role;
}

/** Whether a rule of the viewer's enterprise lets the viewer approve a request. */
export function isApprover({ userId, enterpriseId, role }: RuleViewer): SQL {
  const held = ROLES.filter((each) => hasRole(role, each));
  const mine = sql`SELECT group_id FROM group_members WHERE user_id = ${userId}`;
  return sql`(approvals.enterprise_id = ${enterpriseId}
    AND NOT EXISTS (SELECT 1 FROM service_accounts WHERE user_id = ${userId})
    AND EXISTS (SELECT 1 FROM approval_rules WHERE approval_rules.enterprise_id = ${enterpriseId}
      AND (approval_rules.role IN ${held} OR approval_rules.group_id IN (${mine})) AND ${isAbout(targetOf('approvals'))}))`;
}

const NAMED = { rule: approvalRules, groupName: groups.name };

/** The rules of an enterprise, oldest first. */
export async function listApprovalRules(
  database: Database,
  {
    enterpriseId,
    after,
    limit,
  }: { readonly enterpriseId: string; readonly after: string | null; readonly limit: number },
): Promise<NamedRule[]> {
  const later = after === null ? undefined : gt(approvalRules.id, after);
  const rows = await database.read
    .select(NAMED)
    .from(approvalRules)
    .leftJoin(groups, ofItsGroup())
    .where(and(eq(approvalRules.enterpriseId, enterpriseId), later))
    .orderBy(asc(approvalRules.id))
    .limit(limit);
  return rows.map(({ rule, groupName }) => ({ ...rule, groupName }));
}

export async function findApprovalRule(
  database: Database,
  enterpriseId: string,
  id: string,
): Promise<ApprovalRuleRow | null> {
  const isOne = and(eq(approvalRules.id, id), eq(approvalRules.enterpriseId, enterpriseId));
  return (await database.read.select().from(approvalRules).where(isOne))[0] ?? null;
}

function ofItsGroup(): SQL | undefined {
  return and(eq(groups.id, approvalRules.groupId), eq(groups.enterpriseId, approvalRules.enterpriseId));
}

/** A request, by what rules are about. */
export interface RuledRequest {
  readonly enterpriseId: string;
  readonly subject: ApprovalRuleRow['subject'];
  readonly subjectName: string;
  readonly action: string;
  readonly effect: string | null;
}

/** The rules about a request, oldest first. */
export async function listRulesAbout(database: Database, request: RuledRequest): Promise<NamedRule[]> {
  const { subject, subjectName, action, effect } = request;
  const target = {
    subject: sql`${subject}`,
    name: sql`${subjectName}`,
    action: sql`${action}`,
    effect: sql`${effect}`,
  };
  const rows = await database.read
    .select(NAMED)
    .from(approvalRules)
    .leftJoin(groups, ofItsGroup())
    .where(and(eq(approvalRules.enterpriseId, request.enterpriseId), isAbout(target)))
    .orderBy(asc(approvalRules.id));
  return rows.map(({ rule, groupName }) => ({ ...rule, groupName }));
}

export function insertApprovalRule(database: Database, row: ApprovalRuleRow): Statement[] {
  const group = sql`EXISTS (SELECT 1 FROM groups WHERE id = ${row.groupId} AND enterprise_id = ${row.enterpriseId})`;
  return [...guard(sql`${row.groupId} IS NULL OR ${group}`), database.read.insert(approvalRules).values(row)];
}

export function deleteApprovalRule(database: Database, { id }: ApprovalRuleRow): Statement[] {
  return [
    ...guard(sql`EXISTS (SELECT 1 FROM approval_rules WHERE id = ${id})`),
    database.read.delete(approvalRules).where(eq(approvalRules.id, id)),
  ];
}

/** Somebody who may sign in now. */
export interface LiveApprover extends Approver {
  readonly userId: string;
}

/** Those of these users who may sign in now, with the groups that they are in. Service accounts are nobody. */
export async function listLiveApprovers(database: Database, userIds: readonly string[]): Promise<LiveApprover[]> {
  if (userIds.length === 0) return [];
  const isPerson = sql`NOT EXISTS (SELECT 1 FROM service_accounts WHERE user_id = ${users.id})`;
  const people = await database.read
    .select({ userId: users.id, personId: users.personId, role: users.role })
    .from(users)
    .where(and(inArray(users.id, [...userIds]), isNull(users.suspendedAt), isNull(users.leftAt), isPerson));
  const memberships = await database.read
    .select()
    .from(groupMembers)
    .where(inArray(groupMembers.userId, [...userIds]));
  return people.map((each) => ({
    ...each,
    groups: memberships.filter(({ userId }) => userId === each.userId).map(({ groupId }) => groupId),
  }));
}

/** The persons of these users, also of those who may not sign in. */
export async function listPersonIds(
  database: Database,
  userIds: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  if (userIds.length === 0) return new Map();
  const rows = await database.read
    .select({ id: users.id, personId: users.personId })
    .from(users)
    .where(inArray(users.id, [...userIds]));
  return new Map(rows.map(({ id, personId }) => [id, personId]));
}

/** Whether this user approved a request, also if that does not count any more. `approvalId` is a column. */
export function hasVoted(approvalId: SQL, userId: string): SQL {
  return sql`EXISTS (SELECT 1 FROM approval_votes
    WHERE approval_votes.approval_id = ${approvalId} AND approval_votes.user_id = ${userId})`;
}

/** Whether somebody who approved a request may not do so any more. `approvalId` is a column. */
export function hasEndedVote(approvalId: SQL): SQL {
  return sql`EXISTS (SELECT 1 FROM approval_votes
    WHERE approval_votes.approval_id = ${approvalId} AND approval_votes.ended = 1)`;
}

/** How many persons who may sign in can approve by a rule, if one of them asks. */
export async function countApprovers(database: Database, rule: ApprovalRuleRow): Promise<number> {
  const { enterpriseId, role, groupId, excludesRequester } = rule;
  const held = ROLES.filter((each) => role !== null && hasRole(each, role));
  const fitting =
    role === null ? sql`id IN (SELECT user_id FROM group_members WHERE group_id = ${groupId})` : sql`role IN ${held}`;
  const people = await countRows(
    database,
    sql`SELECT count(DISTINCT person_id) AS n FROM users WHERE enterprise_id = ${enterpriseId} AND suspended_at IS NULL
      AND left_at IS NULL AND NOT EXISTS (SELECT 1 FROM service_accounts WHERE user_id = users.id) AND ${fitting}`,
  );
  return excludesRequester ? Math.max(0, people - 1) : people;
}

async function countRows(database: Database, query: SQL): Promise<number> {
  const [row] = await database.read.all<{ n: number }>(query);
  return row?.n ?? 0;
}

/** What people said about these approvals as far as it counts, in the order of their words. */
export async function listVotes(database: Database, approvalIds: readonly string[]): Promise<ApprovalVoteRow[]> {
  if (approvalIds.length === 0) return [];
  return database.read
    .select()
    .from(approvalVotes)
    .where(and(inArray(approvalVotes.approvalId, [...approvalIds]), eq(approvalVotes.ended, false)))
    .orderBy(asc(approvalVotes.votedAt), asc(approvalVotes.userId));
}

/** Records what a person says, in place of what they said before. A conflict if the approval does not wait any more. */
export function putVote(database: Database, row: ApprovalVoteRow): Statement[] {
  const { votedAt, grantSeconds, grantTimes } = row;
  return [
    ...guard(sql`EXISTS (SELECT 1 FROM approvals WHERE id = ${row.approvalId} AND state = 'pending')`),
    database.read
      .insert(approvalVotes)
      .values(row)
      .onConflictDoUpdate({
        target: [approvalVotes.approvalId, approvalVotes.userId],
        set: { votedAt, grantSeconds, grantTimes, ended: false },
      }),
  ];
}

/** Keeps what these people said, who approved a request together, and nobody else. */
export function keepVotes(database: Database, approvalId: string, userIds: readonly string[]): Statement[] {
  const others = and(eq(approvalVotes.approvalId, approvalId), notInArray(approvalVotes.userId, [...userIds]));
  return [database.read.delete(approvalVotes).where(others)];
}

/** The effect of an operation by the connector's present spec; null if the connector has no such operation. */
export async function findOperationEffect(
  database: Database,
  { subjectId, action }: { readonly subjectId: string; readonly action: string },
): Promise<string | null> {
  const [row] = await database.read.all<{ effect: string | null }>(sql`SELECT operation.value ->> '$.effect' AS effect
    FROM connectors, json_each(connectors.spec, '$.operations') AS operation
    WHERE connectors.id = ${subjectId} AND operation.value ->> '$.name' = ${action} LIMIT 1`);
  return row?.effect ?? null;
}
