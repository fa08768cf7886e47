import { describe, expect, test } from 'vitest';
import { choiceOf, isToolListed, toolDecision, withChoice } from './tool_policy.ts';

const all = { allow: null, deny: [], approval: [] };

describe('tool policy', () => {
  test.each([
    ['allows everything by default', all, 'read', 'allowed'],
    ['allows nothing with an empty allow list', { ...all, allow: [] }, 'read', 'denied'],
    ['allows what is listed', { ...all, allow: ['read'] }, 'read', 'allowed'],
    ['denies what is not listed', { ...all, allow: ['read'] }, 'reader', 'denied'],
    ['allows by a beginning', { ...all, allow: ['read*'] }, 'reader', 'allowed'],
    ['tells case', { ...all, allow: ['read'] }, 'Read', 'denied'],
    ['denies before it allows', { ...all, allow: ['*'], deny: ['write*'] }, 'write_file', 'denied'],
    ['denies before it asks', { ...all, deny: ['pay'], approval: ['*'] }, 'pay', 'denied'],
    ['asks for what is listed', { ...all, approval: ['pay'] }, 'pay', 'approval'],
    ['asks for everything', { ...all, approval: ['*'] }, 'read', 'approval'],
    ['takes a star inside as itself', { ...all, deny: ['a*b'] }, 'aXb', 'allowed'],
  ] as const)('%s', (_what, policy, tool, decision) => {
    expect(toolDecision(policy, { name: tool })).toBe(decision);
    expect(isToolListed(policy, { name: tool })).toBe(decision !== 'denied');
  });
});

describe("a server's own annotations", () => {
  const destructive = { name: 'drop', annotations: { destructiveHint: true } };
  const harmless = { name: 'drop', annotations: { readOnlyHint: true, destructiveHint: false } };

  test.each([
    ['asks for a tool that is destructive', all, destructive, 'approval'],
    ['asks although a pattern allows it', { ...all, allow: ['*'] }, destructive, 'approval'],
    ['allows it if a person has named it', { ...all, allow: ['*', 'drop'] }, destructive, 'allowed'],
    [
      'asks for a destructive tool that is named like a pattern',
      { ...all, allow: ['*'] },
      { ...destructive, name: '*' },
      'approval',
    ],
    ['denies it although it is named', { ...all, allow: ['drop'], deny: ['d*'] }, destructive, 'denied'],
    ['asks for it if it is named in both', { ...all, allow: ['drop'], approval: ['drop'] }, destructive, 'approval'],
    ['never allows what the policy denies', { ...all, deny: ['drop'] }, harmless, 'denied'],
    ['never allows what the policy asks for', { ...all, approval: ['*'] }, harmless, 'approval'],
    ['takes only true for true', all, { name: 'drop', annotations: { destructiveHint: 'true' } }, 'allowed'],
    ['takes annotations of another shape for none', all, { name: 'drop', annotations: null }, 'allowed'],
  ] as const)('%s', (_what, policy, tool, decision) => {
    expect(toolDecision(policy, tool)).toBe(decision);
  });
});

describe('the choice for one tool', () => {
  const destructive = { name: 'drop', annotations: { destructiveHint: true } };
  const others = ['read', 'write_file', 'pay'];
  const policies = [
    all,
    { ...all, allow: ['read', 'drop'] },
    { ...all, allow: ['read*'] },
    { allow: ['*'], deny: ['drop'], approval: ['pay'] },
    { allow: null, deny: ['pay'], approval: ['drop', 'read'] },
  ];

  test.each(['allow', 'ask', 'deny'] as const)(
    '%s is what the policy then decides, and nothing else changes',
    (choice) => {
      for (const policy of policies) {
        const changed = withChoice(policy, 'drop', choice);
        if (!changed.ok) throw new Error(changed.error);
        expect(choiceOf(changed.value, destructive)).toBe(choice);
        for (const name of others) expect(choiceOf(changed.value, { name })).toBe(choiceOf(policy, { name }));
      }
    },
  );

  test('refuses a tool whose name is a pattern: the choice would be made for others too', () => {
    const restricted = { ...all, allow: ['read'] };
    for (const name of ['*', 'write_*']) {
      expect(withChoice(restricted, name, 'allow')).toEqual({ ok: false, error: name });
      expect(withChoice(restricted, name, 'deny')).toEqual({ ok: false, error: name });
    }
  });

  test('refuses to loosen a pattern', () => {
    expect(withChoice({ ...all, deny: ['dr*'] }, 'drop', 'ask')).toEqual({ ok: false, error: 'dr*' });
    expect(withChoice({ ...all, approval: ['*'] }, 'drop', 'allow')).toEqual({ ok: false, error: '*' });
    expect(withChoice({ ...all, approval: ['*'] }, 'drop', 'deny').ok).toBe(true);
  });
});
