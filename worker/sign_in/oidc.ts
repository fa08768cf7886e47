import {
  allowInsecureRequests,
  type AuthorizationServer,
  authorizationCodeGrantRequest,
  calculatePKCECodeChallenge,
  type ClientAuth,
  ClientSecretBasic,
  ClientSecretPost,
  customFetch,
  discoveryRequest,
  generateRandomCodeVerifier,
  generateRandomNonce,
  getValidatedIdTokenClaims,
  type IDToken,
  jwksCache,
  type JWKSCacheInput,
  KEY_SELECTION,
  OperationProcessingError,
  processAuthorizationCodeResponse,
  processDiscoveryResponse,
  processUserInfoResponse,
  userInfoRequest,
  validateApplicationLevelSignature,
  validateAuthResponse,
} from 'oauth4webapi';
import { z } from 'zod';
import type { Outbound } from '../kernel/outbound.ts';
import { targetProblem } from '../kernel/outbound.ts';
import { parseEmail } from '../../shared/model/email.ts';
import type { HeldIssuers, IssuerDocuments } from './issuer_documents.ts';
import type { AuthorizationRequest, AuthProvider, CallbackRequest, Identity } from './provider.ts';
import { authorizationLink } from '../services/oauth/authorization_link.ts';
import { outboundFetch } from '../services/oauth/oauth_fetch.ts';
import { attempt, type ClientVariables, ProviderError } from './provider_client.ts';

/** An OpenID provider, and our client there. */
interface OidcSettings extends ClientVariables {
  readonly name: string;
  readonly title: string;
  readonly issuer: string;
  readonly outbound: Outbound;
  readonly isLocal: boolean;
  readonly issuers: HeldIssuers;
}

const SCOPE = 'openid email profile';

/** Sign-in by OpenID Connect: discovery, PKCE, nonce, signed ID token (OpenID Connect Core section 3.1). */
export function oidcProvider(settings: OidcSettings): AuthProvider {
  const { name, title } = settings;
  return {
    name,
    title,
    authorizationURL: (request) => attempt(title, () => askIssuer(settings, () => authorizationURL(settings, request))),
    exchange: (callback) => attempt(title, () => askIssuer(settings, () => exchange(settings, callback))),
  };
}

/** After any failure the next sign-in fetches the provider's documents again, because cached ones may be the cause. */
async function askIssuer<T>({ issuers, issuer }: OidcSettings, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    issuers.forget(issuer);
    throw error;
  }
}

/** What the browser keeps in a cookie across the redirect. */
const extra = z.strictObject({ verifier: z.string(), nonce: z.string() });

async function authorizationURL(settings: OidcSettings, { state, redirectURL }: AuthorizationRequest) {
  const { server } = await discover(settings);
  const kept = { verifier: generateRandomCodeVerifier(), nonce: generateRandomNonce() };
  const url = authorizationLink(authorizationEndpoint(settings, server), {
    clientId: settings.clientId,
    redirectURL,
    state,
    challenge: await calculatePKCECodeChallenge(kept.verifier),
    more: { scope: SCOPE, nonce: kept.nonce },
  });
  return { url, extraState: btoa(JSON.stringify(kept)) };
}

async function exchange(settings: OidcSettings, callback: CallbackRequest): Promise<Identity> {
  const kept = readExtra(callback.extraState);
  const documents = await discover(settings);
  const { server } = documents;
  const client = { client_id: settings.clientId };
  const options = callOptions(settings);
  const answer = new URLSearchParams({ code: callback.code, state: callback.state });
  if (callback.issuer !== null) answer.set('iss', callback.issuer);
  const checked = validateAuthResponse(server, client, answer, callback.state);
  const auth = authentication(settings, server);
  const { redirectURL } = callback;
  const reply = await authorizationCodeGrantRequest(server, client, auth, checked, redirectURL, kept.verifier, options);
  const how = { expectedNonce: kept.nonce, requireIdToken: true };
  const tokens = await processAuthorizationCodeResponse(server, client, reply, how);
  await verifySignature(settings, documents, reply);
  const claims = getValidatedIdTokenClaims(tokens);
  if (claims === undefined) throw new ProviderError('provider_failed', `${settings.title} sent no ID token`);
  return identityOf(settings, server, await completeClaims(settings, server, claims, tokens.access_token));
}

function readExtra(extraState: string) {
  try {
    return extra.parse(JSON.parse(atob(extraState)));
  } catch {
    // Any invalid value means that it is not the one that was set.
    throw new ProviderError('provider_failed', 'this browser lost what the sign-in started with');
  }
}

/** Verifies the ID token. If its key is unknown, the keys are fetched once more, because it may be new. */
async function verifySignature(settings: OidcSettings, { server, keys }: IssuerDocuments, reply: Response) {
  const heldSince = keys['uat'];
  const verify = (known: JWKSCacheInput) =>
    validateApplicationLevelSignature({ ...server }, reply, { ...callOptions(settings), [jwksCache]: known });
  try {
    await verify(keys);
  } catch (error) {
    const isUnknownKey = error instanceof OperationProcessingError && error.code === KEY_SELECTION;
    if (!isUnknownKey || heldSince === undefined || keys['uat'] !== heldSince) throw error;
    const fresh: JWKSCacheInput = {};
    await verify(fresh);
    Object.assign(keys, fresh);
  }
}

function discover(settings: OidcSettings): Promise<IssuerDocuments> {
  return settings.issuers.documents(settings.issuer, settings.name, async () => {
    const issuer = new URL(settings.issuer);
    return processDiscoveryResponse(issuer, await discoveryRequest(issuer, callOptions(settings)));
  });
}

/** The outbound port decides which URLs may be called, including plain http ones. */
function callOptions({ outbound }: OidcSettings) {
  return { [customFetch]: outboundFetch(outbound), [allowInsecureRequests]: true };
}

/** A browser is redirected only to URLs that the control plane itself would call. */
function authorizationEndpoint({ title, isLocal }: OidcSettings, server: AuthorizationServer): string {
  const endpoint = server.authorization_endpoint ?? '';
  const isUsable = URL.canParse(endpoint) && targetProblem(new URL(endpoint), isLocal) === null;
  if (isUsable) return endpoint;
  throw new ProviderError('provider_failed', `${title} has no usable authorisation endpoint`);
}

function authentication({ clientSecret }: OidcSettings, server: AuthorizationServer): ClientAuth {
  const supported = server.token_endpoint_auth_methods_supported ?? ['client_secret_basic'];
  const secret = clientSecret.reveal();
  return supported.includes('client_secret_basic') ? ClientSecretBasic(secret) : ClientSecretPost(secret);
}

type Claims = Pick<IDToken, 'sub'> & Readonly<Record<string, unknown>>;

/** The ID token may omit the email; then the UserInfo endpoint has it (OpenID Connect Core section 5.4). */
async function completeClaims(
  settings: OidcSettings,
  server: AuthorizationServer,
  claims: IDToken,
  accessToken: string,
): Promise<Claims> {
  if (claims['email'] !== undefined || server.userinfo_endpoint === undefined) return { ...claims };
  const client = { client_id: settings.clientId };
  const reply = await userInfoRequest(server, client, accessToken, callOptions(settings));
  return { ...claims, ...(await processUserInfoResponse(server, client, claims.sub, reply)) };
}

function identityOf({ title }: OidcSettings, server: AuthorizationServer, claims: Claims): Identity {
  const email = typeof claims['email'] === 'string' ? parseEmail(claims['email']) : null;
  if (email === null) {
    throw new ProviderError('email_required', `${title} sent no email address: allow it to share yours`);
  }
  const name = claims['name'] ?? claims['preferred_username'];
  return {
    issuer: server.issuer,
    subject: claims.sub,
    email: email.address,
    // Only the boolean true counts: some providers send strings, and the string "false" is truthy.
    emailVerified: claims['email_verified'] === true,
    displayName: typeof name === 'string' ? name : '',
  };
}
