import { ok } from '../../../shared/model/result.ts';
import {
  mcpRulesCheck,
  mcpRulesInput,
  mcpRulesRecord,
  mcpRulesReplacement,
} from '../../../shared/wire/mcp/mcp_rules.ts';
import { revisionHeaders } from '../../../shared/net/http/if_match.ts';
import { checkMcpRules, describeMcpRules, replaceMcpRules } from '../../services/mcp/mcp_rules.ts';
import { expectedRevision } from '../http/expected_revision.ts';
import { forUser } from '../http/operation.ts';
import { changeReply, jsonReply } from '../http/replies.ts';

export const getMcpRules = forUser({
  summary: 'Get the rules of your enterprise about MCP servers and their tools',
  replies: { 200: mcpRulesRecord },
  async handle({ context, who }) {
    return ok({ status: 200, json: await describeMcpRules(context, who) });
  },
});

export const putMcpRules = forUser({
  summary: 'Replace the rules of your enterprise about MCP servers and their tools',
  description:
    'For admins. They hold for every server of the enterprise and of its members; what breaks one ends at the gateways that run it. POST /v1/mcp-rules/check says first which servers that are. With the revision that you read, or in quotes as If-Match, the rules are replaced only if nobody has changed them since (409 conflict).',
  headers: revisionHeaders,
  body: mcpRulesReplacement,
  replies: { 200: mcpRulesRecord },
  async handle({ context, who, headers, body: { revision, ...wanted } }) {
    const expected = expectedRevision(headers['If-Match'], revision);
    if (!expected.ok) return expected;
    const replaced = await replaceMcpRules(context, who, wanted, expected.value);
    return changeReply(replaced, (rules) => ({ status: 200, json: rules }));
  },
});

export const postMcpRulesCheck = forUser({
  summary: 'List the MCP servers that rules would stop',
  description: 'For admins. Changes nothing. Names enabled servers of the enterprise and of its members.',
  body: mcpRulesInput,
  replies: { 200: mcpRulesCheck },
  async handle({ context, who, body }) {
    return jsonReply(await checkMcpRules(context, who, body));
  },
});
