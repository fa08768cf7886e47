import {
  Client,
  CrossAppAccessProvider,
  requestJwtAuthorizationGrant,
  StreamableHTTPClientTransport,
} from '@modelcontextprotocol/client';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { ok } from '../../shared/model/result.ts';
import { enterpriseSettings } from '../../shared/wire/enterprise.ts';
import { mcpClientsPage } from '../../shared/wire/mcp/mcp_clients.ts';
import type { Outbound } from '../../worker/kernel/outbound.ts';
import { registered } from '../mcp/remote_world.ts';
import { ITEMS_SPEC } from '../runtimes/connector_samples.ts';
import { type InProcess, parseReply } from '../runtimes/in_process.ts';
import { type CodeHost, startCodeHost } from './code_host.ts';
import { FRONT, HOST, startHostedSignIn } from './hosted_sign_in.ts';
import { forwardedHeaders, namedOutbound } from './named_outbound.ts';
import { OPENID_CLIENT_ID, OPENID_CLIENT_SECRET, type OpenIdProvider, startOpenIdProvider } from './openid_provider.ts';
import { TestBrowser } from './test_browser.ts';
import { providerKey, type TokenExchange } from './token_exchange.ts';

// A real OpenID provider signs a person in to svc and to an MCP client, and the client of the protocol's own SDK shows svc the
// provider's assertion. The exchange of the ID token for the assertion is this test's: see token_exchange.ts.

const RESOURCE = `https://${HOST}/mcp`;

let codeHost: CodeHost;
let openId: OpenIdProvider;
let control: InProcess;
let exchange: TokenExchange;
let owner: TestBrowser;
let enterpriseId: string;

beforeAll(async () => {
  codeHost = await startCodeHost();
  codeHost.user = { id: 1, login: 'olga', name: 'Olga', email: 'olga@acme.test' };
  codeHost.emails = [{ email: 'olga@acme.test', primary: true, verified: true }];
  control = await startHostedSignIn({
    async call(request) {
      if (request.url.endsWith('/.well-known/svc-enterprise.txt')) return proof(enterpriseId);
      const provider = openId && { 'id.acme.test': openId.loopback };
      return namedOutbound({ 'code.acme.test': codeHost.loopback, ...provider }).call(request);
    },
  });
  // The provider has the machine's clock.
  control.clock.now = () => Date.now();
  exchange = {
    clientId: 'assistant',
    clientSecret: 'secret-of-the-assistant',
    redirectUri: 'https://assistant.acme.test/callback',
    key: await providerKey(),
    clientIdThere: '',
  };
  owner = new TestBrowser(control.send, FRONT);
  await signIn(owner, 'codehost', (link) => Promise.resolve(codeHost.authorise(link)));
  ({ id: enterpriseId } = await parseReply(enterpriseSettings, owner.get('/v1/enterprise')));
  openId = await startOpenIdProvider('id.acme.test', [`https://${HOST}/auth/${enterpriseId}/callback`], exchange);
  openId.person = { sub: 'pat-at-acme', email: 'pat@acme.test', email_verified: true, name: 'Pat' };
});
afterAll(async () => {
  await control.stop();
  await openId?.stop();
  await codeHost.stop();
});

type Outcome = Awaited<ReturnType<Outbound['call']>>;
function proof(text: string): Outcome {
  return ok({ status: 200, contentType: 'text/plain', body: new TextEncoder().encode(text) });
}

async function signIn(browser: TestBrowser, provider: string, authorise: (link: string) => Promise<URL>) {
  const link = (await browser.get(`/auth/${provider}/login`)).headers.get('location') ?? '';
  const back = await authorise(link);
  expect((await browser.get(back.pathname + back.search)).status).toBe(303);
}

/** The network of the MCP client. */
async function clientFetch(input: string | URL, init: RequestInit = {}): Promise<Response> {
  const url = new URL(input);
  const headers = new Headers(init.headers);
  if (url.host === HOST) {
    for (const [name, value] of Object.entries(FRONT)) headers.set(name, value);
    return control.send(url.pathname + url.search, { ...init, headers });
  }
  for (const [name, value] of Object.entries(forwardedHeaders(url.host))) headers.set(name, value);
  return fetch(openId.loopback + url.pathname + url.search, { ...init, headers });
}

/** The MCP client signs the person in at the provider, and gets an ID token. */
async function newIdToken(): Promise<string> {
  const { clientId, clientSecret, redirectUri } = exchange;
  const query = { client_id: clientId, redirect_uri: redirectUri, response_type: 'code', scope: 'openid', state: 'st' };
  const challenge = { code_challenge: 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM', code_challenge_method: 'S256' };
  const link = `${openId.origin}/auth?${new URLSearchParams({ ...query, ...challenge }).toString()}`;
  const code = (await openId.authorise(link)).searchParams.get('code') ?? '';
  const verifier = 'dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk';
  const grant = { grant_type: 'authorization_code', code, redirect_uri: redirectUri, code_verifier: verifier };
  const body = new URLSearchParams({ ...grant, client_id: clientId, client_secret: clientSecret });
  const reply = await clientFetch(`${openId.origin}/token`, { method: 'POST', body });
  return z.object({ id_token: z.string() }).parse(await reply.json()).id_token;
}

/** The client of the protocol's SDK, with its provider for this grant. */
async function connect(idToken: string): Promise<Client> {
  const { clientId, clientSecret, clientIdThere } = exchange;
  const authProvider = new CrossAppAccessProvider({
    assertion: async ({ authorizationServerUrl: audience, resourceUrl: resource }) => {
      const at = { tokenEndpoint: `${openId.origin}/token`, audience, resource };
      const granted = await requestJwtAuthorizationGrant({
        ...at,
        idToken,
        clientId,
        clientSecret,
        fetchFn: clientFetch,
      });
      return granted.jwtAuthGrant;
    },
    clientId: clientIdThere,
    // The SDK wants one. Clients have none here, and it is not sent.
    clientSecret: 'none',
    expectedIssuer: `https://${HOST}`,
    fetchFn: clientFetch,
  });
  const client = new Client({ name: 'assistant', version: '1' });
  await client.connect(new StreamableHTTPClientTransport(new URL(RESOURCE), { authProvider, fetch: clientFetch }));
  return client;
}

async function configure(clients: readonly string[]): Promise<void> {
  const oidc = {
    issuer: openId.origin,
    client_id: OPENID_CLIENT_ID,
    client_secret: OPENID_CLIENT_SECRET,
    domains: ['acme.test'],
  };
  const plain = { name: 'Acme', billing_email: null, allowed_domains: [], allowed_providers: null };
  const body = JSON.stringify({ ...plain, sso_required: false, oidc, provider_mcp_clients: clients });
  const reply = await control.send('/v1/enterprise', { method: 'PUT', headers: sessionHeaders(owner), body });
  expect([reply.status, await reply.text()]).toEqual([200, expect.any(String)]);
}

function sessionHeaders({ cookies }: TestBrowser): Record<string, string> {
  const cookie = `__Host-session=${cookies.get('__Host-session')}`;
  return { ...FRONT, 'content-type': 'application/json', 'sec-fetch-site': 'same-origin', cookie };
}

test('the provider of an enterprise connects a client that an admin has named, without a page for the person', async () => {
  const body = JSON.stringify({ client_name: 'Assistant', redirect_uris: [exchange.redirectUri] });
  const registration = await control.send('/oauth/register', { method: 'POST', headers: FRONT, body });
  exchange.clientIdThere = registered.parse(await registration.json()).client_id;
  await configure([]);
  const idToken = await newIdToken();
  await expect(connect(idToken)).rejects.toThrow(/nobody here may sign in/);

  const pat = new TestBrowser(control.send, FRONT);
  await signIn(pat, enterpriseId, (link) => openId.authorise(link));
  await expect(connect(idToken)).rejects.toThrow(/does not allow its provider/);

  await configure([exchange.clientIdThere]);
  const spec = JSON.stringify(ITEMS_SPEC);
  const added = { method: 'POST', headers: sessionHeaders(pat), body: spec };
  expect((await control.send('/v1/connectors?owner=personal', added)).status).toBe(201);
  const client = await connect(idToken);
  expect((await client.listTools()).tools.map(({ name }) => name)).toContain('svc_run__acme_items__get-item');

  const { items } = await parseReply(mcpClientsPage, pat.get('/v1/mcp-clients'));
  expect(items).toMatchObject([{ name: 'Assistant', connected_by: 'provider', client_id: exchange.clientIdThere }]);
  const page = await (await pat.get('/account')).text();
  expect(page).toContain('connected by your enterprise’s provider');

  await pat.submit(`/account/mcp-clients/${items[0]?.id}/end`, {});
  await expect(client.listTools()).rejects.toThrow(/disconnected this client/);
  await client.close();
});
