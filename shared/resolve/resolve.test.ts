import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { HostBinding } from '../model/host_binding.ts';
import { matchesHostPattern, parseHostPattern } from '../net/host_pattern.ts';
import { compilePolicy, resolve } from './resolve.ts';

function binding(host: string, change: Partial<HostBinding> = {}): HostBinding {
  return {
    id: `bnd_${host}`,
    owner: 'personal',
    host,
    credential: { owner: 'personal', path: 'user/demo' },
    injection: { scheme: 'bearer' },
    emit: { mechanism: 'inject' },
    allowedHosts: [],
    body: 'buffer',
    ...change,
  };
}

function winners(bindings: readonly HostBinding[], host: string): string[] {
  return compilePolicy(bindings)
    .bindingsFor(host)
    .map((found) => found.id);
}

describe('resolution', () => {
  const bindings = ['api.example.com', '*.example.com', '*.api.example.com', '*.a.api.example.com'].map((host) =>
    binding(host),
  );

  test.each([
    ['api.example.com', 'bnd_api.example.com'],
    ['www.example.com', 'bnd_*.example.com'],
    ['x.api.example.com', 'bnd_*.api.example.com'],
    ['x.b.api.example.com', 'bnd_*.api.example.com'],
    ['x.a.api.example.com', 'bnd_*.a.api.example.com'],
    ['a.api.example.com', 'bnd_*.api.example.com'],
  ])('exact beats wildcard, the longest suffix wins: %s', (host, winner) => {
    expect(winners(bindings, host)).toEqual([winner]);
  });

  test.each(['example.com', 'evilexample.com', 'api.example.com.evil.test', 'com', '', '.', '.example.com'])(
    'matches no other host: %j',
    (host) => {
      expect(winners(bindings.slice(1, 2), host)).toEqual([]);
    },
  );

  test('no binding means passthrough', () => {
    const request = { method: 'GET', host: 'other.test', path: '/' };
    expect(resolve(compilePolicy(bindings), request)).toEqual({ kind: 'passthrough' });
  });

  test('a match gives every binding of the pattern, in order', () => {
    const first = binding('api.example.com', { id: 'bnd_1' });
    const second = binding('api.example.com', { id: 'bnd_2' });
    const request = { method: 'GET', host: 'api.example.com', path: '/' };
    expect(resolve(compilePolicy([first, second]), request)).toEqual({ kind: 'binding', bindings: [first, second] });
  });

  test('personal bindings replace the enterprise ones of the same pattern, in any order', () => {
    const enterprise = [1, 2].map((n) => binding('*.example.com', { id: `bnd_e${n}`, owner: 'enterprise' }));
    const personal = binding('*.example.com', { id: 'bnd_p' });
    for (const list of [
      [...enterprise, personal],
      [personal, ...enterprise],
    ]) {
      expect(winners(list, 'api.example.com')).toEqual(['bnd_p']);
    }
    expect(winners(enterprise, 'api.example.com')).toEqual(['bnd_e1', 'bnd_e2']);
  });

  test('a personal wildcard does not replace an exact enterprise binding', () => {
    const exact = binding('api.example.com', { id: 'bnd_e', owner: 'enterprise' });
    expect(winners([exact, binding('*.example.com')], 'api.example.com')).toEqual(['bnd_e']);
  });

  test('finds what comparing every pattern finds (property)', () => {
    const label = fc.constantFrom('a', 'b', 'c');
    const host = fc.array(label, { minLength: 2, maxLength: 5 }).map((labels) => labels.join('.'));
    const text = fc.tuple(fc.boolean(), host).map(([isWildcard, name]) => (isWildcard ? `*.${name}` : name));
    fc.assert(
      fc.property(fc.uniqueArray(text, { maxLength: 20 }), host, (texts, wanted) => {
        const matching = texts.filter((each) => {
          const pattern = parseHostPattern(each);
          return pattern.ok && matchesHostPattern(pattern.value, wanted);
        });
        const best = matching.toSorted((x, y) => rank(y) - rank(x))[0];
        expect(
          winners(
            texts.map((each) => binding(each)),
            wanted,
          ),
        ).toEqual(best === undefined ? [] : [`bnd_${best}`]);
      }),
    );
  });
});

/** Exact above every wildcard, longer above shorter. */
function rank(pattern: string): number {
  return pattern.startsWith('*') ? pattern.length : 1_000;
}
