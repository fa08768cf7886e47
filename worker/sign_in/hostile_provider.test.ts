import { createHmac } from 'node:crypto';
import { exportJWK, generateKeyPair, type JWTHeaderParameters, SignJWT } from 'jose';
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { err, ok } from '../../shared/model/result.ts';
import { Secret } from '../../shared/model/secret.ts';
import { type Outbound, targetProblem } from '../kernel/outbound.ts';
import { HeldIssuers } from './issuer_documents.ts';
import { oidcProvider } from './oidc.ts';

const ISSUER = 'https://id.evil.test';
const CLIENT_SECRET = 'secret-of-a-test';
const REDIRECT = 'https://control.acme.test/auth/general/callback';
const METADATA: Readonly<Record<string, unknown>> = {
  issuer: ISSUER,
  authorization_endpoint: `${ISSUER}/authorize`,
  token_endpoint: `${ISSUER}/token`,
  jwks_uri: `${ISSUER}/keys`,
  id_token_signing_alg_values_supported: ['ES256', 'HS256', 'none'],
};

type Pair = Awaited<ReturnType<typeof generateKeyPair>>;
type Claims = Readonly<Record<string, unknown>>;
let own: Pair;
let other: Pair;
let publicJwk: object;
beforeAll(async () => {
  [own, other] = await Promise.all([generateKeyPair('ES256'), generateKeyPair('ES256')]);
  publicJwk = { ...(await exportJWK(own.publicKey)), kid: 'one', use: 'sig' };
});

/** The provider's answers: its discovery document, its keys, and the ID token it makes from the claims. */
let metadata: Claims;
let keys: readonly object[];
let idToken: (claims: Claims) => string | Promise<string>;
let changes: Claims;
let nonce: string;
/** The calls made. */
let calls: string[];
beforeEach(() => {
  metadata = METADATA;
  keys = [publicJwk];
  idToken = (claims) => signClaims(claims);
  changes = {};
  calls = [];
});

const encodeObject = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');

function signClaims(claims: Claims, header: object = {}, pair = own): Promise<string> {
  const protectedHeader: JWTHeaderParameters = { alg: 'ES256', kid: 'one', ...header };
  return new SignJWT(claims).setProtectedHeader(protectedHeader).sign(pair.privateKey);
}

/** A token signed with a shared secret. */
function shared(claims: Claims, key: string): string {
  const text = `${encodeObject({ alg: 'HS256', kid: 'one' })}.${encodeObject(claims)}`;
  return `${text}.${createHmac('sha256', key).update(text).digest('base64url')}`;
}

async function answer(path: string): Promise<object> {
  if (path.startsWith('/.well-known/')) return metadata;
  if (path === '/keys') return { keys };
  const now = Math.floor(Date.now() / 1000);
  const times = { iat: now, exp: now + 300 };
  const person = { sub: 'mallory', email: 'mallory@evil.test', email_verified: true };
  const claims = { iss: ISSUER, aud: 'client', nonce, ...times, ...person, ...changes };
  return { access_token: 'token', token_type: 'Bearer', id_token: await idToken(claims) };
}

const outbound: Outbound = {
  async call({ url }) {
    const problem = targetProblem(new URL(url), false);
    if (problem !== null) return err(problem);
    calls.push(url);
    const body = new TextEncoder().encode(JSON.stringify(await answer(new URL(url).pathname)));
    return ok({ status: 200, contentType: 'application/json', body });
  },
};

/** Signs in from start to end: who that is, or why nobody is. */
async function signIn(issuerInAnswer: string | null = null): Promise<string> {
  const client = { clientId: 'client', clientSecret: new Secret(CLIENT_SECRET) };
  const issuers = new HeldIssuers({ now: () => 0 });
  const where = { issuer: ISSUER, outbound, isLocal: false, issuers };
  const provider = oidcProvider({ ...client, name: 'general', title: 'Evil', ...where });
  const begun = await provider.authorizationURL({ state: 'state', redirectURL: REDIRECT });
  if (!begun.ok) return begun.error.reason;
  const asked = new URL(begun.value.url).searchParams;
  expect([asked.getAll('redirect_uri'), asked.getAll('state')]).toEqual([[REDIRECT], ['state']]);
  nonce = asked.get('nonce') ?? '';
  const kept = { code: 'code', state: 'state', redirectURL: REDIRECT, extraState: begun.value.extraState };
  const done = await provider.exchange({ ...kept, issuer: issuerInAnswer });
  return done.ok ? `${done.value.issuer} ${done.value.subject}` : done.error.reason;
}

test('the provider of these tests signs in if it is honest', async () => {
  expect(await signIn()).toBe(`${ISSUER} mallory`);
  expect(await signIn(ISSUER)).toBe(`${ISSUER} mallory`);
});

describe('nobody is signed in by an ID token', () => {
  test.each<[string, (claims: Claims) => string | Promise<string>]>([
    ['that nobody signed', (claims) => `${encodeObject({ alg: 'none', kid: 'one' })}.${encodeObject(claims)}.`],
    ['signed with the secret of the client', (claims) => shared(claims, CLIENT_SECRET)],
    ['signed with the public key as a shared secret', (claims) => shared(claims, JSON.stringify(publicJwk))],
    ['that another key signed', (claims) => signClaims(claims, {}, other)],
    ['whose key is in its own header', (claims) => signClaims(claims, { jwk: publicJwk }, other)],
    ['whose key is at an address that it names', (claims) => signClaims(claims, { jku: `${ISSUER}/others` }, other)],
    ['whose key’s name is a path', (claims) => signClaims(claims, { kid: '../keys' })],
    ['whose key’s name is every object’s', (claims) => signClaims(claims, { kid: '__proto__' })],
    ['that is no text of three parts', () => 'a.b'],
  ])('%s', async (_, make) => {
    idToken = make;
    expect(await signIn()).toBe('provider_failed');
    expect(calls.filter((url) => url.includes('others'))).toEqual([]);
  });

  test.each<[string, Claims]>([
    ['of another issuer', { iss: 'https://id.acme.test' }],
    ['for another client', { aud: 'another-client' }],
    ['for several clients', { aud: ['client', 'another-client'] }],
    ['that another client asked for', { aud: ['client', 'another-client'], azp: 'another-client' }],
    ['of another sign-in', { nonce: 'another' }],
    ['without the name of the sign-in', { nonce: undefined }],
    ['whose time is up', { iat: 900, exp: 1000 }],
    ['without an end', { exp: undefined }],
    ['without a subject', { sub: undefined }],
    ['whose subject is a number', { sub: 5 }],
  ])('%s', async (_, wrong) => {
    changes = wrong;
    expect(await signIn()).toBe('provider_failed');
  });

  test('that verifies with a symmetric key that the provider published', async () => {
    keys = [{ kty: 'oct', k: Buffer.from(CLIENT_SECRET).toString('base64url'), kid: 'one', alg: 'HS256' }];
    idToken = (claims) => shared(claims, CLIENT_SECRET);
    expect(await signIn()).toBe('provider_failed');
  });
});

describe('a provider’s discovery document', () => {
  test.each<[string, Claims]>([
    ['is not of another issuer', { issuer: 'https://id.acme.test' }],
    ['sends no browser to a script', { authorization_endpoint: 'javascript:alert(1)' }],
    ['sends no browser to an address', { authorization_endpoint: 'https://127.0.0.1/authorize' }],
    ['sends no browser to plain http', { authorization_endpoint: 'http://id.evil.test/authorize' }],
    ['has no code sent to an address', { token_endpoint: 'https://169.254.169.254/token' }],
    ['has no code sent over plain http', { token_endpoint: 'http://id.evil.test/token' }],
    ['has no code sent to a name within', { token_endpoint: 'https://sqld/token' }],
    ['has no keys read from another port', { jwks_uri: 'https://id.evil.test:8443/keys' }],
    ['has its endpoints as texts', { token_endpoint: [`${ISSUER}/token`] }],
    ['has to say where its keys are', { jwks_uri: undefined }],
  ])('%s', async (_, wrong) => {
    metadata = { ...METADATA, ...wrong };
    expect(await signIn()).toBe('provider_failed');
    expect(calls.filter((url) => !url.startsWith(`${ISSUER}/`))).toEqual([]);
  });

  test('does not decide where the browser returns to', async () => {
    const query = 'redirect_uri=https%3A%2F%2Fevil.test&state=theirs&nonce=theirs';
    metadata = { ...METADATA, authorization_endpoint: `${ISSUER}/authorize?${query}` };
    expect(await signIn()).toBe(`${ISSUER} mallory`);
  });

  test('makes the issuer mandatory in answers if it declares that', async () => {
    metadata = { ...METADATA, authorization_response_iss_parameter_supported: true };
    expect(await signIn(null)).toBe('provider_failed');
    expect(await signIn('https://id.acme.test')).toBe('provider_failed');
    expect(await signIn(ISSUER)).toBe(`${ISSUER} mallory`);
  });
});
