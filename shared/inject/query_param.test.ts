import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Secret } from '../model/secret.ts';
import type { InjectedRequest } from './outgoing_request.ts';
import { inject } from './inject.ts';
import { findPresentedCredential } from './find_presented.ts';
import { schemeBinding, sampleRequest } from './testing/sample_requests.ts';
import { WebHash } from './web_hash.ts';

const INJECT = schemeBinding({ scheme: 'query-param', queryParam: 'api_key' });
const SWAP = schemeBinding(
  { scheme: 'query-param', queryParam: 'api_key' },
  { mechanism: 'sentinel-swap', sentinel: 'SENTINEL' },
);

function targetOf(target: string, binding = INJECT, credential = 'REAL'): string {
  const result = inject({
    binding,
    request: sampleRequest(target),
    credential: new Secret(credential),
    body: { kind: 'none' },
    now: new Date(0),
    hash: WebHash,
  });
  if (result instanceof Promise) throw new Error('query-param answers at once');
  return result.ok ? (result.value satisfies InjectedRequest).target : result.error.reason;
}

describe('query-param with inject', () => {
  const cases: readonly (readonly [what: string, target: string, expected: string])[] = [
    ['adds the pair to a target without a query', '/v1', '/v1?api_key=REAL'],
    ['adds the pair after others', '/v1?b=2&a=1', '/v1?b=2&a=1&api_key=REAL'],
    ['adds the pair to an empty query', '/v1?', '/v1?api_key=REAL'],
    ['adds the pair after one that ends with a question mark', '/v1?q=why?', '/v1?q=why?&api_key=REAL'],
    ['removes the client’s own value', '/v1?api_key=mine&a=1', '/v1?a=1&api_key=REAL'],
    ['removes every copy', '/v1?api_key=1&a=%20+%2b&api_key=2&api_key', '/v1?a=%20+%2b&api_key=REAL'],
    ['removes a copy whose name is percent-encoded', '/v1?%61pi_key=mine&a=1', '/v1?a=1&api_key=REAL'],
    ['removes a copy whose name is encoded in full', '/v1?%61%70%69%5F%6b%65%79=mine', '/v1?api_key=REAL'],
    ['does not decode a name twice', '/v1?%2561pi_key=x', '/v1?%2561pi_key=x&api_key=REAL'],
    ['removes a copy after a semicolon', '/v1?a=1;api_key=mine', '/v1?a=1&api_key=REAL'],
    ['removes a copy before a semicolon', '/v1?api_key=mine;a=1', '/v1?api_key=REAL'],
    ['removes a copy in another case', '/v1?API_Key=mine&a=1', '/v1?a=1&api_key=REAL'],
    ['removes what PHP reads as the name', '/v1?api.key=1&api+key=2&api%5bkey=3&%20api_key=4', '/v1?api_key=REAL'],
    ['removes an array of the name', '/v1?api_key[]=1&api_key[0]=2&api_key%5Bx%5D=3&[api_key]=4', '/v1?api_key=REAL'],
    ['removes a name with a NUL suffix', '/v1?api_key%00x=mine', '/v1?api_key=REAL'],
    ['removes what IIS reads as the name', '/v1?api%u005fkey=1&%EF%BD%81pi_key=2', '/v1?api_key=REAL'],
    ['removes other punctuation, and none', '/v1?api-key=1&apiKey=2&a=1;API.KEY=3', '/v1?a=1&api_key=REAL'],
    ['keeps semicolons of other parameters', '/v1?a=1;b=2', '/v1?a=1;b=2&api_key=REAL'],
    [
      'leaves parameters with a similar name',
      '/v1?api_key2=x&my_api_key=y',
      '/v1?api_key2=x&my_api_key=y&api_key=REAL',
    ],
    ['leaves a path that spells the parameter', '/api_key=x', '/api_key=x?api_key=REAL'],
    ['keeps empty pairs and odd bytes', '/v1?&&=&a=%zz&', '/v1?&&=&a=%zz&api_key=REAL'],
    ['refuses a fragment, which would hide the pair', '/v1?a=1#api_key=x', 'invalid_request'],
    ['refuses a target that is not in origin form', '*', 'invalid_request'],
  ];
  for (const [what, target, expected] of cases) {
    it(`${what}: ${target}`, () => {
      expect(targetOf(target)).toBe(expected);
    });
  }

  it('encodes a credential so that it can end neither its pair nor the target', () => {
    expect(targetOf('/', INJECT, 'a&b=c#d e%f+\u00e9')).toBe('/?api_key=a%26b%3Dc%23d%20e%25f%2B%C3%A9');
  });

  it('changes nothing but its own pair', () => {
    const anyPair = fc.string({ maxLength: 12, unit: fc.constantFrom(...'abk=%;+/?2&'.split('')) });
    fc.assert(
      fc.property(anyPair, (query) => {
        expect(targetOf(`/p?x=${query}`).startsWith(`/p?x=${query}`)).toBe(true);
      }),
    );
  });

  it("leaves exactly one value for any spelling of the client's", () => {
    const spelled = fc.constantFrom(
      'api_key',
      '%61pi_key',
      'api%5fkey',
      'api%5Fke%79',
      'API_Key',
      'api.key',
      'api_key[]',
    );
    const pair = fc.oneof(
      spelled.map((name) => `${name}=mine`),
      spelled,
      fc.constantFrom('a=1', 'b', '', 'c=x%3Dy'),
    );
    fc.assert(
      fc.property(fc.array(pair, { maxLength: 6 }), fc.constantFrom('&', ';'), (pairs, separator) => {
        const target = targetOf(`/p?${pairs.join(separator)}`);
        expect(new URL(target, 'https://a.test').searchParams.getAll('api_key')).toEqual(['REAL']);
        expect(target.replaceAll('api_key=REAL', '')).not.toMatch(/key/i);
        expect(new URL(target.replaceAll(';', '&'), 'https://a.test').searchParams.getAll('api_key')).toEqual(['REAL']);
      }),
    );
  });
});

describe('query-param with sentinel-swap', () => {
  const cases: readonly (readonly [target: string, presented: string, expected: string | null])[] = [
    ['/v1?a=1', 'absent', '/v1?a=1&api_key=REAL'],
    ['/v1?api_key=SENTINEL&a=1', 'sentinel', '/v1?api_key=REAL&a=1'],
    ['/v1?a=1&%61pi_key=SENT%49NEL&b', 'sentinel', '/v1?a=1&%61pi_key=REAL&b'],
    ['/v1?api_key=SENTINEL&a=1&api_key=SENTINEL', 'sentinel', '/v1?api_key=REAL&a=1'],
    ['/v1?API_KEY=SENTINEL&a', 'sentinel', '/v1?api_key=REAL&a'],
    ['/v1?Api.Key=SENTINEL&%61pi_key=SENTINEL', 'sentinel', '/v1?%61pi_key=REAL'],
    ['/v1?api_key=SENTINEL&API_KEY=mine', 'foreign', null],
    ['/v1?api_key=mine', 'foreign', null],
    ['/v1?api_key=SENTINEL&api_key=mine', 'foreign', null],
    ['/v1?a=1;api_key=SENTINEL', 'foreign', null],
    ['/v1?api_key=SENTINEL;a=1', 'foreign', null],
    ['/v1?a;api_key=SENTINEL', 'foreign', null],
    ['/v1?q=SENTINEL', 'absent', '/v1?q=SENTINEL&api_key=REAL'],
    ['/v1?q=1%3Bapi_key%3DSENTINEL', 'absent', '/v1?q=1%3Bapi_key%3DSENTINEL&api_key=REAL'],
  ];
  for (const [target, presented, expected] of cases) {
    it(`reads ${target} as ${presented}`, () => {
      expect(findPresentedCredential(SWAP, sampleRequest(target))).toBe(presented);
      expect(presented === 'foreign' ? null : targetOf(target, SWAP)).toBe(expected);
    });
  }
});
