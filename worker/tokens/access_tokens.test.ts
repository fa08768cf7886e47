import {
  createLocalJWKSet,
  decodeJwt,
  decodeProtectedHeader,
  generateKeyPair,
  jwtVerify,
  SignJWT,
  UnsecuredJWT,
} from 'jose';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import {
  callAs,
  hostedUser,
  type HostedUser,
  PUBLIC_URL,
  signInProgram,
  startHosted,
} from '../../e2e/runtimes/hosted_users.ts';
import { type InProcess, parseReply } from '../../e2e/runtimes/in_process.ts';
import { keySet } from '../../shared/wire/tokens.ts';
import { revokeFamily } from '../store/refresh_tokens.ts';
import { ACCESS_TOKEN_SECONDS, AccessKeys, RETIRED_KEY_SECONDS } from './access_keys.ts';

let control: InProcess;
let user: HostedUser;
beforeAll(async () => {
  control = await startHosted();
});
beforeEach(async () => {
  user = await hostedUser(control);
});
afterAll(() => control.stop());

const me = (token: string) => callAs(control, token, 'GET', '/v1/me');
const jwks = () => parseReply(keySet, control.send('/.well-known/jwks.json'));

/** The claims and header of a valid token, with some changed, signed by the current key. */
async function signToken(change: { claims?: object; header?: object } = {}): Promise<string> {
  const { kid, privateKey } = await control.context.accessKeys.signer(control.context.database);
  const claims = { ...decodeJwt(user.tokens.access_token), ...change.claims };
  return new SignJWT(claims)
    .setProtectedHeader({ alg: 'EdDSA', typ: 'at+jwt', kid, ...change.header })
    .sign(privateKey);
}

describe('an access token', () => {
  test('signs its user in, and names its issuer, audience and lifetime', async () => {
    expect((await me(user.tokens.access_token)).status).toBe(200);
    const claims = decodeJwt(user.tokens.access_token);
    expect(claims).toMatchObject({
      iss: PUBLIC_URL,
      aud: PUBLIC_URL,
      sub: user.caller.userId,
      enterprise_id: user.caller.enterpriseId,
    });
    expect(claims.exp! - claims.iat!).toBe(600);
  });

  test.each([
    ['nobody has verified', null, false],
    ['is not the verified one', 'other@acme.test', false],
    ['is verified', 'alice@acme.test', true],
  ])('reports whether an address that %s is verified', async (_, verified, email_verified) => {
    const args = [verified, user.caller.userId];
    const { client } = control.context.database;
    await client.execute({
      sql: 'UPDATE people SET verified_email = ? WHERE id = (SELECT person_id FROM users WHERE id = ?)',
      args,
    });
    await client.execute({
      sql: "UPDATE users SET email = 'alice@acme.test' WHERE id = ?",
      args: [user.caller.userId],
    });
    const { access_token } = await signInProgram(control, user.caller);
    expect(decodeJwt(access_token)).toMatchObject({ email: 'alice@acme.test', email_verified });
  });

  test('verifies with the published keys, which contain nothing private', async () => {
    const set = await jwks();
    const verified = await jwtVerify(user.tokens.access_token, createLocalJWKSet(set), {
      issuer: PUBLIC_URL,
      audience: PUBLIC_URL,
      currentDate: new Date(control.clock.now()),
    });
    expect(verified.protectedHeader).toMatchObject({ alg: 'EdDSA', typ: 'at+jwt' });
    const raw = await (await control.send('/.well-known/jwks.json')).text();
    expect(raw).not.toContain('"d"');
  });

  test('expires after ten minutes', async () => {
    control.clock.ms += (ACCESS_TOKEN_SECONDS - 1) * 1000;
    expect((await me(user.tokens.access_token)).status).toBe(200);
    control.clock.ms += 2000;
    expect((await me(user.tokens.access_token)).status).toBe(401);
  });

  test('is invalid at once when its sign-in is revoked', async () => {
    const { family } = decodeJwt<{ family: string }>(user.tokens.access_token);
    const { database } = control.context;
    await database.write([revokeFamily(database, family, new Date(control.clock.now()).toISOString())]);
    expect((await me(user.tokens.access_token)).status).toBe(401);
  });

  test('uses the configured address, whatever the Host header says', async () => {
    const forged = await control.send('/.well-known/jwks.json', { headers: { host: 'evil.test' } });
    expect(forged.status).toBe(200);
    expect(decodeJwt((await hostedUser(control)).tokens.access_token).iss).toBe(PUBLIC_URL);
  });

  test('signed by the test with unchanged claims is accepted', async () => {
    expect((await me(await signToken())).status).toBe(200);
  });

  test.each([
    ['of another issuer', { claims: { iss: 'https://other.example.test' } }],
    ['for another audience', { claims: { aud: 'https://other.example.test' } }],
    ['of another type', { header: { typ: 'svc-sidecar+jwt' } }],
    ['of no type', { header: { typ: undefined } }],
    ['without an expiry', { claims: { exp: undefined } }],
    ['that lives for longer', { claims: { iat: 1, exp: 99_999_999_999 } }],
    ['with an unknown key', { header: { kid: 'unknown' } }],
    ['without a key', { header: { kid: undefined } }],
    ['of a sign-in that is not there', { claims: { family: 'fam_00000000000000000000000000' } }],
    ['without a sign-in', { claims: { family: undefined } }],
    ['of a user who is not there', { claims: { sub: 'usr_00000000000000000000000000' } }],
  ])('%s is refused', async (_, change) => {
    expect((await me(await signToken(change))).status).toBe(401);
  });

  test('of another user’s sign-in is refused', async () => {
    const other = await hostedUser(control);
    expect((await me(await signToken({ claims: { sub: other.caller.userId } }))).status).toBe(401);
  });

  test('with no signature, an altered one, or one by the caller’s own key is refused', async () => {
    const { access_token: token } = user.tokens;
    const [header = '', payload = '', signature = ''] = token.split('.');
    const flipped = signature.startsWith('A') ? `B${signature.slice(1)}` : `A${signature.slice(1)}`;
    const own = await generateKeyPair('Ed25519');
    const { kid } = decodeProtectedHeader(token);
    const forged = await new SignJWT(decodeJwt(token))
      .setProtectedHeader({ alg: 'EdDSA', typ: 'at+jwt', kid: kid! })
      .sign(own.privateKey);
    const unsecured = new UnsecuredJWT(decodeJwt(token)).encode();
    for (const bad of [`${header}.${payload}.`, `${header}.${payload}.${flipped}`, forged, unsecured, 'a.b.c', 'x']) {
      expect((await me(bad)).status).toBe(401);
    }
  });

  test('signed with the public key as a shared secret is refused', async () => {
    const { keys } = await jwks();
    const secret = new TextEncoder().encode(JSON.stringify(keys[0]).padEnd(64, ' '));
    const { kid } = decodeProtectedHeader(user.tokens.access_token);
    const confused = await new SignJWT(decodeJwt(user.tokens.access_token))
      .setProtectedHeader({ alg: 'HS256', typ: 'at+jwt', kid: kid! })
      .sign(secret);
    expect((await me(confused)).status).toBe(401);
  });
});

describe('keys', () => {
  test('that were replaced verify until their last token expires, and no longer', async () => {
    const { accessKeys, database } = control.context;
    const before = (await accessKeys.signer(database)).kid;
    const after = await accessKeys.rotate(database, { atOnce: false });
    expect((await accessKeys.signer(database)).kid).toBe(after);
    expect((await jwks()).keys.map(({ kid }) => kid)).toEqual(expect.arrayContaining([before, after]));
    expect((await me(user.tokens.access_token)).status).toBe(200);
    control.clock.ms += (RETIRED_KEY_SECONDS + 61) * 1000;
    expect((await jwks()).keys.map(({ kid }) => kid)).toEqual([after]);
  });

  test('that are dropped at once verify nothing from then on, like the keys before them', async () => {
    const { accessKeys, database } = control.context;
    await accessKeys.rotate(database, { atOnce: false });
    const only = await accessKeys.rotate(database, { atOnce: true });
    expect((await jwks()).keys.map(({ kid }) => kid)).toEqual([only]);
    expect((await me(user.tokens.access_token)).status).toBe(401);
    const anew = await hostedUser(control);
    expect((await me(anew.tokens.access_token)).status).toBe(200);
  });
});

test('another worker accepts a new key’s tokens at once, and refuses a dropped key’s within a minute', async () => {
  const { vault, clock, database, accessKeys } = control.context;
  const other = new AccessKeys(vault, clock);
  const old = (await other.signer(database)).kid;
  const fresh = await accessKeys.rotate(database, { atOnce: true });
  expect(await other.verifier(database, old)).not.toBeNull();
  expect(await other.verifier(database, fresh)).not.toBeNull();
  expect(await other.verifier(database, old)).toBeNull();
  expect(await other.verifier(database, 'unknown')).toBeNull();
});

test('two workers that create the first key at the same time create one', async () => {
  const own = await startHosted();
  const { vault, clock, database } = own.context;
  const signers = await Promise.all([1, 2, 3].map(() => new AccessKeys(vault, clock).signer(database)));
  expect(new Set(signers.map(({ kid }) => kid)).size).toBe(1);
  await own.stop();
});

test('a control plane without a configured address neither issues nor accepts access tokens', async () => {
  const elsewhere = await startHosted();
  const { caller } = await hostedUser(elsewhere);
  const token = (await hostedUser(elsewhere)).tokens.access_token;
  Object.assign(elsewhere.context, { publicUrl: null });
  expect((await callAs(elsewhere, token, 'GET', '/v1/me')).status).toBe(401);
  expect(caller.userId).toMatch(/^usr_/);
  await elsewhere.stop();
});
