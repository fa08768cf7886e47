import { countsFor, findNeeds, type Need } from '../../../shared/approvals/approval_rules.ts';
import { toShownLine } from '../../../shared/model/shown_text.ts';
import { type ApprovalNeed, type ApprovalVote, openNeedsText } from '../../../shared/wire/people/approval_rules.ts';
import { type Caller, mayActAs } from '../../kernel/caller.ts';
import type { ServiceContext } from '../../kernel/service_context.ts';
import type { ApprovalRow } from '../../store/approvals.ts';
import {
  type ApprovalVoteRow,
  listApprovalRules,
  listLiveApprovers,
  listPersonIds,
  listRulesAbout,
  listVotes,
  type LiveApprover,
  type NamedRule,
} from '../../store/people/approval_rules.ts';

/** Where a request that waits stands under the rules of its enterprise; without rules there are no needs. */
export interface ApprovalStanding {
  readonly rules: readonly NamedRule[];
  readonly needs: readonly Need<NamedRule>[];
  /** What counts by a rule as things are now: not of somebody who was suspended, or left the group. */
  readonly votes: readonly ApprovalVoteRow[];
  /** Those who gave them. */
  readonly approvers: readonly LiveApprover[];
  /** The person whose agent asks. */
  readonly requester: string | null;
  /** The caller, if their approval counts. */
  readonly me: LiveApprover | null;
  /** Whether this call can approve it. Without rules whoever sees a request may; under rules no personal token can. */
  readonly mayApprove: boolean;
}

/** The standing of one request, for the caller. */
export async function standingOf(context: ServiceContext, caller: Caller, row: ApprovalRow): Promise<ApprovalStanding> {
  return (await standingsOf(context, caller, [row])).get(row.id) ?? DECIDED;
}

const DECIDED: ApprovalStanding = {
  rules: [],
  needs: [],
  votes: [],
  approvers: [],
  requester: null,
  me: null,
  mayApprove: false,
};

/** The standings of the requests that wait, by id. */
export async function standingsOf(
  context: ServiceContext,
  caller: Caller,
  rows: readonly ApprovalRow[],
): Promise<ReadonlyMap<string, ApprovalStanding>> {
  const { database } = context;
  const waiting = rows.filter(({ state }) => state === 'pending');
  const ruled = await findRuled(context, caller, waiting);
  const votes = await listVotes(
    database,
    ruled.map(({ row }) => row.id),
  );
  const people = await listLiveApprovers(database, [...new Set([caller.userId, ...votes.map(({ userId }) => userId)])]);
  const requesters = await listPersonIds(database, [...new Set(ruled.map(({ row }) => row.userId))]);
  return new Map(
    ruled.map(({ row, rules }) => {
      const ofRow = votes.filter(({ approvalId }) => approvalId === row.id);
      const requester = requesters.get(row.userId) ?? null;
      return [row.id, standUnder(rules, { votes: ofRow, people, requester, caller })];
    }),
  );
}

/** Those of some users who see a request that waits, whose approval counts, and who have not given it. */
export async function approversDue<T extends Caller>(
  context: ServiceContext,
  callers: readonly T[],
  row: ApprovalRow,
): Promise<readonly T[]> {
  const { database } = context;
  const [ruled] = await findRuled(context, row, [row]);
  const rules = ruled?.rules ?? [];
  // As `visibleTo` has it. By a rule, whoever's approval counts sees the request.
  const sees = (caller: T) =>
    row.userId === caller.userId || (mayActAs(caller, 'admin') && row.subjectOwnerId === caller.enterpriseId);
  if (rules.length === 0) return callers.filter(sees);
  const [votes, requesters] = await Promise.all([listVotes(database, [row.id]), listPersonIds(database, [row.userId])]);
  const waited = callers.filter(({ userId }) => !votes.some((vote) => vote.userId === userId));
  const requester = requesters.get(row.userId) ?? null;
  const people = await listLiveApprovers(
    database,
    waited.map(({ userId }) => userId),
  );
  const due = people.filter((each) => rules.some((rule) => countsFor(rule, each, requester)));
  return waited.filter(({ userId }) => due.some((each) => each.userId === userId));
}

interface Known {
  readonly votes: readonly ApprovalVoteRow[];
  readonly people: readonly LiveApprover[];
  readonly requester: string | null;
  readonly caller: Caller;
}

function standUnder(rules: readonly NamedRule[], { votes, people, requester, caller }: Known): ApprovalStanding {
  const { userId: callerId, scopes } = caller;
  if (rules.length === 0) return { ...DECIDED, mayApprove: scopes?.includes('approvals:decide') ?? true };
  const counts = (approver: LiveApprover) => rules.some((rule) => countsFor(rule, approver, requester));
  const counting = people.filter(counts);
  const valid = votes.filter(({ userId }) => counting.some((each) => each.userId === userId));
  const approvers = counting.filter(({ userId }) => valid.some((vote) => vote.userId === userId));
  const me = counting.find(({ userId }) => userId === callerId) ?? null;
  const needs = findNeeds(rules, approvers, requester);
  return { rules, needs, votes: valid, approvers, requester, me, mayApprove: me !== null && scopes === undefined };
}

interface Ruled {
  readonly row: ApprovalRow;
  readonly rules: readonly NamedRule[];
}

async function findRuled(
  context: ServiceContext,
  { enterpriseId }: Pick<Caller, 'enterpriseId'>,
  pending: readonly ApprovalRow[],
): Promise<Ruled[]> {
  if (pending.length === 0) return [];
  const some = await listApprovalRules(context.database, { enterpriseId, after: null, limit: 1 });
  if (some.length === 0) return pending.map((row) => ({ row, rules: [] }));
  const byKind = new Map<string, readonly NamedRule[]>();
  const ruled: Ruled[] = [];
  for (const row of pending) {
    const kind = JSON.stringify([row.subject, row.subjectName, row.action, row.effect]);
    const rules = byKind.get(kind) ?? (await listRulesAbout(context.database, row));
    byKind.set(kind, rules);
    ruled.push({ row, rules });
  }
  return ruled;
}

/** A standing in the API's format. */
export function toStandingFields(standing: ApprovalStanding = DECIDED): {
  needs: ApprovalNeed[];
  votes: ApprovalVote[];
  may_approve: boolean;
} {
  return {
    needs: standing.needs.map(toNeed),
    votes: standing.votes.map(toVote),
    may_approve: standing.mayApprove,
  };
}

/** Whom a request that waits still needs by the rules, in words; null if no rules are about it. */
export async function neededByRules(context: ServiceContext, caller: Caller, row: ApprovalRow): Promise<string | null> {
  const { needs } = await standingOf(context, caller, row);
  return needs.length === 0 ? null : toShownLine(openNeedsText(needs.map(toNeed)), MOST_CHARACTERS);
}

const MOST_CHARACTERS = 500;

export function toNeed({ rule, given, missing }: Need<NamedRule>): ApprovalNeed {
  const { id, role, groupId, groupName, persons, excludesRequester } = rule;
  const who = { role, group_id: groupId, group_name: groupName, persons, excludes_requester: excludesRequester };
  return { rule_id: id, ...who, given, missing };
}

function toVote({ userId, votedAt, grantSeconds, grantTimes }: ApprovalVoteRow): ApprovalVote {
  const grant = grantSeconds === null ? null : { seconds: grantSeconds, times: grantTimes };
  return { user_id: userId, voted_at: votedAt, grant };
}
