import { hasRole, type Role } from '../model/role.ts';

/** What a rule says about who approves. Exactly one of `role` and `groupId` is set. */
export interface ApprovalRule {
  readonly id: string;
  readonly role: Role | null;
  readonly groupId: string | null;
  /** How many different persons have to approve. */
  readonly persons: number;
  /** The person whose agent asks does not count. */
  readonly excludesRequester: boolean;
}

/** Somebody who may sign in now, as a rule sees them. */
export interface Approver {
  readonly personId: string;
  readonly role: Role;
  readonly groups: readonly string[];
}

/** Whether a person's approval counts for a rule. A group that is gone has nobody in it. */
export function countsFor(rule: ApprovalRule, approver: Approver, requesterPersonId: string | null): boolean {
  if (rule.excludesRequester && approver.personId === requesterPersonId) return false;
  if (rule.role !== null) return hasRole(approver.role, rule.role);
  return rule.groupId !== null && approver.groups.includes(rule.groupId);
}

/** A rule with how many persons have approved under it, and how many more it needs. */
export interface Need<Rule extends ApprovalRule = ApprovalRule> {
  readonly rule: Rule;
  readonly given: number;
  readonly missing: number;
}

/**
 * What each rule needs after these approvals. All rules that are about a request hold, so that a further rule never makes
 * approving easier. A person counts once, however many users they have.
 */
export function findNeeds<Rule extends ApprovalRule>(
  rules: readonly Rule[],
  approvers: readonly Approver[],
  requesterPersonId: string | null,
): Need<Rule>[] {
  return rules.map((rule) => {
    const persons = approvers.filter((each) => countsFor(rule, each, requesterPersonId)).map((each) => each.personId);
    const given = new Set(persons).size;
    return { rule, given, missing: Math.max(0, rule.persons - given) };
  });
}

/** How many requests a person would allow, and for how long. */
export interface GrantWish {
  readonly seconds: number;
  /** Null: any number. */
  readonly times: number | null;
}

/** What everybody who approved allows; null if somebody allows one request only. */
export function narrowestGrant(wishes: readonly (GrantWish | null)[]): GrantWish | null {
  const given = wishes.filter((wish) => wish !== null);
  if (given.length === 0 || given.length < wishes.length) return null;
  const times = given.flatMap((wish) => wish.times ?? []);
  return {
    seconds: Math.min(...given.map(({ seconds }) => seconds)),
    times: times.length === 0 ? null : Math.min(...times),
  };
}
