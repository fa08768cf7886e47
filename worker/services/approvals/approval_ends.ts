import type { AuditEventData } from '../../../shared/model/audit_event.ts';
import { ok } from '../../../shared/model/result.ts';
import type { Caller } from '../../kernel/caller.ts';
import { type Change, commit } from '../../kernel/commit.ts';
import { controlChain } from '../../kernel/policy_change.ts';
import { nowText, type ServiceContext } from '../../kernel/service_context.ts';
import { listGrantsAbout } from '../../store/approval_grants.ts';
import { deleteViews } from '../../store/approval_views.ts';
import { type ApprovalRow, changeApproval, findOverdueApprovals, listApprovedAbout } from '../../store/approvals.ts';
import type { ApprovalRuleRow } from '../../store/people/approval_rules.ts';
import { approvalEvent } from './approval_rows.ts';
import { endOneGrant } from './grants.ts';

type Ending = Pick<Change<null>, 'statements' | 'events'>;

const EXPIRED_AT_A_TIME = 100;

/** Writes that approvals are over: nobody decided or used them in time, or what they were given for or by has changed. */
export async function expireOverdue(context: ServiceContext, enterpriseId: string): Promise<void> {
  await commit(context, controlChain({ enterpriseId }), async () => {
    const rows = await findOverdueApprovals(context.database, enterpriseId, nowText(context), EXPIRED_AT_A_TIME);
    return ok({ ...expire(context, rows, null), value: null });
  });
}

function expire(
  { database }: ServiceContext,
  rows: readonly ApprovalRow[],
  actor: string | null,
  more: AuditEventData = {},
): Ending {
  const expired = rows.flatMap((row) => changeApproval(database, row, { state: 'expired' }));
  const views = deleteViews(
    database,
    rows.map(({ id }) => id),
  );
  const events = rows.map((row) => approvalEvent('connector.approval.expired', row, actor, more));
  return { statements: [...expired, ...views], events };
}

/**
 * Records the end of what was approved or granted without a rule that comes, or under one that goes. Triggers of the database end it with the
 * rule, whoever writes that: so it does not hold again when the rules are as before, and a request that waits has to be approved again by
 * everybody whom it needs.
 */
export async function endUnderOtherRules(
  context: ServiceContext,
  { userId }: Caller,
  rule: ApprovalRuleRow,
): Promise<Ending> {
  const { database } = context;
  const more = { 'svc.approval.rules': [rule.id] };
  const approved = expire(context, await listApprovedAbout(database, rule), userId, more);
  const grants = await listGrantsAbout(database, rule, nowText(context));
  const ended = grants.map((grant) => endOneGrant(context, grant, userId, more));
  return {
    // The approvals first: the end of a grant expires the one that it was given with too.
    statements: [...approved.statements, ...ended.flatMap(({ statements }) => statements)],
    events: [...approved.events, ...ended.flatMap(({ events }) => events)],
  };
}
