import { err, ok, type Result } from '../../shared/model/result.ts';
import { authorizeInput, authorizeReply } from '../../shared/wire/connector_credentials.ts';
import { connectorParams } from '../../shared/wire/connectors.ts';
import { apiError, type ApiError } from '../../shared/wire/errors.ts';
import { messagePage } from '../pages/layout.ts';
import { beginAuthorisation, finishAuthorisation } from '../services/oauth_authorisation.ts';
import type { ServiceContext } from '../services/service_context.ts';
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
    const origin = redirectOrigin(context, request.url);
    if (!origin.ok) return origin;
    return json(await beginAuthorisation(context, who, params.id, { grant: body.grant, origin: origin.value }));
  },
});

/**
 * What the redirect URL is under, which people register with the provider: never the name a hosted control plane was called by,
 * which is not what stands in front of it, or somebody else's. Refuses with `misdirected_host`.
 */
export function redirectOrigin({ local, publicUrl }: ServiceContext, calledUrl: string): Result<string, ApiError> {
  if (publicUrl !== null) return ok(publicUrl);
  if (local !== null) return ok(new URL(calledUrl).origin);
  const message =
    'connectors and MCP servers are authorised under the public name of the control plane, which it was not told: set SVC_PUBLIC_URL';
  return err(apiError('misdirected_host', message));
}

/** Sends a signed-in browser on to the provider. */
export async function openAuthorisation(c: AppContext): Promise<Response> {
  const caller = await callerOfBrowser(c);
  if (caller === null) return showSignIn(c, 401);
  const context = c.get('context');
  const origin = redirectOrigin(context, c.req.url);
  if (!origin.ok) return page(c, messagePage('Authorisation', origin.error.message), 400);
  const how = { grant: 'browser' as const, origin: origin.value };
  const begun = await beginAuthorisation(context, caller, c.req.param('id') ?? '', how);
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
  const message = `${finished.value.name} is authorised. You can close this page.`;
  return page(c, messagePage('Authorised', message), 200);
}
