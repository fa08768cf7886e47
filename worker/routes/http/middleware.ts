import type { MiddlewareHandler } from 'hono';
import { routePath } from 'hono/route';
import { apiError } from '../../../shared/wire/errors.ts';
import type { BindingTemplate } from '../../../shared/wire/binding_template.ts';
import type { ReadyService } from '../../../shared/wire/ready_services.ts';
import { newId } from '../../../shared/wire/ids.ts';
import type { Assets } from '../../pages/frame/assets.ts';
import type { ProgramContext } from '../../installation/program_context.ts';
import type { AppContext, AppEnv, Log } from './app_env.ts';
import { isAtConsole, isLoopbackName } from '../console/console_host.ts';
import { errorReply } from './error_reply.ts';

/** Gives each request an id for its reply and the log. */
export const nameRequest: MiddlewareHandler<AppEnv> = async (c, next) => {
  const requestId = newId('req', crypto.getRandomValues(new Uint8Array(16)));
  c.set('requestId', requestId);
  await next();
  c.header('svc-request-id', requestId);
};

/** Logs one line per request. It names the route, not the path, because a path may be a sign-in link. */
export function logRequests(log: Log): MiddlewareHandler<AppEnv> {
  return async (c, next) => {
    const begun = performance.now();
    await next();
    log({
      level: 'info',
      message: 'request',
      request_id: c.get('requestId'),
      method: c.req.method,
      route: routePath(c, -1),
      status: c.res.status,
      milliseconds: Math.round((performance.now() - begun) * 10) / 10,
    });
  };
}

/** Headers of every reply; a page may set its own policy. */
export const sendSafeHeaders: MiddlewareHandler<AppEnv> = async (c, next) => {
  await next();
  c.header('x-content-type-options', 'nosniff');
  c.header('referrer-policy', 'no-referrer');
  if (!c.res.headers.has('content-security-policy')) {
    c.header('content-security-policy', "default-src 'none'; frame-ancestors 'none'");
  }
  if (!c.res.headers.has('cache-control')) c.header('cache-control', 'no-store');
};

/** What pages need besides the services. */
interface PageFiles {
  readonly assets: Assets;
  readonly pageOfForm: (path: string) => string;
  readonly templates: () => readonly BindingTemplate[];
  readonly services: () => readonly ReadyService[];
}

/** Sets the variables with the services and what pages need. */
export function provide(
  context: (c: AppContext) => ProgramContext | Promise<ProgramContext>,
  { assets, pageOfForm, templates, services }: PageFiles,
): MiddlewareHandler<AppEnv> {
  return async (c, next) => {
    c.set('assets', assets);
    c.set('pageOfForm', pageOfForm);
    c.set('templates', templates);
    c.set('services', services);
    c.set('context', await context(c));
    await next();
  };
}

/** Two years. Without includeSubDomains, because other hosts of the domain are not ours. */
const HTTPS_ONLY = 'max-age=63072000';

/**
 * Tells a browser that called a hosted control plane over https to use only https (RFC 6797). Never in local mode,
 * where it would apply to all servers on localhost.
 */
export const demandHttps: MiddlewareHandler<AppEnv> = async (c, next) => {
  await next();
  const { local, publicUrl } = c.get('context');
  const scheme = c.req.header('x-forwarded-proto')?.split(',')[0]?.trim().toLowerCase() ?? new URL(c.req.url).protocol;
  const isHttps = scheme.startsWith('https') || publicUrl?.startsWith('https:') === true;
  if (local === null && isHttps) c.header('strict-transport-security', HTTPS_ONLY);
};

/** What a runtime knows about the caller. */
interface KnownClient {
  readonly address: (c: AppContext) => string | null;
  readonly isOtherUser: (c: AppContext) => Promise<boolean>;
}

/** Sets the variables about the caller. */
export function knowClient({ address, isOtherUser }: KnownClient): MiddlewareHandler<AppEnv> {
  return async (c, next) => {
    c.set('clientAddress', address(c));
    c.set('isOtherUser', () => isOtherUser(c));
    await next();
  };
}

/**
 * In local mode answers only under the console's own name or a loopback name. A page of another site whose name
 * resolves to this machine (DNS rebinding) calls under its own name and is refused. No cookie is ever set under a
 * loopback name, whose cookies go to all servers of this machine.
 */
export const answerLocalNamesOnly: MiddlewareHandler<AppEnv> = async (c, next) => {
  const { hostname } = new URL(c.req.url);
  if (isAtConsole(c)) return next();
  if (!isLoopbackName(hostname)) {
    const message =
      'a local control plane answers only to 127.0.0.1, localhost and [::1], and to the name that svc console prints: call it by one of these';
    return errorReply(c, apiError('misdirected_host', message));
  }
  await next();
  c.res.headers.delete('set-cookie');
  return undefined;
};
