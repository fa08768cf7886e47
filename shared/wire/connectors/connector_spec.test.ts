import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { connectorSpec, connectorSpecJsonSchema, toConnectorSpec } from './connector_spec.ts';

const operation = {
  name: 'get-item',
  method: 'GET',
  path: '/items/{id}',
  summary: 'Get an item',
  effect: 'read',
  inputs: [
    { name: 'id', in: 'path', type: 'string', required: true },
    { name: 'q', in: 'query' },
  ],
  audit: [{ name: 'item', source: 'path.id' }],
};
const spec = {
  schema_version: 1,
  connector: { fqn: 'acme/items', version: '1.0.0', title: 'Items' },
  hosts: ['API.Example.com'],
  credential: { kind: 'api_key' },
  operations: [operation],
};
const messages = (value: unknown): string[] => {
  const parsed = connectorSpec.safeParse(value);
  return parsed.success ? [] : parsed.error.issues.map((issue) => `${issue.path.join('.')} ${issue.message}`);
};
const withOperation = (changes: object): object => ({ ...spec, operations: [{ ...operation, ...changes }] });
const post = { method: 'POST', path: '/items', effect: 'write', audit: [] };

describe('a connector spec', () => {
  test('is parsed with canonical hosts and defaults', () => {
    expect(toConnectorSpec(connectorSpec.parse(spec))).toMatchObject({
      fqn: 'acme/items',
      hosts: ['api.example.com'],
      credential: { kind: 'api_key', scopes: [] },
      operations: [{ approval: 'none', audit: [{ redact: false }], inputs: [{}, { type: 'string', required: false }] }],
    });
  });

  test.each([
    [{ ...spec, schema_version: 2 }, 'schema_version must be 1, the only version'],
    [{ ...spec, host: [] }, ' unknown field "host": did you mean "hosts"?'],
    [{ ...spec, hosts: [] }, 'hosts is empty: name at least one host; the first one builds upstream URLs'],
    [{ ...spec, hosts: ['*.example.com'] }, 'hosts.0 has a "*" in it: a connector names each host exactly'],
    [
      { ...spec, hosts: ['10.0.0.1'] },
      'hosts.0 is an address: a connector names hosts, whose certificates can be checked',
    ],
    [{ ...spec, hosts: ['127.1'] }, 'hosts.0'],
    [{ ...spec, hosts: ['10.0.0.1:8443'] }, 'hosts.0 is an address'],
    [{ ...spec, connector: { ...spec.connector, fqn: 'Acme/x' } }, 'connector.fqn must be publisher/name'],
    [{ ...spec, credential: { kind: 'basic' } }, 'credential.kind is "basic", which is none of api_key, oauth2'],
    [{ ...spec, credential: { kind: 'oauth2', token_url: 'http://x.example/t' } }, 'credential.token_url is not https'],
    [
      { ...spec, credential: { kind: 'oauth2', token_url: 'https://10.0.0.1/t' } },
      'credential.token_url names an address: write a host',
    ],
    [{ ...spec, operations: [] }, 'operations is empty: a connector has at least one operation'],
    [{ ...spec, operations: [operation, operation] }, 'operations.1.name is the name of operations[0] too'],
    [
      {
        ...spec,
        operations: [
          operation,
          {
            ...operation,
            name: 'b',
            path: '/items/{item}',
            inputs: [{ name: 'item', in: 'path', required: true }],
            audit: [],
          },
        ],
      },
      'operations.1.path is the method and path of operations[0] too',
    ],
    [withOperation({ method: 'TRACE' }), 'operations.0.method is "TRACE", which is none of'],
    [withOperation({ path: 'items' }), 'operations.0.path must begin with "/"'],
    [withOperation({ path: '/items/{id}?x=1' }), 'operations.0.path has a query'],
    [withOperation({ path: '/a/../items/{id}' }), 'operations.0.path is not in its canonical form'],
    [
      withOperation({ path: '/items/x{id}' }),
      'operations.0.path has "x{id}" in it: "{name}" stands for a whole segment',
    ],
    [withOperation({ path: '/items/{id}/{id}' }), 'operations.0.path has {id} twice'],
    [withOperation({ path: '/items/{key}' }), 'operations.0.inputs has no input "key" with in "path"'],
    [withOperation({ inputs: [{ name: 'id', in: 'path' }] }), 'operations.0.inputs.0.required must be true'],
    [
      withOperation({ inputs: [{ name: 'id', in: 'path', type: 'object', required: true }] }),
      'operations.0.inputs.0.type is "object"',
    ],
    [
      withOperation({ inputs: [...operation.inputs, { name: 'b', in: 'body' }] }),
      'operations.0.inputs.2.in is "body", but GET sends its args as the query',
    ],
    [
      withOperation({ inputs: [...operation.inputs, { name: 'q', in: 'query' }] }),
      'operations.0.inputs.2.name is the name of another input',
    ],
    [
      withOperation({ ...post, effect: 'read', inputs: [] }),
      'operations.0.effect is "read", but POST is not a safe method',
    ],
    [
      withOperation({ audit: [{ name: 'x', source: 'path.ip' }] }),
      'operations.0.audit.0.source names no input of this operation: did you mean "path.id"?',
    ],
    [withOperation({ audit: [{ name: 'x', source: 'query.q' }] }), 'operations.0.audit.0.redact must be true'],
    [withOperation({ summary: 'a\u202eb' }), 'operations.0.summary contains a control character'],
    [null, ' must be a connector spec, an object'],
  ])('spec %# is refused with a message that names the field and the fix', (value, message) => {
    expect(messages(value).filter((each) => each.startsWith(message))).not.toEqual([]);
  });

  test('of any shape is accepted or refused, and never throws', () => {
    fc.assert(fc.property(fc.jsonValue(), (value) => void connectorSpec.safeParse(value)));
    const field = fc.constantFrom(...Object.keys(spec));
    fc.assert(
      fc.property(field, fc.jsonValue(), (name, value) => void connectorSpec.safeParse({ ...spec, [name]: value })),
    );
    const inner = fc.constantFrom(...Object.keys(operation));
    fc.assert(
      fc.property(
        inner,
        fc.jsonValue(),
        (name, value) => void connectorSpec.safeParse(withOperation({ [name]: value })),
      ),
    );
  });

  test('has a JSON Schema', () => {
    expect(connectorSpecJsonSchema('https://svc.example/s.json')).toMatchObject({
      $id: 'https://svc.example/s.json',
      type: 'object',
      additionalProperties: false,
    });
  });
});

const withOperations = (...operations: readonly object[]): object => ({ ...spec, operations });

describe('operations at a GraphQL endpoint', () => {
  const document = { name: 'query', in: 'body', required: true };
  const endpoint = { method: 'POST', path: '/graphql', inputs: [document], audit: [] };
  const query = { ...operation, ...endpoint, name: 'query', effect: 'read', graphql: { type: 'query' } };
  const merge = {
    ...operation,
    ...endpoint,
    name: 'merge',
    effect: 'write',
    graphql: { type: 'mutation', fields: ['merge'] },
    audit: [{ name: 'fields', source: 'graphql.fields' }],
  };
  const other = { ...merge, name: 'other', graphql: { type: 'mutation' } };

  test('are identified by the type and the fields of a document', () => {
    const read = toConnectorSpec(connectorSpec.parse(withOperations(query, merge, other)));
    expect(read.operations.map(({ graphql }) => graphql)).toEqual([
      { type: 'query' },
      { type: 'mutation', fields: ['merge'] },
      { type: 'mutation' },
    ]);
  });

  test('may be queries by GET', () => {
    const inputs = [
      { ...document, in: 'query' },
      { name: 'variables', in: 'query' },
    ];
    expect(messages(withOperations({ ...query, method: 'GET', inputs }))).toEqual([]);
  });

  test.each([
    [[{ ...query, graphql: { type: 'queries' } }], '0.graphql.type is "queries", which is none of'],
    [[{ ...query, graphql: { type: 'query', field: [] } }], '0.graphql unknown field "field": did you mean "fields"?'],
    [[{ ...merge, graphql: { type: 'mutation', fields: [] } }], '0.graphql.fields is empty'],
    [[{ ...merge, graphql: { type: 'mutation', fields: ['a b'] } }], '0.graphql.fields.0 is not a field name'],
    [[{ ...merge, graphql: { type: 'mutation', fields: ['__typename'] } }], '0.graphql.fields.0 is "__typename"'],
    [[{ ...merge, effect: 'read' }], '0.effect is "read", but a mutation changes something'],
    [[{ ...merge, method: 'GET', inputs: [{ ...document, in: 'query' }] }], '0.method is GET'],
    [[{ ...query, method: 'PUT' }], '0.method is PUT'],
    [[{ ...query, inputs: [] }], '0.inputs has no required input "query" with in "body"'],
    [[{ ...query, inputs: [{ ...document, required: false }] }], '0.inputs has no required input "query"'],
    [[{ ...query, inputs: [{ ...document, in: 'query' }] }], '0.inputs.0 must be query or operationName'],
    [[{ ...query, inputs: [document, { name: 'id', in: 'body' }] }], '0.inputs.1 must be query or operationName'],
    [
      [{ ...query, inputs: [document, { name: 'variables', in: 'body' }] }],
      '0.inputs.1 must be query or operationName',
    ],
    [[merge, { ...other, graphql: merge.graphql }], '1.path is the method and path of operations[0] too'],
    [[other, { ...merge, graphql: other.graphql }], '1.path is the method and path of operations[0] too'],
    [[merge, { ...other, graphql: undefined, effect: 'write', audit: [] }], '1.graphql is missing'],
    [[{ ...operation, audit: merge.audit }], '0.audit.0.source names no input'],
  ])('operations %# are refused with a message that names the field and the fix', (operations, message) => {
    const found = messages(withOperations(...operations));
    expect(found.filter((each) => each.startsWith(`operations.${message}`))).not.toEqual([]);
  });
});

describe('operations that the JSON body tells apart', () => {
  const endpoint = { ...operation, method: 'POST', path: '/refunds', effect: 'write', inputs: [], audit: [] };
  const small = { ...endpoint, name: 'small', json: [{ pointer: '/amount', at_most: 100 }] };
  const other = { ...endpoint, name: 'other' };
  const withRule = (rule: unknown, changes: object = {}): object => ({ ...small, ...changes, json: [rule] });

  test('have rules with one value, several, or a range', () => {
    const currency = withRule({ pointer: '/options/currency', equals: 'eur' }, { name: 'currency', path: '/payouts' });
    const levels = withRule({ pointer: '/level', equals: [1, 2] }, { name: 'levels', path: '/levels' });
    const read = toConnectorSpec(connectorSpec.parse(withOperations(small, other, currency, levels)));
    expect(read.operations.map(({ json }) => json)).toEqual([
      [{ pointer: '/amount', atMost: 100 }],
      undefined,
      [{ pointer: '/options/currency', equals: ['eur'] }],
      [{ pointer: '/level', equals: [1, 2] }],
    ]);
  });

  test.each([
    [[{ ...small, json: [] }], '0.json is empty'],
    [[{ ...small, json: {} }], '0.json must be a list of rules'],
    [[withRule({ pointer: 'amount', at_most: 1 })], '0.json.0.pointer must begin with "/"'],
    [[withRule({ pointer: '/items/0', at_most: 1 })], '0.json.0.pointer has an index of a list'],
    [[withRule({ pointer: '/a/b/c/d/e/f', at_most: 1 })], '0.json.0.pointer has more than 5 names'],
    [[withRule({ pointer: '/a//b', at_most: 1 })], '0.json.0.pointer is not a pointer of names'],
    [[withRule({ pointer: '/~1', at_most: 1 })], '0.json.0.pointer is not a pointer of names'],
    [[withRule({ pointer: '/_', at_most: 1 })], '0.json.0.pointer is not a pointer of names'],
    [[withRule({ pointer: '/a' })], '0.json.0 says nothing'],
    [[withRule({ pointer: '/a', equals: [] })], '0.json.0.equals is empty'],
    [[withRule({ pointer: '/a', equals: null })], '0.json.0.equals'],
    [[withRule({ pointer: '/a', equals: { b: 1 } })], '0.json.0.equals'],
    [[withRule({ pointer: '/a', equals: 1, at_most: 1 })], '0.json.0.equals cannot be beside'],
    [[withRule({ pointer: '/a', at_least: 2, at_most: 1 })], '0.json.0.at_least is more than at_most'],
    [[withRule({ pointer: '/a', at_most: '1' })], '0.json.0.at_most must be a number'],
    [[withRule({ pointer: '/a', at_most: 2 ** 53 })], '0.json.0.at_most is beyond'],
    [[withRule({ pointer: '/a', atmost: 1 })], '0.json.0 unknown field "atmost": did you mean "at_most"?'],
    [
      [{ ...small, json: [...small.json, { pointer: '/amount', at_least: 1 }] }],
      '0.json.1.pointer is that of another rule',
    ],
    [
      [{ ...small, json: [...small.json, { pointer: '/amount/value', at_least: 1 }] }],
      '0.json.1.pointer is below /amount',
    ],
    [[{ ...small, method: 'DELETE', effect: 'delete' }], '0.json is given, but DELETE has no body'],
    [[{ ...small, graphql: { type: 'mutation' } }], '0.json cannot be beside "graphql"'],
    [[small, { ...small, name: 'twice' }], '1.path is the method and path of operations[0] too'],
    [[other, { ...other, name: 'twice' }], '1.path is the method and path of operations[0] too'],
  ])('operations %# are refused with a message that names the field and the fix', (operations, message) => {
    const found = messages(withOperations(...operations));
    expect(found.filter((each) => each.startsWith(`operations.${message}`))).not.toEqual([]);
  });
});

describe('the login of a program', () => {
  const login = { client_id: 'client', hosts: ['api.example.com'] };
  const credential = { kind: 'oauth2', token_url: 'https://auth.example.com/token', login };
  const token = { name: 'token', method: 'POST', path: '/token', effect: 'write' };
  const valid = { ...spec, hosts: ['auth.example.com'], credential, operations: [token] };

  test('is parsed with its client, its hosts and the form of its requests', () => {
    expect(toConnectorSpec(connectorSpec.parse(valid)).credential.login).toEqual({
      clientId: 'client',
      tokenRequest: 'form',
      hosts: ['api.example.com'],
      paths: [],
    });
  });

  test.each([
    ['another kind of credential', { credential: { ...credential, kind: 'api_key' } }, 'must be "oauth2"'],
    ['no token URL', { credential: { kind: 'oauth2', login } }, 'credential.token_url is missing'],
    [
      'a query in its token URL',
      { credential: { ...credential, token_url: 'https://auth.example.com/token?a=b' } },
      'has a query',
    ],
    [
      'a token URL on another host',
      { credential: { ...credential, token_url: 'https://other.example.com/token' } },
      'hosts must be other.example.com',
    ],
    ['a second host', { hosts: ['auth.example.com', 'evil.example.com'] }, 'hosts must be auth.example.com'],
    [
      'a second operation',
      { operations: [token, { ...token, name: 'more', path: '/more' }] },
      'operations must be one',
    ],
    [
      'another path than that of its token URL',
      { operations: [{ ...token, path: '/other' }] },
      'operations must be one',
    ],
    [
      'an operation on another host',
      { operations: [{ ...token, hosts: ['evil.example.com'] }] },
      'operations must be one',
    ],
    [
      'an operation that needs an approval',
      { operations: [{ ...token, approval: 'required' }] },
      'operations must be one',
    ],
    [
      'a path that servers read differently',
      { credential: { ...credential, login: { ...login, paths: ['/v1/../x'] } } },
      'must be a plain path',
    ],
    ['no host for its access token', { credential: { ...credential, login: { ...login, hosts: [] } } }, 'is empty'],
  ])('is refused with %s', (_what, changes, message) => {
    expect(messages({ ...valid, ...changes }).join('\n')).toContain(message);
  });
});
