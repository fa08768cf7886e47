import type { Result } from '../../../shared/model/result.ts';
import { clientConsentPage, clientRefusedPage } from '../../pages/mcp/client_consent.ts';
import type { Caller } from '../../kernel/caller.ts';
import { listServedServers } from '../../services/mcp/served/served_servers.ts';
import {
  type AuthorisationRefusal,
  type AuthorisationRequest,
  readAuthorisationRequest,
} from '../../tokens/mcp/authorisation_request.ts';
import { connectMcpClient, denyMcpClient } from '../../tokens/mcp/mcp_connections.ts';
import { oauthError, type OAuthRefusal } from '../../tokens/mcp/oauth_refusal.ts';
import type { AppContext } from '../http/app_env.ts';
import { forChange, forReader, problem } from '../console/console.ts';
import { consolePage } from '../console/pages.ts';
import { AUTHORIZE_PATH } from './oauth_endpoints.ts';
import { whereServed } from './public_server.ts';

/** A longer request would be lost when the user signs in first. */
const MAX_REQUEST = 2_000;

/** `GET /oauth/authorize`: asks the signed-in user about a client. Every request asks again; nothing is remembered. */
export const getClientConsent = whereServed((c, publicUrl) =>
  forReader(async (_, caller) => {
    const request = await readRequest(c, caller);
    if (!request.ok) return answerRefusal(c, caller, publicUrl, request.error);
    const { client, redirectUri } = request.value;
    const served = await listServedServers(c.get('context'), caller);
    const action = AUTHORIZE_PATH + new URL(c.req.url).search;
    const page = clientConsentPage({ client, redirectUri, action, served });
    return consolePage(c, caller, page, 200, 'any');
  })(c),
);

/** `POST /oauth/authorize`: the decision, by the form of that page. The request is read again, from the form's address. */
export const submitClientConsent = whereServed((c, publicUrl) =>
  forChange(async (_, caller, { decision }) => {
    const context = c.get('context');
    const request = await readRequest(c, caller);
    if (!request.ok) return answerRefusal(c, caller, publicUrl, request.error);
    if (decision !== 'connect') {
      const denied = await denyMcpClient(context, caller, request.value);
      if (!denied.ok) return problem(c, caller, denied.error);
      return redirect(c, publicUrl, request.value, oauthError('access_denied', 'the user did not connect it'));
    }
    const code = await connectMcpClient(context, caller, request.value);
    return code.ok ? redirect(c, publicUrl, request.value, { code: code.value }) : problem(c, caller, code.error);
  })(c),
);

async function readRequest(
  c: AppContext,
  { userId }: Caller,
): Promise<Result<AuthorisationRequest, AuthorisationRefusal>> {
  const { search, searchParams } = new URL(c.req.url);
  if (search.length > MAX_REQUEST) {
    return { ok: false, error: { to: 'user', message: 'The request of the client is too long.' } };
  }
  return readAuthorisationRequest(c.get('context'), userId, searchParams);
}

/**
 * A page in either case. Anybody may register a client, so a link to this page could otherwise send people to any site
 * without a word (RFC 9700 section 4.11.2). The person may go back to the client, which learns then why it got no code.
 */
function answerRefusal(
  c: AppContext,
  caller: Caller,
  publicUrl: string,
  refusal: AuthorisationRefusal,
): Promise<Response> {
  const view =
    refusal.to === 'user'
      ? clientRefusedPage(refusal.message, null)
      : clientRefusedPage(
          `Its request is not valid: ${refusal.why.error_description}.`,
          answerUrl(publicUrl, refusal, refusal.why),
        );
  return consolePage(c, caller, view, 400);
}

type Answered = Pick<AuthorisationRequest, 'redirectUri' | 'state'>;
type Answer = { readonly code: string } | OAuthRefusal;

/** Back to the client. */
function redirect(c: AppContext, publicUrl: string, request: Answered, answer: Answer): Response {
  return c.redirect(answerUrl(publicUrl, request, answer), 303);
}

/** The redirect URI as it was registered, with the answer and the name of this server (RFC 9207). */
function answerUrl(publicUrl: string, { redirectUri, state }: Answered, answer: Answer): string {
  const query = new URLSearchParams(Object.entries(answer));
  if (state !== null) query.append('state', state);
  query.append('iss', publicUrl);
  return `${redirectUri}${redirectUri.includes('?') ? '&' : '?'}${query.toString()}`;
}
