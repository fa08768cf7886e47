import type { McpRules } from '../../../shared/model/mcp_rules.ts';
import { err, ok, type Result } from '../../../shared/model/result.ts';
import { toShownLine } from '../../../shared/model/shown_text.ts';
import { apiError, type ApiError } from '../../../shared/wire/errors.ts';
import type { McpRulesCheck, McpRulesInput, McpRulesRecord } from '../../../shared/wire/mcp/mcp_rules.ts';
import { type Caller, mayActAs, ownerName } from '../../kernel/caller.ts';
import { type Changed, commitPolicy } from '../../kernel/policy_change.ts';
import { changedSince, revisionOf } from '../../kernel/revision.ts';
import { nowText, type ServiceContext } from '../../kernel/service_context.ts';
import { listMcpServersOfEnterprise, type OwnedMcpServer, putMcpRules } from '../../store/mcp/mcp_rules.ts';
import { findProblems, rulesOf } from './apply_rules.ts';
import { configurationOf } from './mcp_configuration.ts';

/** The rules of the caller's enterprise, for every member. */
export async function describeMcpRules(context: ServiceContext, { enterpriseId }: Caller): Promise<McpRulesRecord> {
  return toRecord(await rulesOf(context, enterpriseId));
}

/** What the rules would stop. Refuses with `admin_required`, because it names the servers of other members. */
export async function checkMcpRules(
  context: ServiceContext,
  caller: Caller,
  rules: McpRulesInput,
): Promise<Result<McpRulesCheck, ApiError>> {
  if (!mayActAs(caller, 'admin')) return err(adminsOnly());
  const items: McpRulesCheck['items'] = [];
  let after: string | null = null;
  for (;;) {
    const { enterpriseId } = caller;
    const page: OwnedMcpServer[] = await listMcpServersOfEnterprise(context.database, {
      enterpriseId,
      after,
      limit: ROWS_PER_READ,
    });
    const problems = await findProblems(
      context,
      rules,
      page.map(({ row }) => row),
    );
    for (const { row, email } of page) {
      const problem = problems.get(row.id);
      if (problem === undefined || !configurationOf(row).enabled) continue;
      items.push({ id: row.id, name: row.name, owner: ownerName(row.ownerId), email, problem });
    }
    after = page.at(-1)?.row.id ?? null;
    if (page.length < ROWS_PER_READ) return ok({ items });
  }
}

const ROWS_PER_READ = 200;

/**
 * Replaces the rules of the caller's enterprise. Gateways have them with their next policy. With the `revision` that a person
 * saw, only if those rules still hold. Refuses with `admin_required`, `conflict`.
 */
export async function replaceMcpRules(
  context: ServiceContext,
  caller: Caller,
  rules: McpRulesInput,
  revision: string | null = null,
): Promise<Result<Changed<McpRulesRecord>, ApiError>> {
  if (!mayActAs(caller, 'admin')) return err(adminsOnly());
  const { enterpriseId, userId } = caller;
  return commitPolicy(context, caller, async () => {
    const stale = changedSince('the rules', revision, toRecord(await rulesOf(context, enterpriseId)).revision);
    if (stale !== null) return err(stale);
    const row = { enterpriseId, rules: JSON.stringify(rules), updatedAt: nowText(context) };
    const data = {
      'svc.control.resource': enterpriseId,
      'svc.mcp.rules': toShownLine(describeRules(rules), MAX_EVENT_CHARACTERS),
    };
    const event = { type: 'control.mcp_rules.updated' as const, actor: userId, data };
    return ok({ statements: putMcpRules(context.database, row), events: [event], value: toRecord(rules) });
  });
}

const MAX_EVENT_CHARACTERS = 1_000;

function describeRules({ sources, isolation, pinned_only: isPinnedOnly, tools }: McpRules): string {
  const { allow, deny, approval } = tools;
  return JSON.stringify({ sources, isolation, pinned_only: isPinnedOnly, tools: { allow, deny, approval } });
}

function toRecord(rules: McpRules): McpRulesRecord {
  const { sources, isolation, pinned_only: isPinnedOnly, tools } = rules;
  const { allow, deny, approval } = tools;
  const lists = { allow: allow && [...allow], deny: [...deny], approval: [...approval] };
  const shown = { sources: sources && [...sources], isolation, pinned_only: isPinnedOnly, tools: lists };
  return { ...shown, revision: revisionOf(shown) };
}

function adminsOnly(): ApiError {
  return apiError('admin_required', 'the rules about MCP servers need the role admin: ask an admin');
}
