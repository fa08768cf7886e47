import { getCookie } from 'hono/cookie';
import type { MiddlewareHandler } from 'hono';
import { apiError, type ApiError } from '../../../shared/wire/errors.ts';
import type { Scope } from '../../../shared/wire/tokens.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { ProgramContext } from '../../installation/program_context.ts';
import { authenticateCall } from '../../services/sidecars/sidecar_calls.ts';
import { signedInByBearer, signedInByBrowser, type SignedIn } from '../../tokens/signed_in.ts';
import type { AppContext, AppEnv } from './app_env.ts';
import { isAtConsole } from '../console/console_host.ts';
import { errorReply } from './error_reply.ts';

/** The cookie of a browser's session. Hosted, its prefix keeps it from every other host, path and plain http. */
export function sessionCookie(context: Pick<ProgramContext, 'local'>): '__Host-session' | 'svc_session' {
  return context.local === null ? '__Host-session' : 'svc_session';
}

/**
 * A user: by a bearer token, or by the cookie of a browser that signed in. `scope` is what a personal token has to be for;
 * with null no personal token will do.
 */
export function authenticateUser(scope: Scope | null): MiddlewareHandler<AppEnv> {
  return async (c, next) => {
    const token = bearerToken(c);
    const signedIn = token === null ? await signedInBrowser(c) : await signedInByBearer(c.get('context'), token);
    if (signedIn === null) return errorReply(c, unauthenticated(c));
    if (token === null && !isSafe(c.req.method) && !isSameOrigin(c)) return errorReply(c, crossSite());
    if (!isFor(signedIn, scope)) return errorReply(c, insufficientScope(scope));
    c.set('caller', signedIn.caller);
    return next();
  };
}

/**
 * Who calls, or nobody: credentials are not needed. A bearer token that is given has to be good, for whoever gives one means
 * to be known; a browser whose sign-in is over sends its cookie all the same.
 */
export function authenticateVisitor(scope: Scope | null): MiddlewareHandler<AppEnv> {
  const authenticate = authenticateUser(scope);
  return async (c, next) => {
    if (bearerToken(c) !== null) {
      return authenticate(c, () => {
        c.set('visitor', c.get('caller'));
        return next();
      });
    }
    c.set('visitor', await callerOfBrowser(c));
    return next();
  };
}

/** A sidecar: by a token that signs this very call. */
export const authenticateSidecar: MiddlewareHandler<AppEnv> = async (c, next) => {
  const token = bearerToken(c);
  if (token === null)
    return errorReply(c, apiError('unauthenticated', 'sign the call with the key this sidecar enrolled'));
  const url = new URL(c.req.url);
  const readBody = async () => new Uint8Array(await c.req.arrayBuffer());
  const call = { token, method: c.req.method, target: url.pathname + url.search, readBody };
  const sidecar = await authenticateCall(c.get('context'), call);
  if (!sidecar.ok) return errorReply(c, sidecar.error);
  c.set('sidecar', sidecar.value);
  return next();
};

/** The caller signed in with this browser's cookie. */
export async function callerOfBrowser(c: AppContext): Promise<Caller | null> {
  return (await signedInBrowser(c))?.caller ?? null;
}

async function signedInBrowser(c: AppContext): Promise<SignedIn | null> {
  const context = c.get('context');
  const token = isAtConsole(c) ? getCookie(c, sessionCookie(context)) : undefined;
  if (token === undefined || (await isStranger(c))) return null;
  return signedInByBrowser(context, token);
}

/** In local mode a cookie is of one user's browser: another user of the machine who has it stole it. */
export async function isStranger(c: AppContext): Promise<boolean> {
  return c.get('context').local !== null && (await c.get('isOtherUser')());
}

function isFor({ scopes }: SignedIn, scope: Scope | null): boolean {
  return scopes === null || (scope !== null && scopes.includes(scope));
}

function bearerToken(c: AppContext): string | null {
  const header = c.req.header('authorization');
  if (header === undefined) return null;
  return /^Bearer +([\w.~+/=-]+)$/i.exec(header)?.[1] ?? '';
}

function isSafe(method: string): boolean {
  return method === 'GET' || method === 'HEAD';
}

/**
 * A cookie goes along with whatever page asks; only a page of ours may change anything with it. A browser says by
 * `Sec-Fetch-Site` whether the page is ours, and a form of a page without a referrer names the origin `null`.
 */
export function isSameOrigin(c: AppContext): boolean {
  const asked = c.req.header('origin');
  const site = c.req.header('sec-fetch-site');
  if (site !== undefined && site !== 'same-origin') return false;
  if (asked === undefined || asked === 'null') return site === 'same-origin';
  return isOurOrigin(c, asked);
}

/**
 * Behind a proxy that ends TLS the URL here is one of http, and the configured origins are those in the browser. A page of
 * the same name over plain http is not ours: anybody between it and the browser may have written it.
 */
function isOurOrigin(c: AppContext, origin: string): boolean {
  const { local, publicUrl, signIn } = c.get('context');
  if (local !== null) return origin === new URL(c.req.url).origin;
  if (origin === publicUrl || signIn.allowedHosts.some((host) => origin === `https://${host}`)) return true;
  return origin === new URL(c.req.url).origin && origin.startsWith('https:');
}

/** One sentence for a token that is wrong, expired or revoked, and for a user that is suspended or was never there. */
function unauthenticated(c: AppContext): ApiError {
  const fix =
    c.get('context').local === null
      ? 'send "Authorization: Bearer" with an access token or a personal token, or sign the browser in'
      : 'send "Authorization: Bearer" with the key in $SVC_HOME/local.key or a personal token, or sign the browser in with a sign-in link';
  return apiError('unauthenticated', `no valid credentials: ${fix}`);
}

function insufficientScope(scope: Scope | null): ApiError {
  const message =
    scope === null
      ? 'no personal token is for this: sign in'
      : `this personal token is not for ${scope}: make one that is, with POST /v1/tokens`;
  return apiError('insufficient_scope', message, { scope });
}

export function crossSite(): ApiError {
  return apiError('cross_site_request', 'a signed-in browser may change things only from a page of this control plane');
}
