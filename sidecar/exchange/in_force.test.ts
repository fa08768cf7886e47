import { describe, expect, test } from 'vitest';
import { sampleConnector, sampleOperation } from '../../shared/connect/testing/sample_connector.ts';
import type { InstalledConnector } from '../../shared/model/connector.ts';
import { ok } from '../../shared/model/result.ts';
import { compilePolicy, type Policy } from '../../shared/resolve/resolve.ts';
import { sampleBinding } from '../../shared/model/testing/sample_binding.ts';
import { bindingInForce } from './in_force.ts';

const HOST = 'api.example.com';
const BINDING = sampleBinding({ host: HOST, effect: 'write' });
const GUARDED = sampleConnector([sampleOperation({ method: 'POST', hosts: [HOST], approval: 'required' })]);
const ELSEWHERE = sampleConnector([sampleOperation({ hosts: ['other.example.com'] })], {
  id: 'con_2',
  fqn: 'acme/other',
});

/** The reason that a request which the binding was chosen for gets after the connectors have changed; null: none. */
function reasonAfter(before: readonly InstalledConnector[], after: readonly InstalledConnector[]): string | null {
  const decided = compilePolicy([BINDING], before);
  let now: Policy = decided;
  const source = { current: () => ok(now), onChanged: () => () => undefined };
  const inForce = bindingInForce(source, decided, HOST, BINDING);
  expect(inForce()).toBeNull();
  now = compilePolicy([{ ...BINDING }], after);
  const first = inForce()?.reason ?? null;
  expect(inForce()?.reason ?? null).toBe(first);
  return first;
}

describe('a request that is held open', () => {
  test('is not sent by a binding when its operation has become active meanwhile, whatever the effect of the binding', () => {
    expect(reasonAfter([], [GUARDED])).toBe('credential_unavailable');
    expect(reasonAfter([{ ...GUARDED, inactive: true }], [GUARDED])).toBe('credential_unavailable');
    expect(reasonAfter([GUARDED], [])).toBe('credential_unavailable');
  });

  test('is sent if another host has got a connector', () => {
    expect(reasonAfter([GUARDED], [GUARDED, ELSEWHERE])).toBeNull();
    expect(reasonAfter([], [ELSEWHERE])).toBeNull();
  });

  test('is sent if only the credential of a connector is another', () => {
    expect(reasonAfter([GUARDED], [structuredClone(GUARDED)])).toBeNull();
  });
});
