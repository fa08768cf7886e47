import { describe, expect, test } from 'vitest';
import { connectorSpec } from '../../shared/wire/connectors/connector_spec.ts';
import { operationsOfOpenApi } from './openapi_operations.ts';
import { readOpenApi } from './read_openapi.ts';

const document = {
  openapi: '3.1.0',
  info: { title: 'Items', version: '2.1.0' },
  servers: [
    { url: 'https://api.example.com/v2/' },
    { url: 'http://insecure.example.com/v2' },
    { url: 'https://eu.example.com/v2' },
    { url: 'https://own.example.com:8443/v2' },
    { url: 'https://eu.example.com:443/v2' },
  ],
  paths: {
    '/items/{id}': {
      parameters: [{ $ref: '#/components/parameters/id' }],
      get: {
        operationId: 'items/get',
        summary: 'Get an item',
        parameters: [
          { name: 'fields', in: 'query', schema: { type: 'array', items: { type: 'string' } } },
          { name: 'X-Trace', in: 'header', schema: { type: 'string' } },
        ],
      },
      patch: {
        operationId: 'items/update',
        requestBody: { content: { 'application/json': { schema: { $ref: '#/components/schemas/Change' } } } },
      },
      delete: {},
    },
    '/files/{name}.{ext}': { get: { operationId: 'files/get' } },
    '/uploads': {
      post: {
        operationId: 'uploads/create',
        requestBody: { required: true, content: { 'application/octet-stream': {} } },
      },
    },
  },
  components: {
    parameters: {
      id: { name: 'id', in: 'path', required: true, schema: { type: 'integer' }, description: 'The item.' },
    },
    schemas: {
      Change: {
        allOf: [
          { type: 'object', required: ['title'], properties: { title: { type: ['string', 'null'] } } },
          { type: 'object', properties: { parent: { $ref: '#/components/schemas/Node' } } },
        ],
      },
      Node: { type: 'object', properties: { child: { $ref: '#/components/schemas/Node' } } },
    },
  },
};

async function readOperations(selected: (name: string) => boolean = () => true) {
  const read = await readOpenApi(JSON.stringify(document));
  if (!read.ok) throw new Error(read.error);
  return operationsOfOpenApi(read.value, selected);
}

describe('the operations of an OpenAPI document', () => {
  test('get names, paths with the base path, inputs and effects', async () => {
    const { hosts, operations } = await readOperations();
    expect(hosts).toEqual(['api.example.com', 'eu.example.com', 'own.example.com:8443']);
    expect(operations.map(({ name, method, path, effect }) => [name, method, path, effect])).toEqual([
      ['items-get', 'GET', '/v2/items/{id}', 'read'],
      ['items-update', 'PATCH', '/v2/items/{id}', 'write'],
      ['delete-items-id', 'DELETE', '/v2/items/{id}', 'delete'],
    ]);
    expect(operations[0]?.inputs).toEqual([
      { name: 'id', in: 'path', type: 'integer', required: true, description: 'The item.' },
      { name: 'fields', in: 'query', type: 'array', required: false, description: '' },
    ]);
    expect(operations[1]?.inputs?.slice(1)).toEqual([
      { name: 'title', in: 'body', type: 'string', required: true, description: '' },
      { name: 'parent', in: 'body', type: 'object', required: false, description: '' },
    ]);
  });

  test('that a spec cannot express are skipped with a reason; omitted inputs are reported', async () => {
    const { skipped, notes } = await readOperations();
    expect(skipped).toEqual([
      { operation: 'files-get', reason: 'its path has "{name}.{ext}": a template stands for a whole segment' },
      { operation: 'uploads-create', reason: 'its body is application/octet-stream, not JSON' },
    ]);
    expect(notes).toEqual(['items-get: the header parameter "X-Trace" is left out: args go to path, query and body']);
  });

  test('with a recursive body schema are read', async () => {
    const part = { $ref: '#/components/schemas/A' };
    const schema = { allOf: Array.from({ length: 20 }, () => part), properties: { title: { type: 'string' } } };
    const post = { operationId: 'a', requestBody: { content: { 'application/json': { schema: part } } } };
    const text = JSON.stringify({
      openapi: '3.1.0',
      paths: { '/a': { post } },
      components: { schemas: { A: schema } },
    });
    const read = await readOpenApi(text);
    const { operations } = operationsOfOpenApi(read.ok ? read.value : null, () => true);
    expect(operations[0]?.inputs?.map(({ name }) => name)).toEqual(['title']);
  });

  test('are limited to the selected ones', async () => {
    expect((await readOperations((name) => name === 'GET /items/{id}')).operations.map(({ name }) => name)).toEqual([
      'items-get',
    ]);
  });

  test('make a valid spec', async () => {
    const { hosts, operations } = await readOperations();
    const connector = { fqn: 'acme/items', version: '2.1.0', title: 'Items' };
    const spec = {
      schema_version: 1,
      connector,
      hosts: [...hosts],
      credential: { kind: 'api_key' },
      operations: [...operations],
    };
    expect(connectorSpec.safeParse(spec).error?.issues ?? []).toEqual([]);
  });
});

describe('an OpenAPI document', () => {
  test.each([
    ['{', 'is neither JSON nor YAML'],
    ['[]', 'is not an OpenAPI document: it has no "openapi"'],
    ['openapi: 2.0', 'is not an OpenAPI document'],
    ['openapi: "2.0"', 'is OpenAPI 2.0: convert it to OpenAPI 3 first'],
    ['openapi: 3.0.0\npaths: {$ref: "/etc/passwd"}', 'refers to "/etc/passwd": bundle it into one file first'],
    ['openapi: 3.0.0\npaths: {$ref: "https://evil.example/x.json"}', 'refers to "https://evil.example/x.json"'],
    ['openapi: 3.0.0\npaths: {$ref: "#/nowhere"}', 'cannot be read'],
  ])('refuses %j with the reason', async (text, reason) => {
    const read = await readOpenApi(text);
    expect(read.ok ? '' : read.error).toContain(reason);
  });

  test('in YAML with circular references is read', async () => {
    const text =
      'openapi: 3.0.0\npaths: {}\ncomponents: {schemas: {A: {properties: {a: {$ref: "#/components/schemas/A"}}}}}';
    expect((await readOpenApi(text)).ok).toBe(true);
  });
});
