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

  test('gives up the oldest waiting tools for the text of newer ones, and never a reviewed one', () => {
    const quarter = { characters: MAX_TOOLS_TEXT / 4 };
    const before = [
      known('r', { characters: MAX_TOOLS_TEXT }),
      ...[1, 2, 3, 4].map((day) =>
        known(`w${day}`, { ...quarter, state: 'waiting', seenAt: `2026-01-0${day}T00:00:00.000Z` }),
      ),
    ];
    const plan = planReview(before, [seen('n', quarter)]);
    expect([states(plan), plan.dropped]).toEqual([['n waiting'], ['w1']]);
    const much = planReview(
      before,
      ['n1', 'n2', 'n3', 'n4', 'n5'].map((hash) => seen(hash, quarter)),
    );
    expect([states(much), much.dropped]).toEqual([
      ['n1 waiting', 'n2 waiting', 'n3 waiting', 'n4 waiting'],
      ['w4', 'w3', 'w2', 'w1'],
    ]);
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

const tool = (more: object) => ({ name: 'a', ...more });

describe('the difference shows a person', () => {
  test.each<readonly [string, object, object]>([
    [
      'a member below a name with a dot',
      { 'inputSchema.title': 'x', inputSchema: { title: 'a' } },
      { 'inputSchema.title': 'x', inputSchema: { title: 'b' } },
    ],
    ['a member below an empty name', { '': { title: 'a' }, title: 'x' }, { '': { title: 'b' }, title: 'x' }],
    ['a list that became an object', { items: ['x'] }, { items: { 0: 'x' } }],
    ['a name with a bracket', { 'a[0]': 'x', a: ['y'] }, { 'a[0]': 'x', a: ['z'] }],
    ['a text that became a value', { flag: 'true' }, { flag: true }],
    ['a text that became nothing', { flag: 'null' }, { flag: null }],
    ['a text that became an empty object', { flag: '{}' }, { flag: {} }],
    ['a text with quotation marks', { flag: '"1"' }, { flag: '1' }],
  ])('%s', (_what, before, after) => {
    expect(toolDifferences(tool(before), tool(after))).not.toEqual([]);
  });

  test('both of two members whose names could be taken for the same place', () => {
    const after = tool({ inputSchema: { description: 'evil' }, 'inputSchema.description': 'harmless' });
    expect(toolDifferences({ name: 'a' }, after).map(({ where, after: text }) => [where, text])).toEqual([
      ['["inputSchema.description"]', 'harmless'],
      ['inputSchema.description', 'evil'],
    ]);
  });

  test('the change in a long text, and no more of what is the same', () => {
    const [long, end] = ['x'.repeat(50_000), 'y'.repeat(20_000)];
    const [difference] = toolDifferences(
      tool({ description: `${long} read ${end}` }),
      tool({ description: `${long} delete ${end}` }),
    );
    expect(difference?.before).toMatch(/^49921 equal characters … x{79} read y{79} … 19921 equal characters$/);
    expect(difference?.after).toMatch(/^49921 equal characters … x{79} delete y{79} … 19921 equal characters$/);
  });

  test('a text that only became longer', () => {
    const long = 'x'.repeat(10_000);
    const [difference] = toolDifferences(tool({ description: long }), tool({ description: `${long}EVIL` }));
    expect([difference?.after?.endsWith('EVIL'), difference?.before?.endsWith('x')]).toEqual([true, true]);
  });
});
