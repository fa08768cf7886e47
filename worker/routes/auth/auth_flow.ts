import { callbackQuery, loginQuery, ssoQuery } from '../../../shared/wire/auth.ts';
import { continuePage, ssoPage } from '../../pages/people/sign_in.ts';
import { beginSignIn, finishSignIn, hasSignIn } from '../../sign_in/flows.ts';
import { findSso } from '../../sign_in/find_provider.ts';
import type { AuthProvider } from '../../sign_in/provider.ts';
import type { AppContext } from '../http/app_env.ts';
import { setFlowCookies, setSessionCookie, takeFlowCookies } from './auth_cookies.ts';
import { askToLink } from './auth_identities.ts';
import { findProviderCallback } from './provider_callback.ts';
import { refusalPage } from './auth_refusal.ts';
import { callerOfBrowser } from '../http/authenticate.ts';
import { queryOf } from '../console/browser_query.ts';
import { isAtConsole } from '../console/console_host.ts';
import { handOver } from './hand_over.ts';
import { page, showSignInAgain } from '../console/pages.ts';
import { localPath } from './local_path.ts';

/** `GET /auth/{provider}/login`: redirects the browser to the provider. */
export async function openProvider(c: AppContext): Promise<Response> {
  const where = await findProviderCallback(c);
  if (!where.ok) return refusalPage(c, where.error);
  const { provider, redirectURL } = where.value;
  const query = queryOf(c, loginQuery);
  if (!query.ok) return refusalPage(c, query.error);
  const returnTo = localPath(query.value.return_to);
  if (isFromElsewhere(c)) return askToSignIn(c, provider, returnTo);
  const how = { redirectURL, returnTo, linker: null, clientAddress: c.get('clientAddress') };
  const begun = await beginSignIn(c.get('context'), provider, how);
  if (!begun.ok) return refusalPage(c, begun.error);
  setFlowCookies(c, begun.value);
  return c.redirect(begun.value.url, 303);
}

/**
 * Whether another site's page linked here. Such a page must not sign a browser in by itself: whoever runs a provider,
 * such as an enterprise's, could sign other people in as a user of its own and see what they then store.
 */
function isFromElsewhere(c: AppContext): boolean {
  const site = c.req.header('sec-fetch-site') ?? 'none';
  return site !== 'same-origin' && site !== 'none';
}

function askToSignIn(c: AppContext, { name, title }: AuthProvider, returnTo: string): Promise<Response> {
  const query = new URLSearchParams({ return_to: returnTo });
  return page(c, continuePage({ title, url: `/auth/${name}/login?${query.toString()}` }), 200);
}

/** `GET /auth/{provider}/callback`: the provider's redirect. */
export async function finishProvider(c: AppContext): Promise<Response> {
  const where = await findProviderCallback(c);
  if (!where.ok) return refusalPage(c, where.error);
  const { provider, redirectURL } = where.value;
  const query = queryOf(c, callbackQuery);
  if (!query.ok) return refusalPage(c, query.error);
  const { state = '', code = null, error = null, iss: issuer = null } = query.value;
  if (!isAtConsole(c)) return handOver(c, await hasSignIn(c.get('context'), provider, state));
  const client = c.req.header('user-agent') ?? '';
  const answer = { state, code, error, issuer, redirectURL, client, ...takeFlowCookies(c) };
  const finished = await finishSignIn(c.get('context'), provider, answer, await callerOfBrowser(c));
  if (!finished.ok) return refusalPage(c, finished.error);
  if (finished.value.kind === 'links') return askToLink(c, provider, finished.value);
  setSessionCookie(c, finished.value.token);
  return c.redirect(finished.value.returnTo, 303);
}

/** `GET /auth/sso?email=…`: redirects to the provider of the enterprise with the address's domain. */
export async function openSso(c: AppContext): Promise<Response> {
  const query = queryOf(c, ssoQuery);
  if (!query.ok) return showSignInAgain(c, query.error, '');
  const { email = '' } = query.value;
  const found = await findSso(c.get('context'), email);
  if (!found.ok) return showSignInAgain(c, found.error, email);
  const onward = new URLSearchParams({ return_to: localPath(query.value.return_to) });
  return page(c, ssoPage({ name: found.value.name, url: `${found.value.loginUrl}?${onward.toString()}` }), 200);
}
