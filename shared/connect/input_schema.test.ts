import { describe, expect, test } from 'vitest';
import type { Operation, OperationInput } from '../model/connector.ts';
import { operationInputs, propertyOfField, runInputs } from './input_schema.ts';
import { buildOperationRequest } from './operation_request.ts';
import { sampleConnector, sampleOperation } from './testing/sample_connector.ts';

function input(changes: Partial<OperationInput> = {}): OperationInput {
  return { name: 'id', in: 'query', type: 'string', required: false, description: '', ...changes };
}

function inputsOf(operation: Operation, hosts: readonly string[] = ['api.example.com']) {
  return operationInputs(sampleConnector([operation], { hosts }).spec, operation);
}

describe('the JSON Schema of an operation', () => {
  test('has a property for each input, with its type and description', () => {
    const operation = sampleOperation({
      method: 'POST',
      inputs: [
        input({ name: 'id', in: 'path', required: true, description: 'Which item' }),
        input({ name: 'count', in: 'body', type: 'integer' }),
        input({ name: 'price', in: 'body', type: 'number' }),
        input({ name: 'open', in: 'body', type: 'boolean', required: true }),
        input({ name: 'extra', in: 'body', type: 'object' }),
        input({ name: 'labels', in: 'body', type: 'array' }),
      ],
    });
    expect(inputsOf(operation)).toEqual({
      schema: {
        type: 'object',
        properties: {
          id: { type: 'string', description: 'Which item', minLength: 1 },
          count: { type: 'integer' },
          price: { type: 'number' },
          open: { type: 'boolean' },
          extra: { type: 'object' },
          labels: { type: 'array', items: {} },
        },
        required: ['id', 'open'],
        additionalProperties: false,
      },
      inputNames: {},
      hostProperty: null,
    });
  });

  test('describes the items of a list in a query', () => {
    const { schema } = inputsOf(sampleOperation({ inputs: [input({ name: 'tag', type: 'array' })] }));
    expect(schema.properties['tag']?.items).toEqual({ type: ['string', 'number', 'boolean'] });
  });

  test('offers a choice of hosts if there are several', () => {
    const { schema, hostProperty } = inputsOf(sampleOperation(), ['eu.example.com', 'us.example.com']);
    expect(hostProperty).toBe('host');
    expect(schema.properties['host']).toMatchObject({ type: 'string', enum: ['eu.example.com', 'us.example.com'] });
    expect(schema.required).not.toContain('host');
  });

  test("uses the operation's own hosts before the spec's", () => {
    const operation = sampleOperation({ hosts: ['one.example.com'] });
    expect(inputsOf(operation, ['a.example.com', 'b.example.com']).hostProperty).toBeNull();
  });

  test('does not confuse an input named host with the host', () => {
    const operation = sampleOperation({ inputs: [input({ name: 'host' })] });
    const inputs = inputsOf(operation, ['a.example.com', 'b.example.com']);
    expect(inputs.hostProperty).toBe('host_2');
    expect(runInputs(inputs, { host: 'x', host_2: 'b.example.com' })).toEqual({
      args: { host: 'x' },
      host: 'b.example.com',
    });
  });

  test('gives properties names that every model provider accepts, each unique', () => {
    const names = ['filter[state]', 'filter:state:', 'filter_state_', 'page', `x${'[y]'.repeat(40)}`, '__proto__'];
    const inputs = inputsOf(sampleOperation({ inputs: names.map((name) => input({ name })) }));
    const properties = Object.keys(inputs.schema.properties);
    expect(properties).toHaveLength(names.length);
    for (const property of properties) expect(property).toMatch(/^[a-zA-Z0-9_.-]{1,64}$/);
    expect(properties).toEqual(expect.arrayContaining(['page', 'filter_state_', '__proto__']));
    const given = Object.fromEntries(properties.map((property, at) => [property, at]));
    expect(Object.keys(runInputs(inputs, given).args).toSorted()).toEqual(names.toSorted());
  });
});

describe("a call by the schema's properties", () => {
  const operation = sampleOperation({ inputs: [input({ name: 'filter[state]', required: true })] });
  const inputs = inputsOf(operation);

  test('makes the request from the matching inputs', () => {
    const { args } = runInputs(inputs, { filter_state_: 'open' });
    const connector = sampleConnector([{ ...operation, path: '/items' }]);
    const built = buildOperationRequest(connector, { ...operation, path: '/items' }, args);
    expect(built).toMatchObject({ ok: true, value: { query: 'filter%5Bstate%5D=open' } });
  });

  test('keeps unknown properties, so that they are refused by name', () => {
    expect(runInputs(inputs, { nothing: 1, toString: 2 }).args).toEqual({ nothing: 1, toString: 2 });
  });

  test.each([
    ['args.filter[state]', 'filter_state_'],
    ['args.other', 'other'],
    ['args', 'args'],
    ['host', 'host'],
  ])('reports a problem of %s on %s', (field, property) => {
    expect(propertyOfField(inputs, field)).toBe(property);
  });
});
