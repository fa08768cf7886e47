import { describe, expect, test } from 'vitest';
import { type ApprovalRule, type Approver, countsFor, findNeeds, narrowestGrant } from './approval_rules.ts';

const GROUP = 'grp_1';
const RULE: ApprovalRule = { id: 'apu_1', role: null, groupId: GROUP, persons: 2, excludesRequester: true };
const ANNA: Approver = { personId: 'per_anna', role: 'member', groups: [GROUP] };
const BEN: Approver = { personId: 'per_ben', role: 'member', groups: ['grp_other', GROUP] };
const REQUESTER = 'per_requester';

describe('an approval counts for a rule', () => {
  test.each([
    ['of somebody in its group', RULE, ANNA, true],
    ['not of somebody in another group', RULE, { ...ANNA, groups: ['grp_2'] }, false],
    ['not of an owner who is not in its group', RULE, { ...ANNA, role: 'owner' as const, groups: [] }, false],
    ['not of the person whose agent asks', RULE, { ...ANNA, personId: REQUESTER }, false],
    ['of that person, if it says so', { ...RULE, excludesRequester: false }, { ...ANNA, personId: REQUESTER }, true],
    ['of its role', { ...RULE, groupId: null, role: 'admin' as const }, { ...ANNA, role: 'admin' as const }, true],
    [
      'of a role with more rights',
      { ...RULE, groupId: null, role: 'admin' as const },
      { ...ANNA, role: 'owner' as const },
      true,
    ],
    ['not of a role with fewer rights', { ...RULE, groupId: null, role: 'admin' as const }, ANNA, false],
    ['of nobody, if it names neither', { ...RULE, groupId: null }, ANNA, false],
  ])('%s', (_, rule, approver, counts) => {
    expect(countsFor(rule, approver, REQUESTER)).toBe(counts);
  });
});

describe('a rule needs', () => {
  test('as many different persons as it says', () => {
    const missing = (...approvers: Approver[]) => findNeeds([RULE], approvers, REQUESTER).map((need) => need.missing);
    expect(missing()).toEqual([2]);
    expect(missing(ANNA)).toEqual([1]);
    expect(missing(ANNA, { ...ANNA, role: 'admin' })).toEqual([1]);
    expect(missing(ANNA, BEN)).toEqual([0]);
    expect(missing(ANNA, { ...BEN, personId: REQUESTER })).toEqual([1]);
  });

  test('its own persons beside every other rule', () => {
    const admins: ApprovalRule = { ...RULE, id: 'apu_2', groupId: null, role: 'admin', persons: 1 };
    const needs = findNeeds([RULE, admins], [ANNA, BEN], REQUESTER);
    expect(needs.map(({ rule, given, missing }) => [rule.id, given, missing])).toEqual([
      ['apu_1', 2, 0],
      ['apu_2', 0, 1],
    ]);
  });
});

describe('what several persons allow', () => {
  test.each([
    [
      'the shortest time and the fewest requests',
      [
        { seconds: 3600, times: null },
        { seconds: 600, times: 5 },
      ],
      { seconds: 600, times: 5 },
    ],
    ['any number, if nobody limits it', [{ seconds: 3600, times: null }], { seconds: 3600, times: null }],
    ['nothing more, if one of them allows one request', [{ seconds: 3600, times: null }, null], null],
    ['nothing, if nobody approved', [], null],
  ])('is %s', (_, wishes, allowed) => {
    expect(narrowestGrant(wishes)).toEqual(allowed);
  });
});
