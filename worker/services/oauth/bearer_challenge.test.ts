import { expect, test } from 'vitest';
import { bearerChallenge } from './bearer_challenge.ts';

test.each([
  [
    'Bearer resource_metadata="https://a.example/x", scope="a b"',
    { resource_metadata: 'https://a.example/x', scope: 'a b' },
  ],
  ['bearer realm=svc , error="invalid\\"token"', { realm: 'svc', error: 'invalid"token' }],
  ['Basic realm="x, Bearer resource_metadata=\\"no\\"", Bearer scope="yes"', { scope: 'yes' }],
  ['Bearer', {}],
  ['Digest qop="auth"', {}],
  ['Basic realm="x"', {}],
  ['', {}],
  ['"""', {}],
  [`Bearer scope="${'x'.repeat(20_000)}"`, {}],
])('the parameters of the first Bearer challenge of %j', (header, parameters) => {
  expect(bearerChallenge(header)).toEqual(parameters);
});
