import { getCookie } from 'hono/cookie';
import type { MiddlewareHandler } from 'hono';
import { apiError, type ApiError } from '../../../shared/wire/errors.ts';
import type { Scope } from '../../../shared/wire/tokens.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { ProgramContext } from '../../installation/program_context.ts';
import { authenticateCall, findEnd } from '../../services/sidecars/sidecar_calls.ts';
import { findUserOfBearer, findUserOfBrowser, type SignedIn } from '../../tokens/signed_in.ts';
import type { AppContext, AppEnv } from './app_env.ts';
import { isAtConsole } from '../console/console_host.ts';
import { errorReply } from './error_reply.ts';
import { readBody } from './late_body.ts';

/** The session cookie. If hosted, its prefix binds it to this host, the path / and https. */
export function sessionCookie(context: Pick<ProgramContext, 'local'>): '__Host-session' | 'svc_session' {
  return context.local === null ? '__Host-session' : 'svc_session';
}

/**
 * Authenticates a user by a bearer token or a session cookie. `scope` is required of a personal token; with null,
 * personal tokens are refused.
 */
export function authenticateUser(scope: Scope | null): MiddlewareHandler<AppEnv> {
  return async (c, next) => {
    const token = bearerToken(c);
    const signedIn = token === null ? await findBrowserUser(c) : await findUserOfBearer(c.get('context'), token);
    if (signedIn === null) return errorReply(c, unauthenticatedError(c));
    if (token === null && !isSafe(c.req.method) && !isSameOrigin(c)) return errorReply(c, crossSite());
    if (!isFor(signedIn, scope)) return errorReply(c, insufficientScope(scope));
    c.set('caller', signedIn.caller);
    return next();
  };
}

/**
 * The user, or nobody: a sign-in is optional. An invalid bearer token is refused, because its sender means to be
 * authenticated. An expired cookie is ignored, because browsers keep sending it.
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

/** Authenticates a sidecar by a token that signs this call. */
export const authenticateSidecar: MiddlewareHandler<AppEnv> = async (c, next) => {
  const token = bearerToken(c);
  if (token === null)
    return errorReply(c, apiError('unauthenticated', 'sign the call with the key this sidecar enrolled'));
  const url = new URL(c.req.url);
  let isLateBody = false;
  const readCallBody = async () => {
    const { body, isLate } = await readBody(c, () => c.req.arrayBuffer());
    isLateBody = isLate;
    return new Uint8Array(body);
  };
  const call = { token, method: c.req.method, target: url.pathname + url.search, readBody: readCallBody };
  const sidecar = await authenticateCall(c.get('context'), call);
  if (!sidecar.ok) return errorReply(c, sidecar.error);
  const ended = isLateBody ? await findEnd(c.get('context'), sidecar.value) : null;
  if (ended !== null) return errorReply(c, ended);
  c.set('sidecar', sidecar.value);
  return next();
};

/** The caller signed in with this browser's cookie. */
export async function callerOfBrowser(c: AppContext): Promise<Caller | null> {
  return (await findBrowserUser(c))?.caller ?? null;
}

async function findBrowserUser(c: AppContext): Promise<SignedIn | null> {
  const context = c.get('context');
  const token = isAtConsole(c) ? getCookie(c, sessionCookie(context)) : undefined;
  if (token === undefined || (await isStranger(c))) return null;
  return findUserOfBrowser(context, token);
}

/** In local mode a session belongs to one user's browser: another user of the machine with its cookie stole it. */
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
 * Browsers send the cookie with requests of any site's pages, but only our own may change anything. `Sec-Fetch-Site`
 * tells whether the page is ours; a form of a page without referrer has the origin `null`.
 */
export function isSameOrigin(c: AppContext): boolean {
  const asked = c.req.header('origin');
  const site = c.req.header('sec-fetch-site');
  if (site !== undefined && site !== 'same-origin') return false;
  if (asked === undefined || asked === 'null') return site === 'same-origin';
  return isOurOrigin(c, asked);
}

/**
 * Behind a TLS proxy the URL here is http, so the configured origins are compared. A page of the same host over plain
 * http is not ours: an attacker on the network may have written it.
 */
function isOurOrigin(c: AppContext, origin: string): boolean {
  const { local, publicUrl, signIn } = c.get('context');
  if (local !== null) return origin === new URL(c.req.url).origin;
  if (origin === publicUrl || signIn.allowedHosts.some((host) => origin === `https://${host}`)) return true;
  return origin === new URL(c.req.url).origin && origin.startsWith('https:');
}

/** The same message for a wrong, expired or revoked token and for a suspended or unknown user. */
function unauthenticatedError(c: AppContext): ApiError {
  const fix =
    c.get('context').local === null
      ? 'send "Authorization: Bearer" with an access token or a personal token, or sign the browser in'
      : 'send "Authorization: Bearer" with the key in $SVC_HOME/local.key or a personal token, or sign the browser in with a sign-in link';
  return apiError('unauthenticated', `no valid credentials: ${fix}`);
}

function insufficientScope(scope: Scope | null): ApiError {
  const message =
    scope === null
      ? 'personal tokens cannot call this: sign in'
      : `this personal token lacks the scope ${scope}: create one with it at POST /v1/tokens`;
  return apiError('insufficient_scope', message, { scope });
}

export function crossSite(): ApiError {
  return apiError('cross_site_request', 'changes with a session cookie must come from a page of this control plane');
}
