import { EFFECTS } from '../../../shared/model/host_binding.ts';
import { err, ok, type Result } from '../../../shared/model/result.ts';
import { toShownLine } from '../../../shared/model/shown_text.ts';
import { apiError, type ApiError } from '../../../shared/wire/errors.ts';
import type { ApprovalRuleInput, ApprovalRuleRecord } from '../../../shared/wire/people/approval_rules.ts';
import type { Page } from '../../../shared/wire/primitives.ts';
import { type Caller, mayActAs } from '../../kernel/caller.ts';
import { type AuditDraft, commit } from '../../kernel/commit.ts';
import { type PageQuery, readPageById } from '../../kernel/cursors.ts';
import { controlChain } from '../../kernel/policy_change.ts';
import { freshId, nowText, type ServiceContext } from '../../kernel/service_context.ts';
import { findGroup } from '../../store/people/groups.ts';
import { endUnderOtherRules } from './approval_ends.ts';
import {
  type ApprovalRuleRow,
  countApprovers,
  deleteApprovalRule,
  findApprovalRule,
  insertApprovalRule,
  listApprovalRules,
} from '../../store/people/approval_rules.ts';

/** The rules of the caller's enterprise, oldest first, for every member. Refuses with `invalid_cursor`. */
export function listApprovalRulePage(
  context: ServiceContext,
  { enterpriseId }: Caller,
  query: PageQuery,
): Promise<Result<Page<ApprovalRuleRecord>, ApiError>> {
  return readPageById(query, 'apu', {
    read: async (from) => {
      const rows = await listApprovalRules(context.database, { enterpriseId, ...from });
      return Promise.all(rows.map(async (row) => ({ ...row, approvers: await countApprovers(context.database, row) })));
    },
    toItem: toRecord,
  });
}

/** One rule. Refuses with `not_found`. */
export async function getApprovalRule(
  context: ServiceContext,
  { enterpriseId }: Caller,
  id: string,
): Promise<Result<ApprovalRuleRecord, ApiError>> {
  const row = await findApprovalRule(context.database, enterpriseId, id);
  return row === null ? err(notFound(id)) : ok(await describe(context, row));
}

/** Adds a rule, which holds at once and ends what was allowed without it. Refuses with `admin_required`, `not_found` for its group, `limit_reached`. */
export async function addApprovalRule(
  context: ServiceContext,
  caller: Caller,
  input: ApprovalRuleInput,
): Promise<Result<ApprovalRuleRecord, ApiError>> {
  const { enterpriseId } = caller;
  const { group_id: groupId, effects, excludes_requester: excludesRequester, ...rest } = input;
  const added = await commit(context, controlChain(caller), async () => {
    if (!mayActAs(caller, 'admin')) return err(adminsOnly());
    const now = nowText(context);
    if (groupId !== null && (await findGroup(context.database, enterpriseId, { id: groupId, now })) === null) {
      return err(apiError('not_found', `there is no group ${groupId}: list them with GET /v1/groups`));
    }
    const stored = effects === null ? null : `,${effects.join(',')},`;
    const id = freshId(context, 'apu');
    const row = { id, enterpriseId, ...rest, groupId, effects: stored, excludesRequester, createdAt: now };
    const ended = await endUnderOtherRules(context, caller, row);
    return ok({
      statements: [...insertApprovalRule(context.database, row), ...ended.statements],
      events: [ruleEvent('created', caller, row), ...ended.events],
      adds: [{ kind: 'approval_rules' as const, holder: enterpriseId }],
      value: row,
    });
  });
  return added.ok ? ok(await describe(context, added.value)) : added;
}

/** Removes a rule, with what was allowed under it. Refuses with `admin_required`, `not_found`. */
export async function removeApprovalRule(
  context: ServiceContext,
  caller: Caller,
  id: string,
): Promise<Result<null, ApiError>> {
  return commit(context, controlChain(caller), async () => {
    const row = await findApprovalRule(context.database, caller.enterpriseId, id);
    if (row === null) return err(notFound(id));
    if (!mayActAs(caller, 'admin')) return err(adminsOnly());
    const ended = await endUnderOtherRules(context, caller, row);
    return ok({
      statements: [...deleteApprovalRule(context.database, row), ...ended.statements],
      events: [ruleEvent('deleted', caller, row), ...ended.events],
      value: null,
    });
  });
}

async function describe(context: ServiceContext, row: ApprovalRuleRow): Promise<ApprovalRuleRecord> {
  const { enterpriseId, groupId } = row;
  const group =
    groupId === null ? null : await findGroup(context.database, enterpriseId, { id: groupId, now: nowText(context) });
  const approvers = await countApprovers(context.database, row);
  return toRecord({ ...row, groupName: group?.name ?? null, approvers });
}

function toRecord(
  row: ApprovalRuleRow & { readonly groupName: string | null; readonly approvers: number },
): ApprovalRuleRecord {
  const { id, subject, name, action, role, groupId, groupName, persons, excludesRequester, approvers, createdAt } = row;
  const who = { role, group_id: groupId, group_name: groupName, persons, excludes_requester: excludesRequester };
  return { id, subject, name, action, effects: effectsOf(row), ...who, approvers, created_at: createdAt };
}

function effectsOf({ effects }: ApprovalRuleRow): ApprovalRuleRecord['effects'] {
  return effects === null ? null : EFFECTS.filter((effect) => effects.includes(`,${effect},`));
}

const MAX_EVENT_CHARACTERS = 1_000;

function ruleEvent(happened: 'created' | 'deleted', { userId }: Caller, row: ApprovalRuleRow): AuditDraft {
  const { id, subject, name, action, role, groupId, persons, excludesRequester } = row;
  const who = { role, group_id: groupId, persons, excludes_requester: excludesRequester };
  const text = JSON.stringify({ subject, name, action, effects: effectsOf(row), ...who });
  const data = { 'svc.control.resource': id, 'svc.approval.rule': toShownLine(text, MAX_EVENT_CHARACTERS) };
  return { type: `control.approval_rule.${happened}`, actor: userId, data };
}

function notFound(id: string): ApiError {
  return apiError('not_found', `there is no rule ${id}: list them with GET /v1/approval-rules`);
}

function adminsOnly(): ApiError {
  return apiError('admin_required', 'the rules about who approves need the role admin: ask an admin');
}
