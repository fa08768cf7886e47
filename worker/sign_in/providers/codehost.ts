import {
  allowInsecureRequests,
  type AuthorizationServer,
  authorizationCodeGrantRequest,
  calculatePKCECodeChallenge,
  ClientSecretPost,
  customFetch,
  generateRandomCodeVerifier,
  processGenericTokenEndpointResponse,
  validateAuthResponse,
} from 'oauth4webapi';
import { z } from 'zod';
import { ok } from '../../../shared/model/result.ts';
import { authorizationLink } from '../../services/oauth/authorization_link.ts';
import { oauthFetch, outboundFetch } from '../../services/oauth/oauth_fetch.ts';
import type { Outbound } from '../../kernel/outbound.ts';
import { parseEmail } from '../../../shared/model/email.ts';
import type { AuthorizationRequest, CallbackRequest, Identity, ProviderEntry, ProviderInput } from '../provider.ts';
import { attempt, type ClientVariables, clientVariables, ProviderError, urlVariable } from '../provider_client.ts';

interface Settings extends ClientVariables {
  /** Where people sign in; also the issuer of the identities. */
  readonly baseUrl: string;
  readonly apiUrl: string;
  readonly outbound: Outbound;
}

const NAME = 'codehost';
const TITLE = 'Code hosting';
const SCOPE = 'user:email read:user';

/** The code-hosting provider: OAuth 2.0 without OpenID Connect (specification section 5). */
export const CODEHOST: ProviderEntry = {
  name: NAME,
  configure(input) {
    const client = clientVariables(input, 'CODEHOST_OAUTH');
    if (!client.ok || client.value === null) return client.ok ? ok(null) : client;
    const baseUrl = urlVariable(input, 'CODEHOST_OAUTH_URL', 'https://github.com');
    if (!baseUrl.ok) return baseUrl;
    const apiUrl = urlVariable(input, 'CODEHOST_OAUTH_API_URL', 'https://api.github.com');
    if (!apiUrl.ok) return apiUrl;
    const outbound = notedOutbound(input);
    const settings = { ...client.value, baseUrl: baseUrl.value, apiUrl: apiUrl.value, outbound };
    return ok({
      name: NAME,
      title: TITLE,
      authorizationURL: (request) => attempt(TITLE, () => authorizationURL(settings, request)),
      exchange: (callback) => attempt(TITLE, () => exchange(settings, callback)),
    });
  },
};

/** Notes how each call went. An answer below 500 is one, also if it refuses. */
function notedOutbound({ outbound, issuers }: ProviderInput): Outbound {
  return {
    async call(request) {
      const called = await outbound.call(request);
      issuers.note(NAME, called.ok ? problemOf(called.value.status) : 'it could not be reached');
      return called;
    },
  };
}

function problemOf(status: number): string | null {
  return status < 500 ? null : `it answered with status ${status}`;
}

/** PKCE is also sent to servers that may not support it: by RFC 7636 section 5 they ignore it. */
async function authorizationURL(settings: Settings, { state, redirectURL }: AuthorizationRequest) {
  const verifier = generateRandomCodeVerifier();
  const url = authorizationLink(`${settings.baseUrl}/login/oauth/authorize`, {
    clientId: settings.clientId,
    redirectURL,
    state,
    challenge: await calculatePKCECodeChallenge(verifier),
    more: { scope: SCOPE },
  });
  return { url, extraState: verifier };
}

async function exchange(settings: Settings, callback: CallbackRequest): Promise<Identity> {
  const accessToken = await redeem(settings, callback);
  const user = await read(settings, accessToken, '/user', profile);
  if (user === null) throw new ProviderError('provider_failed', `${TITLE} did not return your profile`);
  const addresses = (await read(settings, accessToken, '/user/emails', emails)) ?? [];
  const { email, isVerified } = resolveEmail(user.email || null, addresses);
  return {
    issuer: settings.baseUrl,
    subject: String(user.id),
    email,
    emailVerified: isVerified,
    displayName: user.name || user.login,
  };
}

async function redeem(settings: Settings, callback: CallbackRequest): Promise<string> {
  const server: AuthorizationServer = {
    issuer: settings.baseUrl,
    token_endpoint: `${settings.baseUrl}/login/oauth/access_token`,
  };
  const client = { client_id: settings.clientId };
  const answer = new URLSearchParams({ code: callback.code, state: callback.state });
  if (callback.issuer !== null) answer.set('iss', callback.issuer);
  const checked = validateAuthResponse(server, client, answer, callback.state);
  const reply = await authorizationCodeGrantRequest(
    server,
    client,
    ClientSecretPost(settings.clientSecret.reveal()),
    checked,
    callback.redirectURL,
    callback.extraState,
    { [customFetch]: oauthFetch(settings.outbound), [allowInsecureRequests]: true },
  );
  return (await processGenericTokenEndpointResponse(server, client, reply)).access_token;
}

const profile = z.object({
  id: z.number().int().safe(),
  login: z.string().min(1),
  name: z.string().nullish(),
  email: z.string().nullish(),
});
const emails = z.array(z.object({ email: z.string(), primary: z.boolean(), verified: z.boolean() }));
type EmailEntry = z.output<typeof emails>[number];

/** A reply of the API; null if it fails. */
async function read<T>(settings: Settings, accessToken: string, path: string, schema: z.ZodType<T>): Promise<T | null> {
  const headers = { authorization: `Bearer ${accessToken}`, accept: 'application/json' };
  const reply = await outboundFetch(settings.outbound)(settings.apiUrl + path, { headers });
  if (!reply.ok) return null;
  const parsed = schema.safeParse(await reply.json());
  return parsed.success ? parsed.data : null;
}

/**
 * The profile's email, or the primary and verified entry of the list (specification section 5). Users can write
 * anything into a profile, so its email is verified only if the list says so.
 */
function resolveEmail(ofProfile: string | null, list: readonly EmailEntry[]): { email: string; isVerified: boolean } {
  const found = ofProfile ?? list.find((entry) => entry.primary && entry.verified)?.email;
  const email = found === undefined ? null : parseEmail(found);
  if (email === null) {
    const message = `${TITLE} has no primary, verified email address of yours: verify one there and sign in again`;
    throw new ProviderError('email_required', message);
  }
  const isVerified = list.some((entry) => entry.verified && parseEmail(entry.email)?.address === email.address);
  return { email: email.address, isVerified };
}
