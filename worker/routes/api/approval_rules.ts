import {
  approvalRuleInput,
  approvalRuleParams,
  approvalRuleRecord,
  approvalRulesPage,
  approvalRulesQuery,
} from '../../../shared/wire/people/approval_rules.ts';
import { addApprovalRule, listApprovalRulePage, removeApprovalRule } from '../../services/approvals/approval_rules.ts';
import { forUser } from '../http/operation.ts';
import { createdReply, emptyReply, jsonReply } from '../http/replies.ts';

export const getApprovalRules = forUser({
  summary: 'List the rules about who approves, oldest first',
  description:
    'Of your enterprise, for every member. All rules that are about a request hold. A request that none is about is approved by the person whose agent asks, or by an admin if the connector or the server is the enterprise’s.',
  query: approvalRulesQuery,
  replies: { 200: approvalRulesPage },
  async handle({ context, who, query }) {
    return jsonReply(await listApprovalRulePage(context, who, query));
  },
});

export const postApprovalRule = forUser({
  summary: 'Add a rule about who approves',
  description:
    'For admins. It holds at once, also for requests that wait; what was approved or granted under other rules is over. A rule is not changed: add another, then remove it.',
  body: approvalRuleInput,
  replies: { 201: approvalRuleRecord },
  async handle({ context, who, body }) {
    return createdReply(await addApprovalRule(context, who, body));
  },
});

export const deleteApprovalRule = forUser({
  summary: 'Remove a rule about who approves',
  description: 'For admins. What was granted under it is over.',
  params: approvalRuleParams,
  replies: { 204: 'Removed' },
  async handle({ context, who, params }) {
    return emptyReply(await removeApprovalRule(context, who, params.id));
  },
});
