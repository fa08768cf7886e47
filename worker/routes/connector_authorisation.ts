import { authorizeInput, authorizeReply } from '../../shared/wire/connector_credentials.ts';
import { connectorParams } from '../../shared/wire/connectors.ts';
import { messagePage } from '../pages/layout.ts';
import { beginAuthorisation, finishAuthorisation } from '../services/oauth_authorisation.ts';
import type { AppContext } from './app_env.ts';
import { callerOfBrowser } from './authenticate.ts';
import { forUser } from './operation.ts';
import { page, showSignIn } from './pages.ts';
import { json } from './replies.ts';

export const postAuthorisation = forUser({
  summary: "Authorise a connector's oauth2 credential",
  description:
    'Answers with a link to open in a browser, or with a code to type on another device. A device’s code is redeemed while GET /v1/connectors/{id} is called.',
  params: connectorParams,
  body: authorizeInput,
  replies: { 200: authorizeReply },
  async handle({ context, who, params, body, request }) {
    const how = { grant: body.grant, origin: new URL(request.url).origin };
    return json(await beginAuthorisation(context, who, params.id, how));
  },
});

/** Sends a signed-in browser on to the provider. */
export async function openAuthorisation(c: AppContext): Promise<Response> {
  const caller = await callerOfBrowser(c);
  if (caller === null) return showSignIn(c, 401);
  const how = { grant: 'browser' as const, origin: new URL(c.req.url).origin };
  const begun = await beginAuthorisation(c.get('context'), caller, c.req.param('id') ?? '', how);
  if (!begun.ok) return page(c, messagePage('Authorisation', begun.error.message), 400);
  return begun.value.grant === 'browser'
    ? c.redirect(begun.value.authorization_url, 303)
    : page(
        c,
        messagePage('Authorisation', 'This connector is authorised with a code: use svc connector authorize'),
        400,
      );
}

/** Where the provider sends the browser back to. */
export async function finishAuthorisationPage(c: AppContext): Promise<Response> {
  const { state = '', code = null, error = null, iss = null } = c.req.query();
  const callback = { state, code, error, issuer: iss };
  const finished = await finishAuthorisation(c.get('context'), callback, await callerOfBrowser(c));
  if (!finished.ok) return page(c, messagePage('Not authorised', `${finished.error}.`), 400);
  const message = `${finished.value.fqn} is authorised. You can close this page.`;
  return page(c, messagePage('Authorised', message), 200);
}
