import { expect, test } from 'vitest';
import { connectorSpec, toConnectorSpec } from '../wire/connectors/connector_spec.ts';
import { matchSpec } from './spec_matches.ts';

const operation = (name: string, method: string, path: string, others: object = {}) => {
  return { name, method, path, summary: name, effect: method === 'GET' ? 'read' : 'write', ...others };
};
const rule = (most: number) => ({ json: [{ pointer: '/amount', at_most: most }] });

const SPEC = toConnectorSpec(
  connectorSpec.parse({
    schema_version: 1,
    connector: { fqn: 'acme/pay', version: '1.0.0', title: 'Pay' },
    hosts: ['api.pay.test'],
    credential: { kind: 'api_key' },
    operations: [
      operation('list', 'GET', '/refunds'),
      operation('small-refund', 'POST', '/refunds', rule(100)),
      operation('refund', 'POST', '/refunds', { approval: 'required' }),
      operation('close', 'DELETE', '/refunds/{id}', {
        inputs: [{ name: 'id', in: 'path', type: 'string', required: true }],
      }),
    ],
  }),
);
const request = (method: string, path: string, host = 'api.pay.test') => ({ method, host, path });

test('requests are told apart by method and path; the body decides the rest', () => {
  const asked = [
    request('GET', '/refunds'),
    request('GET', '/refunds'),
    request('POST', '/refunds'),
    request('GET', '/customers'),
    request('GET', '/refunds', 'elsewhere.test'),
  ];
  const { operations, others, looked } = matchSpec(SPEC, asked);
  expect(looked).toBe(4);
  expect(operations.map(({ operation: name, count, byBody }) => [name, count, byBody])).toEqual([
    ['list', 2, false],
    ['small-refund', 1, true],
    ['refund', 1, true],
    ['close', 0, false],
  ]);
  expect(operations[0]?.examples).toEqual(['GET api.pay.test/refunds']);
  expect(others).toMatchObject({ count: 1, examples: ['GET api.pay.test/customers'] });
});

test('a spelling that only a server reads as an operation is none', () => {
  const { operations, others } = matchSpec(SPEC, [request('GET', '/./refunds')]);
  expect([operations[0]?.count, others.count]).toEqual([0, 1]);
});

test('a few examples are kept, each once', () => {
  const asked = ['a', 'b', 'a', 'c', 'd'].map((id) => request('DELETE', `/refunds/${id}`));
  expect(matchSpec(SPEC, asked).operations[3]).toMatchObject({
    count: 5,
    examples: ['a', 'b', 'c'].map((id) => `DELETE api.pay.test/refunds/${id}`),
  });
});
