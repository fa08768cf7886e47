import { getCookie } from 'hono/cookie';
import type { MiddlewareHandler } from 'hono';
import { apiError, type ApiError } from '../../shared/wire/errors.ts';
import type { Caller } from '../services/caller.ts';
import { accountOfBearer, accountOfSession } from '../services/sign_in.ts';
import { authenticateCall } from '../services/sidecar_calls.ts';
import type { AppContext, AppEnv } from './app_env.ts';
import { errorReply } from './error_reply.ts';

export const SESSION_COOKIE = 'svc_session';

/** A user: by a bearer token, or by the cookie of a browser that signed in. */
export const authenticateUser: MiddlewareHandler<AppEnv> = async (c, next) => {
  const token = bearerToken(c);
  const caller = token === null ? await callerOfBrowser(c) : await callerOfBearer(c, token);
  if (caller === null) return errorReply(c, unauthenticated());
  if (token === null && !isSafe(c.req.method) && !isSameOrigin(c)) return errorReply(c, crossSite());
  c.set('caller', caller);
  return next();
};

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
  const token = getCookie(c, SESSION_COOKIE);
  if (token === undefined) return null;
  return toCaller(await accountOfSession(c.get('context'), token));
}

async function callerOfBearer(c: AppContext, token: string): Promise<Caller | null> {
  return toCaller(await accountOfBearer(c.get('context'), token));
}

function toCaller(account: Awaited<ReturnType<typeof accountOfSession>>): Caller | null {
  if (account === null) return null;
  const { id, enterpriseId, role } = account.user;
  return { userId: id, enterpriseId, role };
}

function bearerToken(c: AppContext): string | null {
  const header = c.req.header('authorization');
  if (header === undefined) return null;
  return /^Bearer +([\w.~+/=-]+)$/i.exec(header)?.[1] ?? '';
}

function isSafe(method: string): boolean {
  return method === 'GET' || method === 'HEAD';
}

/** A cookie goes along with whatever page asks; only a page of ours may change anything with it. */
function isSameOrigin(c: AppContext): boolean {
  const { origin } = new URL(c.req.url);
  const asked = c.req.header('origin');
  const site = c.req.header('sec-fetch-site');
  if (asked !== undefined && asked !== origin) return false;
  if (site !== undefined) return site === 'same-origin';
  return asked === origin;
}

function unauthenticated(): ApiError {
  const message =
    'no valid credentials: send "Authorization: Bearer" with the key in $SVC_HOME/local.key, or sign the browser in with a sign-in link';
  return apiError('unauthenticated', message);
}

function crossSite(): ApiError {
  return apiError('cross_site_request', 'a signed-in browser may change things only from a page of this control plane');
}
