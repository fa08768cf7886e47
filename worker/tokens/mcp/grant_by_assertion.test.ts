import { createHmac } from 'node:crypto';
import { exportJWK, exportSPKI, generateKeyPair, type JWK, type JWTHeaderParameters, SignJWT } from 'jose';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import {
  decideInBrowser,
  pkce,
  registered,
  remoteUser,
  type RemoteUser,
  type RemoteWorld,
  startRemoteWorld,
} from '../../../e2e/mcp/remote_world.ts';
import { outcome, PUBLIC_URL } from '../../../e2e/runtimes/hosted_users.ts';
import { type InProcess, parseReply } from '../../../e2e/runtimes/in_process.ts';
import { auditEventsPage } from '../../../shared/wire/audit_events.ts';
import { enterpriseSettings } from '../../../shared/wire/enterprise.ts';
import { mcpAccessToken, mcpClientsPage, oauthErrorBody } from '../../../shared/wire/mcp/mcp_clients.ts';
import { putEnterpriseOidc } from '../../store/enterprise_settings.ts';
import { insertIdentity } from '../../store/identities.ts';
import { signOutEverywhere } from '../../store/members.ts';
import { enterpriseOidc } from '../../store/tables.ts';
import { grantByAssertion } from './grant_by_assertion.ts';

// The provider of these tests is their own: it publishes keys and signs assertions, and nobody signs in there.
const ISSUER = 'https://id.acme.test';
const CLIENT = 'https://client.example.com/client.json';
const RESOURCE = `${PUBLIC_URL}/mcp`;
const GRANT = 'urn:ietf:params:oauth:grant-type:jwt-bearer';
const SUBJECT = 'subject-of-pat';

type Pair = Awaited<ReturnType<typeof generateKeyPair>>;
let own: Pair;
let other: Pair;
let ownJwk: JWK;
beforeAll(async () => {
  [own, other] = await Promise.all([
    generateKeyPair('RS256', { extractable: true }),
    generateKeyPair('RS256', { extractable: true }),
  ]);
  ownJwk = { ...(await exportJWK(own.publicKey)), kid: 'one', use: 'sig', alg: 'RS256' };
});

let world: RemoteWorld;
let control: InProcess;
let owner: RemoteUser;
let pat: RemoteUser;
let keys: JWK[];

beforeEach(async () => {
  world = await startRemoteWorld();
  ({ control } = world);
  keys = [ownJwk];
  serveProvider(ISSUER, () => keys);
  serveClient(CLIENT);
  owner = await newOwner();
  pat = await remoteUser(control, owner.caller.enterpriseId);
  await signedInBefore(pat, SUBJECT);
  await configure(owner);
});
afterEach(() => world.stop());

/** A provider that publishes these keys. */
function serveProvider(issuer: string, published: () => JWK[]): void {
  world.hosts.set(new URL(issuer).host, ({ url }) => {
    if (url.endsWith('/.well-known/openid-configuration')) {
      return Response.json({ issuer, jwks_uri: `${issuer}/keys` });
    }
    return Response.json({ keys: published() });
  });
}

function serveClient(id: string): void {
  const document = { client_id: id, client_name: 'Assistant', redirect_uris: [`${new URL(id).origin}/callback`] };
  world.hosts.set(new URL(id).host, () => Response.json(document));
}

async function newOwner(): Promise<RemoteUser> {
  const user = await remoteUser(control);
  const args = [user.caller.userId];
  await control.context.database.client.execute({ sql: `UPDATE users SET role = 'owner' WHERE id = ?`, args });
  return user;
}

/** As after a sign-in by the enterprise's own provider. */
async function signedInBefore({ caller }: RemoteUser, subject: string, issuer = ISSUER): Promise<void> {
  const { database } = control.context;
  const { rows } = await database.client.execute({
    sql: 'SELECT person_id FROM users WHERE id = ?',
    args: [caller.userId],
  });
  const at = new Date(control.clock.now()).toISOString();
  await database.write([
    insertIdentity(database, {
      id: `idn_${crypto.randomUUID()}`,
      provider: caller.enterpriseId,
      issuer,
      subject,
      userId: caller.userId,
      personId: z.string().parse(rows[0]?.['person_id']),
      email: `${subject}@acme.test`,
      emailVerified: true,
      createdAt: at,
      lastSignInAt: at,
      vouchedBy: caller.enterpriseId,
    }),
  ]);
}

const OIDC = { issuer: ISSUER, client_id: 'svc', client_secret: 'secret-of-a-test', domains: [] };
function settings(change: object = {}) {
  const plain = { name: 'Acme', billing_email: null, allowed_domains: [], allowed_providers: null };
  return { ...plain, sso_required: false, oidc: OIDC, provider_mcp_clients: [CLIENT], ...change };
}
async function configure(who: RemoteUser, change: object = {}): Promise<void> {
  expect(await outcome(who.call('PUT', '/v1/enterprise', settings(change)))).toBe(200);
}

const seconds = () => Math.floor(control.clock.now() / 1000);
function claimsOf(change: object = {}): Record<string, unknown> {
  const times = { iat: seconds(), exp: seconds() + 300 };
  const about = { sub: SUBJECT, client_id: CLIENT, resource: RESOURCE, jti: crypto.randomUUID() };
  return { iss: ISSUER, aud: PUBLIC_URL, ...about, ...times, ...change };
}
function signed(change: object = {}, header: object = {}, pair = own): Promise<string> {
  const protectedHeader: JWTHeaderParameters = { kid: 'one', typ: 'oauth-id-jag+jwt', ...header, alg: 'RS256' };
  return new SignJWT(claimsOf(change)).setProtectedHeader(protectedHeader).sign(pair.privateKey);
}
const encoded = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');

function show(assertion: string, fields: Readonly<Record<string, string>> = {}): Promise<Response> {
  const body = new URLSearchParams({ grant_type: GRANT, client_id: CLIENT, assertion, ...fields });
  return control.send(`${PUBLIC_URL}/oauth/token`, { method: 'POST', body });
}
const tokenFor = async (assertion: string) => (await parseReply(mcpAccessToken, show(assertion))).access_token;
const newToken = async () => tokenFor(await signed());
/** The refusal of a token request; or the status. */
async function refusal(reply: Response | Promise<Response>): Promise<string | number> {
  const answer = await reply;
  return answer.ok ? answer.status : oauthErrorBody.parse(await answer.json()).error;
}
const description = async (reply: Promise<Response>) => (await parseReply(oauthErrorBody, reply)).error_description;

const call = (token: string, headers: Readonly<Record<string, string>> = {}) =>
  control.send(RESOURCE, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${token}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...headers,
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} }),
  });
const works = async (token: string) => (await call(token)).status === 200;

const clientsOf = async (who: RemoteUser) =>
  (await parseReply(mcpClientsPage, who.call('GET', '/v1/mcp-clients'))).items;
async function eventsOf(type: string, who = owner) {
  return (await parseReply(auditEventsPage, who.call('GET', `/v1/audit-events?type=${type}`))).items;
}
const reasons = async () =>
  (await eventsOf('control.mcp_client.refused')).map(({ data }) => data['svc.control.reason']);

describe('an assertion of the enterprise’s provider', () => {
  it('gives its client an access token and no refresh token, for the person’s tools', async () => {
    const reply = await show(await signed({ scope: 'openid mcp', email: 'pat@acme.test' }), { resource: RESOURCE });
    expect(reply.headers.get('cache-control')).toContain('no-store');
    const body: unknown = await reply.json();
    expect(body).toEqual({
      access_token: expect.any(String),
      token_type: 'Bearer',
      expires_in: 600,
      scope: 'mcp',
    });
    expect(await works(mcpAccessToken.parse(body).access_token)).toBe(true);
  });

  it('is in the audit log with its issuer and subject, and in the person’s list', async () => {
    await newToken();
    const [client] = await clientsOf(pat);
    expect(client).toMatchObject({
      client_id: CLIENT,
      name: 'Assistant',
      connected_by: 'provider',
      redirect_origin: '',
    });
    expect(await eventsOf('control.mcp_client.connected')).toMatchObject([
      {
        actor: pat.caller.userId,
        data: {
          'svc.control.resource': client?.id,
          'svc.mcp.client': CLIENT,
          'svc.control.issuer': ISSUER,
          'svc.control.subject': SUBJECT,
        },
      },
    ]);
    expect(await clientsOf(owner)).toEqual([]);
  });

  it('renews the connection of its client, which keeps its id', async () => {
    const first = await newToken();
    const [before] = await clientsOf(pat);
    control.clock.ms += 60_000;
    const second = await newToken();
    const after = await clientsOf(pat);
    expect(after).toHaveLength(1);
    expect(after[0]?.id).toBe(before?.id);
    expect(after[0]?.last_used_at).not.toBe(before?.last_used_at);
    expect([await works(first), await works(second)]).toEqual([true, true]);
    expect(await eventsOf('control.mcp_client.connected')).toHaveLength(1);
  });

  it('of a client that has registered here is taken, once the enterprise allows its id', async () => {
    const body = JSON.stringify({ client_name: 'Robot', redirect_uris: ['https://robot.example.com/callback'] });
    const reply = await control.send(`${PUBLIC_URL}/oauth/register`, { method: 'POST', body });
    const { client_id: id } = registered.parse(await reply.json());
    const shown = async () => show(await signed({ client_id: id }), { client_id: id });
    expect(await refusal(shown())).toBe('unauthorized_client');
    await configure(owner, { provider_mcp_clients: [id] });
    // Longer than a registration is kept that nobody uses.
    control.clock.ms += 2 * 24 * 3600 * 1000;
    expect(await refusal(shown())).toBe(200);
  });

  it('is verified by the keys that the provider published lately, and by new ones at once', async () => {
    await newToken();
    const calls = world.calls.length;
    await newToken();
    expect(world.calls.length).toBe(calls);
    keys = [{ ...(await exportJWK(other.publicKey)), kid: 'two', use: 'sig' }];
    expect(await refusal(show(await signed({}, { kid: 'two' }, other)))).toBe(200);
    expect(await refusal(show(await signed()))).toBe('invalid_grant');
  });

  it('may name the enterprise by its id or slug', async () => {
    const { slug } = await parseReply(enterpriseSettings, owner.call('GET', '/v1/enterprise'));
    expect(await refusal(show(await signed({ aud_tenant: owner.caller.enterpriseId })))).toBe(200);
    expect(await refusal(show(await signed({ aud_tenant: slug })))).toBe(200);
  });

  it('may have a slash behind its audience and resource', async () => {
    expect(await refusal(show(await signed({ aud: [`${PUBLIC_URL}/`], resource: [`${RESOURCE}/`] })))).toBe(200);
  });

  it('lets no web page use the token', async () => {
    const token = await newToken();
    expect((await call(token, { origin: 'https://client.example.com' })).status).toBe(403);
    expect((await call(token, { origin: 'null' })).status).toBe(403);
  });
});

/** What is wrong with an assertion that the provider has signed, and the claim that the answer names. */
const WRONG: readonly (readonly [string, string, () => object, Readonly<Record<string, unknown>>?])[] = [
  ['has another type', 'typ', () => ({}), { typ: 'JWT' }],
  ['is an access token', 'typ', () => ({}), { typ: 'at+jwt' }],
  ['has no type, as an ID token', 'typ', () => ({}), { typ: undefined }],
  ['is for another audience', 'aud', () => ({ aud: 'https://other.example.com' })],
  ['is for our resource as its audience', 'aud', () => ({ aud: RESOURCE })],
  ['is for a second audience too', 'aud', () => ({ aud: [PUBLIC_URL, 'https://other.example.com'] })],
  ['has no audience', 'aud', () => ({ aud: undefined })],
  ['is for another client', 'client_id', () => ({ client_id: 'https://other.example.com/client.json' })],
  ['names no client', 'client_id', () => ({ client_id: undefined })],
  ['is for another resource', 'resource', () => ({ resource: `${PUBLIC_URL}/v1` })],
  ['is for a second resource too', 'resource', () => ({ resource: [RESOURCE, 'https://other.example.com'] })],
  ['names no resource', 'resource', () => ({ resource: undefined })],
  ['has expired', 'exp', () => ({ iat: seconds() - 300, exp: seconds() - 60 })],
  ['does not expire', 'exp', () => ({ exp: undefined })],
  ['lives for a day', 'exp', () => ({ exp: seconds() + 24 * 3600 })],
  ['was made long ago', 'iat', () => ({ iat: seconds() - 3600 })],
  ['comes from the future', 'iat', () => ({ iat: seconds() + 300, exp: seconds() + 600 })],
  ['does not say when it was made', 'iat', () => ({ iat: undefined })],
  ['is not valid yet', 'nbf', () => ({ nbf: seconds() + 120 })],
  ['has no id', 'jti', () => ({ jti: undefined })],
  ['has an empty id', 'jti', () => ({ jti: '' })],
  ['has no subject', 'sub', () => ({ sub: undefined })],
  ['has a subject that is a number', 'sub', () => ({ sub: 1 })],
  ['belongs to a key', 'cnf', () => ({ cnf: { jkt: 'thumbprint' } })],
  ['names an actor', 'act', () => ({ act: { sub: 'robot' } })],
  ['details what is allowed', 'authorization_details', () => ({ authorization_details: [] })],
  ['is of a tenant within the issuer', 'tenant', () => ({ tenant: 'acme' })],
];

describe('an assertion is refused that', () => {
  it.each(WRONG.map(([name, claim, change, header = {}]) => ({ name, claim, change, header })))(
    '$name',
    async (row) => {
      const { claim, change, header } = row;
      const reply = show(await signed(change(), header));
      expect(await parseReply(oauthErrorBody, reply)).toMatchObject({
        error: 'invalid_grant',
        error_description: expect.stringMatching(new RegExp(`^${claim} of the assertion is wrong: .`)),
      });
      expect(await clientsOf(pat)).toEqual([]);
    },
  );

  const UNVERIFIED: readonly (readonly [string, () => string | Promise<string>])[] = [
    ['is signed by nobody', () => `${encoded({ alg: 'none', typ: 'oauth-id-jag+jwt' })}.${encoded(claimsOf())}.`],
    ['is signed with the public key as a secret', async () => sharedSecret(await exportSPKI(own.publicKey))],
    ['is signed with the modulus as a secret', () => sharedSecret(ownJwk.n ?? '')],
    ['is signed by another key', () => signed({}, {}, other)],
    ['brings its key along', async () => signed({}, { jwk: await exportJWK(other.publicKey) }, other)],
    ['has an unknown key', () => signed({}, { kid: 'three' })],
    ['has another issuer', () => signed({ iss: 'https://other.example.com' })],
    ['has no issuer', () => signed({ iss: undefined })],
    ['has its issuer in a list', () => signed({ iss: [ISSUER] })],
    ['has a number as its issuer', () => signed({ iss: 1 })],
    ['has an issuer that is no URL', () => signed({ iss: 'acme' })],
    ['has its issuer with a slash behind it', () => signed({ iss: `${ISSUER}/` })],
    ['was changed after it was signed', async () => changed(await signed())],
    ['wants a header that is not understood', () => withCritical()],
    ['is no JWT', () => 'not-a-jwt'],
    ['is empty', () => ''],
  ];
  it.each(UNVERIFIED)('%s, in words that do not say why', async (_, make) => {
    const stranger = await description(show(await signed({ iss: 'https://nobody.example.com' })));
    const reply = await show(await make());
    expect(await parseReply(oauthErrorBody, reply)).toEqual({ error: 'invalid_grant', error_description: stranger });
    expect(await reasons()).toEqual([]);
    expect(await clientsOf(pat)).toEqual([]);
  });

  it('is shown by another client, or by none', async () => {
    const assertion = await signed();
    expect(await refusal(show(assertion, { client_id: 'https://other.example.com/client.json' }))).toBe(
      'invalid_grant',
    );
    expect(await refusal(show(assertion, { client_id: '' }))).toBe('invalid_grant');
  });

  it('is for a client whose id would fill the audit log', async () => {
    const id = `https://client.example.com/${'a'.repeat(1000)}`;
    expect(await refusal(show(await signed({ client_id: id }), { client_id: id }))).toBe('invalid_grant');
    expect(await reasons()).toEqual([]);
  });

  it('is shown twice in one form', async () => {
    const assertion = await signed();
    const body = `grant_type=${encodeURIComponent(GRANT)}&client_id=${encodeURIComponent(CLIENT)}&assertion=${assertion}&assertion=x`;
    const headers = { 'content-type': 'application/x-www-form-urlencoded' };
    expect(await refusal(control.send(`${PUBLIC_URL}/oauth/token`, { method: 'POST', headers, body }))).toBe(
      'invalid_request',
    );
  });

  it('is for another scope', async () => {
    expect(await refusal(show(await signed({ scope: 'openid' })))).toBe('invalid_scope');
    expect(await refusal(show(await signed({ scope: '' })))).toBe('invalid_scope');
    expect(await refusal(show(await signed({ scope: ['mcp'] })))).toBe('invalid_scope');
    expect(await refusal(show(await signed(), { scope: 'admin' }))).toBe('invalid_scope');
    // An empty parameter is none.
    expect(await refusal(show(await signed(), { scope: '' }))).toBe(200);
  });

  it('is shown for another resource', async () => {
    expect(await refusal(show(await signed(), { resource: 'https://other.example.com/mcp' }))).toBe('invalid_target');
  });

  it('was used before', async () => {
    const assertion = await signed();
    await tokenFor(assertion);
    expect(await refusal(show(assertion))).toBe('invalid_grant');
    expect(await reasons()).toEqual(['used_before']);
    // The same id in other bytes is the same assertion.
    const again = await signed({ jti: 'once' });
    await tokenFor(again);
    expect(await refusal(show(await signed({ jti: 'once', more: 1 })))).toBe('invalid_grant');
  });

  it('is shown many times at once: one gets a token', async () => {
    const assertion = await signed();
    const replies = await Promise.all(Array.from({ length: 5 }, () => refusal(show(assertion))));
    expect(replies.filter((each) => each === 200)).toHaveLength(1);
    expect(replies.filter((each) => each === 'invalid_grant')).toHaveLength(4);
  });

  it('was used, after its row has expired', async () => {
    const assertion = await signed();
    await tokenFor(assertion);
    control.clock.ms += 21 * 60_000;
    await newToken();
    expect(await refusal(show(assertion))).toBe('invalid_grant');
  });

  it('was used, while the clock of another worker is ahead', async () => {
    const assertion = await signed({ exp: seconds() + 300 });
    await tokenFor(assertion);
    // The worker that is ahead deletes expired rows.
    control.clock.ms += (300 + 80) * 1000;
    await newToken();
    control.clock.ms -= 55_000;
    expect(await refusal(show(assertion))).toBe('invalid_grant');
    expect(await reasons()).toEqual(['used_before']);
  });
});

async function suspend(suspended: boolean): Promise<void> {
  const change = { role: 'member', suspended };
  expect(await outcome(owner.call('PUT', `/v1/members/${pat.caller.userId}`, change))).toBe(200);
}

describe('the person of an assertion', () => {
  it('must have signed in here with this provider', async () => {
    expect(await refusal(show(await signed({ sub: 'stranger' })))).toBe('invalid_grant');
    await signedInBefore(owner, 'subject-elsewhere', 'https://former.acme.test');
    expect(await refusal(show(await signed({ sub: 'subject-elsewhere' })))).toBe('invalid_grant');
    expect(await reasons()).toEqual([]);
  });

  it('is not found by an address', async () => {
    const email = `${SUBJECT}@acme.test`;
    expect(await refusal(show(await signed({ sub: 'stranger', email, email_verified: true })))).toBe('invalid_grant');
  });

  it('gets no token while it is suspended, and what it had is refused', async () => {
    const token = await newToken();
    await suspend(true);
    expect(await works(token)).toBe(false);
    expect(await refusal(show(await signed()))).toBe('invalid_grant');
    expect(await reasons()).toEqual(['not_admitted']);
    await suspend(false);
    expect(await works(token)).toBe(false);
    expect(await works(await newToken())).toBe(true);
  });

  it('gets no token after it has left', async () => {
    const token = await newToken();
    expect((await owner.call('DELETE', `/v1/members/${pat.caller.userId}`)).ok).toBe(true);
    expect(await works(token)).toBe(false);
    expect(await refusal(show(await signed()))).toBe('invalid_grant');
  });

  it('gets no token if the enterprise does not allow its address any more', async () => {
    const token = await newToken();
    await signedInBefore(owner, 'subject-of-owner');
    await control.context.database.client.execute({
      sql: `UPDATE identities SET email = 'owner@other.test' WHERE subject = 'subject-of-owner'`,
      args: [],
    });
    await configure(owner, { allowed_domains: ['other.test'] });
    expect(await works(token)).toBe(false);
    expect(await refusal(show(await signed()))).toBe('invalid_grant');
  });

  it('signs out everywhere: the token ends, and the provider decides about the next', async () => {
    const token = await newToken();
    const { database } = control.context;
    await database.write(signOutEverywhere(database, pat.caller.userId, new Date().toISOString()));
    expect(await works(token)).toBe(false);
    expect(await works(await newToken())).toBe(true);
  });

  it('is told no difference between being unknown and being suspended', async () => {
    const unknown = await description(show(await signed({ sub: 'stranger' })));
    await suspend(true);
    expect(await description(show(await signed()))).toBe(unknown);
  });
});

/** The id of a connection that the person has made on the consent page. */
async function connectByPerson(): Promise<string> {
  const { verifier, challenge } = await pkce();
  const redirect = 'https://client.example.com/callback';
  const query = new URLSearchParams({
    response_type: 'code',
    client_id: CLIENT,
    redirect_uri: redirect,
    code_challenge: challenge,
    code_challenge_method: 'S256',
  });
  const url = `${PUBLIC_URL}/oauth/authorize?${query.toString()}`;
  const { headers } = await decideInBrowser(control, pat.cookie, url);
  const code = new URL(headers.get('location') ?? '').searchParams.get('code') ?? '';
  const grant = { grant_type: 'authorization_code', client_id: CLIENT, redirect_uri: redirect };
  const body = new URLSearchParams({ ...grant, code, code_verifier: verifier });
  expect((await control.send(`${PUBLIC_URL}/oauth/token`, { method: 'POST', body })).status).toBe(200);
  control.clock.ms += 1000;
  const made = (await clientsOf(pat)).find(({ connected_by: by }) => by === 'person');
  return made?.id ?? '';
}

const disconnect = async (id = '') => (await pat.call('DELETE', `/v1/mcp-clients/${id}`)).status;

describe('a client', () => {
  it('is refused unless the enterprise allows it, and its document is not read', async () => {
    await configure(owner, { provider_mcp_clients: [] });
    const before = world.calls.length;
    expect(await refusal(show(await signed()))).toBe('unauthorized_client');
    expect(world.calls.slice(before).map(({ url }) => url)).not.toContain(CLIENT);
    expect(await reasons()).toEqual(['client_not_allowed']);
  });

  it('is not allowed by default', async () => {
    const fresh = await newOwner();
    await signedInBefore(fresh, 'subject-of-fresh');
    const { provider_mcp_clients: _, ...rest } = settings();
    expect(await outcome(fresh.call('PUT', '/v1/enterprise', rest))).toBe(200);
    expect(await refusal(show(await signed({ sub: 'subject-of-fresh' })))).toBe('unauthorized_client');
  });

  it('loses its tokens when the enterprise stops allowing it', async () => {
    const token = await newToken();
    await configure(owner, { provider_mcp_clients: ['https://another.example.com/client.json'] });
    expect(await works(token)).toBe(false);
    expect(await clientsOf(pat)).toEqual([]);
  });

  it('keeps its tokens when other settings change', async () => {
    const token = await newToken();
    await configure(owner, { name: 'Acme and Co', provider_mcp_clients: undefined });
    expect(await works(token)).toBe(true);
    expect(await refusal(show(await signed()))).toBe(200);
  });

  it('is refused if its document cannot be read', async () => {
    world.hosts.delete(new URL(CLIENT).host);
    expect(await refusal(show(await signed()))).toBe('invalid_client');
    expect(await reasons()).toEqual(['client_unknown']);
  });

  it('that the person has disconnected is not connected again, until the person connects it', async () => {
    const token = await newToken();
    const [client] = await clientsOf(pat);
    expect((await pat.call('DELETE', `/v1/mcp-clients/${client?.id}`)).status).toBe(204);
    expect(await works(token)).toBe(false);
    expect(await refusal(show(await signed()))).toBe('invalid_grant');
    expect(await reasons()).toEqual(['disconnected']);
    await connectByPerson();
    expect(await refusal(show(await signed()))).toBe(200);
  });

  it('that the person had connected and has disconnected is not connected by the provider', async () => {
    const first = await connectByPerson();
    const second = await connectByPerson();
    expect(await disconnect(first)).toBe(204);
    // The person still uses the client.
    expect(await refusal(show(await signed()))).toBe(200);
    expect(await disconnect(second)).toBe(204);
    expect(await refusal(show(await signed()))).toBe(200);
    const [ofProvider] = await clientsOf(pat);
    expect(await disconnect(ofProvider?.id)).toBe(204);
    await connectByPerson();
    const [last] = await clientsOf(pat);
    expect(await disconnect(last?.id)).toBe(204);
    expect(await refusal(show(await signed()))).toBe('invalid_grant');
    expect(await reasons()).toEqual(['disconnected']);
  });

  it('that the provider could not connect may be connected by it later, after the person has disconnected it', async () => {
    await configure(owner, { provider_mcp_clients: [] });
    expect(await disconnect(await connectByPerson())).toBe(204);
    await configure(owner);
    expect(await refusal(show(await signed()))).toBe(200);
  });

  it('may give its token up, and is connected again by the next assertion', async () => {
    const token = await newToken();
    const body = new URLSearchParams({ token, client_id: CLIENT });
    expect((await control.send(`${PUBLIC_URL}/oauth/revoke`, { method: 'POST', body })).status).toBe(200);
    expect(await works(token)).toBe(false);
    expect(await works(await newToken())).toBe(true);
  });

  it('asks too often', async () => {
    const replies: (string | number)[] = [];
    for (let index = 0; index < 61; index += 1) replies.push(await refusal(show(await signed())));
    expect(replies.at(-2)).toBe(200);
    expect(replies.at(-1)).toBe('slow_down');
  });
});

const listed = async () =>
  (await parseReply(enterpriseSettings, owner.call('GET', '/v1/enterprise'))).provider_mcp_clients;

describe('the provider of an enterprise', () => {
  it('connects nothing once it is removed or replaced', async () => {
    const token = await newToken();
    await configure(owner, { oidc: null, provider_mcp_clients: undefined });
    expect(await works(token)).toBe(false);
    expect(await refusal(show(await signed()))).toBe('invalid_grant');
    // The clients that were allowed are not allowed for the next provider.
    await configure(owner, { provider_mcp_clients: undefined });
    expect(await refusal(show(await signed()))).toBe('unauthorized_client');
    serveProvider('https://id.next.test', () => keys);
    await configure(owner, { oidc: { ...OIDC, issuer: 'https://id.next.test' } });
    expect(await refusal(show(await signed()))).toBe('invalid_grant');
    expect(await refusal(show(await signed({ iss: 'https://id.next.test' })))).toBe('invalid_grant');
  });

  it('that replaces another finds no client allowed, unless the same change names it', async () => {
    const next = { oidc: { ...OIDC, issuer: 'https://id.next.test' } };
    await configure(owner, { ...next, provider_mcp_clients: undefined });
    expect(await listed()).toEqual([]);
    await configure(owner, { provider_mcp_clients: [CLIENT] });
    expect(await listed()).toEqual([CLIENT]);
    // The same issuer in another spelling is the same provider.
    await configure(owner, { oidc: { ...OIDC, issuer: `${ISSUER}/` }, provider_mcp_clients: undefined });
    expect(await listed()).toEqual([CLIENT]);
  });

  it('that an earlier version has set in place of another finds no client allowed', async () => {
    const { database } = control.context;
    const [row] = await database.read.select().from(enterpriseOidc);
    if (row === undefined) throw new Error('there is no provider');
    await database.write(putEnterpriseOidc(database, { ...row, issuer: 'https://id.next.test' }));
    expect(await listed()).toEqual([]);
  });

  it('that is set after an earlier version has removed another finds no client allowed', async () => {
    await control.context.database.client.execute('DELETE FROM enterprise_oidc');
    await configure(owner, { provider_mcp_clients: undefined });
    expect(await listed()).toEqual([]);
  });

  it('of another enterprise connects nothing for this one’s people', async () => {
    const stranger = await newOwner();
    serveProvider('https://id.evil.test', () => [{ ...ownJwk, kid: 'one' }]);
    await configure(stranger, { oidc: { ...OIDC, issuer: 'https://id.evil.test' } });
    await signedInBefore(stranger, 'subject-of-stranger', 'https://id.evil.test');
    expect(await refusal(show(await signed({ iss: 'https://id.evil.test', sub: SUBJECT })))).toBe('invalid_grant');
    const named = { iss: 'https://id.evil.test', sub: 'subject-of-stranger', aud_tenant: owner.caller.enterpriseId };
    expect(await refusal(show(await signed(named)))).toBe('invalid_grant');
    expect(await refusal(show(await signed({ iss: 'https://id.evil.test', sub: 'subject-of-stranger' })))).toBe(200);
    expect(await clientsOf(pat)).toEqual([]);
    expect(await clientsOf(stranger)).toHaveLength(1);
    expect(await reasons()).toEqual([]);
  });

  it('that another enterprise still has connects nothing for people of one that has replaced it', async () => {
    serveProvider('https://id.next.test', () => keys);
    await configure(owner, { oidc: { ...OIDC, issuer: 'https://id.next.test' } });
    await configure(await newOwner());
    expect(await refusal(show(await signed()))).toBe('invalid_grant');
    expect(await clientsOf(pat)).toEqual([]);
  });

  it('whose issuer ends with a path is another one than that with a slash behind it', async () => {
    const issuer = 'https://id.acme.test/people';
    serveProvider(issuer, () => keys);
    await configure(owner, { oidc: { ...OIDC, issuer: `${issuer}/` } });
    await configure(await newOwner(), { oidc: { ...OIDC, issuer } });
    await signedInBefore(pat, 'subject-of-path', issuer);
    expect(await refusal(show(await signed({ iss: issuer, sub: 'subject-of-path' })))).toBe('invalid_grant');
    expect(await reasons()).toEqual([]);
    await configure(owner, { oidc: { ...OIDC, issuer } });
    expect(await refusal(show(await signed({ iss: issuer, sub: 'subject-of-path' })))).toBe(200);
  });

  it('whose discovery document names another issuer is not believed', async () => {
    world.hosts.set('id.acme.test', () =>
      Response.json({ issuer: 'https://id.evil.test', jwks_uri: `${ISSUER}/keys` }),
    );
    expect(await refusal(show(await signed()))).toBe('invalid_grant');
  });

  it('that cannot be reached gives the answer that an unknown one gives', async () => {
    const unknown = await description(show(await signed({ iss: 'https://nobody.example.com' })));
    world.hosts.delete('id.acme.test');
    expect(await description(show(await signed()))).toBe(unknown);
  });

  it('is not called for an issuer that no enterprise has', async () => {
    const before = world.calls.length;
    await show(await signed({ iss: 'https://nobody.example.com' }));
    expect(world.calls.length).toBe(before);
  });

  it('of two enterprises has to say which one is meant', async () => {
    const second = await newOwner();
    await configure(second);
    const { database } = control.context;
    // The same person in both, as an invitation makes it.
    await database.client.execute({
      sql: 'UPDATE users SET person_id = (SELECT person_id FROM users WHERE id = ?) WHERE id = ?',
      args: [pat.caller.userId, second.caller.userId],
    });
    await signedInBefore(second, SUBJECT);
    expect(await description(show(await signed()))).toContain('aud_tenant');
    const tokens = await tokenFor(await signed({ aud_tenant: second.caller.enterpriseId }));
    expect(await works(tokens)).toBe(true);
    expect(await clientsOf(pat)).toEqual([]);
    expect(await clientsOf(second)).toHaveLength(1);
    // A suspension in one does not turn the assertion to the other.
    await suspend(true);
    expect(await description(show(await signed()))).toContain('aud_tenant');
    expect(await refusal(show(await signed({ aud_tenant: owner.caller.enterpriseId })))).toBe('invalid_grant');
    expect((await owner.call('DELETE', `/v1/members/${pat.caller.userId}`)).ok).toBe(true);
    expect(await refusal(show(await signed()))).toBe(200);
  });

  it('does not have its keys read for every assertion with an unknown key', async () => {
    const exchange = { clientId: CLIENT, scope: null, resource: [], clientAddress: '192.0.2.1' };
    for (let index = 0; index < 70; index += 1) {
      const assertion = await signed({}, { kid: `unknown-${index}` });
      expect((await grantByAssertion(control.context, { ...exchange, assertion })).ok).toBe(false);
    }
    // Sixty reads in ten minutes from one network, of two documents each.
    expect(world.calls).toHaveLength(2 * 60);
    // Those that were read last still verify what the provider signs.
    expect(await refusal(show(await signed()))).toBe(200);
    // The service of a client asks from one network for people of other enterprises too.
    const elsewhere = await newOwner();
    serveProvider('https://id.elsewhere.test', () => keys);
    await configure(elsewhere, { oidc: { ...OIDC, issuer: 'https://id.elsewhere.test' } });
    await signedInBefore(elsewhere, 'subject-elsewhere', 'https://id.elsewhere.test');
    const assertion = await signed({ iss: 'https://id.elsewhere.test', sub: 'subject-elsewhere' });
    expect((await grantByAssertion(control.context, { ...exchange, assertion })).ok).toBe(true);
  });
});

describe('the list of clients', () => {
  it('is an admin’s and an owner’s, and no other member’s', async () => {
    expect(await outcome(pat.call('PUT', '/v1/enterprise', settings()))).toBe('admin_required');
    const { enterpriseId, userId } = pat.caller;
    await control.context.database.client.execute({
      sql: `UPDATE users SET role = 'admin' WHERE id = ? AND enterprise_id = ?`,
      args: [userId, enterpriseId],
    });
    await signedInBefore(owner, 'subject-of-owner');
    const { client_secret: _, ...kept } = OIDC;
    expect(await outcome(pat.call('PUT', '/v1/enterprise', settings({ oidc: kept, provider_mcp_clients: [] })))).toBe(
      200,
    );
  });

  const REFUSED: readonly (readonly [string, object])[] = [
    ['a name', { provider_mcp_clients: ['assistant'] }],
    ['plain http', { provider_mcp_clients: ['http://client.example.com/client.json'] }],
    ['a URL without a path', { provider_mcp_clients: ['https://client.example.com/'] }],
    ['a URL in another spelling', { provider_mcp_clients: ['https://CLIENT.example.com/client.json'] }],
    ['a client that nobody registered', { provider_mcp_clients: ['svc_client_unknown'] }],
    ['clients without an OpenID provider', { oidc: null }],
  ];
  it.each(REFUSED)('does not take %s', async (_, change) => {
    const reply = await owner.call('PUT', '/v1/enterprise', settings(change));
    const text = await reply.text();
    expect([reply.status, text]).toEqual([400, expect.stringContaining('provider_mcp_clients')]);
  });
});

it('the metadata name the grant and its profile', async () => {
  const reply = await control.send(`${PUBLIC_URL}/.well-known/oauth-authorization-server`);
  expect(await reply.json()).toMatchObject({
    grant_types_supported: ['authorization_code', 'refresh_token', GRANT],
    authorization_grant_profiles_supported: ['urn:ietf:params:oauth:grant-profile:id-jag'],
  });
});

function sharedSecret(secret: string): string {
  const text = `${encoded({ alg: 'HS256', kid: 'one', typ: 'oauth-id-jag+jwt' })}.${encoded(claimsOf())}`;
  return `${text}.${createHmac('sha256', secret).update(text).digest('base64url')}`;
}

/** As the provider would sign it: the library of this test does not. */
async function withCritical(): Promise<string> {
  const header = { alg: 'RS256', kid: 'one', typ: 'oauth-id-jag+jwt', crit: ['more'], more: true };
  const text = `${encoded(header)}.${encoded(claimsOf())}`;
  const signature = await crypto.subtle.sign('RSASSA-PKCS1-v1_5', own.privateKey, new TextEncoder().encode(text));
  return `${text}.${Buffer.from(signature).toString('base64url')}`;
}

function changed(assertion: string): string {
  const [header, , signature] = assertion.split('.');
  return `${header}.${encoded(claimsOf({ sub: 'somebody-else' }))}.${signature}`;
}
