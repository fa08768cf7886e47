import { messagePage } from '../../pages/frame/layout.ts';
import type { AppContext } from '../http/app_env.ts';
import { isStranger } from '../http/authenticate.ts';
import { consoleOrigin } from '../console/console_host.ts';
import { page } from '../console/pages.ts';

/**
 * Sends a browser that came back from a provider to a loopback name on to the console, which finishes what began there: its
 * own cookie says whose browser this is, and the state is used up there. `isLive`: the state is of something that began and
 * is not over. Nobody else is told the console's name, and no other user of the machine where the system tells who calls.
 */
export async function handOver(c: AppContext, isLive: boolean): Promise<Response> {
  const { local } = c.get('context');
  if (local === null || !isLive || (await isStranger(c))) {
    return page(c, messagePage('Sign-in', OVER), 400);
  }
  const { pathname, search } = new URL(c.req.url);
  return c.redirect(consoleOrigin(local.consoleHost, c.req.url) + pathname + search, 303);
}

const OVER =
  'This sign-in was not begun here, was used already, or its ten minutes are over: begin again in the console.';
