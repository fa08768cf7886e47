import {
  allowInsecureRequests,
  authorizationCodeGrantRequest,
  ClientSecretPost,
  customFetch,
  nopkce,
  processGenericTokenEndpointResponse,
  validateAuthResponse,
} from 'oauth4webapi';
import { z } from 'zod';
import { ok } from '../../shared/model/result.ts';
import type { ProviderEntry } from '../../worker/sign_in/provider.ts';
import { outboundFetch } from '../../worker/services/oauth/oauth_fetch.ts';
import { attempt, clientVariables } from '../../worker/sign_in/provider_client.ts';

const SITE = 'https://forum.example.com';
const TITLE = 'Forum';
const profile = z.object({ uid: z.string(), mail: z.string(), mail_confirmed: z.boolean(), nick: z.string() });

/** Signs in with the accounts of a forum. */
export const FORUM: ProviderEntry = {
  name: 'forum',
  configure(input) {
    const client = clientVariables(input, 'FORUM_OAUTH');
    if (!client.ok || client.value === null) return client.ok ? ok(null) : client;
    const { clientId, clientSecret } = client.value;
    const fetchProvider = outboundFetch(input.outbound);
    return ok({
      name: 'forum',
      title: TITLE,
      authorizationURL: async ({ state, redirectURL }) => {
        const query = { response_type: 'code', client_id: clientId, redirect_uri: redirectURL, state };
        return ok({ url: `${SITE}/authorize?${new URLSearchParams(query).toString()}`, extraState: '' });
      },
      exchange: ({ code, state, redirectURL, issuer }) =>
        attempt(TITLE, async () => {
          const server = { issuer: SITE, token_endpoint: `${SITE}/token` };
          const answer = new URLSearchParams({ code, state, ...(issuer !== null && { iss: issuer }) });
          const checked = validateAuthResponse(server, { client_id: clientId }, answer, state);
          const reply = await authorizationCodeGrantRequest(
            server,
            { client_id: clientId },
            ClientSecretPost(clientSecret.reveal()),
            checked,
            redirectURL,
            nopkce,
            { [customFetch]: fetchProvider, [allowInsecureRequests]: true },
          );
          const tokens = await processGenericTokenEndpointResponse(server, { client_id: clientId }, reply);
          const headers = { authorization: `Bearer ${tokens.access_token}` };
          const user = profile.parse(await (await fetchProvider(`${SITE}/me`, { headers })).json());
          const { uid, mail, mail_confirmed: emailVerified, nick } = user;
          return { issuer: SITE, subject: uid, email: mail, emailVerified, displayName: nick };
        }),
    });
  },
};
