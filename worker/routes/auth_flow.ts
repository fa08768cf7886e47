import { err, ok, type Result } from '../../shared/model/result.ts';
import { apiError, type ApiError, ERROR_STATUS } from '../../shared/wire/errors.ts';
import { messagePage } from '../pages/layout.ts';
import { beginBrowserSession } from '../sign_in/browser_session.ts';
import { ssoPage } from '../pages/sign_in.ts';
import { findSso } from '../sign_in/find_sso.ts';
import { findProvider } from '../sign_in/find_provider.ts';
import { beginSignIn, finishSignIn } from '../sign_in/flows.ts';
import type { AuthProvider } from '../sign_in/provider.ts';
import type { AppContext } from './app_env.ts';
import { setFlowCookies, setSessionCookie, takeFlowCookies } from './auth_cookies.ts';
import { page } from './pages.ts';
import { publicOrigin } from './public_origin.ts';
import { localPath } from './return_to.ts';

/** `GET /auth/{provider}/login`: sends the browser to the provider. */
export async function openProvider(c: AppContext): Promise<Response> {
  const where = await whereOf(c);
  if (!where.ok) return refusalPage(c, where.error);
  const { provider, redirectURL } = where.value;
  const returnTo = localPath(c.req.query('return_to'));
  const begun = await beginSignIn(c.get('context'), provider, { redirectURL, returnTo });
  if (!begun.ok) return refusalPage(c, begun.error);
  setFlowCookies(c, begun.value);
  return c.redirect(begun.value.url, 303);
}

/** `GET /auth/{provider}/callback`: where the provider sends the browser back to. */
export async function finishProvider(c: AppContext): Promise<Response> {
  const where = await whereOf(c);
  if (!where.ok) return refusalPage(c, where.error);
  const { provider, redirectURL } = where.value;
  const { state = '', code = null, error = null, iss: issuer = null } = c.req.query();
  const answer = { state, code, error, issuer, redirectURL, ...takeFlowCookies(c) };
  const finished = await finishSignIn(c.get('context'), provider, answer);
  if (!finished.ok) return refusalPage(c, finished.error);
  const meta = { provider: provider.name, client: c.req.header('user-agent') ?? '' };
  setSessionCookie(c, await beginBrowserSession(c.get('context'), finished.value.userId, meta));
  return c.redirect(finished.value.returnTo, 303);
}

/** `GET /auth/sso?email=…`: the way to the provider of the enterprise that has the domain of an address. */
export async function openSso(c: AppContext): Promise<Response> {
  const found = await findSso(c.get('context'), c.req.query('email') ?? '');
  if (!found.ok) return refusalPage(c, found.error);
  const query = new URLSearchParams({ return_to: localPath(c.req.query('return_to')) });
  return page(c, ssoPage({ name: found.value.name, url: `${found.value.loginUrl}?${query.toString()}` }), 200);
}

/** The provider that the path names, and the callback URL of it under the name that the browser called. */
async function whereOf(
  c: AppContext,
): Promise<Result<{ readonly provider: AuthProvider; readonly redirectURL: string }, ApiError>> {
  const provider = await findProvider(c.get('context'), c.req.param('provider') ?? '');
  if (provider === null) {
    return err(apiError('not_found', 'there is no such provider here: GET /auth/providers lists those there are'));
  }
  const origin = publicOrigin(c);
  return origin.ok ? ok({ provider, redirectURL: `${origin.value}/auth/${provider.name}/callback` }) : origin;
}

export function refusalPage(c: AppContext, error: ApiError): Promise<Response> {
  return page(c, messagePage('Not signed in', `${error.message}.`), ERROR_STATUS[error.code]);
}
