import { toSentence } from '../../../shared/model/sentence.ts';
import { err, ok, type Result } from '../../../shared/model/result.ts';
import { callbackQuery } from '../../../shared/wire/auth.ts';
import { authorizeInput, authorizeReply } from '../../../shared/wire/connectors/connector_credentials.ts';
import { connectorParams } from '../../../shared/wire/connectors/connectors.ts';
import { apiError, type ApiError } from '../../../shared/wire/errors.ts';
import { isId } from '../../../shared/wire/ids.ts';
import { notAuthorisedPage, type WayBack } from '../../pages/connectors/not_authorised_page.ts';
import { messagePage, type Page } from '../../pages/frame/layout.ts';
import { withoutCalls } from '../../pages/frame/page_words.ts';
import type { Caller } from '../../kernel/caller.ts';
import {
  beginAuthorisation,
  finishAuthorisation,
  hasFlow,
  isOfConsole,
  type RedirectOrigin,
} from '../../services/oauth/oauth_authorisation.ts';
import type { ProgramContext } from '../../installation/program_context.ts';
import type { AppContext } from '../http/app_env.ts';
import { callerOfBrowser } from '../http/authenticate.ts';
import { queryOf } from '../console/browser_query.ts';
import { redirectDone, forReader } from '../console/console.ts';
import { holdsCookies, isAtConsole, loopbackOrigin } from '../console/console_host.ts';
import { handOver } from '../auth/hand_over.ts';
import { forUser } from '../http/operation.ts';
import { consolePage, page, TO_CONSOLE } from '../console/pages.ts';
import { jsonReply } from '../http/replies.ts';

export const postAuthorisation = forUser({
  summary: "Authorise a connector's oauth2 credential",
  description:
    'Returns a link to open in a browser, or a code to type on another device. A device’s code is redeemed while you call GET /v1/connectors/{id}.',
  params: connectorParams,
  body: authorizeInput,
  replies: { 200: authorizeReply },
  async handle({ context, who, params, body, request }) {
    const origin = redirectOrigin(context, request.url);
    if (!origin.ok) return origin;
    return jsonReply(await beginAuthorisation(context, who, params.id, { grant: body.grant, ...origin.value }));
  },
});

/**
 * The origin of the redirect URL, and whether the local console started the authorisation. People register this URL
 * with the provider. A hosted control plane uses its configured origin, never the called name, which may be internal or
 * forged. Refuses with `misdirected_host`.
 */
export function redirectOrigin(context: ProgramContext, calledUrl: string): Result<RedirectOrigin, ApiError> {
  const { local, publicUrl } = context;
  const inConsole = local !== null && holdsCookies(context, calledUrl);
  if (publicUrl !== null) return ok({ origin: publicUrl, inConsole });
  if (local !== null) return ok({ origin: loopbackOrigin(local.consoleHost, calledUrl), inConsole });
  const message =
    'connectors and MCP servers are authorised under the public name of the control plane, which is not configured: set SVC_PUBLIC_URL';
  return err(apiError('misdirected_host', message));
}

/** Redirects a signed-in browser to the provider. */
export const openAuthorisation = forReader(async (c, caller) => {
  const context = c.get('context');
  const id = c.req.param('id') ?? '';
  const origin = redirectOrigin(context, c.req.url);
  const begun = origin.ok
    ? await beginAuthorisation(context, caller, id, { grant: 'browser', ...origin.value })
    : origin;
  if (!begun.ok) return answerNotAuthorised(c, caller, begun.error.message, wayBack(id));
  if (begun.value.grant === 'browser') return c.redirect(begun.value.authorization_url, 303);
  throw new Error('a browser authorisation returned no URL');
});

/**
 * The provider's redirect. A signed-in browser continues to the page of the connector or server. Another one, for
 * example after opening a link from a terminal, gets a page with the outcome.
 */
export async function finishAuthorisationPage(c: AppContext): Promise<Response> {
  const query = queryOf(c, callbackQuery);
  if (!query.ok) return page(c, notDone(query.error.message), 400);
  const { state = '', code = null, error = null, iss = null } = query.value;
  const context = c.get('context');
  if (isOfConsole(state) && !isAtConsole(c)) return handOver(c, await hasFlow(context, state));
  const caller = await callerOfBrowser(c);
  const finished = await finishAuthorisation(context, { state, code, error, issuer: iss }, caller);
  if (!finished.ok) {
    const { message, id } = finished.error;
    if (caller === null) return page(c, notDone(message), 400);
    return answerNotAuthorised(c, caller, message, id === null ? OVERVIEW : wayBack(id));
  }
  const { id, name } = finished.value;
  if (caller !== null)
    return redirectDone(c, wayBack(id).path, isId('mcp', id) ? 'mcp_signed_in' : 'connector_authorised');
  return page(c, messagePage('Authorised', `${name} is authorised. You can close this page.`, TO_CONSOLE), 200);
}

/** For a browser without a session. */
function notDone(message: string): Page {
  return messagePage('Not authorised', toSentence(withoutCalls(message)), TO_CONSOLE);
}

function answerNotAuthorised(c: AppContext, caller: Caller, message: string, back: WayBack): Promise<Response> {
  return consolePage(c, caller, notAuthorisedPage(message, back), 400);
}

const OVERVIEW: WayBack = { path: '/', title: 'Overview' };

/** The console page of a connector or an MCP server. */
function wayBack(id: string): WayBack {
  return isId('mcp', id)
    ? { path: `/mcp-servers/${id}`, title: 'Back to the server' }
    : { path: `/connectors/${encodeURIComponent(id)}`, title: 'Back to the connector' };
}
