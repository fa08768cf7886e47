import { findNeeds, type GrantWish, narrowestGrant } from '../../../shared/approvals/approval_rules.ts';
import { err, ok, type Result } from '../../../shared/model/result.ts';
import { apiError, type ApiError } from '../../../shared/wire/errors.ts';
import { openNeedsText } from '../../../shared/wire/people/approval_rules.ts';
import type { Caller } from '../../kernel/caller.ts';
import { nowText, type ServiceContext } from '../../kernel/service_context.ts';
import type { Statement } from '../../store/database.ts';
import type { ApprovalRow } from '../../store/approvals.ts';
import { type ApprovalVoteRow, putVote } from '../../store/people/approval_rules.ts';
import { type ApprovalStanding, toNeed } from './approval_standings.ts';

/** What one person's approval comes to. */
export interface CountedVote {
  readonly statements: readonly Statement[];
  /** The standing with it. */
  readonly standing: ApprovalStanding;
  /** How many persons are still missing, at most by one rule. 0: the request is approved. */
  readonly missing: number;
  /** It repeats what the same person said before. */
  readonly isRepeated: boolean;
  /** What everybody who approved allows besides the request. */
  readonly grant: GrantWish | null;
}

/**
 * Counts a person's approval of a request. Without rules that is all it needs. Under rules nobody but a person who is signed in counts: a
 * personal token may be in the hands of a program. Refuses with `approver_required`.
 */
export function countVote(
  context: ServiceContext,
  caller: Caller,
  { row, standing }: { readonly row: ApprovalRow; readonly standing: ApprovalStanding },
  wish: GrantWish | null,
): Result<CountedVote, ApiError> {
  const { me, rules } = standing;
  if (rules.length > 0 && (me === null || caller.scopes !== undefined)) return err(refusal(caller, row, standing));
  const said: ApprovalVoteRow = {
    approvalId: row.id,
    userId: caller.userId,
    votedAt: nowText(context),
    grantSeconds: wish?.seconds ?? null,
    grantTimes: wish?.times ?? null,
    ended: false,
  };
  const before = standing.votes.find(({ userId }) => userId === caller.userId);
  const isRepeated = before?.grantSeconds === said.grantSeconds && before.grantTimes === said.grantTimes;
  const votes = isRepeated ? standing.votes : [...standing.votes.filter((vote) => vote !== before), said];
  const others = standing.approvers.filter(({ userId }) => userId !== caller.userId);
  const approvers = me === null ? others : [...others, me];
  const needs = findNeeds(rules, approvers, standing.requester);
  return ok({
    statements: isRepeated ? [] : putVote(context.database, said),
    standing: { ...standing, votes, approvers, needs },
    missing: Math.max(0, ...needs.map((need) => need.missing)),
    isRepeated,
    grant: narrowestGrant(votes.map(wishOf)),
  });
}

function wishOf({ grantSeconds, grantTimes }: ApprovalVoteRow): GrantWish | null {
  return grantSeconds === null ? null : { seconds: grantSeconds, times: grantTimes };
}

function refusal(caller: Caller, { id, userId }: ApprovalRow, { needs, me }: ApprovalStanding): ApiError {
  const all = needs.map(toNeed);
  const open = all.filter(({ missing }) => missing > 0);
  const ask = open.length === 0 ? 'one who has approved it has to do so again' : 'ask one of them';
  const why =
    me !== null
      ? 'a personal token cannot approve what a rule of the enterprise is about: approve it signed in, in the console or with svc login'
      : `${userId === caller.userId ? 'your own approval does not count' : 'your approval does not count'} by the rules of the enterprise (${openNeedsText(all)}): ${ask}`;
  return apiError('approver_required', `the approval ${id} needs others: ${why}`, { needs: open });
}
