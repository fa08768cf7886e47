import { describe, expect, test } from 'vitest';
import { ITEMS_SPEC } from '../../../e2e/runtimes/connector_samples.ts';
import { connectorSpec } from '../../../shared/wire/connectors/connector_spec.ts';
import { addJsonRule } from './add_json_rule.ts';

const SPEC = connectorSpec.parse(ITEMS_SPEC);
const TYPED = { operation: 'create-item', pointer: '/title', equals: '', atLeast: '', atMost: '' };
const rulesAfter = (typed: Partial<typeof TYPED>, spec = SPEC) => {
  const changed = addJsonRule(spec, { ...TYPED, ...typed });
  return changed.ok ? changed.value.operations.find(({ name }) => name === 'create-item')?.json : changed.error;
};

describe('a rule that is added to an operation', () => {
  test.each([
    ['texts', { pointer: '/title', equals: 'draft\n  final \n\n' }, { equals: ['draft', 'final'] }],
    ['other values', { pointer: '/title', equals: '"5"\n5\ntrue' }, { equals: ['5', 5, true] }],
    ['a range', { pointer: '/amount', atLeast: '0', atMost: '99.5' }, { at_least: 0, at_most: 99.5 }],
    ['one end of a range', { pointer: '/amount', atMost: '100' }, { at_most: 100 }],
  ])('has %s', (_, typed, rule) => {
    expect(rulesAfter(typed)).toEqual([{ pointer: typed.pointer, ...rule }]);
  });

  test('comes after those that it has, and changes no other operation', () => {
    const once = addJsonRule(SPEC, { ...TYPED, equals: 'draft' });
    if (!once.ok) throw new Error('the first rule was refused');
    expect(rulesAfter({ pointer: '/amount', atMost: '1' }, once.value)).toHaveLength(2);
    const others = (spec: typeof SPEC) => spec.operations.filter(({ name }) => name !== 'create-item');
    expect(others(once.value)).toEqual(others(SPEC));
  });

  test.each([
    ['an operation that is not there', { operation: 'gone', equals: 'a' }, 'rule_operation'],
    ['a method without a body', { operation: 'get-item', equals: 'a' }, /^operations\.0/],
    ['no condition', {}, /^operations\.1\.json\.0/],
    ['a pointer that is none', { pointer: 'title', equals: 'a' }, 'operations.1.json.0.pointer'],
    ['a range of texts', { atLeast: 'low' }, 'operations.1.json.0.at_least'],
    ['an object', { equals: '{}' }, /^operations\.1\.json\.0\.equals/],
  ])('is refused with %s', (_, typed, field) => {
    expect(rulesAfter(typed)).toContainEqual({ field: expect.stringMatching(field), message: expect.any(String) });
  });
});
