import { apiError } from '../../../shared/wire/errors.ts';
import type { AppContext } from './app_env.ts';
import { errorReply } from './error_reply.ts';

/** A method and a path of the route table. */
export type RouteName = readonly [method: string, path: string];

/** Answers unknown paths, and known paths with an unsupported method. */
export function answerNotFound(routes: readonly RouteName[]): (c: AppContext) => Response {
  const patterns = routes.map(([method, path]) => ({ method: method.toUpperCase(), pattern: pathPattern(path) }));
  return (c) => {
    const methods = patterns.filter(({ pattern }) => pattern.test(c.req.path)).map(({ method }) => method);
    if (methods.length === 0) {
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
