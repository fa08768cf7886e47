import { expect, test } from 'vitest';
import { sdkVariables } from './sdk_endpoints.ts';

test.each(['http://127.0.0.1:7421', 'http://[::1]:7421', 'http://localhost:7421', 'http://127.8.0.1:1'])(
  'an SDK of AWS finds its keys at %s',
  (origin) => {
    expect(sdkVariables(['aws'], { origin, token: 't' })).toEqual({
      AWS_CONTAINER_CREDENTIALS_FULL_URI: `${origin}/v1/sdk/aws/credentials`,
      AWS_CONTAINER_AUTHORIZATION_TOKEN: 'Bearer t',
    });
  },
);

test.each(['http://172.17.0.1:7421', 'http://127.0.0.1.evil.test', 'http://[fd00::1]:7421'])(
  'none is told of %s, which is not loopback: it would refuse every request',
  (origin) => {
    expect(sdkVariables(['aws'], { origin, token: 't' })).toEqual({});
  },
);

test('none is told of an endpoint that the session does not have', () => {
  expect(sdkVariables([], { origin: 'http://127.0.0.1:7421', token: 't' })).toEqual({});
});
