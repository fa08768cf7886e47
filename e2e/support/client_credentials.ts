import { Provider } from 'oidc-provider';

/** A real OpenID provider that gives tokens to its client `build`, of the scopes `repo:read` and `repo:write`. */
export function clientCredentialsProvider(origin: string, secret: string): Provider {
  return new Provider(origin, {
    clients: [
      {
        client_id: 'build',
        client_secret: secret,
        grant_types: ['client_credentials'],
        redirect_uris: [],
        response_types: [],
        token_endpoint_auth_method: 'client_secret_basic',
      },
    ],
    features: { clientCredentials: { enabled: true } },
    scopes: ['repo:read', 'repo:write'],
  });
}
