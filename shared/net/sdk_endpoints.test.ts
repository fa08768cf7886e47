import { expect, test } from 'vitest';
import { foreignSdkVariables, SDK_ENDPOINTS, sdkVariables, unclaimedEndpoints } from './sdk_endpoints.ts';

const near = { origin: 'http://127.0.0.1:7421', token: 't', metadataHost: null };

test.each(['http://127.0.0.1:7421', 'http://[::1]:7421', 'http://localhost:7421', 'http://127.8.0.1:1'])(
  'SDKs of AWS and Azure find their keys at %s',
  (origin) => {
    expect(sdkVariables(SDK_ENDPOINTS, { ...near, origin })).toEqual({
      AWS_CONTAINER_CREDENTIALS_FULL_URI: `${origin}/v1/sdk/aws/credentials`,
      AWS_CONTAINER_AUTHORIZATION_TOKEN: 'Bearer t',
      IDENTITY_ENDPOINT: `${origin}/v1/sdk/azure/token`,
      IDENTITY_HEADER: 't',
    });
  },
);

test.each(['http://172.17.0.1:7421', 'http://127.0.0.1.evil.test', 'http://[fd00::1]:7421'])(
  'none is told of %s, which is not loopback: it would refuse every request',
  (origin) => {
    expect(sdkVariables(SDK_ENDPOINTS, { ...near, origin })).toEqual({});
  },
);

test('libraries of Google find the listener that is the session’s alone, and no token', () => {
  const metadataHost = '127.0.0.1:40000';
  expect(sdkVariables(['google'], { ...near, metadataHost })).toEqual({
    GCE_METADATA_HOST: metadataHost,
    GCE_METADATA_ROOT: metadataHost,
    GCE_METADATA_IP: metadataHost,
  });
});

test('none is told of an endpoint that the session does not have', () => {
  expect(sdkVariables([], { ...near, metadataHost: '127.0.0.1:1' })).toEqual({});
});

test('only endpoints that are set remove those of another', () => {
  expect(foreignSdkVariables({ PATH: '/bin' })).toEqual([]);
  expect(foreignSdkVariables({ IDENTITY_ENDPOINT: 'x' })).toContain('MSI_ENDPOINT');
  expect(foreignSdkVariables({ IDENTITY_ENDPOINT: 'x' })).not.toContain('AWS_CONTAINER_CREDENTIALS_RELATIVE_URI');
});

test.each([
  ['AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE', ['google', 'azure']],
  ['GCE_METADATA_IP', ['aws', 'azure']],
  ['MSI_ENDPOINT', ['aws', 'google']],
  ['IDENTITY_SERVER_THUMBPRINT', ['aws', 'google']],
  ['AWS_REGION', ['aws', 'google', 'azure']],
])('a person who gives %s leaves the endpoints %j', (name, left) => {
  expect(unclaimedEndpoints(SDK_ENDPOINTS, { [name]: 'x' })).toEqual(left);
});
