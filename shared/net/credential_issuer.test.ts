import { expect, test } from 'vitest';
import { credentialsIssuedAt, credentialsIssuedBy } from './credential_issuer.ts';

test.each([
  ['sts.amazonaws.com', '/', 'AWS keys'],
  ['sts.eu-central-1.amazonaws.com', '/', 'AWS keys'],
  ['sts.cn-north-1.amazonaws.com.cn', '/', 'AWS keys'],
  ['iam.amazonaws.com', '/', 'AWS keys'],
  ['portal.sso.eu-west-1.amazonaws.com', '/federation/credentials', 'AWS keys'],
  ['api.ecr.eu-west-1.amazonaws.com', '/', 'registry tokens'],
  ['auth.docker.io', '/token', 'registry tokens'],
  ['hub.docker.com', '/v2/users/login/', 'registry tokens'],
  ['ghcr.io', '/token', 'registry tokens'],
  ['gitlab.example.com', '/jwt/auth', 'registry tokens'],
  ['idp.example.com', '/oauth/token', 'OAuth tokens'],
  ['idp.example.com', '/oauth2/v2.0/token', 'OAuth tokens'],
  ['idp.example.com', '/realms/a/protocol/openid-connect/token', 'OAuth tokens'],
  ['github.com', '/login/oauth/access_token', 'OAuth tokens'],
  ['api.github.com', '/app/installations/42/access_tokens', 'tokens or keys of the service'],
  ['gitlab.com', '/api/v4/projects/7/access_tokens', 'tokens or keys of the service'],
  ['api.example.com', '/v1/organizations/o/API_Keys', 'tokens or keys of the service'],
  ['api.anthropic.com', '/api/oauth/claude_cli/create_api_key', 'tokens or keys of the service'],
  ['packages.example.com', '/-/npm/v1/tokens', 'tokens or keys of the service'],
  ['api.github.com', '/repos/o/r/keys', 'access to a key that the request names'],
  ['k8s.example.com', '/api/v1/namespaces/n/serviceaccounts/s/token', 'tokens of the service'],
])('https://%s%s may return %s', (host, path, gives) => {
  expect(credentialsIssuedAt(host, path)).toBe(gives);
});

test.each([
  ['api.github.com', '/repos/o/r/issues'],
  ['api.example.com', '/tokens/count'],
  ['s3.amazonaws.com', '/bucket/sts'],
  ['sts.amazonaws.com.evil.example', '/'],
  ['api.example.com', '/tokenize'],
])('https://%s%s is not a known issuer', (host, path) => {
  expect(credentialsIssuedAt(host, path)).toBeNull();
});

test('a pattern is matched through the hosts that it covers', () => {
  expect(credentialsIssuedBy('sts.us-west-2.amazonaws.com')).toBe('AWS keys');
  expect(credentialsIssuedBy('*.amazonaws.com')).toBe('AWS keys');
  expect(credentialsIssuedBy('*.docker.io')).toBe('registry tokens');
  expect(credentialsIssuedBy('*.s3.amazonaws.com')).toBeNull();
  expect(credentialsIssuedBy('api.github.com')).toBeNull();
});
