import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { Provider } from 'oidc-provider';
import { listen } from '../support/tls_upstream.ts';
import { forwardedHeaders } from './named_outbound.ts';
import { followRedirects } from './test_browser.ts';
import { addTokenExchange, type TokenExchange, withExchange } from './token_exchange.ts';

export const OPENID_CLIENT_ID = 'svc-sign-in';
export const OPENID_CLIENT_SECRET = 'openid-client-secret-of-a-test';

/** The person at the provider. */
interface Person {
  readonly sub: string;
  readonly email?: string;
  readonly email_verified?: unknown;
  readonly name?: string;
}

/** A real OpenID provider behind a TLS proxy; `person` is signed in and agrees to everything. */
export interface OpenIdProvider {
  /** Its issuer. */
  readonly origin: string;
  /** Its origin on loopback. */
  readonly loopback: string;
  person: Person;
  /** Changes an endpoint's answer; null for no change. */
  alter: ((path: string, body: string) => string) | null;
  /** Opens a link like the person's browser; returns the URL that the provider redirects to. */
  authorise(url: string): Promise<URL>;
  stop(): Promise<void>;
}

export async function startOpenIdProvider(
  host: string,
  redirectUris: readonly string[],
  exchange: TokenExchange | null = null,
): Promise<OpenIdProvider> {
  const server = createServer();
  const origin = `https://${host}`;
  const loopback = `http://127.0.0.1:${await listen(server)}`;
  const openId: OpenIdProvider = {
    origin,
    loopback,
    person: { sub: 'alice' },
    alter: null,
    authorise: (url) => browse(url, { origin, loopback }),
    stop: () => close(server),
  };
  const plain = configuration(redirectUris, () => openId.person);
  const provider = new Provider(origin, exchange === null ? plain : withExchange(plain, exchange));
  if (exchange !== null) addTokenExchange(provider, origin, exchange);
  Object.assign(provider, { proxy: true });
  const answer = provider.callback();
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    if (request.url?.startsWith('/interaction/')) {
      void provider.interactionFinished(request, response, { login: { accountId: openId.person.sub } });
      return;
    }
    if (openId.alter !== null) alterBody(response, request.url ?? '', openId.alter);
    answer(request, response);
  });
  return openId;
}

/** Changes the body that a response ends with. */
function alterBody(response: ServerResponse, url: string, alter: (path: string, body: string) => string): void {
  const end = response.end.bind(response);
  const endAltered = (body?: unknown) => {
    const text = Buffer.isBuffer(body) || typeof body === 'string' ? alter(url, body.toString()) : undefined;
    if (text === undefined) return end();
    response.removeHeader('content-length');
    return end(text);
  };
  Object.assign(response, { end: endAltered });
}

function configuration(redirectUris: readonly string[], person: () => Person): object {
  return {
    clients: [
      {
        client_id: OPENID_CLIENT_ID,
        client_secret: OPENID_CLIENT_SECRET,
        token_endpoint_auth_method: 'client_secret_basic',
        redirect_uris: redirectUris,
        grant_types: ['authorization_code'],
        response_types: ['code'],
      },
    ],
    claims: { email: ['email', 'email_verified'], profile: ['name'] },
    features: { devInteractions: { enabled: false } },
    interactions: { url: (_: unknown, interaction: { uid: string }) => `/interaction/${interaction.uid}` },
    findAccount: (_: unknown, id: string) => ({ accountId: id, claims: () => ({ ...person(), sub: id }) }),
    cookies: { keys: ['of-a-test'] },
    ttl: { AccessToken: 600, Grant: 600, IdToken: 600, Interaction: 600, Session: 600 },
    async loadExistingGrant(context: {
      oidc: { client: { clientId: string }; session: { accountId: string }; provider: Provider };
    }) {
      const { client, session, provider } = context.oidc;
      const grant = new provider.Grant({ clientId: client.clientId, accountId: session.accountId });
      grant.addOIDCScope('openid email profile');
      await grant.save();
      return grant;
    },
  };
}

function browse(url: string, { origin, loopback }: Pick<OpenIdProvider, 'origin' | 'loopback'>): Promise<URL> {
  return followRedirects(url, origin, (at, cookie) => {
    const headers = { cookie, ...forwardedHeaders(at.host) };
    return fetch(loopback + at.pathname + at.search, { headers, redirect: 'manual' });
  });
}

async function close(server: Server): Promise<void> {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
}
