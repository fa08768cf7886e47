import {
  approvalParams,
  approvalRecord,
  approvalsPage,
  approvalsQuery,
  decisionInput,
} from '../../../shared/wire/approvals.ts';
import { decideApproval, getApproval as findApproval, listApprovalPage } from '../../services/approvals/approvals.ts';
import { grantParams, grantsPage, grantsQuery } from '../../../shared/wire/approval_grants.ts';
import { listGrantPage, revokeGrant } from '../../services/approvals/grants.ts';
import { forUser } from '../http/operation.ts';
import { createdView, viewInput, viewParams, viewReply } from '../../../shared/wire/approval_views.ts';
import { readView, requestView } from '../../services/approvals/approval_views.ts';
import { createdReply, emptyReply, jsonReply } from '../http/replies.ts';

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
  description:
    'A decision covers one identical request, for fifteen minutes. With a grant, an approval also covers further requests of the same operation with the same path inputs from the same session, whatever their queries and bodies are; where a request has no path inputs of its own (tool calls, GraphQL), identical ones only. Only the person whose agent asks may give one.',
  params: approvalParams,
  body: decisionInput,
  replies: { 200: approvalRecord },
  async handle({ context, who, params, body }) {
    return jsonReply(await decideApproval(context, who, params.id, body));
  },
});

export const getGrants = forUser({
  summary: 'List grants of approvals, newest first',
  description:
    'Also those that have ended. Each use is an approval of its own and an event connector.approval.grant_used.',
  query: grantsQuery,
  replies: { 200: grantsPage },
  async handle({ context, who, query }) {
    return jsonReply(await listGrantPage(context, who, query));
  },
});

export const deleteGrant = forUser({
  summary: 'Revoke a grant',
  description: 'The next request asks for an approval again.',
  params: grantParams,
  replies: { 204: 'Revoked' },
  async handle({ context, who, params }) {
    return emptyReply(await revokeGrant(context, who, params.id));
  },
});

export const postView = forUser({
  summary: 'Ask to be shown a request that waits',
  description:
    'Only for the person whose agent asks, while it waits. The sidecar that holds the request seals it to the key, with its credential masked: method, URL, content type and up to 64 KiB of its body.',
  params: approvalParams,
  body: viewInput,
  replies: { 201: createdView },
  async handle({ context, who, params, body }) {
    return createdReply(await requestView(context, who, params.id, body.key));
  },
});

export const getView = forUser({
  summary: 'Get a request that waits, as its sidecar has sealed it',
  params: viewParams,
  replies: { 200: viewReply },
  async handle({ context, who, params }) {
    return jsonReply(await readView(context, who, params));
  },
});
