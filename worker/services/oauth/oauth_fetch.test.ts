import { describe, expect, test } from 'vitest';
import { ok } from '../../../shared/model/result.ts';
import { Secret } from '../../../shared/model/secret.ts';
import { authoriseDevice, type Grantee, refreshGrant } from './oauth_grants.ts';

const TEN_YEARS_SECONDS = 315_360_000;
const CLIENT = {
  client_id: 'client-of-a-test',
  client_authentication: 'post',
  authorization_url: null,
  token_url: 'https://auth.example.test/token',
  device_authorization_url: 'https://auth.example.test/device',
  scopes: [],
} as const;

/** A client of a provider that always gives this reply. */
const askingFor = (text: string, status = 200): Grantee => ({
  outbound: {
    call: async () => ok({ status, contentType: 'application/json', body: new TextEncoder().encode(text) }),
  },
  client: CLIENT,
  clientSecret: null,
});

async function tokensOf(members: string) {
  const text = `{"access_token":"granted","token_type":"bearer"${members}}`;
  const granted = await refreshGrant(askingFor(text), new Secret('refresh'));
  if (!granted.ok) return granted.error.message;
  const { accessToken, refreshToken, expiresIn } = granted.value;
  return [accessToken.reveal(), refreshToken?.reveal() ?? null, expiresIn];
}

describe('a token reply', () => {
  test.each([
    ['', null, null],
    [',"refresh_token":"next","expires_in":60', 'next', 60],
    [',"refresh_token":null,"expires_in":null,"scope":null,"id_token":null,"error":null', null, null],
    [',"refresh_token":"","expires_in":"","scope":"","error":""', null, null],
    [',"expires_in":"3600"', null, 3600],
    [',"expires_in":-1', null, 0],
    [',"expires_in":"-1"', null, 0],
    [',"expires_in":1e13', null, TEN_YEARS_SECONDS],
    [',"expires_in":1e999', null, TEN_YEARS_SECONDS],
    [',"expires_in":"99999999999999999999"', null, TEN_YEARS_SECONDS],
  ])('with %s is accepted', async (members, refreshToken, expiresIn) => {
    expect(await tokensOf(members)).toEqual(['granted', refreshToken, expiresIn]);
  });

  test.each([',"refresh_token":7', ',"expires_in":[]', ',"expires_in":"soon"'])(
    'with %s is rejected',
    async (members) => {
      expect(await tokensOf(members)).toBe('the answer of auth.example.test is not a token reply');
    },
  );

  test.each(['{"access_token":null}', '{"access_token":"","token_type":"bearer"}'])('%s is rejected', async (text) => {
    expect(await refreshGrant(askingFor(text), new Secret('refresh'))).toMatchObject({ ok: false });
  });

  test('with an error and status 200 is an error', async () => {
    const refused = askingFor('{"error":"bad_refresh_token","access_token":null}');
    expect(await refreshGrant(refused, new Secret('refresh'))).toMatchObject({ error: { reason: 'revoked' } });
  });
});

test('the reply to a device request may have empty members too', async () => {
  const text =
    '{"device_code":"d","user_code":"u","verification_uri":"https://a.example.test/","verification_uri_complete":null,"expires_in":"900","interval":null}';
  expect(await authoriseDevice(askingFor(text))).toMatchObject({
    value: { verificationUriComplete: null, expiresIn: 900, intervalSeconds: 5 },
  });
});
