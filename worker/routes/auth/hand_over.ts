import { messagePage } from '../../pages/frame/layout.ts';
import type { AppContext } from '../http/app_env.ts';
import { isStranger } from '../http/authenticate.ts';
import { consoleOrigin } from '../console/console_host.ts';
import { page, TO_CONSOLE } from '../console/pages.ts';

/**
 * Redirects a browser that returned from a provider to a loopback name to the console's host name, where the session
 * cookie is and the state is used up. `isLive`: the state belongs to a sign-in in progress. Without one, the console's
 * name is not revealed; nor to another user of the machine, if the system identifies callers.
 */
export async function handOver(c: AppContext, isLive: boolean): Promise<Response> {
  const { local } = c.get('context');
  if (local === null || !isLive || (await isStranger(c))) {
    return page(c, messagePage('Sign-in', OVER, TO_CONSOLE), 400);
  }
  const { pathname, search } = new URL(c.req.url);
  return c.redirect(consoleOrigin(local.consoleHost, c.req.url) + pathname + search, 303);
}

const OVER =
  'This sign-in was not started here, was used already, or has expired after ten minutes: start again in the console.';
