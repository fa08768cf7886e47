import { describe, expect, test } from 'vitest';
import { MAX_TOOLS_OF_SERVER, MAX_TOOLS_TEXT } from '../../model/mcp_tool.ts';
import { toolDifferences } from './tool_difference.ts';
import { formsGivenUp, type KnownTool, planReview, type SeenTool } from './tool_review.ts';

const seen = (hash: string, more: Partial<SeenTool> = {}): SeenTool => {
  return { hash, name: hash, characters: 100, hasWarning: false, ...more };
};
const known = (hash: string, more: Partial<KnownTool> = {}): KnownTool => {
  return { hash, name: hash, characters: 100, state: 'reviewed', seenAt: '2026-01-01T00:00:00.000Z', ...more };
};
const states = (plan: ReturnType<typeof planReview>) => plan.added.map(({ hash, state }) => `${hash} ${state}`);

describe('the first list of a server', () => {
  test('is accepted with the server', () => {
    expect(states(planReview([], [seen('a'), seen('b')]))).toEqual(['a reviewed', 'b reviewed']);
  });

  test('is not accepted where a tool has a warning, or a second form', () => {
    const plan = planReview([], [seen('a', { hasWarning: true }), seen('b'), seen('c', { name: 'b' })]);
    expect(states(plan)).toEqual(['a waiting', 'b reviewed', 'c waiting']);
  });

  test('has at most as many tools, and as much text, as are kept', () => {
    const many = Array.from({ length: MAX_TOOLS_OF_SERVER + 5 }, (_, index) => seen(`t${index}`));
    expect(planReview([], many).added).toHaveLength(MAX_TOOLS_OF_SERVER);
    const large = Array.from({ length: 5 }, (_, index) => seen(`l${index}`, { characters: MAX_TOOLS_TEXT / 4 }));
    expect(planReview([], large).added).toHaveLength(4);
  });
});

describe('a later list', () => {
  test('waits where a tool is new or has another form, and changes nothing else', () => {
    const before = [known('a'), known('b'), known('c', { state: 'waiting' })];
    const plan = planReview(before, [seen('a'), seen('b2', { name: 'b' }), seen('c'), seen('d')]);
    expect(states(plan)).toEqual(['b2 waiting', 'd waiting']);
    expect(plan.dropped).toEqual([]);
  });

  test('waits also if everything of the first list waits', () => {
    expect(states(planReview([known('a', { state: 'waiting' })], [seen('b')]))).toEqual(['b waiting']);
  });

  test('keeps the newest forms of a tool that never stays the same', () => {
    const forms = [1, 2, 3, 4].map((day) =>
      known(`w${day}`, { name: 'a', state: 'waiting', seenAt: `2026-01-0${day}T00:00:00.000Z` }),
    );
    expect(planReview([known('a'), ...forms], [seen('w5', { name: 'a' })]).dropped).toEqual(['w1']);
  });

  test('gives up the oldest waiting tools of a server that never stops naming new ones', () => {
    const waiting = Array.from({ length: MAX_TOOLS_OF_SERVER }, (_, index) =>
      known(`w${index}`, { state: 'waiting', seenAt: new Date(index * 1000).toISOString() }),
    );
    expect(planReview([known('a'), ...waiting], [seen('n')]).dropped).toEqual(['w0']);
  });
});

test('accepting a form keeps the newest reviewed forms of the tool', () => {
  const forms = [1, 2, 3, 4].map((day) => known(`r${day}`, { name: 'a', seenAt: `2026-01-0${day}T00:00:00.000Z` }));
  const accepted = [known('w', { name: 'a', state: 'waiting' })];
  expect(formsGivenUp([...forms, known('b'), ...accepted], accepted)).toEqual(['r1']);
});

test('the difference names each member, and leaves out what nobody reads', () => {
  const before = {
    name: 'a',
    description: 'one',
    inputSchema: { properties: { path: {} }, required: ['path'] },
    _meta: { x: 1 },
  };
  const after = {
    name: 'a',
    description: 'two',
    inputSchema: { properties: { path: { type: 'string' } }, required: ['path'] },
  };
  expect(toolDifferences(before, after)).toEqual([
    { where: 'description', before: 'one', after: 'two' },
    { where: 'inputSchema.properties.path', before: '{}', after: null },
    { where: 'inputSchema.properties.path.type', before: null, after: 'string' },
  ]);
});
