import { expect, test } from 'vitest';
import { sampleConnector, sampleOperation } from '../connect/testing/sample_connector.ts';
import type { HostBinding } from '../model/host_binding.ts';
import { findLimitedBindings } from './limited_bindings.ts';

const bindingOf = (host: string, change: Partial<HostBinding> = {}): HostBinding => ({
  id: `bnd_${host}`,
  owner: 'personal',
  host,
  credential: { owner: 'personal', path: 'user/demo' },
  injection: { scheme: 'bearer' },
  emit: { mechanism: 'inject' },
  allowedHosts: [],
  body: 'buffer',
  ...change,
});
const guarded = sampleOperation({ approval: 'required', hosts: ['pay.example.com', 'api.example.com'] });
const connector = sampleConnector([guarded, sampleOperation({ name: 'open', hosts: ['open.example.com'] })]);

test('lists bindings without an effect, with the hosts where they apply and an operation needs an approval', () => {
  const bindings = [
    bindingOf('*.example.com'),
    bindingOf('api.example.com', { id: 'bnd_1' }),
    bindingOf('api.example.com', { id: 'bnd_2', emit: { mechanism: 'sentinel-swap', sentinel: 'x' } }),
    bindingOf('api.example.com', { id: 'bnd_e', owner: 'enterprise' }),
    bindingOf('open.example.com'),
  ];
  expect(findLimitedBindings(bindings, [connector]).map(({ binding, hosts }) => [binding.id, hosts])).toEqual([
    ['bnd_*.example.com', ['pay.example.com']],
    ['bnd_1', ['api.example.com']],
    ['bnd_2', ['api.example.com']],
  ]);
});

test('lists none with an effect, and none if no operation needs an approval', () => {
  expect(findLimitedBindings([bindingOf('api.example.com', { effect: 'write' })], [connector])).toEqual([]);
  const open = sampleConnector([{ ...guarded, approval: 'none' }]);
  expect(findLimitedBindings([bindingOf('api.example.com')], [open])).toEqual([]);
});
