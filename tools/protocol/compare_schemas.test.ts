import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { findUnread } from './compare_schemas.ts';

const json = (schema: z.ZodType): unknown => z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' });
const base = z.strictObject({
  name: z.string().max(10),
  kind: z.enum(['a', 'b']),
  count: z.number().int().min(1).optional(),
  tags: z.array(z.string()).max(3),
  inner: z.object({ id: z.string().regex(/^x/) }).nullable(),
});

test('a schema reads what the same schema writes', () => {
  expect(findUnread(json(base), json(base))).toEqual([]);
});

describe('a reader refuses', () => {
  test.each<readonly [string, z.ZodType, z.ZodType, string]>([
    [
      'a new field, if it is strict',
      base.extend({ more: z.string().optional() }),
      base,
      '.more: is a field that is not read',
    ],
    ['a missing field', base.omit({ name: true }), base, '.name: is required, and may be missing'],
    ['a field that may be missing', base.partial({ tags: true }), base, '.tags: is required, and may be missing'],
    ['a new value', base.extend({ kind: z.enum(['a', 'b', 'c']) }), base, '.kind: the value "c" is not read'],
    ['any value', base.extend({ kind: z.string() }), base, '.kind: any value is sent, and only some are read'],
    ['another type', base.extend({ name: z.number() }), base, '.name: number is sent, and string is read'],
    ['a longer text', base.extend({ name: z.string().max(11) }), base, '.name: maxLength is 11, and 10 is read'],
    ['an unlimited text', base.extend({ name: z.string() }), base, '.name: maxLength is not limited, and 10 is read'],
    ['a smaller number', base.extend({ count: z.number().int().min(0) }), base, '.count: minimum is 0, and 1 is read'],
    ['more items', base.extend({ tags: z.array(z.string()).max(4) }), base, '.tags: maxItems is 4, and 3 is read'],
    [
      'other items',
      base.extend({ tags: z.array(z.boolean()).max(3) }),
      base,
      '.tags[]: boolean is sent, and string is read',
    ],
    [
      'another pattern',
      base.extend({ inner: z.object({ id: z.string().regex(/^y/) }).nullable() }),
      base,
      '.inner.id: the pattern that is read is another',
    ],
    [
      'null',
      z.object({ a: z.string().nullable() }),
      z.object({ a: z.string() }),
      '.a: null is sent, and string is read',
    ],
    [
      'another value of a record',
      z.object({ a: z.record(z.string(), z.number()) }),
      z.object({ a: z.record(z.string(), z.string()) }),
      '.a.*: number is sent, and string is read',
    ],
    [
      'a branch of several that none of its own takes',
      z.object({ a: z.union([z.string(), z.boolean()]) }),
      z.object({ a: z.union([z.string(), z.number()]) }),
      '.a: boolean is sent, and string is read',
    ],
  ])('%s', (_what, writer, reader, problem) => {
    expect(findUnread(json(writer), json(reader))).toEqual([problem]);
  });
});

describe('a reader takes', () => {
  const loose = z.object({ name: z.string() });
  test.each<readonly [string, z.ZodType, z.ZodType]>([
    ['a new field, if it is not strict', loose.extend({ more: z.number() }), loose],
    ['a missing field that is optional', base.omit({ count: true }), base],
    ['fewer values', base.extend({ kind: z.literal('a') }), base],
    ['a shorter text', base.extend({ name: z.string().max(5) }), base],
    ['a whole number as a number', z.object({ a: z.number().int() }), z.object({ a: z.number().min(-1e20) })],
    ['one branch of several', z.object({ a: z.string() }), z.object({ a: z.union([z.string(), z.null()]) })],
    ['anything, if it reads anything', z.object({ a: z.string() }), z.object({ a: z.unknown() })],
  ])('%s', (_what, writer, reader) => {
    expect(findUnread(json(writer), json(reader))).toEqual([]);
  });
});

test('what it cannot compare is an error', () => {
  expect(() => findUnread({ type: 'string' }, { not: {} })).toThrow('not');
});
