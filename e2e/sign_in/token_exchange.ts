import { exportJWK, importJWK, type JWK, jwtVerify, SignJWT } from 'jose';
import type { Provider } from 'oidc-provider';
import { z } from 'zod';

const GRANT = 'urn:ietf:params:oauth:grant-type:token-exchange';
const ID_JAG = 'urn:ietf:params:oauth:token-type:id-jag';

/** A client at the provider that may exchange its ID tokens for identity assertions. */
export interface TokenExchange {
  readonly clientId: string;
  readonly clientSecret: string;
  readonly redirectUri: string;
  /** The provider's private key, as a JWK. */
  readonly key: JWK;
  /** The id of the client at the resource's authorization server. */
  clientIdThere: string;
}

/** The provider's configuration with this client and key. */
export function withExchange(configuration: object, exchange: TokenExchange): object {
  const { clientId, clientSecret, redirectUri, key } = exchange;
  const client = {
    client_id: clientId,
    client_secret: clientSecret,
    redirect_uris: [redirectUri],
    grant_types: ['authorization_code', GRANT],
    response_types: ['code'],
    token_endpoint_auth_method: 'client_secret_post',
  };
  const { clients } = z.looseObject({ clients: z.array(z.unknown()) }).parse(configuration);
  return { ...configuration, clients: [...clients, client], jwks: { keys: [key] } };
}

const parameters = z.object({
  requested_token_type: z.literal(ID_JAG),
  audience: z.string(),
  resource: z.string(),
  subject_token: z.string(),
  subject_token_type: z.literal('urn:ietf:params:oauth:token-type:id_token'),
});

/**
 * Teaches the provider the exchange of an ID token for an identity assertion (RFC 8693, draft-ietf-oauth-identity-assertion-authz-grant
 * section 4.3), which the library does not have: the grant is this test's, the sign-in, the ID token and the keys are the library's.
 */
export function addTokenExchange(provider: Provider, issuer: string, exchange: TokenExchange): void {
  const handle = async (context: ExchangeContext): Promise<void> => {
    const { audience, resource, subject_token: idToken } = parameters.parse(context.oidc?.params);
    const { kty = '', n = '', e = '', kid = '' } = exchange.key;
    const key = await importJWK(exchange.key, 'RS256');
    const published = await importJWK({ kty, n, e }, 'RS256');
    const verified = await jwtVerify(idToken, published, { issuer, audience: exchange.clientId });
    const claims = { client_id: exchange.clientIdThere, resource };
    const assertion = await new SignJWT(claims)
      .setProtectedHeader({ alg: 'RS256', typ: 'oauth-id-jag+jwt', kid })
      .setIssuer(issuer)
      .setSubject(verified.payload.sub ?? '')
      .setAudience(audience)
      .setJti(crypto.randomUUID())
      .setIssuedAt()
      .setExpirationTime('5m')
      .sign(key);
    context.body = { access_token: assertion, issued_token_type: ID_JAG, token_type: 'N_A', expires_in: 300 };
  };
  const names = ['requested_token_type', 'audience', 'resource', 'scope', 'subject_token', 'subject_token_type'];
  provider.registerGrantType(GRANT, handle, names);
}

type ExchangeContext = Parameters<Parameters<Provider['registerGrantType']>[1]>[0];

/** A private key for a provider. */
export async function providerKey(): Promise<JWK> {
  const { privateKey } = await crypto.subtle.generateKey(
    { name: 'RSASSA-PKCS1-v1_5', modulusLength: 2048, publicExponent: new Uint8Array([1, 0, 1]), hash: 'SHA-256' },
    true,
    ['sign', 'verify'],
  );
  return { ...(await exportJWK(privateKey)), kid: 'of-the-test', use: 'sig', alg: 'RS256' };
}
