import { describe, expect, test } from 'vitest';
import { sampleOperation } from '../connect/testing/sample_connector.ts';
import { enforceOperation } from './operation.ts';

const READS = sampleOperation();
const WRITES = sampleOperation({ method: 'POST', effect: 'write' });

describe('the contract of an operation', () => {
  test.each(['X-HTTP-Method-Override', 'x-http-method', 'X-Method-Override', 'X_HTTP_Method_Override'])(
    'its method is part of its identity: %s is refused for any effect',
    (name) => {
      for (const operation of [READS, WRITES]) {
        expect(enforceOperation(operation, [{ name }])).toMatchObject({ error: { reason: 'effect_not_allowed' } });
      }
    },
  );

  test('its method is part of its identity: a POST whose query names another method is refused', () => {
    const refusal = { error: { reason: 'effect_not_allowed' } };
    expect(enforceOperation(WRITES, [], 'a=1&_method=DELETE')).toMatchObject(refusal);
    expect(enforceOperation(WRITES, [], 'method=DELETE').ok).toBe(true);
    expect(enforceOperation(READS, [], '_method=DELETE').ok).toBe(true);
  });

  test('a read operation is not upgraded, one that writes may be', () => {
    expect(enforceOperation(READS, [{ name: 'Upgrade' }])).toMatchObject({ error: { reason: 'effect_not_allowed' } });
    expect(enforceOperation(WRITES, [{ name: 'Upgrade' }]).ok).toBe(true);
  });

  test('one that needs an approval is not upgraded: an approval covers one request', () => {
    const guarded = { ...WRITES, approval: 'required' } as const;
    expect(enforceOperation(guarded, [{ name: 'Upgrade' }])).toMatchObject({ error: { reason: 'effect_not_allowed' } });
  });

  test('one that needs an approval has one Content-Type: servers use the first or the last', () => {
    const guarded = { ...WRITES, approval: 'required' } as const;
    const fields = [{ name: 'Content-Type' }, { name: 'content-type' }];
    expect(enforceOperation(guarded, fields)).toMatchObject({ error: { reason: 'invalid_request' } });
    expect([enforceOperation(guarded, fields.slice(1)).ok, enforceOperation(WRITES, fields).ok]).toEqual([true, true]);
  });

  test('other headers are let through', () => {
    expect(enforceOperation(READS, [{ name: 'Accept' }, { name: 'Authorization' }]).ok).toBe(true);
  });
});
