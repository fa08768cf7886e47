import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { JWK } from 'jose';
import { errors, Provider } from 'oidc-provider';
import { listen } from '../support/tls_upstream.ts';
import { followRedirects } from '../sign_in/test_browser.ts';

export const CLIENT_ID = 'svc-client';
export const CLIENT_SECRET = 'client-secret-of-a-test';
const SCOPE = 'openid offline_access';
const RESOURCE_SCOPE = 'tools';
/** Lets a test read the audience of a token. */
const AS_JWT = { accessTokenFormat: 'jwt', jwt: { sign: { alg: 'RS256' } } };

/** A real OAuth provider on loopback, with one user who agrees to everything. */
export interface OAuthProvider {
  readonly origin: string;
  /** The number of calls to the token endpoint. */
  readonly tokenCalls: () => number;
  /** Opens a link as the user's browser does; returns the URL that the provider redirects to. */
  authorise(url: string): Promise<URL>;
  /** Enters a device's code as the user. */
  authoriseDevice(userCode: string): Promise<void>;
  /** Answers the calls of the revocation endpoint; if null, the provider answers. */
  onRevocation(handle: ((response: ServerResponse) => void) | null): void;
  /** How many refresh tokens were revoked. */
  readonly revoked: () => number;
  /** Revokes every authorisation. */
  revoke(): Promise<void>;
  /** Delays or answers the next calls of the token endpoint; if null, the provider answers. */
  onToken(handle: ((response: ServerResponse) => Promise<boolean>) | null): void;
  /** Delays the next answers of the token endpoint, after the provider has decided. */
  onTokenAnswer(wait: (() => Promise<void>) | null): void;
  stop(): Promise<void>;
}

interface OAuthProviderOptions {
  readonly redirectUris: readonly string[];
  readonly authentication?: 'client_secret_post' | 'client_secret_basic' | 'none' | 'private_key_jwt';
  /** The public keys of a client that authenticates with a key. */
  readonly clientKeys?: readonly JWK[];
  /** Whether clients may register themselves (RFC 7591). */
  readonly registration?: boolean;
  /** The resources that tokens may be requested for (RFC 8707). */
  readonly resources?: readonly string[];
  /** The lifetime of the next access token. */
  readonly accessTokenSeconds?: () => number;
}

export async function startOAuthProvider(options: OAuthProviderOptions): Promise<OAuthProvider> {
  const server = createServer();
  const origin = `http://127.0.0.1:${await listen(server)}`;
  const grants: string[] = [];
  const provider = new Provider(
    origin,
    configuration(options, (grantId) => grants.push(grantId)),
  );
  const answer = provider.callback();
  let onToken: ((response: ServerResponse) => Promise<boolean>) | null = null;
  let onTokenAnswer: (() => Promise<void>) | null = null;
  let onRevocation: ((response: ServerResponse) => void) | null = null;
  let tokenCalls = 0;
  let revoked = 0;
  provider.on('refresh_token.destroyed', () => (revoked += 1));
  server.on('request', (request, response) => {
    if (request.url?.startsWith('/interaction/')) {
      void provider.interactionFinished(request, response, { login: { accountId: 'alice' }, consent: {} });
      return;
    }
    if (request.url === '/token/revocation' && onRevocation !== null) return onRevocation(response);
    if (request.url === '/token') tokenCalls += 1;
    void serveToken(request, response);
  });
  const serveToken = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const isToken = request.url === '/token';
    const isAnswered = isToken && (await onToken?.(response)) === true;
    if (isToken && onTokenAnswer !== null) delayEnd(response, onTokenAnswer);
    if (!isAnswered) answer(request, response);
  };
  return {
    origin,
    tokenCalls: () => tokenCalls,
    authorise: (url) => browse(url, origin),
    authoriseDevice: (userCode) => typeCode(provider, userCode, (grantId) => grants.push(grantId)),
    async revoke() {
      for (const id of grants) await (await provider.Grant.find(id))?.destroy();
    },
    revoked: () => revoked,
    onRevocation: (handle) => (onRevocation = handle),
    onToken: (handle) => (onToken = handle),
    onTokenAnswer: (wait) => (onTokenAnswer = wait),
    stop: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Ends a reply only after the wait; its content is decided before. */
function delayEnd(response: ServerResponse, wait: () => Promise<void>): void {
  const end = response.end.bind(response);
  Object.assign(response, {
    end(body?: string | Buffer) {
      void wait().then(() => end(body));
      return response;
    },
  });
}

function configuration(options: OAuthProviderOptions, keep: (grantId: string) => void): object {
  const {
    redirectUris,
    authentication = 'client_secret_post',
    accessTokenSeconds = () => 3600,
    registration = false,
    resources = [],
    clientKeys,
  } = options;
  return {
    ...(authentication === 'private_key_jwt' && { clientAuthMethods: [authentication] }),
    clients: [
      {
        client_id: CLIENT_ID,
        ...(authentication.startsWith('client_secret') && { client_secret: CLIENT_SECRET }),
        ...(clientKeys !== undefined && { jwks: { keys: clientKeys } }),
        token_endpoint_auth_method: authentication,
        redirect_uris: redirectUris,
        grant_types: ['authorization_code', 'refresh_token', 'urn:ietf:params:oauth:grant-type:device_code'],
        response_types: ['code'],
      },
    ],
    features: {
      devInteractions: { enabled: false },
      deviceFlow: { enabled: true },
      revocation: { enabled: true },
      registration: { enabled: registration },
      resourceIndicators: {
        enabled: resources.length > 0,
        getResourceServerInfo: (_: unknown, resource: string) => {
          if (!resources.includes(resource)) throw new errors.InvalidTarget();
          return { scope: RESOURCE_SCOPE, audience: resource, accessTokenTTL: accessTokenSeconds(), ...AS_JWT };
        },
      },
    },
    interactions: { url: (_: unknown, interaction: { uid: string }) => `/interaction/${interaction.uid}` },
    findAccount: (_: unknown, id: string) => ({ accountId: id, claims: () => ({ sub: id }) }),
    issueRefreshToken: () => true,
    rotateRefreshToken: true,
    ttl: {
      AccessToken: () => accessTokenSeconds(),
      Grant: 86_400,
      RefreshToken: 86_400,
      Session: 600,
      Interaction: 600,
    },
    cookies: { keys: ['of-a-test'] },
    async loadExistingGrant(context: {
      oidc: { client: { clientId: string }; session: { accountId: string }; provider: Provider };
    }) {
      const { client, session, provider } = context.oidc;
      const grant = new provider.Grant({ clientId: client.clientId, accountId: session.accountId });
      grant.addOIDCScope(SCOPE);
      for (const resource of resources) grant.addResourceScope(resource, RESOURCE_SCOPE);
      keep(await grant.save());
      return grant;
    },
  };
}

function browse(url: string, origin: string): Promise<URL> {
  return followRedirects(url, origin, (at, cookie) => fetch(at, { headers: { cookie }, redirect: 'manual' }));
}

async function typeCode(provider: Provider, userCode: string, keep: (grantId: string) => void): Promise<void> {
  const code = await provider.DeviceCode.findByUserCode(userCode.replaceAll('-', ''));
  if (code === undefined) throw new Error('the provider has no such code');
  const grant = new provider.Grant({ clientId: CLIENT_ID, accountId: 'alice' });
  grant.addOIDCScope(SCOPE);
  const grantId = await grant.save();
  keep(grantId);
  Object.assign(code, {
    accountId: 'alice',
    grantId,
    scope: SCOPE,
    authTime: Math.floor(Date.now() / 1000),
    claims: {},
  });
  await code.save(600);
}
