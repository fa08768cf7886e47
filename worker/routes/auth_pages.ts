import { apiError } from '../../shared/wire/errors.ts';
import { endBrowserSession } from '../sign_in/browser_session.ts';
import type { AppContext } from './app_env.ts';
import { takeSessionCookie } from './auth_cookies.ts';
import { isSameOrigin } from './authenticate.ts';
import { errorReply } from './error_reply.ts';
import { showSignIn } from './pages.ts';

/** `GET /sign-in`: every way there is. */
export function getSignIn(c: AppContext): Promise<Response> {
  return showSignIn(c, 200);
}

/** `POST /auth/logout`: ends the session of this browser, from a page of ours. */
export async function postLogout(c: AppContext): Promise<Response> {
  if (!isSameOrigin(c)) {
    return errorReply(
      c,
      apiError('cross_site_request', 'a browser is signed out only from a page of this control plane'),
    );
  }
  const token = takeSessionCookie(c);
  if (token !== null) await endBrowserSession(c.get('context'), token);
  return c.req.header('accept')?.includes('text/html') === true ? c.redirect('/sign-in', 303) : c.body(null, 204);
}
