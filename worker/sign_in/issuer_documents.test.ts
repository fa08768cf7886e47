import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { beforeEach, describe, expect, test } from 'vitest';
import { ok } from '../../shared/model/result.ts';
import { Secret } from '../../shared/model/secret.ts';
import type { Outbound } from '../kernel/outbound.ts';
import { SeenOutcomes } from '../kernel/seen_outcomes.ts';
import { HELD_MS, HeldIssuers } from './issuer_documents.ts';
import { oidcProvider } from './oidc.ts';

const ISSUER = 'https://id.acme.test';
const REDIRECT = 'https://control.acme.test/auth/general/callback';
const PATHS = { discovery: '/.well-known/openid-configuration', keys: '/keys', token: '/token' };

type Pair = Awaited<ReturnType<typeof generateKeyPair>>;
let clock: { ms: number; now(): number };
let issuers: HeldIssuers;
/** The calls to the provider. */
let calls: string[];
/** The key that it signs with, by its id, and those that it publishes. */
let signer: { kid: string; pair: Pair };
let published: string[];
const pairs = new Map<string, Pair>();
let nonce = '';
let discovery: object;

const METADATA = {
  issuer: ISSUER,
  authorization_endpoint: `${ISSUER}/auth`,
  token_endpoint: ISSUER + PATHS.token,
  jwks_uri: ISSUER + PATHS.keys,
};

async function answer(path: string): Promise<object> {
  if (path === PATHS.discovery) return discovery;
  if (path === PATHS.keys) {
    const keys = published.map(async (kid) => ({ ...(await exportJWK(pairs.get(kid)!.publicKey)), kid, use: 'sig' }));
    return { keys: await Promise.all(keys) };
  }
  const claims = { nonce, email: 'alice@acme.test', email_verified: true };
  const token = new SignJWT(claims).setProtectedHeader({ alg: 'RS256', kid: signer.kid });
  const times = token.setIssuedAt().setExpirationTime('5m').setIssuer(ISSUER).setAudience('client').setSubject('alice');
  return { access_token: 'token', token_type: 'Bearer', id_token: await times.sign(signer.pair.privateKey) };
}

const outbound: Outbound = {
  async call({ url }) {
    const { pathname } = new URL(url);
    calls.push(pathname);
    const body = new TextEncoder().encode(JSON.stringify(await answer(pathname)));
    return ok({ status: 200, contentType: 'application/json', body });
  },
};

const settings = (name: string, issuer = ISSUER) => {
  const client = { clientId: 'client', clientSecret: new Secret('secret-of-a-test') };
  return { ...client, name, title: name, issuer, outbound, isLocal: false, issuers };
};

/** Signs in from start to end; why not, or null. */
async function signIn(provider = oidcProvider(settings('general'))): Promise<string | null> {
  const begun = await provider.authorizationURL({ state: 'state', redirectURL: REDIRECT });
  if (!begun.ok) return begun.error.reason;
  nonce = new URL(begun.value.url).searchParams.get('nonce') ?? '';
  const { extraState } = begun.value;
  const done = await provider.exchange({
    code: 'code',
    state: 'state',
    redirectURL: REDIRECT,
    extraState,
    issuer: null,
  });
  return done.ok ? null : done.error.reason;
}

const countCalls = (path: string) => calls.filter((each) => each === path).length;

async function newSigner(kid: string): Promise<void> {
  const pair = pairs.get(kid) ?? (await generateKeyPair('RS256'));
  pairs.set(kid, pair);
  signer = { kid, pair };
}

beforeEach(async () => {
  clock = { ms: 0, now: () => clock.ms };
  issuers = new HeldIssuers(clock);
  calls = [];
  discovery = METADATA;
  await newSigner('one');
  published = ['one'];
});

describe('the documents of an OpenID provider', () => {
  test('are fetched once for many sign-ins, of any enterprise', async () => {
    for (const name of ['general', 'general', 'of an enterprise']) {
      expect(await signIn(oidcProvider(settings(name)))).toBe(null);
    }
    expect([countCalls(PATHS.discovery), countCalls(PATHS.keys), countCalls(PATHS.token)]).toEqual([1, 1, 3]);
  });

  test('are noted as used by whoever finds them in the cache, and not by others', async () => {
    const outcomes = new SeenOutcomes();
    issuers = new HeldIssuers(clock, outcomes);
    await signIn(oidcProvider(settings('ent_one')));
    expect(outcomes.of('ent_two')).toBeNull();
    clock.ms += 1;
    await signIn(oidcProvider(settings('ent_two')));
    expect(outcomes.of('ent_two')).toMatchObject({ problem: null, workedAtMs: 1 });
    expect(outcomes.of('ent_one')).toMatchObject({ problem: null, workedAtMs: 0 });
  });

  test('are fetched again after ten minutes', async () => {
    await signIn();
    clock.ms += HELD_MS - 1;
    await signIn();
    expect(countCalls(PATHS.discovery)).toBe(1);
    clock.ms += 1;
    expect(await signIn()).toBe(null);
    expect(countCalls(PATHS.discovery)).toBe(2);
  });

  test('are separate for each issuer', async () => {
    await signIn();
    expect(await signIn(oidcProvider(settings('other', 'https://other.acme.test')))).toBe('provider_failed');
    expect(await signIn(oidcProvider(settings('other', `${ISSUER}/tenant`)))).toBe('provider_failed');
    expect(await signIn()).toBe(null);
  });

  test('are not cached if they are too large or invalid', async () => {
    discovery = { ...METADATA, padding: 'x'.repeat(70_000) };
    expect(await signIn()).toBe(null);
    discovery = { ...METADATA, authorization_endpoint: 'http://10.0.0.1/' };
    expect(await signIn()).toBe('provider_failed');
    discovery = METADATA;
    expect(await signIn()).toBe(null);
  });

  test('are fetched again after a failed sign-in', async () => {
    await signIn();
    published = [];
    await newSigner('two');
    expect(await signIn()).toBe('provider_failed');
    published = ['two'];
    expect(await signIn()).toBe(null);
    expect(countCalls(PATHS.discovery)).toBe(2);
  });

  test('are cached for the newest of many issuers', async () => {
    const read: string[] = [];
    const numbers = Array.from({ length: 201 }, (_, number) => number);
    for (const number of [...numbers, 200, 0]) {
      const issuer = `https://id${number}.test`;
      await issuers.documents(issuer, 'general', async () => {
        read.push(issuer);
        return { issuer };
      });
    }
    expect(read.slice(numbers.length)).toEqual(['https://id0.test']);
  });
});

describe('the keys of an OpenID provider', () => {
  test('are fetched once more if a token names a new one', async () => {
    await signIn();
    await newSigner('two');
    published = ['one', 'two'];
    expect(await signIn()).toBe(null);
    expect([countCalls(PATHS.discovery), countCalls(PATHS.keys)]).toEqual([1, 2]);
    expect(await signIn()).toBe(null);
    expect(countCalls(PATHS.keys)).toBe(2);
  });

  test('are fetched once more, and not again, if a token names an unknown one', async () => {
    await signIn();
    await newSigner('two');
    expect(await signIn()).toBe('provider_failed');
    expect(countCalls(PATHS.keys)).toBe(2);
  });

  test('do not verify a signature of another key with the same id', async () => {
    await signIn();
    signer = { kid: 'one', pair: await generateKeyPair('RS256') };
    expect(await signIn()).toBe('provider_failed');
  });
});
