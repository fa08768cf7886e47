import { apiError } from '../../../shared/wire/errors.ts';
import type { AppContext } from '../http/app_env.ts';
import { errorReply } from '../http/error_reply.ts';

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
  const called = [
    c.req.header('x-forwarded-host')?.split(',')[0]?.trim(),
    c.req.header('host'),
    new URL(c.req.url).host,
  ];
  const host = called.find((each) => each !== undefined && each !== '')?.toLowerCase();
  return host === new URL(publicUrl).host || c.get('context').signIn.allowedHosts.some((each) => each === host);
}

/** Web clients read replies of other origins. No cookie counts here, so any page may. */
export function allowAnyOrigin(c: AppContext): void {
  for (const [name, value] of Object.entries(ANY_ORIGIN)) c.header(name, value);
}

export const ANY_ORIGIN = {
  'access-control-allow-origin': '*',
  'access-control-expose-headers': 'WWW-Authenticate',
};

/** The answer to the question of a browser before a request of another origin's page. */
export function answerPreflight(c: AppContext): Response {
  allowAnyOrigin(c);
  c.header('access-control-allow-methods', 'GET, POST');
  c.header('access-control-allow-headers', ALLOWED_HEADERS);
  c.header('access-control-max-age', '600');
  return c.body(null, 204);
}

const ALLOWED_HEADERS =
  'Authorization, Content-Type, Accept, MCP-Protocol-Version, Mcp-Session-Id, Last-Event-ID, Mcp-Method, Mcp-Name';
