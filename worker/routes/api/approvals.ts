import {
  approvalParams,
  approvalRecord,
  approvalsPage,
  approvalsQuery,
  decisionInput,
} from '../../../shared/wire/approvals.ts';
import { decideApproval, getApproval as findApproval, listApprovalPage } from '../../services/approvals/approvals.ts';
import { forUser } from '../http/operation.ts';
import { jsonReply } from '../http/replies.ts';

export const getApprovals = forUser({
  summary: 'List approvals, newest first',
  description:
    'Your own; for an admin also those of connectors that the enterprise owns. The audit stream has new approvals and decisions as events of type connector.approval.',
  query: approvalsQuery,
  replies: { 200: approvalsPage },
  async handle({ context, who, query }) {
    return jsonReply(await listApprovalPage(context, who, query));
  },
});

export const getApproval = forUser({
  summary: 'Get an approval',
  params: approvalParams,
  replies: { 200: approvalRecord },
  async handle({ context, who, params }) {
    return jsonReply(await findApproval(context, who, params.id));
  },
});

export const postDecision = forUser({
  summary: 'Approve or deny a request',
  description: 'A decision covers one identical request, for fifteen minutes.',
  params: approvalParams,
  body: decisionInput,
  replies: { 200: approvalRecord },
  async handle({ context, who, params, body }) {
    return jsonReply(await decideApproval(context, who, params.id, body.decision));
  },
});
