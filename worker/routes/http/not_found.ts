import { apiError } from '../../../shared/wire/errors.ts';
import { unknownAddressPage } from '../../pages/frame/unknown_address.ts';
import { ownPage } from '../console/pages.ts';
import type { AppContext } from './app_env.ts';
import { errorReply } from './error_reply.ts';
import { pathPattern, type RouteName } from './form_pages.ts';
import { isScimPath } from './scim_error.ts';

/**
 * Answers unknown paths, and known paths with an unsupported method: a program gets the error, a browser a page. A
 * browser that follows the address of a form is led to the form's page.
 */
export function answerNotFound(routes: readonly RouteName[]): (c: AppContext) => Response | Promise<Response> {
  const patterns = routes.map(([method, path]) => ({ method: method.toUpperCase(), pattern: pathPattern(path) }));
  return (c) => {
    const methods = patterns.filter(({ pattern }) => pattern.test(c.req.path)).map(({ method }) => method);
    if (methods.length === 0) {
      if (isForPage(c)) return ownPage(c, unknownAddressPage(), 404);
      return errorReply(c, apiError('not_found', 'this path does not exist: /docs lists the API'));
    }
    const allowed = [...new Set(methods.flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method])))];
    c.header('allow', allowed.join(', '));
    if (isForPage(c)) {
      const page = c.get('pageOfForm')(c.req.path);
      return page === c.req.path ? ownPage(c, unknownAddressPage(), 405) : c.redirect(page, 303);
    }
    const message = `this path does not support ${c.req.method}: use ${allowed.join(' or ')}`;
    return errorReply(c, apiError('method_not_allowed', message));
  };
}

/** Whether a person follows an address, not a program. Paths of the API answer everybody in its format. */
function isForPage({ req }: AppContext): boolean {
  const isRead = req.method === 'GET' || req.method === 'HEAD';
  return (
    isRead &&
    !req.path.startsWith('/v1/') &&
    !isScimPath(req.path) &&
    (req.header('accept') ?? '').includes('text/html')
  );
}
