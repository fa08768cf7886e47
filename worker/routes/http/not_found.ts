import { apiError } from '../../../shared/wire/errors.ts';
import { unknownAddressPage } from '../../pages/frame/unknown_address.ts';
import { ownPage } from '../console/pages.ts';
import type { AppContext } from './app_env.ts';
import { errorReply } from './error_reply.ts';
import { isScimPath } from './scim_error.ts';

/** A method and a path of the route table. */
export type RouteName = readonly [method: string, path: string];

/** Answers unknown paths, and known paths with an unsupported method: a browser gets a page, a program the error. */
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
    const message = `this path does not support ${c.req.method}: use ${allowed.join(' or ')}`;
    return errorReply(c, apiError('method_not_allowed', message));
  };
}

/** `{id}` is one segment, `{path+}` is the rest. */
function pathPattern(path: string): RegExp {
  const pattern = path
    .replaceAll('.', '\\.')
    .replaceAll(/\{\w+\+\}/g, '[^]+')
    .replaceAll(/\{\w+\}/g, '[^/]+');
  return new RegExp(`^${pattern}$`);
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
