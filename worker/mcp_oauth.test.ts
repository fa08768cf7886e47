import { createPrivateKey, randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { decodeJwt, decodeProtectedHeader, exportJWK, exportPKCS8, generateKeyPair, type JWK } from 'jose';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import {
  addUser,
  type InProcess,
  openBrowserSession,
  ORIGIN,
  parseReply,
  startInProcess,
} from '../e2e/runtimes/in_process.ts';
import { CLIENT_ID, CLIENT_SECRET, type OAuthProvider, startOAuthProvider } from '../e2e/runtimes/oauth_provider.ts';
import type { TestSidecar } from '../e2e/runtimes/sidecar_client.ts';
import { listen } from '../e2e/support/tls_upstream.ts';
import { meReply } from '../shared/wire/account.ts';
import { auditEventsPage } from '../shared/wire/audit_events.ts';
import { CREDENTIALS_TYP, credentialsPayload, SNAPSHOT_TYP, snapshotPayload } from '../shared/wire/channel.ts';
import { ok } from '../shared/model/result.ts';
import { ERROR_STATUS, errorBody } from '../shared/wire/errors.ts';
import { mcpAuthorizationInput, mcpAuthorizeReply } from '../shared/wire/mcp/mcp_authorization.ts';
import { mcpServerRecord, readSnapshotMcpServers } from '../shared/wire/mcp/mcp_servers.ts';
import { nodeOutbound } from './entries/node_outbound.ts';
import { readClocks } from '../shared/model/clock.ts';
import { twoClocks } from './kernel/clock.ts';
import { Secret } from '../shared/model/secret.ts';
import { accessToken } from './services/oauth/oauth_access_token.ts';
import { readBundle, writeBundle } from './services/oauth/oauth_bundle.ts';
import { readHeld, storeTokens } from './services/oauth/oauth_tokens.ts';
import { beginMcpAuthorisation } from './services/mcp/mcp_authorisation.ts';
import { discoverAuthorization } from './services/mcp/mcp_oauth_discovery.ts';
import type { Outbound, OutboundRequest } from './kernel/outbound.ts';

const MOVED = { name: 'hub', mode: 'remote', url: 'https://other.example.test/mcp' };
const CALLBACK = `${ORIGIN}/auth/connectors/callback`;
const HOUR_MS = 3_600_000;

abstract class LoopbackServer {
  readonly #server = createServer((request, response) => this.answer(request, response));
  origin = '';

  protected abstract answer(request: IncomingMessage, response: ServerResponse): void;

  async start(): Promise<void> {
    this.origin = `http://127.0.0.1:${await listen(this.#server)}`;
  }
  stop(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}

/** A remote MCP server that requires a token and says where to get it. */
class ProtectedServer extends LoopbackServer {
  asked: string[] = [];
  challenge: string | null = null;
  documents: Record<string, unknown> = {};

  protected answer(request: IncomingMessage, response: ServerResponse): void {
    this.asked.push(`${request.method} ${request.url}`);
    const said = request.method === 'POST' ? null : this.documents[request.url ?? ''];
    if (said === null) response.writeHead(401, this.challenge === null ? {} : { 'www-authenticate': this.challenge });
    else response.writeHead(said === undefined ? 404 : 200, { 'content-type': 'application/json' });
    response.end(said === null ? '' : JSON.stringify(said ?? {}));
  }
}

let server: ProtectedServer;
let provider: OAuthProvider;
let control: InProcess;
let sidecar: TestSidecar;
let id = '';
/** Outgoing requests. */
let sent: OutboundRequest[] = [];
/** False: a refresh brings no new refresh token. */
let isRotating = true;
const real = nodeOutbound({ isLocal: true, pinned: new Map() });
const outbound: Outbound = {
  async call(request) {
    sent.push(request);
    const reply = await real.call(request);
    if (isRotating || !reply.ok || !request.url.endsWith('/token')) return reply;
    const { refresh_token: _, ...rest } = JSON.parse(new TextDecoder().decode(reply.value.body));
    return ok({ ...reply.value, body: new TextEncoder().encode(JSON.stringify(rest)) });
  },
};
const resource = () => `${server.origin}/mcp`;

beforeEach(async () => {
  sent = [];
  isRotating = true;
  server = new ProtectedServer();
  await server.start();
  provider = await startOAuthProvider({ redirectUris: [CALLBACK], registration: true, resources: [resource()] });
  server.challenge = `Bearer resource_metadata="${server.origin}/metadata", scope="openid offline_access tools"`;
  server.documents['/metadata'] = { resource: resource(), authorization_servers: [provider.origin] };
  control = await startInProcess({ outbound });
  const headers = { 'X-Key': 'vault://mcp-servers/{id}/KEY' };
  const body = { name: 'hub', mode: 'remote', url: `${resource()}?k=vault://mcp-servers/{id}/KEY`, headers };
  id = (await parseReply(mcpServerRecord, control.asUser('POST', '/v1/mcp-servers', body))).id;
  sidecar = await control.enrolSidecar();
});
afterEach(async () => {
  await control.stop();
  await provider.stop();
  server.stop();
});

/** The provider is on another host than the server; the person agrees to it. */
const begin = (body: object = {}) =>
  control.asUser('POST', `/v1/mcp-servers/${id}/authorize`, {
    authorization_hosts: [new URL(provider.origin).host, 'auth.example.test'],
    ...body,
  });
const begun = (body: object = {}) => parseReply(mcpAuthorizeReply, begin(body));
const record = () => parseReply(mcpServerRecord, control.asUser('GET', `/v1/mcp-servers/${id}`));
const types = async () =>
  (await parseReply(auditEventsPage, control.asUser('GET', '/v1/audit-events'))).items.map(({ type }) => type);

async function refusal(answered: Response | Promise<Response>) {
  const { error } = errorBody.parse(await (await answered).json());
  expect((await answered).status).toBe(ERROR_STATUS[error.code]);
  return error;
}

const scopeOf = async (body: object) => new URL((await begun(body)).authorization_url).searchParams.get('scope');
const clientOf = (link: string) => new URL(link).searchParams.get('client_id');
const why = async () => (await refusal(begin())).message;

/** Opens the link and returns, as a browser does. Gives the text of the page. */
async function open(link: string): Promise<string> {
  const back = await provider.authorise(link);
  return (await control.send(back.pathname + back.search)).text();
}

/** From now on, the provider takes clients that sign who they are, and no others. */
async function wantSignatures(clientKeys: JWK[] = []): Promise<void> {
  await provider.stop();
  const authentication = 'private_key_jwt';
  const served = { redirectUris: [CALLBACK], registration: true, resources: [resource()] };
  provider = await startOAuthProvider({ ...served, authentication, clientKeys });
  server.documents['/metadata'] = { resource: resource(), authorization_servers: [provider.origin] };
}

/** A PEM file with an RSA key of this size. Its numbers are random and sign nothing, because finding a large key takes long. */
function rsaPem(bits: number): string {
  const half = randomNumber(bits / 2);
  const halves = { p: half, q: half, dp: half, dq: half, qi: half };
  const key = { kty: 'RSA', n: randomNumber(bits), e: 'AQAB', d: randomNumber(bits), ...halves };
  return createPrivateKey({ key, format: 'jwk' }).export({ type: 'pkcs8', format: 'pem' }).toString();
}

/** Of exactly this many bits, in base64url. */
function randomNumber(bits: number): string {
  const bytes = randomBytes(bits / 8);
  bytes[0] = (bytes[0] ?? 0) | 0x80;
  return bytes.toString('base64url');
}

const tokenRequests = () =>
  sent
    .filter(({ url }) => url.endsWith('/token'))
    .map(({ body }) => new URLSearchParams(new TextDecoder().decode(body ?? new Uint8Array())));

async function release() {
  const credentials = [{ owner: 'personal', path: `mcp-servers/${id}/SVC_OAUTH` }];
  const body = { request_id: crypto.randomUUID(), credentials };
  const reply = await sidecar.call('POST', '/v1/sidecar/credentials', { body });
  return sidecar.verify(await reply.text(), CREDENTIALS_TYP, credentialsPayload);
}

async function releaseToken(): Promise<string> {
  const { credentials } = await release();
  const opened = await sidecar.unseal(credentials[0]?.sealed ?? '');
  return String(Object.values(Object(opened))[0]);
}

describe('the authorisation of a remote server', () => {
  test('discovers the endpoints, registers a client, and gives the sidecar tokens for that server only', async () => {
    const link = await begun();
    expect(link).toMatchObject({ authorization_server: provider.origin, redirect_uri: CALLBACK });
    const asked = new URL(link.authorization_url).searchParams;
    expect(Object.fromEntries(asked)).toMatchObject({
      resource: resource(),
      scope: 'openid offline_access tools',
      code_challenge_method: 'S256',
    });
    expect((await record()).authorization).toMatchObject({ state: 'authorisation_required' });
    expect((await release()).missing).toHaveLength(1);
    expect(await open(link.authorization_url)).toContain('hub is authorised');
    expect((await record()).authorization).toMatchObject({
      state: 'ready',
      scopes: ['openid', 'offline_access', 'tools'],
      expires_at: expect.any(String),
    });
    const reply = await release();
    expect(reply.credentials[0]?.expires_at).toBe((await record()).authorization?.expires_at);
    expect(decodeJwt(await releaseToken()).aud).toBe(resource());
    const held = await sidecar.call('GET', '/v1/sidecar/snapshot');
    const snapshot = await sidecar.verify(await held.text(), SNAPSHOT_TYP, snapshotPayload);
    expect(readSnapshotMcpServers(snapshot.mcp_servers).servers).toMatchObject([{ authorization: 'ready' }]);
    expect(snapshot.credentials).toMatchObject([{ path: `mcp-servers/${id}/SVC_OAUTH` }]);
    expect((await record()).credentials.map(({ name }) => name)).toEqual(['KEY']);
    expect(await types()).toContain('control.mcp_server.credential_stored');
  });

  test("sends neither the query of the server's URL nor a reference anywhere", async () => {
    await open((await begun()).authorization_url);
    expect(server.asked[0]).toBe('POST /mcp');
    const texts = sent.map(
      ({ url, headers, body }) => url + JSON.stringify(headers) + new TextDecoder().decode(body ?? new Uint8Array()),
    );
    expect(texts.filter((text) => text.includes('vault:') || text.includes('KEY'))).toEqual([]);
  });

  test('shows no token in a reply, log line or readable byte of the database', async () => {
    await open((await begun()).authorization_url);
    const token = await releaseToken();
    const texts = await Promise.all(
      ['', '/revisions'].map(async (path) => (await control.asUser('GET', `/v1/mcp-servers/${id}${path}`)).text()),
    );
    expect(JSON.stringify([texts, control.log, await types()])).not.toContain(token);
    expect((await control.databaseBytes()).includes(token)).toBe(false);
  });

  test('is renewed before it expires, for the same server, and by nobody else', async () => {
    await open((await begun()).authorization_url);
    const first = await releaseToken();
    const calls = provider.tokenCalls();
    control.clock.ms += HOUR_MS;
    const both = await Promise.all([releaseToken(), releaseToken()]);
    expect(new Set([first, ...both]).size).toBe(2);
    expect(provider.tokenCalls()).toBe(calls + 1);
    expect(decodeJwt(both[0] ?? '').aud).toBe(resource());
    expect(await types()).toContain('control.mcp_server.credential_refreshed');
  });

  test('reports a revoked grant, and can be repeated with the same client', async () => {
    const first = await begun();
    await open(first.authorization_url);
    await provider.revoke();
    control.clock.ms += HOUR_MS;
    const { unavailable } = await release();
    expect(unavailable).toMatchObject([
      { reason: 'reauthorisation_required', message: expect.stringContaining('svc mcp authorize hub') },
    ]);
    expect((await record()).authorization?.state).toBe('reauthorisation_required');
    const again = await begun();
    expect(clientOf(again.authorization_url)).toBe(clientOf(first.authorization_url));
    expect(await open(again.authorization_url)).toContain('hub is authorised');
    expect(decodeJwt(await releaseToken()).aud).toBe(resource());
  });

  test('accepts a client that was registered by hand', async () => {
    const client = { client_id: CLIENT_ID, client_secret: CLIENT_SECRET, client_authentication: 'post' };
    const link = await begun(client);
    expect(new URL(link.authorization_url).searchParams.get('client_id')).toBe(CLIENT_ID);
    expect(await open(link.authorization_url)).toContain('hub is authorised');
    expect(sent.some(({ url }) => url.endsWith('/reg'))).toBe(false);
    expect(await refusal(begin({ client_secret: CLIENT_SECRET }))).toMatchObject({ code: 'invalid_input' });
  });

  describe('at a server that wants clients to sign who they are', () => {
    test.each(['ES256', 'RS256', 'EdDSA'])('accepts a client with a key for %s, which it never sends', async (alg) => {
      const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true });
      const key = await exportPKCS8(privateKey);
      await wantSignatures([{ ...(await exportJWK(publicKey)), alg }]);
      const client = { client_id: CLIENT_ID, client_secret: key, client_authentication: 'private_key_jwt' };
      expect(await open((await begun(client)).authorization_url)).toContain('hub is authorised');
      control.clock.ms += HOUR_MS;
      expect(decodeJwt(await releaseToken()).aud).toBe(resource());
      const requests = tokenRequests();
      expect(requests.map((request) => request.get('grant_type'))).toEqual(['authorization_code', 'refresh_token']);
      for (const request of requests) {
        const assertion = request.get('client_assertion') ?? '';
        expect(decodeProtectedHeader(assertion).alg).toBe(alg);
        expect(decodeJwt(assertion)).toMatchObject({ iss: CLIENT_ID, sub: CLIENT_ID, aud: provider.origin });
        expect(request.has('client_secret')).toBe(false);
      }
      const bare = key.replaceAll(/-----[^-]+-----|\s/g, '');
      expect(sent.some(({ body }) => Buffer.from(body ?? []).includes(bare))).toBe(false);
      await control.asUser('DELETE', `/v1/mcp-servers/${id}/authorize`);
      await control.settle();
      expect(provider.revoked()).toBe(1);
    });

    test('registers a client with a key of its own', async () => {
      await wantSignatures();
      const link = await begun();
      expect(await open(link.authorization_url)).toContain('hub is authorised');
      expect(decodeJwt(await releaseToken()).aud).toBe(resource());
      const registered = sent.find(({ url }) => url.endsWith('/reg'));
      const asked = JSON.parse(new TextDecoder().decode(registered?.body ?? undefined));
      expect(asked).toMatchObject({ token_endpoint_auth_method: 'private_key_jwt', jwks: { keys: [{ kty: 'EC' }] } });
      expect(asked.jwks.keys[0]).not.toHaveProperty('d');
      const [request] = tokenRequests();
      expect(decodeJwt(request?.get('client_assertion') ?? '').iss).toBe(clientOf(link.authorization_url));
    });

    test('registers another client once an earlier worker has renewed the tokens without keeping the key', async () => {
      await wantSignatures();
      const first = await begun();
      await open(first.authorization_url);
      const held = await readHeld(control.context, id);
      if (!held.ok) throw new Error(held.error.message);
      const keyless = { ...held.value, bundle: { ...held.value.bundle, clientKey: null } };
      const tokens = { accessToken: new Secret('renewed'), refreshToken: null, expiresIn: 60 };
      const asked = readClocks(twoClocks(control.context.clock));
      await storeTokens(control.context, keyless, tokens, { change: 'refreshed', by: null, asked, more: [] });
      const second = await begun();
      expect(clientOf(second.authorization_url)).not.toBe(clientOf(first.authorization_url));
      expect(await open(second.authorization_url)).toContain('hub is authorised');
    });

    test.each([
      ['no key', undefined],
      ['a secret', CLIENT_SECRET],
      ['an RSA key that is too small to sign with', rsaPem(1024)],
      ['an RSA key that takes long to sign with', rsaPem(8200)],
    ])('is not begun with %s', async (_what, key) => {
      await wantSignatures();
      const client = { client_id: CLIENT_ID, client_secret: key, client_authentication: 'private_key_jwt' };
      expect(await refusal(begin(client))).toMatchObject({
        code: 'invalid_input',
        details: { fields: [{ field: 'client_secret', message: expect.stringContaining('in PEM') }] },
      });
    });

    test('keeps the key where an earlier worker, which would send it as a secret, does not look', async () => {
      const { privateKey } = await generateKeyPair('ES256', { extractable: true });
      const key = new Secret(await exportPKCS8(privateKey));
      const stored = writeBundle({ clientSecret: null, clientKey: key, accessToken: null, refreshToken: null });
      expect(JSON.parse(stored.reveal())).toMatchObject({ client_secret: null });
      expect(readBundle(stored).clientKey?.reveal()).toBe(key.reveal());
    });
  });

  test("is deleted when the server's URL changes, and with the server", async () => {
    await open((await begun()).authorization_url);
    const stale = (await begun()).authorization_url;
    await control.asUser('PUT', `/v1/mcp-servers/${id}`, MOVED);
    expect((await record()).authorization).toBeNull();
    expect((await release()).missing).toHaveLength(1);
    expect(await open(stale)).toContain('start again');
    await control.asUser('DELETE', `/v1/mcp-servers/${id}`);
    const { rows } = await control.context.database.client.execute(
      'SELECT (SELECT count(*) FROM connector_credentials) + (SELECT count(*) FROM secrets) AS n',
    );
    expect(rows[0]?.['n']).toBe(0);
  });

  test.each<[string, () => Promise<unknown>]>([
    ['the server is removed', () => control.asUser('DELETE', `/v1/mcp-servers/${id}`)],
    ['its authorisation is removed', () => control.asUser('DELETE', `/v1/mcp-servers/${id}/authorize`)],
    ['its URL changes', () => control.asUser('PUT', `/v1/mcp-servers/${id}`, MOVED)],
  ])('is revoked at the provider when %s', async (_when, act) => {
    await open((await begun()).authorization_url);
    await act();
    await control.settle();
    expect(provider.revoked()).toBe(1);
    expect((await types()).filter((type) => type.includes('revoked'))).toEqual(['control.mcp_server.tokens_revoked']);
    await act();
    await control.settle();
    expect(provider.revoked()).toBe(1);
  });

  test('is not revoked while another server of its owner uses the same client', async () => {
    const client = { client_id: CLIENT_ID, client_secret: CLIENT_SECRET, client_authentication: 'post' };
    await open((await begun(client)).authorization_url);
    await control.context.database.client.execute(
      "INSERT INTO connector_credentials SELECT 'mcp_other', owner_id, path, kind, state, client, expires_at, renewable, lease, lease_until, updated_at FROM connector_credentials",
    );
    await control.asUser('DELETE', `/v1/mcp-servers/${id}`);
    await control.settle();
    expect(provider.revoked()).toBe(0);
    expect((await types()).filter((type) => type.includes('revoked'))).toEqual([
      'control.mcp_server.tokens_not_revoked',
    ]);
  });

  test('whose new tokens arrive after its deletion is revoked with them', async () => {
    await open((await begun()).authorization_url);
    const calls = provider.tokenCalls();
    const answered = Promise.withResolvers<void>();
    provider.onTokenAnswer(() => answered.promise);
    control.clock.ms += HOUR_MS;
    const refreshing = accessToken(control.context, id);
    while (provider.tokenCalls() === calls) await new Promise((resolve) => setTimeout(resolve, 5));
    await control.asUser('DELETE', `/v1/mcp-servers/${id}`);
    answered.resolve();
    expect(await refreshing).toMatchObject({ ok: false });
    await control.settle();
    const asked = sent.filter(({ url }) => url.endsWith('/token/revocation'));
    expect(new Set(asked.map(({ body }) => new TextDecoder().decode(body ?? new Uint8Array()))).size).toBe(2);
  });

  test('whose deletion revoked nothing keeps its refresh token valid if a refresh that comes too late brings no new one', async () => {
    await open((await begun()).authorization_url);
    isRotating = false;
    const calls = provider.tokenCalls();
    const answered = Promise.withResolvers<void>();
    provider.onTokenAnswer(() => answered.promise);
    control.clock.ms += HOUR_MS;
    const refreshing = accessToken(control.context, id);
    while (provider.tokenCalls() === calls) await new Promise((resolve) => setTimeout(resolve, 5));
    const { client } = control.context.database;
    await client.execute({ sql: 'DELETE FROM connector_credentials WHERE connector_id = ?', args: [id] });
    answered.resolve();
    await refreshing;
    await control.settle();
    const asked = sent.filter(({ url }) => url.endsWith('/token/revocation'));
    const hints = asked.map(({ body }) => new URLSearchParams(new TextDecoder().decode(body ?? new Uint8Array())));
    expect(hints.map((fields) => fields.get('token_type_hint'))).toEqual(['access_token']);
  });

  test('that the provider does not revoke is deleted, and the refusal is recorded', async () => {
    provider.onRevocation((response) => void response.writeHead(503).end());
    await open((await begun()).authorization_url);
    expect((await control.asUser('DELETE', `/v1/mcp-servers/${id}`)).status).toBe(204);
    await control.settle();
    expect((await types()).filter((type) => type.includes('revoked'))).toEqual([
      'control.mcp_server.tokens_not_revoked',
    ]);
  });

  test('is revoked at no other server than the one that issued it', async () => {
    const elsewhere = 'https://auth.example.test/revoke';
    const metadata = await (await fetch(`${provider.origin}/.well-known/openid-configuration`)).json();
    server.documents['/.well-known/oauth-authorization-server'] = {
      ...Object(metadata),
      issuer: server.origin,
      revocation_endpoint: elsewhere,
    };
    server.documents['/metadata'] = { resource: resource(), authorization_servers: [server.origin] };
    await begun();
    const { rows } = await control.context.database.client.execute('SELECT client FROM connector_credentials');
    expect(JSON.stringify(rows)).toContain('token_url');
    expect(JSON.stringify(rows)).not.toContain(elsewhere);
  });

  test('survives other changes of the server, and is deleted on request', async () => {
    await open((await begun()).authorization_url);
    const same = { name: 'renamed', mode: 'remote', url: `${resource()}?other=1` };
    await control.asUser('PUT', `/v1/mcp-servers/${id}`, same);
    expect((await record()).authorization?.state).toBe('ready');
    const forget = () => control.asUser('DELETE', `/v1/mcp-servers/${id}/authorize`);
    expect((await forget()).status).toBe(204);
    expect((await forget()).status).toBe(204);
    expect((await types()).filter((type) => type === 'control.mcp_server.credential_deleted')).toHaveLength(1);
    expect((await release()).missing).toHaveLength(1);
    expect((await refusal(control.asUser('DELETE', `/v1/mcp-servers/${id}/credentials/SVC_OAUTH`))).code).toBe(
      'not_found',
    );
  });

  test('can be started by users who may change the server', async () => {
    const me = await parseReply(meReply, control.asUser('GET', '/v1/me'));
    const how = { input: mcpAuthorizationInput.parse({}), origin: ORIGIN, inConsole: false };
    const colleague = await addUser(control.context, me.enterprise_id);
    expect(await beginMcpAuthorisation(control.context, colleague, id, how)).toMatchObject({
      error: { code: 'not_found' },
    });
  });
});

/** Names somebody else's authorization server, and issues tokens for any resource. */
class HostileProvider extends LoopbackServer {
  asked: string[] = [];
  more: Record<string, unknown> = {};
  token: Record<string, unknown> = {};

  protected answer(request: IncomingMessage, response: ServerResponse): void {
    this.asked.push(`${request.method} ${request.url?.split('?')[0]}`);
    const said =
      request.url === '/token' ? this.token : request.url === '/register' ? { client_id: 'theirs' } : this.metadata();
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify(said));
  }
  metadata(): object {
    return {
      issuer: this.origin,
      authorization_endpoint: `${this.origin}/authorize`,
      token_endpoint: `${this.origin}/token`,
      registration_endpoint: `${this.origin}/register`,
      code_challenge_methods_supported: ['S256'],
      ...this.more,
    };
  }
}

const jwtPart = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');

function tokenFor(aud: unknown): string {
  return `${jwtPart({ alg: 'none' })}.${jwtPart({ iss: 'https://victim.example.test', aud })}.c2ln`;
}

describe("a server that names somebody else's authorization server", () => {
  let victim: HostileProvider;
  const host = () => new URL(victim.origin).host;
  const agreedHosts = () => ({ authorization_hosts: [host()] });

  beforeEach(async () => {
    victim = new HostileProvider();
    await victim.start();
    server.documents['/metadata'] = { resource: resource(), authorization_servers: [victim.origin] };
  });
  afterEach(() => victim.stop());

  test.each([
    ['nothing', () => ({ authorization_hosts: undefined })],
    ['another host', () => ({ authorization_hosts: [new URL(provider.origin).host] })],
    ['a host with another port', () => ({ authorization_hosts: ['127.0.0.1'] })],
  ])('redirects nobody who agreed only to %s', async (_what, body) => {
    const refused = await refusal(begin(body()));
    expect(refused).toMatchObject({
      code: 'authorization_server_unconfirmed',
      message: expect.stringContaining(`hub is at ${new URL(resource()).host}, and its sign-in uses ${host()}`),
      details: { authorization_server: victim.origin, hosts: [host()] },
    });
    expect(victim.asked.filter((asked) => !asked.includes('.well-known'))).toEqual([]);
    expect((await record()).authorization).toBeNull();
  });

  test('proceeds once the person has agreed to that exact host', async () => {
    const link = await begun(agreedHosts());
    expect(new URL(link.authorization_url).host).toBe(host());
    expect(new URL(link.authorization_url).searchParams.get('resource')).toBe(resource());
  });

  test.each(['authorization_endpoint', 'token_endpoint', 'registration_endpoint'])(
    'asks about the host of every endpoint: %s',
    async (endpoint) => {
      victim.more = { [endpoint]: 'https://elsewhere.example.test/x' };
      expect(await refusal(begin(agreedHosts()))).toMatchObject({
        code: 'authorization_server_unconfirmed',
        details: { hosts: [host(), 'elsewhere.example.test'].toSorted() },
      });
    },
  );

  test('needs no agreement for its own host', async () => {
    server.documents['/metadata'] = { resource: resource(), authorization_servers: [server.origin] };
    const own = { ...victim.metadata(), issuer: server.origin, registration_endpoint: undefined };
    const places = { authorization_endpoint: `${server.origin}/a`, token_endpoint: `${server.origin}/t` };
    server.documents['/.well-known/oauth-authorization-server'] = { ...own, ...places };
    expect(await refusal(begin({ authorization_hosts: undefined }))).toMatchObject({ code: 'invalid_input' });
  });

  test.each([
    ['one other server', 'https://victim.example.test/api', false],
    ['several others', ['https://victim.example.test/api', 'https://victim.example.test/userinfo'], false],
    ['this server', () => resource(), true],
    ['this server among others', () => ['https://victim.example.test/api', resource()], true],
    ['a name that is not a host', 'account', true],
  ])('gets a token unless it names only other servers: %s', async (_what, aud, isTaken) => {
    victim.token = {
      access_token: tokenFor(typeof aud === 'function' ? aud() : aud),
      token_type: 'bearer',
      expires_in: 3600,
    };
    const link = new URL((await begun(agreedHosts())).authorization_url);
    const state = link.searchParams.get('state') ?? '';
    const page = await (await control.send(`/auth/connectors/callback?code=c&state=${state}`)).text();
    expect(page).toContain(isTaken ? 'hub is authorised' : 'issued a token for another server');
    expect((await record()).authorization?.state).toBe(isTaken ? 'ready' : 'authorisation_required');
    expect((await release()).credentials).toHaveLength(isTaken ? 1 : 0);
  });

  test('is refused if the authorization server lists other resources', async () => {
    victim.more = { protected_resources: ['https://victim.example.test/api'] };
    expect((await refusal(begin(agreedHosts()))).message).toContain('issues tokens for other servers only');
    victim.more = { protected_resources: [resource()] };
    expect((await begin(agreedHosts())).status).toBe(200);
  });

  test.each([
    'scope=admin',
    'request_uri=https://evil.example.test/r',
    'resource=https://victim.example.test/api',
    'Prompt=none',
  ])('drops what its URL itself requests: %s', async (query) => {
    victim.more = { authorization_endpoint: `${victim.origin}/authorize?${query}` };
    expect((await refusal(begin(agreedHosts()))).message).toContain('which only the client may set');
  });

  test('is shown by the console, which sends nobody there before they submit a form', async () => {
    const cookie = await openBrowserSession(control);
    const headers = { cookie, origin: control.consoleOrigin };
    const submit = (fields: Record<string, string>) =>
      control.inBrowser(`/mcp-servers/${id}/authorize`, { method: 'POST', headers, body: new URLSearchParams(fields) });
    const asked = await submit({});
    const page = await asked.text();
    expect(asked.status).toBe(409);
    expect(page).toContain('its sign-in uses other hosts');
    expect(page).toContain(`name="authorization_hosts" value="${host()}"`);
    expect(page).not.toContain('Continue to');
    const wrong = await (await submit({ authorization_hosts: host(), scopes: '"' })).text();
    expect(wrong).toContain(`name="authorization_hosts" value="${host()}"`);
    const agreedTo = await submit({ authorization_hosts: host() });
    expect([agreedTo.status, (await agreedTo.text()).includes(`Continue to ${host()}`)]).toEqual([200, true]);
  });

  test('gets its own client, never that of another server', async () => {
    const other = { name: 'second', mode: 'remote', url: resource() };
    const { id: second } = await parseReply(mcpServerRecord, control.asUser('POST', '/v1/mcp-servers', other));
    server.documents['/metadata'] = { resource: resource(), authorization_servers: [provider.origin] };
    const first = await begun();
    const body = { authorization_hosts: [new URL(provider.origin).host] };
    const begunSecond = control.asUser('POST', `/v1/mcp-servers/${second}/authorize`, body);
    const link = (await parseReply(mcpAuthorizeReply, begunSecond)).authorization_url;
    expect(clientOf(link)).not.toBe(clientOf(first.authorization_url));
  });
});

describe('the scopes of another sign-in', () => {
  test('are those of the last one and the added ones', async () => {
    await scopeOf({ scopes: ['openid', 'tools'] });
    expect(await scopeOf({ add_scopes: ['openid', 'write'] })).toBe('openid tools write');
    expect(await scopeOf({ add_scopes: ['delete'] })).toBe('openid tools write delete');
  });

  test('are those that the server asks for and the added ones at first', async () => {
    expect(await scopeOf({ add_scopes: ['write'] })).toBe('openid offline_access tools write');
  });

  test('leave the tokens of the last one until a person has agreed to them', async () => {
    const first = await begun();
    await open(first.authorization_url);
    const token = await releaseToken();
    const another = await begun({ add_scopes: ['write'] });
    expect([(await record()).authorization?.state, await releaseToken()]).toEqual(['ready', token]);
    await open(another.authorization_url);
    expect(await releaseToken()).not.toBe(token);
  });

  test('are not those that another authorization server granted', async () => {
    await scopeOf({ scopes: ['openid', 'tools', 'profile'] });
    const other = await startOAuthProvider({ redirectUris: [CALLBACK], registration: true, resources: [resource()] });
    server.documents['/metadata'] = { resource: resource(), authorization_servers: [other.origin] };
    const hosts = { authorization_hosts: [new URL(other.origin).host] };
    expect(await scopeOf({ add_scopes: ['write'], ...hosts })).toBe('openid offline_access tools write');
    await other.stop();
  });
});

describe('an authorization server that knows clients by their documents', () => {
  const DOCUMENT = 'https://control.example.com/oauth/client.json';
  beforeEach(() => {
    const { origin } = server;
    server.documents['/metadata'] = { resource: resource(), authorization_servers: [origin] };
    server.documents['/.well-known/oauth-authorization-server'] = {
      issuer: origin,
      authorization_endpoint: `${origin}/authorize`,
      token_endpoint: `${origin}/token`,
      code_challenge_methods_supported: ['S256'],
      client_id_metadata_document_supported: true,
    };
  });

  test('gets the URL of the document, without a registration', async () => {
    Object.assign(control.context, { mcpClientUrl: DOCUMENT });
    expect(clientOf((await begun()).authorization_url)).toBe(DOCUMENT);
  });

  test('gets no other URL if there is no document', async () => {
    expect(await why()).toContain('does not register clients automatically');
  });
});

test('a hosted control plane serves the document of its client, which names itself and its own redirect URL', async () => {
  const hosted = await startInProcess({ localKey: null, publicUrl: 'https://control.example.com' });
  expect(hosted.context.mcpClientUrl).toBe('https://control.example.com/oauth/client.json');
  const reply = await hosted.send('https://control.example.com/oauth/client.json');
  expect(await reply.json()).toMatchObject({
    client_id: 'https://control.example.com/oauth/client.json',
    redirect_uris: ['https://control.example.com/auth/connectors/callback'],
    token_endpoint_auth_method: 'none',
  });
  await hosted.stop();
});

describe('metadata of a server', () => {
  test('may be at the well-known URLs too', async () => {
    server.challenge = null;
    server.documents['/.well-known/oauth-protected-resource/mcp'] = server.documents['/metadata'];
    expect((await begun()).authorization_server).toBe(provider.origin);
    expect(new URL((await begun()).authorization_url).searchParams.get('scope')).toBe('offline_access');
  });

  test('must be for this server', async () => {
    for (const other of ['https://victim.example.test/mcp', `${server.origin}/mcpx`, `${server.origin}/mcp/deeper`]) {
      server.documents['/metadata'] = { resource: other, authorization_servers: [provider.origin] };
      expect([other, await why()]).toEqual([other, expect.stringContaining('is for another server')]);
    }
  });

  test('must exist if it is named', async () => {
    delete server.documents['/metadata'];
    expect(await why()).toContain('names a metadata URL that has no valid metadata');
    server.challenge = null;
    expect(await why()).toContain('no authorization server metadata was found');
  });

  const METADATA = {
    issuer: '',
    authorization_endpoint: 'https://auth.example.test/authorize',
    token_endpoint: 'https://auth.example.test/token',
    code_challenge_methods_supported: ['S256'],
  };
  const BAD: readonly (readonly [object, RegExp])[] = [
    [{ issuer: 'https://victim.example.test' }, /names another issuer \(RFC 8414/],
    [{ code_challenge_methods_supported: ['plain'] }, /PKCE with S256/],
    [{ code_challenge_methods_supported: undefined }, /PKCE with S256/],
    [{ authorization_endpoint: 'javascript:alert(1)' }, /only https URLs are called/],
    [{ token_endpoint: 'http://10.0.0.1/token' }, /only https URLs are called/],
    [{}, /client_id is missing: 127\.0\.0\.1 does not register clients automatically/],
  ];
  test('must name a consistent and safe authorization server', async () => {
    server.documents['/metadata'] = { resource: resource(), authorization_servers: [server.origin] };
    for (const [changes, message] of BAD) {
      server.documents['/.well-known/oauth-authorization-server'] = { ...METADATA, issuer: server.origin, ...changes };
      expect([changes, await why()]).toEqual([changes, expect.stringMatching(message)]);
    }
    expect((await record()).authorization).toBeNull();
  });

  test('is searched for at most half a minute, however many URLs the server names', async () => {
    let asked = 0;
    const slow: Outbound = {
      async call(request) {
        asked += 1;
        control.clock.ms += 20_000;
        return real.call(request);
      },
    };
    const servers = Array.from({ length: 20 }, (_, index) => `${server.origin}/issuer/${index}`);
    server.documents['/metadata'] = { resource: resource(), authorization_servers: servers };
    const way = { outbound: slow, isLocal: true, now: () => control.clock.now() };
    expect(await discoverAuthorization(way, resource())).toMatchObject({ ok: false });
    expect(asked).toBe(2);
  });

  test('and an answer naming another issuer is rejected', async () => {
    const link = new URL((await begun()).authorization_url);
    const state = link.searchParams.get('state') ?? '';
    const page = await control.send(
      `/auth/connectors/callback?code=stolen&state=${state}&iss=https://victim.example.test`,
    );
    expect(await page.text()).toContain('Another provider than the requested one answered');
    const silent = new URL((await begun()).authorization_url).searchParams.get('state') ?? '';
    const unnamed = await control.send(`/auth/connectors/callback?code=stolen&state=${silent}`);
    expect(await unnamed.text()).toContain('Another provider than the requested one answered');
    expect(provider.tokenCalls()).toBe(0);
  });

  test('is fetched only from public host names if hosted', async () => {
    const hosted = { ...control.context, local: null, outbound: nodeOutbound({ isLocal: false, pinned: new Map() }) };
    const me = await parseReply(meReply, control.asUser('GET', '/v1/me'));
    const caller = { userId: me.id, enterpriseId: me.enterprise_id, role: me.role };
    const how = { input: mcpAuthorizationInput.parse({}), origin: ORIGIN, inConsole: false };
    expect(await beginMcpAuthorisation(hosted, caller, id, how)).toMatchObject({
      error: { code: 'oauth_provider_failed', message: expect.stringContaining('https URLs only') },
    });
  });
});

test('a local server has no sign-in', async () => {
  const body = { name: 'files', command: ['a-server'] };
  const local = await parseReply(mcpServerRecord, control.asUser('POST', '/v1/mcp-servers', body));
  const answered = control.asUser('POST', `/v1/mcp-servers/${local.id}/authorize`, {});
  expect((await refusal(answered)).message).toContain('is a local server');
});
