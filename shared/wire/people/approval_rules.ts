import { z } from 'zod';
import { EFFECTS } from '../../model/host_binding.ts';
import { ROLES } from '../../model/role.ts';
import { id, line, page, pageQuery, time } from '../primitives.ts';

const RULE_SUBJECTS = ['connector', 'mcp_server'] as const;

/** A name, or the beginning of one before a `*`. */
const pattern = line(256)
  .trim()
  .min(1, 'is empty: write a name, or * for every one')
  .refine(
    (text) => !text.slice(0, -1).includes('*'),
    'has a * that is not at its end: acme/* is every name that begins with acme/',
  )
  .default('*');

/** `POST /v1/approval-rules`. */
export const approvalRuleInput = z
  .strictObject({
    subject: z.enum(RULE_SUBJECTS),
    /** The connector as `publisher/name`, or the name of the MCP server; `*` at its end covers every name that begins so. */
    name: pattern,
    /** The operation, or the tool, in the same way. */
    action: pattern,
    /** Only operations with one of these effects; null: every one. Tools have none. */
    effects: z.array(z.enum(EFFECTS)).min(1).max(EFFECTS.length).nullable().default(null),
    /** Who approves: everybody with this role or one with more rights. */
    role: z.enum(ROLES).nullable().default(null),
    /** Or everybody in this group. */
    group_id: id('grp').nullable().default(null),
    /** How many different persons. */
    persons: z.number().int().min(1).max(2).default(1),
    /** Whether the approval of the person whose agent asks does not count. With two persons it never does. */
    excludes_requester: z.boolean().default(true),
  })
  .superRefine((rule, context) => {
    const refuse = (path: string, message: string) => context.addIssue({ code: 'custom', path: [path], message });
    if ((rule.role === null) === (rule.group_id === null)) refuse('role', 'or a group has to be given, and not both');
    if (rule.persons > 1 && !rule.excludes_requester) {
      refuse('excludes_requester', 'does not go with two persons: the one who asks is never one of them');
    }
    if (rule.effects !== null && rule.subject !== 'connector') refuse('effects', 'are for connectors: tools have none');
  })
  .meta({ id: 'ApprovalRuleInput' });
export type ApprovalRuleInput = z.output<typeof approvalRuleInput>;

/** A rule about who approves requests. */
export const approvalRuleRecord = z
  .object({
    id: id('apu'),
    subject: z.enum(RULE_SUBJECTS),
    name: z.string(),
    action: z.string(),
    effects: z.array(z.enum(EFFECTS)).nullable(),
    role: z.enum(ROLES).nullable(),
    group_id: id('grp').nullable(),
    /** Null also if the group was deleted: then nobody can approve. */
    group_name: z.string().nullable(),
    persons: z.number().int(),
    excludes_requester: z.boolean(),
    /** How many people could approve a request of one of them. With fewer than `persons` nobody can approve that. */
    approvers: z.number().int(),
    created_at: time,
  })
  .meta({ id: 'ApprovalRule' });
export type ApprovalRuleRecord = z.infer<typeof approvalRuleRecord>;

/** `GET /v1/approval-rules`: oldest first. */
export const approvalRulesQuery = z.strictObject(pageQuery);
export const approvalRulesPage = page(approvalRuleRecord).meta({ id: 'ApprovalRulesPage' });
export const approvalRuleParams = z.strictObject({ id: id('apu') });

/** What a rule needs before a request is approved. */
export const approvalNeed = z.object({
  rule_id: id('apu'),
  role: z.enum(ROLES).nullable(),
  group_id: id('grp').nullable(),
  group_name: z.string().nullable(),
  persons: z.number().int(),
  /** How many persons have approved, and how many more have to. */
  given: z.number().int(),
  missing: z.number().int(),
  excludes_requester: z.boolean(),
});
export type ApprovalNeed = z.infer<typeof approvalNeed>;

/** One person's approval of a request that rules are about. */
export const approvalVote = z.object({
  user_id: id('usr'),
  voted_at: time,
  /** What they would also allow; null: only this request. */
  grant: z.object({ seconds: z.number().int(), times: z.number().int().nullable() }).nullable(),
});
export type ApprovalVote = z.infer<typeof approvalVote>;

type WhoApproves = Pick<ApprovalNeed, 'role' | 'group_id' | 'group_name' | 'persons' | 'excludes_requester'>;

/** Who approves by a rule: `one person with the role admin or owner, not the one who asks`. */
export function approversText(who: WhoApproves): string {
  const persons = who.persons === 1 ? 'one person' : `${who.persons} different persons`;
  return `${persons} ${whoText(who)}`;
}

function whoText({ role, group_id: group, group_name: name, excludes_requester: excludes }: WhoApproves): string {
  const of = role === null ? `of the group ${name ?? `${group} (deleted)`}` : ROLE_WORDS[role];
  return `${of}${excludes ? ', not the one who asks' : ''}`;
}

const ROLE_WORDS = {
  owner: 'with the role owner',
  admin: 'with the role admin or owner',
  member: 'of the enterprise',
} as const;

/** What the rules still need, or what they have if nothing is missing: see {@link needText}. */
export function openNeedsText(needs: readonly ApprovalNeed[]): string {
  const open = needs.filter(({ missing }) => missing > 0);
  return (open.length === 0 ? needs : open).map(needText).join('; and ');
}

/** What is still missing: `1 of 2 approved, needs 1 more person of the group Payments`. */
export function needText(need: ApprovalNeed): string {
  if (need.missing === 0) return `${need.given} of ${need.persons} approved, ${whoText(need)}`;
  const more = need.missing === 1 ? '1 more person' : `${need.missing} more persons`;
  return `${need.given} of ${need.persons} approved, needs ${more} ${whoText(need)}`;
}
