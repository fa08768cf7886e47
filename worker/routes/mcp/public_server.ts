import type { MiddlewareHandler } from 'hono';
import { ARGUMENT_HEADER } from '../../../shared/mcp/tools/param_headers.ts';
import { apiError } from '../../../shared/wire/errors.ts';
import type { AppContext, AppEnv } from '../http/app_env.ts';
import { errorReply } from '../http/error_reply.ts';
import { calledHost } from '../auth/public_origin.ts';

/** A route of the MCP server of a hosted control plane; it gets the control plane's public origin. */
export function whereServed(
  answer: (c: AppContext, publicUrl: string) => Response | Promise<Response>,
): (c: AppContext) => Response | Promise<Response> {
  return (c) => {
    const { local, publicUrl } = c.get('context');
    if (local !== null) return errorReply(c, apiError('not_found', ON_OWN_MACHINE));
    if (publicUrl === null) return errorReply(c, apiError('not_found', NO_PUBLIC_URL));
    if (!isOwnHost(c, publicUrl)) return errorReply(c, apiError('misdirected_host', OTHER_HOST));
    return answer(c, publicUrl);
  };
}

const ON_OWN_MACHINE = 'only a hosted control plane is an MCP server: on your own machine, use svc mcp gateway';
const NO_PUBLIC_URL = 'this control plane has no configured address: whoever runs it must set SVC_PUBLIC_URL';
const OTHER_HOST = 'the MCP server answers only under the configured address of this control plane';

/** The page of a site whose name resolves to this server (DNS rebinding) calls it under that name. */
function isOwnHost(c: AppContext, publicUrl: string): boolean {
  const host = calledHost(c);
  return host === new URL(publicUrl).host || c.get('context').signIn.allowedHosts.includes(host);
}

/**
 * Web clients read the replies of these paths, refusals too, which would be a network error to them otherwise. No cookie
 * counts there, so any page may.
 */
export function allowAnyOrigin(paths: readonly string[]): MiddlewareHandler<AppEnv> {
  return async (c, next) => {
    await next();
    if (c.get('context').local !== null || !paths.includes(c.req.path)) return;
    c.header('access-control-allow-origin', '*');
    c.header('access-control-expose-headers', 'WWW-Authenticate');
  };
}

/** The answer to the question of a browser before a request of another origin's page. */
export function answerPreflight(c: AppContext): Response {
  c.header('access-control-allow-methods', 'GET, POST');
  c.header('access-control-allow-headers', [...ALLOWED_HEADERS, ...argumentHeaders(c)].join(', '));
  c.header('access-control-max-age', '600');
  return c.body(null, 204);
}

const ALLOWED_HEADERS: readonly string[] = [
  'Authorization',
  'Content-Type',
  'Accept',
  'MCP-Protocol-Version',
  'Mcp-Session-Id',
  'Last-Event-ID',
  'Mcp-Method',
  'Mcp-Name',
];

/** Those that the browser wants to send which repeat arguments. A tool names them, and CORS has no wildcard for a beginning. */
function argumentHeaders(c: AppContext): readonly string[] {
  const wanted = (c.req.header('access-control-request-headers') ?? '').split(',').map((name) => name.trim());
  return wanted.filter((name) => ARGUMENT_HEADER.test(name));
}
