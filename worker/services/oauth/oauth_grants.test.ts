import { expect, test } from 'vitest';
import { ok } from '../../../shared/model/result.ts';
import { Secret } from '../../../shared/model/secret.ts';
import type { Outbound } from '../../kernel/outbound.ts';
import { refreshGrant } from './oauth_grants.ts';

test.each([
  ['a-client_1.x', 's-e_c.r', 'a-client_1.x:s-e_c.r'],
  ['a:b', 'p+q /%ü', 'a%3Ab:p%2Bq+%2F%25%C3%BC'],
])('a client %s is named in the form encoding (RFC 6749 section 2.3.1)', async (clientId, secret, expected) => {
  const sent: string[] = [];
  const outbound: Outbound = {
    async call({ headers }) {
      sent.push(headers['authorization'] ?? '');
      const body = new TextEncoder().encode('{"access_token":"t","token_type":"bearer"}');
      return ok({ status: 200, contentType: 'application/json', body });
    },
  };
  const client = {
    client_id: clientId,
    client_authentication: 'basic' as const,
    authorization_url: null,
    token_url: 'https://auth.example.test/token',
    device_authorization_url: null,
    scopes: [],
  };
  const granted = await refreshGrant({ outbound, client, clientSecret: new Secret(secret) }, new Secret('r'));
  expect([granted.ok, atob(sent[0]?.replace('Basic ', '') ?? '')]).toEqual([true, expected]);
});
