import { describe, expect, test } from 'vitest';
import { sampleBinding } from '../model/testing/sample_binding.ts';
import type { HostBinding } from '../model/host_binding.ts';
import { EFFECTS } from '../model/host_binding.ts';
import { enforceContract, type ContractRequest } from './contract.ts';

const BINDING = sampleBinding({ id: 'bnd_1', host: '*.example.com' });
const REQUEST: ContractRequest = { host: 'api.example.com', method: 'GET', fields: [], besideApprovals: false };

describe('allowed hosts', () => {
  const binding = { ...BINDING, allowedHosts: ['api.example.com', 'www.example.com'] };

  test('an empty list allows every host of the pattern', () => {
    expect(enforceContract(BINDING, REQUEST).ok).toBe(true);
  });

  test('a host in the list is allowed', () => {
    expect(enforceContract(binding, { ...REQUEST, host: 'www.example.com' }).ok).toBe(true);
  });

  test.each(['x.example.com', 'a.api.example.com', 'api.example.com.', 'API.example.com', ''])('refuses %j', (host) => {
    expect(enforceContract(binding, { ...REQUEST, host })).toMatchObject({ error: { reason: 'host_not_allowed' } });
  });
});

describe('effect', () => {
  const read: HostBinding = { ...BINDING, effect: 'read' };

  test.each(['GET', 'HEAD', 'OPTIONS'])('read admits %s', (method) => {
    expect(enforceContract(read, { ...REQUEST, method }).ok).toBe(true);
  });

  test.each(['POST', 'PUT', 'PATCH', 'DELETE', 'TRACE', 'CONNECT', 'PROPFIND', 'get', 'GET ', '', 'QUERY'])(
    'refuses %j when the effect is read',
    (method) => {
      const refused = enforceContract(read, { ...REQUEST, method });
      expect(refused).toMatchObject({ ok: false, error: { reason: 'effect_not_allowed' } });
    },
  );

  test.each([
    'upgrade',
    'Upgrade',
    'x-http-method-override',
    'X-HTTP-Method-Override',
    'x-http-method',
    'x-method-override',
    'x_http_method_override',
  ])('invariant 8: refuses the header %s when the effect is read', (name) => {
    const refused = enforceContract(read, { ...REQUEST, fields: [{ name: 'accept' }, { name }] });
    expect(refused).toMatchObject({ ok: false, error: { reason: 'effect_not_allowed' } });
  });

  test('every other effect, and no effect, admits every method and header', () => {
    for (const effect of [undefined, ...EFFECTS.filter((each) => each !== 'read')]) {
      const binding = effect === undefined ? BINDING : { ...BINDING, effect };
      const request = { ...REQUEST, method: 'DELETE', fields: [{ name: 'upgrade' }, { name: 'x-http-method' }] };
      expect(enforceContract(binding, request).ok).toBe(true);
    }
  });

  test('beside operations that need an approval, no effect counts as read, and the refusal says how to change that', () => {
    const beside = { ...REQUEST, besideApprovals: true };
    expect(enforceContract(BINDING, beside).ok).toBe(true);
    for (const change of [
      { method: 'POST' },
      { fields: [{ name: 'X-HTTP-Method' }] },
      { fields: [{ name: 'upgrade' }] },
    ]) {
      const refused = enforceContract(BINDING, { ...beside, ...change });
      expect(refused).toMatchObject({ error: { reason: 'effect_not_allowed' } });
      expect(!refused.ok && refused.error.message).toContain('svc binding effect bnd_1 write');
    }
    for (const effect of EFFECTS.filter((each) => each !== 'read')) {
      expect(enforceContract({ ...BINDING, effect }, { ...beside, method: 'POST' }).ok).toBe(true);
    }
  });

  test('the host is checked first', () => {
    const binding = { ...read, allowedHosts: ['other.example.com'] };
    const refused = enforceContract(binding, { ...REQUEST, method: 'POST' });
    expect(refused).toMatchObject({ error: { reason: 'host_not_allowed' } });
  });
});
