import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Operation, OperationInput } from '../model/connector.ts';
import { matchOperation, compileConnectors } from './connector_index.ts';
import { buildOperationRequest } from './operation_request.ts';
import { sampleConnector, sampleOperation } from './testing/sample_connector.ts';

const input = (
  name: string,
  place: OperationInput['in'],
  type: OperationInput['type'] = 'string',
  required = false,
): OperationInput => ({
  name,
  in: place,
  type,
  required,
  description: '',
});
const get = sampleOperation({
  inputs: [
    input('id', 'path', 'string', true),
    input('q', 'query'),
    input('tags', 'query', 'array'),
    input('page', 'query', 'integer'),
  ],
});
const post = sampleOperation({
  name: 'create-item',
  method: 'POST',
  path: '/items',
  effect: 'write',
  inputs: [input('title', 'body', 'string', true), input('data', 'body', 'object'), input('dry', 'query', 'boolean')],
});
const build = (operation: Operation, args: unknown, host?: string) =>
  buildOperationRequest(
    sampleConnector([operation], { hosts: ['api.example.com', 'eu.example.com'] }),
    operation,
    args,
    host,
  );
const messages = (operation: Operation, args: unknown, host?: string) => {
  const built = build(operation, args, host);
  return built.ok ? [] : built.error.map(({ field, message }) => `${field} ${message}`);
};

describe('the request of an operation run', () => {
  test('GET: has its args in path and query', () => {
    expect(build(get, { id: 'a b/c?', q: "x&y='z'", tags: ['a', 'b'], page: 2 })).toEqual({
      ok: true,
      value: {
        method: 'GET',
        host: 'api.example.com',
        path: '/items/a%20b%2Fc%3F',
        query: 'q=x%26y%3D%27z%27&tags=a&tags=b&page=2',
        body: null,
      },
    });
  });

  test('POST: has its args in a JSON body', () => {
    expect(build(post, { title: 'Größe', data: { a: [1, null] }, dry: true })).toMatchObject({
      ok: true,
      value: { path: '/items', query: 'dry=true', body: '{"title":"Größe","data":{"a":[1,null]}}' },
    });
  });

  test('needs no args if none is required', () => {
    expect(build(sampleOperation({ path: '/items', inputs: [] }), undefined)).toMatchObject({
      ok: true,
      value: { path: '/items', query: null },
    });
  });

  test('goes to a requested host if that is allowed, and to no other', () => {
    expect(build(get, { id: '1' }, 'EU.example.com')).toMatchObject({ value: { host: 'eu.example.com' } });
    expect(messages(get, { id: '1' }, 'evil.example')).toEqual([
      'host is not allowed here: use one of api.example.com, eu.example.com',
    ]);
  });

  test.each([
    [get, {}, 'args.id is missing: a text'],
    [get, { id: 1 }, 'args.id must be a text'],
    [get, { id: '' }, 'args.id is empty: it is a segment of the path'],
    [get, { id: '..' }, 'args.id is a dot segment, which could lead to another path'],
    [get, { id: 'a/../b' }, 'args.id contains a dot segment, which could lead to another path'],
    [get, { id: String.raw`a\..\b` }, 'args.id contains a dot segment, which could lead to another path'],
    [get, { id: 'a', page: 1.5 }, 'args.page must be a whole number'],
    [get, { id: 'a', page: 2 ** 60 }, 'args.page is larger than a number can hold exactly'],
    [get, { id: 'a', tags: 'x' }, 'args.tags must be a list'],
    [get, { id: 'a', tags: [{}] }, 'args.tags must be a list of texts, numbers, true or false'],
    [get, { id: 'a', Q: 'x' }, 'args.Q is no argument of get-item: did you mean "q"?'],
    [get, { id: '\ud800' }, 'args.id is not well-formed Unicode'],
    [get, [], 'args must be an object with a value for each argument'],
    [post, { title: 'x', data: [] }, 'args.data must be an object'],
    [post, { title: 'x', dry: 'yes' }, 'args.dry must be true or false'],
    [post, {}, 'args.title is missing: a text'],
  ])('of %o with %o is refused', (operation, args, message) => {
    expect(messages(operation, args)).toContain(message);
  });

  test('reports every problem at once', () => {
    expect(messages(get, { page: 'x', z: 1 })).toHaveLength(3);
  });

  test('never takes an argument from a prototype', () => {
    const operation = sampleOperation({
      path: '/items/{constructor}',
      inputs: [input('constructor', 'path', 'string', true)],
    });
    expect(messages(operation, {})).toEqual(['args.constructor is missing: a text']);
  });

  test('with any text in its path is the operation it was made from', () => {
    const index = compileConnectors([sampleConnector([get])]);
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', minLength: 1 }), (id) => {
        const built = build(get, { id });
        if (!built.ok) return;
        const { method, host, path } = built.value;
        expect(matchOperation(index, { method, host, path }).kind).toBe('operation');
      }),
    );
  });
});
