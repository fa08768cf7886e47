import { expect, test } from 'vitest';
import { bearerBinding } from '../model/testing/sample_binding.ts';
import { sampleConnector, sampleOperation } from '../connect/testing/sample_connector.ts';
import { findLimitedBindings } from './limited_bindings.ts';

const guarded = sampleOperation({ approval: 'required', hosts: ['pay.example.com', 'api.example.com'] });
const connector = sampleConnector([guarded, sampleOperation({ name: 'open', hosts: ['open.example.com'] })]);

test('lists bindings without an effect, with the hosts where they apply and an operation needs an approval', () => {
  const bindings = [
    bearerBinding('*.example.com'),
    bearerBinding('api.example.com', { id: 'bnd_1' }),
    bearerBinding('api.example.com', { id: 'bnd_2', emit: { mechanism: 'sentinel-swap', sentinel: 'x' } }),
    bearerBinding('api.example.com', { id: 'bnd_e', owner: 'enterprise' }),
    bearerBinding('open.example.com'),
  ];
  expect(findLimitedBindings(bindings, [connector]).map(({ binding, hosts }) => [binding.id, hosts])).toEqual([
    ['bnd_*.example.com', ['pay.example.com']],
    ['bnd_1', ['api.example.com']],
    ['bnd_2', ['api.example.com']],
  ]);
});

test('lists none with an effect, and none if no operation needs an approval', () => {
  expect(findLimitedBindings([bearerBinding('api.example.com', { effect: 'write' })], [connector])).toEqual([]);
  const open = sampleConnector([{ ...guarded, approval: 'none' }]);
  expect(findLimitedBindings([bearerBinding('api.example.com')], [open])).toEqual([]);
});
