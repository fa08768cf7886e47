import { createServer } from 'node:http';
import { Provider } from 'oidc-provider';
import { z } from 'zod';
import { listen } from '../support/tls_upstream.ts';

const tokenReply = z.object({ access_token: z.string() });
const keySet = z.object({ keys: z.array(z.record(z.string(), z.unknown())) });
const CLIENT = `Basic ${btoa('job:client-secret-of-a-test')}`;

/** A real OpenID provider that gives jobs signed tokens, as a CI platform does. */
export interface JobIssuer {
  readonly issuer: string;
  /** A token of a job for this audience. */
  tokenFor(audience: string): Promise<string>;
  /** Its public keys. */
  keys(): Promise<readonly Record<string, unknown>[]>;
  stop(): Promise<void>;
}

/** `claims` is what its tokens say of the job. */
export async function startJobIssuer(claims: Readonly<Record<string, unknown>>): Promise<JobIssuer> {
  const server = createServer();
  const issuer = `http://127.0.0.1:${await listen(server)}`;
  const client = { client_id: 'job', client_secret: 'client-secret-of-a-test', grant_types: ['client_credentials'] };
  const provider = new Provider(issuer, {
    clients: [{ ...client, redirect_uris: [], response_types: [] }],
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: (_: unknown, resource: string) => ({
          scope: 'join',
          audience: resource,
          accessTokenTTL: 300,
          accessTokenFormat: 'jwt',
          jwt: { sign: { alg: 'RS256' } },
        }),
      },
    },
    extraTokenClaims: () => claims,
  });
  server.on('request', provider.callback());
  return {
    issuer,
    async tokenFor(resource) {
      const body = new URLSearchParams({ grant_type: 'client_credentials', resource, scope: 'join' });
      const reply = await fetch(`${issuer}/token`, { method: 'POST', headers: { authorization: CLIENT }, body });
      return tokenReply.parse(await reply.json()).access_token;
    },
    keys: async () => keySet.parse(await (await fetch(`${issuer}/jwks`)).json()).keys,
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
