import { describe, expect, test } from 'vitest';
import type { Operation } from '../model/connector.ts';
import { compileConnectors } from './connector_index.ts';
import { confirmOperation } from './confirm_operation.ts';
import { sampleConnector, sampleOperation } from './testing/sample_connector.ts';

const item = sampleOperation();
const latest = sampleOperation({ name: 'latest', path: '/items/latest', inputs: [], approval: 'required' });

function isAnother(operations: readonly Operation[], path: string, others: readonly Operation[] = []): boolean {
  const connector = sampleConnector(operations);
  const other = sampleConnector(others, { id: 'con_2', fqn: 'other/items' });
  const [operation = item] = operations;
  const made = { method: 'GET', host: 'api.example.com', path, query: null, body: null };
  return !confirmOperation(compileConnectors([connector, other]), { connector, operation }, made).ok;
}

describe('a request made from an operation’s args', () => {
  test('is that operation', () => {
    expect(isAnother([item, latest], '/items/7')).toBe(false);
    expect(isAnother([item, latest], '/items/7%2F8')).toBe(false);
  });

  test.each(['/items/latest', '/items/latest%3Bx', '/items/%6Catest'])(
    'is another operation, or may be read as one, and so cannot bypass an approval: %s',
    (path) => {
      expect(isAnother([item, latest], path)).toBe(true);
    },
  );

  test('may be one that another connector declares too, unless that one needs an approval', () => {
    expect(isAnother([item], '/items/7', [item])).toBe(false);
    expect(isAnother([item], '/items/7', [sampleOperation({ approval: 'required' })])).toBe(true);
    expect(isAnother([sampleOperation({ approval: 'required' })], '/items/7', [item])).toBe(false);
  });
});
