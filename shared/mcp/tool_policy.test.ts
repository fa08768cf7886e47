import { describe, expect, test } from 'vitest';
import { isToolListed, toolDecision } from './tool_policy.ts';

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
    expect(toolDecision(policy, tool)).toBe(decision);
    expect(isToolListed(policy, tool)).toBe(decision !== 'denied');
  });
});
